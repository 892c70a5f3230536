//! What is known of volumes, for people and statistics.

use std::sync::Arc;

use actor::{Ctx, Handler, MessageResult};
use contract::volume::{ListVolumes, VolumeRow, VolumeStage};
use model::core::Pod;
use model::pod;

use super::VolumeManager;
use crate::deps::Tools;
use crate::layout::{CONFIG_MAP, DOWNWARD_API, SECRET};
use crate::spec::{self, Kind};

impl Handler<ListVolumes> for VolumeManager {
    type Result = MessageResult<ListVolumes>;

    fn handle(&mut self, ListVolumes: ListVolumes, _: &mut Ctx<Self>) -> Self::Result {
        let mut rows = self.tools.deps.persistent.rows();
        for (pod, all_mounted) in self.tools.deps.desired.all() {
            rows.extend(of_pod(&self.tools, &pod, all_mounted));
        }
        MessageResult(Arc::new(rows))
    }
}

/// Volumes that are made here for one pod.
fn of_pod(tools: &Tools, pod: &Pod, all_mounted: bool) -> Vec<VolumeRow> {
    let uid = pod::uid(pod);
    let row = tools.rows.get(&uid);
    let here = spec::used_volumes(pod).into_iter().filter(|(_, kind)| *kind != Kind::Persistent);
    let line = |(volume, kind): (&model::core::Volume, Kind)| {
        let has_dir = row.as_ref().is_some_and(|r| r.present.contains(&volume.name));
        let stage = if all_mounted || has_dir { VolumeStage::Mounted } else { VolumeStage::Waiting };
        let error = row.as_ref().and_then(|r| r.error.clone()).filter(|_| stage == VolumeStage::Waiting);
        let (pod, volume, kind) = (Some(uid.clone()), volume.name.clone(), word(&kind).to_owned());
        VolumeRow { pod, volume, kind, stage, error, ..VolumeRow::default() }
    };
    here.map(line).collect()
}

/// The API's name of a kind.
fn word(kind: &Kind) -> &'static str {
    match kind {
        Kind::EmptyDir(_) => "emptyDir",
        Kind::HostPath { .. } => "hostPath",
        Kind::Projected { plugin, .. } => match *plugin {
            CONFIG_MAP => "configMap",
            SECRET => "secret",
            DOWNWARD_API => "downwardAPI",
            _ => "projected",
        },
        Kind::Image => "image",
        Kind::Persistent => "persistentVolumeClaim",
        Kind::Unsupported(name) => name,
    }
}
