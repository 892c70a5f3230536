//! One volume that one pod is to have.

use std::sync::Arc;

use model::core::Pod;
use model::event::{EventObject, EventType, NodeEvent};
use model::pod;

use crate::deps::Tools;
use crate::desired::MountRequest;
use crate::device_map::DeviceMap;
use crate::failed::Failed;
use crate::task::TaskContext;

/// One volume for one pod.
pub(crate) struct Job<'a> {
    pub tools: &'a Tools,
    pub pod: &'a Arc<Pod>,
    pub request: &'a MountRequest,
    pub task: &'a TaskContext,
    /// Name in the pod.
    pub volume: &'a str,
}

impl Job<'_> {
    pub(crate) fn failed(&self, step: &'static str, name: &str, error: impl Into<String>) -> Failed {
        Failed::at(step, self.volume, name, error.into())
    }

    /// Tells that a raw volume is mapped, as a kubelet does: once by the directory of all pods that have it, once by the pod's own.
    pub(crate) fn tell_mapped(&self, name: &str, map: &DeviceMap) {
        let object = EventObject::Pod {
            namespace: pod::namespace(self.pod).to_owned(),
            name: pod::name(self.pod).to_owned(),
            uid: pod::uid(self.pod),
            field_path: String::new(),
        };
        for (what, dir) in ["globalMapPath", "volumeMapPath"].into_iter().zip(map.dirs()) {
            let dir = dir.to_string_lossy();
            let message = format!("MapVolume.MapPodDevice succeeded for volume {name:?} {what} {dir:?}");
            let (kind, reason) = (EventType::Normal, "SuccessfulMountVolume".into());
            self.tools.crew.emit(NodeEvent { kind, reason, message, object: object.clone() });
        }
    }
}
