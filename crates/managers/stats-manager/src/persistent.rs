//! Volumes that outlive pods: what their drivers say of them, and what the file system says of local ones. Nobody who asks for
//! statistics waits for this: each driver is asked by itself in the background, and what was told last is shown.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use actor::{Class, Clock, Effects, chain};
use contract::volume::{VolumeRow, VolumeStage};
use csi_api::v1::node_service_capability::{Type, rpc};
use csi_api::v1::{NodeGetVolumeStatsRequest, VolumeUsage, volume_usage::Unit};
use metrics::Stopwatch;
use metrics::volumes::{COLLECTION, observe_call};
use model::reading::FsReading;
use model::stats::{FsStats, PvcReference, VolumeHealthStats, VolumeStats};
use model::{PodUid, Timestamp};
use node_stats::MeasuredVolume;
use ports::csi::{CsiError, CsiNode, STATS_DEADLINE, grpc_code};
use ports::grpc::Code;
use ports::host::HostError;
use ports::stats::StatsSource;
use tokio::time::Instant;

/// Who says what a volume takes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Lane {
    /// The file system that it is.
    Local,
    /// The file systems that this server shares: one that does not answer holds up its own.
    Server(String),
    /// Its driver.
    Driver(String),
}

/// A volume of a pod.
pub(crate) type Key = (PodUid, String);

/// A volume that is due.
#[derive(Clone, Debug)]
pub(crate) struct Due {
    pub(crate) key: Key,
    handle: String,
    path: PathBuf,
    /// A device: nothing is known of it but its size.
    raw: bool,
    claim: Option<PvcReference>,
    /// Since when; `None`: it was never asked for.
    since: Option<Instant>,
}

/// What became of a round with one who is asked.
#[derive(Debug, Default)]
pub(crate) struct Round {
    pub(crate) told: Vec<Told>,
    /// What was not asked for.
    pub(crate) left: Vec<Due>,
}

/// What was told of a volume.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    pub(crate) key: Key,
    pub(crate) volume: MeasuredVolume,
    /// What its driver finds wrong with it.
    pub(crate) trouble: Option<String>,
}

/// What is known of volumes that outlive pods.
#[derive(Debug, Default)]
pub(crate) struct Persistent {
    /// Volumes are being listed.
    pub(crate) listing: bool,
    busy: BTreeSet<Lane>,
    next: BTreeMap<Key, Instant>,
    told: BTreeMap<Key, MeasuredVolume>,
}

impl Persistent {
    /// What is due of the volumes that there are now, by who is to be asked, and of each what waits longest first: one that never
    /// answers does not come before the others again. Who is asked already is left out.
    pub(crate) fn due(
        &mut self,
        rows: &[VolumeRow],
        namespace: impl Fn(&PodUid) -> Option<String>,
        now: Instant,
        mut pause: impl FnMut() -> Duration,
    ) -> BTreeMap<Lane, Vec<Due>> {
        let mut here = BTreeSet::new();
        let mut due: BTreeMap<Lane, Vec<Due>> = BTreeMap::new();
        for row in rows.iter().filter(|r| r.stage == VolumeStage::Mounted) {
            let (Some(uid), Some(path)) = (&row.pod, &row.path) else { continue };
            let key = (uid.clone(), row.volume.clone());
            let lane = match row.kind.as_str() {
                "csi" => Lane::Driver(row.driver.clone()),
                "local" | "iscsi" | "fc" => Lane::Local,
                "nfs" => Lane::Server(row.driver.clone()),
                _ => continue,
            };
            here.insert(key.clone());
            if self.busy.contains(&lane) || self.next.get(&key).is_some_and(|at| *at > now) {
                continue;
            }
            let since = self.next.insert(key.clone(), now + pause());
            let claim = namespace(uid).filter(|_| !row.claim.is_empty());
            let claim = claim.map(|namespace| PvcReference { name: row.claim.clone(), namespace });
            let one = Due { key, handle: row.handle.clone(), path: path.clone(), raw: row.raw, claim, since };
            due.entry(lane).or_default().push(one);
        }
        self.next.retain(|key, _| here.contains(key));
        self.told.retain(|key, _| here.contains(key));
        self.busy.extend(due.keys().cloned());
        due.values_mut().for_each(|due| due.sort_by_key(|one| one.since));
        due
    }

    /// A lane was asked.
    pub(crate) fn done(&mut self, lane: &Lane, Round { told, left }: Round) {
        self.busy.remove(lane);
        for Due { key, since, .. } in left {
            match since {
                Some(since) => self.next.insert(key, since),
                None => self.next.remove(&key),
            };
        }
        // What went meanwhile goes with the next look.
        self.told.extend(told.into_iter().map(|t| (t.key, t.volume)));
    }

    /// What was told, by pod.
    pub(crate) fn by_pod(&self) -> BTreeMap<PodUid, Vec<MeasuredVolume>> {
        let mut out: BTreeMap<PodUid, Vec<MeasuredVolume>> = BTreeMap::new();
        for ((uid, _), volume) in &self.told {
            out.entry(uid.clone()).or_default().push(volume.clone());
        }
        out
    }
}

/// A driver, and how it is asked.
#[derive(Clone)]
pub(crate) struct Driver {
    pub(crate) name: String,
    pub(crate) csi: Arc<dyn CsiNode>,
    pub(crate) endpoint: PathBuf,
    /// `CSIVolumeHealth`.
    pub(crate) health: bool,
    pub(crate) clock: Clock,
}

/// Asks a driver about these volumes, one after the other. When it does not answer in time, the rest is left for the next look.
pub(crate) async fn ask(driver: &Driver, due: Vec<Due>) -> Round {
    let Driver { name, csi, endpoint, health, clock } = driver;
    let watch = Stopwatch::start();
    let answer = csi.get_capabilities(endpoint, STATS_DEADLINE).await;
    observe_call(name, "NodeGetCapabilities", grpc_code(&answer), false, &watch);
    let can = match answer {
        Ok(answer) => answer.capabilities,
        Err(e) => {
            tracing::debug!(driver = name, error = %e, "what the driver can do is not known: no statistics of its volumes");
            return Round::default();
        }
    };
    let has = |wanted: rpc::Type| {
        can.iter().any(|c| matches!(&c.r#type, Some(Type::Rpc(rpc)) if rpc.r#type == i32::from(wanted)))
    };
    if !has(rpc::Type::GetVolumeStats) {
        return Round::default();
    }
    let tells_health = *health && has(rpc::Type::VolumeCondition);
    let (mut told, mut due) = (Vec::new(), due.into_iter());
    for Due { key, handle, path, claim, .. } in due.by_ref() {
        let volume_path = path.to_string_lossy().into_owned();
        let request = NodeGetVolumeStatsRequest { volume_id: handle, volume_path, ..Default::default() };
        let watch = Stopwatch::start();
        let answer = csi.get_volume_stats(endpoint, request, STATS_DEADLINE).await;
        observe_call(name, "NodeGetVolumeStats", grpc_code(&answer), false, &watch);
        COLLECTION.with_label_values(&[name]).observe(watch.seconds());
        let answer = match answer {
            Ok(answer) => answer,
            Err(e) => {
                tracing::debug!(driver = name, volume = key.1, error = %e, "no statistics of a volume");
                if matches!(e.code(), Some(Code::DeadlineExceeded | Code::Unavailable))
                    || matches!(e, CsiError::Busy(_))
                {
                    break;
                }
                continue;
            }
        };
        if answer.usage.is_empty() && !tells_health {
            continue;
        }
        let condition = answer.volume_condition.unwrap_or_default();
        let health = tells_health.then_some(VolumeHealthStats { abnormal: condition.abnormal });
        let trouble = (tells_health && condition.abnormal).then_some(condition.message);
        let fs = usage(&answer.usage, Timestamp(clock.unix_nanos()));
        let stats = VolumeStats { fs, name: key.1.clone(), pvc_ref: claim, volume_health_stats: health };
        told.push(Told { key, volume: MeasuredVolume { stats, is_local: false }, trouble });
    }
    Round { told, left: due.collect() }
}

/// Numbers of a driver. As in a kubelet, what it does not tell is 0.
#[must_use]
pub fn usage(all: &[VolumeUsage], time: Timestamp) -> FsStats {
    let of = |unit: Unit| all.iter().find(|u| u.unit == i32::from(unit)).cloned().unwrap_or_default();
    let (bytes, inodes) = (of(Unit::Bytes), of(Unit::Inodes));
    let number = |n: i64| Some(u64::try_from(n).unwrap_or(0));
    FsStats {
        time,
        available_bytes: number(bytes.available),
        capacity_bytes: number(bytes.total),
        used_bytes: number(bytes.used),
        inodes_free: number(inodes.available),
        inodes: number(inodes.total),
        inodes_used: number(inodes.used),
    }
}

/// Asks the file systems of local volumes, and the kernel for the sizes of their devices.
pub(crate) async fn look(source: Arc<dyn StatsSource>, effects: Effects, clock: Clock, due: Vec<Due>) -> Round {
    let work = move || {
        let one = |Due { key, path, raw, claim, .. }: Due| {
            let (watch, time) = (Stopwatch::start(), Timestamp(clock.unix_nanos()));
            let (method, fs) = if raw {
                ("block", source.device_size(&path).map(|size| device(size, time)))
            } else {
                ("statfs", source.fs(&path).map(|fs| file_system(&fs, time)))
            };
            COLLECTION.with_label_values(&[method]).observe(watch.seconds());
            let inspect =
                |e: &HostError| tracing::debug!(volume = key.1, error = chain(e), "no statistics of a volume");
            let fs = fs.inspect_err(inspect).ok()?;
            let stats = VolumeStats { fs, name: key.1.clone(), pvc_ref: claim, volume_health_stats: None };
            Some(Told { key, volume: MeasuredVolume { stats, is_local: false }, trouble: None })
        };
        due.into_iter().filter_map(one).collect()
    };
    Round { told: effects.blocking(Class::UserPaths, work).await, left: Vec::new() }
}

fn file_system(fs: &FsReading, time: Timestamp) -> FsStats {
    FsStats {
        time,
        available_bytes: Some(fs.available_bytes),
        capacity_bytes: Some(fs.total_bytes),
        used_bytes: Some(fs.total_bytes.saturating_sub(fs.free_bytes)),
        inodes_free: Some(fs.inodes_free),
        inodes: Some(fs.inodes),
        inodes_used: Some(fs.inodes.saturating_sub(fs.inodes_free)),
    }
}

/// As in a kubelet, what is not known of a device is 0.
fn device(size: u64, time: Timestamp) -> FsStats {
    let none = Some(0);
    FsStats {
        time,
        available_bytes: none,
        capacity_bytes: Some(size),
        used_bytes: none,
        inodes_free: none,
        inodes: none,
        inodes_used: none,
    }
}
