//! What is known of volumes, as people are told.

use std::collections::{BTreeMap, BTreeSet};

use contract::volume::{VolumeCall, VolumeRow, VolumeStage};
use model::{PodUid, Timestamp};
use tokio::time::Instant;
use volume_plan::claim::Mode;
use volume_plan::names::kind;
use volume_plan::source::Source;
use volume_plan::state::Mount;

use super::{Entry, Known, State, Volumes};
use crate::placed::Placed;

/// Turns moments of this process into times of the day.
struct Times {
    now: Instant,
    wall_ns: i64,
}

impl Times {
    fn of(&self, at: Instant) -> Timestamp {
        let ago = self.now.saturating_duration_since(at).as_nanos();
        Timestamp(self.wall_ns.saturating_sub(i64::try_from(ago).unwrap_or(i64::MAX)))
    }
}

impl Volumes {
    /// Every volume that outlives pods, or that a driver makes for one.
    pub(crate) fn rows(&self) -> Vec<VolumeRow> {
        let state = self.state();
        let Some(clock) = &state.clock else { return Vec::new() };
        let times = Times { now: clock.now(), wall_ns: clock.unix_nanos() };
        let mut rows = Vec::new();
        // Of paths of this node no call is ever under way: they follow with all others.
        let is_local = |name: &String| matches!(kind(name), "local" | "hostPath");
        for (name, entry) in state.volumes.iter().filter(|(name, _)| !is_local(name)) {
            of_entry(&mut rows, &state, &times, name, entry);
        }
        let told: BTreeSet<_> = rows.iter().filter_map(|r| Some((r.pod.clone()?, r.volume.clone()))).collect();
        let is_new = |key: &&(PodUid, String)| !told.contains(*key);
        rows.extend(
            state.placed.keys().chain(state.errors.keys()).filter(is_new).collect::<BTreeSet<_>>().into_iter().map(
                |key| {
                    let placed = state.placed.get(key);
                    let stage = if placed.is_some() { VolumeStage::Mounted } else { VolumeStage::Waiting };
                    VolumeRow { stage, error: state.errors.get(key).cloned(), ..described(key, placed) }
                },
            ),
        );
        rows.extend(state.unreadable.iter().map(|u| VolumeRow {
            pod: u.published.as_ref().map(|(uid, _)| uid.clone()),
            kind: "csi".to_owned(),
            path: Some(u.path.clone()),
            stage: VolumeStage::Unreadable,
            error: Some(u.error.clone()),
            ..VolumeRow::default()
        }));
        rows
    }
}

/// What a volume of a pod is made of.
fn described((uid, volume): &(PodUid, String), placed: Option<&Placed>) -> VolumeRow {
    let mut row = VolumeRow { pod: Some(uid.clone()), volume: volume.clone(), ..VolumeRow::default() };
    let Some(placed) = placed else { return row };
    let (kind, server) = match &placed.of.source {
        Source::Csi(_) => ("csi", ""),
        Source::HostPath { .. } => ("hostPath", ""),
        Source::Local { .. } => ("local", ""),
        Source::Lun(lun) => (lun.transport().kind(), ""),
        Source::Nfs { server, .. } => ("nfs", server.as_str()),
    };
    (row.kind, row.driver) = (kind.to_owned(), server.to_owned());
    row.claim = placed.of.claim.as_ref().map(|c| c.name.clone()).unwrap_or_default();
    row.raw = placed.of.mode == Mode::Block;
    row.path = Some(placed.bound.as_ref().unwrap_or(&placed.mounted.host_path).clone());
    row
}

fn of_entry(rows: &mut Vec<VolumeRow>, state: &State, times: &Times, name: &str, entry: &Entry) {
    let (driver, handle) = match kind(name) {
        "csi" => name.strip_prefix("kubernetes.io/csi/").and_then(|rest| rest.split_once('^')).unwrap_or_default(),
        "nfs" => ("", ""),
        // The disk, by the name of its directory.
        _ => ("", name.splitn(3, '/').last().unwrap_or_default()),
    };
    let device = entry.parts.get(&None).cloned().unwrap_or_default();
    let row = |known: &Known, wanted: bool| {
        let stage = match (known.mount, device.mount) {
            (Mount::Uncertain, _) | (Mount::Absent, Mount::Uncertain) => VolumeStage::Uncertain,
            (Mount::Present, _) => VolumeStage::Mounted,
            (Mount::Absent, Mount::Present) => VolumeStage::Staged,
            (Mount::Absent, Mount::Absent) => VolumeStage::Waiting,
        };
        let since = if known.mount == Mount::Absent { device.since } else { known.since };
        let call = known.doing.or(device.doing).map(|(name, at)| (name.to_owned(), times.of(at)));
        VolumeRow {
            kind: kind(name).to_owned(),
            driver: driver.to_owned(),
            handle: handle.to_owned(),
            stage: if wanted { stage } else { VolumeStage::Leaving },
            since: since.map(|at| times.of(at)),
            error: known.error.clone().or_else(|| device.error.clone()),
            call: call.map(|(name, since)| VolumeCall { name, since }),
            ..VolumeRow::default()
        }
    };
    for (uid, names) in &entry.wanted {
        let known = entry.parts.get(&Some(uid.clone())).cloned().unwrap_or_default();
        for volume in names {
            let key = (uid.clone(), volume.clone());
            let VolumeRow { pod, volume, claim, path, raw, driver: server, .. } =
                described(&key, state.placed.get(&key));
            let mut row = VolumeRow { pod, volume, claim, path, raw, ..row(&known, true) };
            row.driver = if server.is_empty() { row.driver } else { server };
            row.error = row.error.or_else(|| state.errors.get(&key).cloned());
            rows.push(row);
        }
    }
    let parts: BTreeMap<_, _> = entry.parts.iter().filter_map(|(part, k)| Some((part.as_ref()?, k))).collect();
    let left = parts.into_iter().filter(|(uid, k)| !entry.wanted.contains_key(*uid) && k.mount != Mount::Absent);
    let left: Vec<VolumeRow> = left.map(|(uid, k)| VolumeRow { pod: Some(uid.clone()), ..row(k, false) }).collect();
    if left.is_empty() && entry.wanted.is_empty() && (entry.is_on_disk || device.mount != Mount::Absent) {
        rows.push(VolumeRow { since: device.since.map(|at| times.of(at)), ..row(&Known::default(), false) });
    }
    rows.extend(left);
}
