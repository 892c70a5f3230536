//! What is done to the tree. Every function blocks and may be repeated.

use std::collections::{BTreeMap, BTreeSet};

use contract::cgroup::{CgroupError, PodCgroup, PodCgroupUse};
use model::PodUid;
use model::core::Pod;
use model::pod;
use model::resources::{self, CgroupValues, QosClass};
use ports::host::{CgroupFs, CgroupVersion, HostError};

use cgroup_values::tiers::Tiers;
use cgroup_values::{system, tree};

use crate::config::{Config, ReservedCgroup};

const CLASSES: [QosClass; 3] = [QosClass::Guaranteed, QosClass::Burstable, QosClass::BestEffort];

fn failed(what: &str, e: &HostError) -> CgroupError {
    CgroupError { message: format!("{what}: {}", actor::chain(e)) }
}

/// Runs one change to the tree, and counts it.
fn counted<T>(operation: &str, work: impl FnOnce() -> T) -> T {
    let watch = metrics::Stopwatch::start();
    let done = work();
    metrics::cgroups::MANAGER_DURATION.with_label_values(&[operation]).observe(watch.seconds());
    done
}

/// Makes `kubepods` and the tiers. The configured root must be there already.
pub(crate) fn set_up(cgroups: &dyn CgroupFs, config: &Config) -> Result<(), CgroupError> {
    let missing = cgroups.missing_controllers();
    if cgroups.version() == CgroupVersion::V1 && !missing.is_empty() {
        return Err(CgroupError {
            message: format!("required cgroup controllers are not mounted: {}", missing.join(", ")),
        });
    }
    let root = config.tree.root();
    if !cgroups.exists(&root).map_err(|e| failed("cgroup root", &e))? {
        return Err(CgroupError { message: format!("cgroup root {root} does not exist") });
    }
    for class in CLASSES {
        let path = config.tree.tier(class);
        counted("create", || cgroups.create(&path)).map_err(|e| failed("failed to create QoS cgroup", &e))?;
    }
    Ok(())
}

/// Limits what is to be limited once, as far as `done` does not have it yet; answers what is done by now, or why not.
pub(crate) fn enforce(cgroups: &dyn CgroupFs, config: &Config, done: &BTreeSet<String>) -> Vec<Enforced> {
    let pods = ("Updated Node Allocatable limit across pods".to_owned(), None);
    let reserved = config.reserved_cgroups.iter().map(|r| {
        let kind = r.what.trim_end_matches(" Compressible").to_lowercase();
        (format!("Updated limits on {kind} cgroup {}", r.name), Some(r))
    });
    std::iter::once(pods)
        .chain(reserved)
        .filter(|(told, _)| !done.contains(told))
        .map(|(told, reserved)| {
            let out = match reserved {
                None => enforce_allocatable(cgroups, config),
                Some(reserved) => enforce_reserved(cgroups, reserved),
            };
            out.map(|()| told)
        })
        .collect()
}

/// What is told of a cgroup that was limited.
pub(crate) type Enforced = Result<String, CgroupError>;

/// Limits all pods together to what the node grants them.
fn enforce_allocatable(cgroups: &dyn CgroupFs, config: &Config) -> Result<(), CgroupError> {
    let values = tree::kubepods_values(&config.capacity, &config.reserved, config.enforce_pods);
    let path = config.tree.kubepods();
    counted("update", || cgroups.set(&path, &values)).map_err(|e| CgroupError {
        message: format!("Failed to update Node Allocatable Limits \"{path}\": {}", actor::chain(&e)),
    })
}

/// Limits the cgroup of those for whom something is set aside.
fn enforce_reserved(cgroups: &dyn CgroupFs, reserved: &ReservedCgroup) -> Result<(), CgroupError> {
    let ReservedCgroup { what, name, path, values } = reserved;
    let failed =
        |why: String| CgroupError { message: format!("Failed to enforce {what} Cgroup Limits on \"{name}\": {why}") };
    match cgroups.exists(path) {
        Ok(true) => {}
        Ok(false) => return Err(failed(format!("cgroup {path} does not exist, or lacks a controller"))),
        Err(e) => return Err(failed(actor::chain(&e))),
    }
    counted("update", || cgroups.set(path, values)).map_err(|e| failed(actor::chain(&e)))
}

/// Writes the tiers' values. With `qosReserved` more may be in use than a tier shall have: then it is held at that.
pub(crate) fn write_tiers(cgroups: &dyn CgroupFs, config: &Config, tiers: &Tiers) -> Result<(), CgroupError> {
    let written = try_tiers(cgroups, config, tiers);
    if written.is_ok() || config.rules.qos_reserved_memory.is_none() {
        return written;
    }
    let used = |class| match cgroups.memory_usage_bytes(&config.tree.tier(class)) {
        Ok(bytes) => Some(bytes),
        Err(e) => {
            tracing::warn!(tier = QosClass::as_str(class), error = %actor::chain(&e), "memory in use cannot be read");
            None
        }
    };
    try_tiers(cgroups, config, &tiers.clone().at_least(used))
}

/// Tries all of them; the first failure is the answer.
fn try_tiers(cgroups: &dyn CgroupFs, config: &Config, tiers: &Tiers) -> Result<(), CgroupError> {
    let all = [
        (QosClass::Guaranteed, &tiers.kubepods),
        (QosClass::Burstable, &tiers.burstable),
        (QosClass::BestEffort, &tiers.best_effort),
    ];
    let set = |path: &str, values: &CgroupValues| match values.memory_limit_bytes {
        // For the kernel that would be no limit.
        Some(..0) => Err(HostError::new("limit memory of", path, std::io::ErrorKind::InvalidInput)),
        _ => cgroups.set(path, values),
    };
    let written = all.map(|(class, values)| counted("update", || set(&config.tree.tier(class), values)));
    let all: Result<(), HostError> = written.into_iter().fold(Ok(()), Result::and);
    all.map_err(|e| failed("failed to update the QoS tiers", &e))
}

/// A pod's cgroup that is there.
pub(crate) struct Ensured {
    pub(crate) cgroup: PodCgroup,
    /// Whether its limits were written, unless that was not due.
    pub(crate) limited: Option<Result<(), CgroupError>>,
}

/// Makes sure that the pod's cgroup exists. `limited`: what became of limits before; `None`: nobody knows.
pub(crate) fn ensure(
    cgroups: &dyn CgroupFs,
    config: &Config,
    pod: &Pod,
    limited: Option<bool>,
) -> Result<Ensured, CgroupError> {
    let parent = config.tree.pod(resources::qos_class(pod), &pod::uid(pod));
    let existed = cgroups.exists(&parent).map_err(|e| failed("failed to look for the pod cgroup", &e))?;
    if !existed {
        counted("create", || cgroups.create(&parent))
            .map_err(|e| failed(&format!("failed to create container for {parent}"), &e))?;
    }
    let values = tree::pod_values(pod, &config.facts, &config.rules);
    let is_due = match limited {
        _ if !existed => true,
        // One whose maker died before it had limits has none, and nobody is in it.
        None => is_empty(cgroups, &parent) && is_bare(cgroups, &parent),
        Some(false) => is_empty(cgroups, &parent) || fits(cgroups, &parent, &values),
        // What becomes of them is a resize's.
        Some(true) => false,
    };
    let limit = || cgroups.set(&parent, &values).map_err(|e| failed("pod cgroup has not all of its limits", &e));
    let limited = is_due.then(|| counted("update", limit));
    Ok(Ensured { cgroup: PodCgroup { parent, existed }, limited })
}

fn is_empty(cgroups: &dyn CgroupFs, path: &str) -> bool {
    cgroups.children(path).is_ok_and(|children| children.is_empty())
}

fn is_bare(cgroups: &dyn CgroupFs, path: &str) -> bool {
    let none = |limit: Option<i64>| limit.is_none_or(|limit| limit < 0);
    cgroups.get(path).is_ok_and(|has| none(has.memory_limit_bytes) && none(has.cpu_quota_us))
}

/// Whether the limit of memory is above what is in use: else the kernel would end somebody.
fn fits(cgroups: &dyn CgroupFs, path: &str, values: &CgroupValues) -> bool {
    let is_above = |limit: i64| {
        let used = cgroups.memory_usage_bytes(path);
        used.is_ok_and(|used| u64::try_from(limit).is_ok_and(|limit| used < limit))
    };
    values.memory_limit_bytes.is_none_or(is_above)
}

/// Kills and removes the pod's cgroup, in whatever tier it is.
pub(crate) fn remove(cgroups: &dyn CgroupFs, config: &Config, uid: &PodUid) -> Result<(), CgroupError> {
    let mut result = Ok(());
    for class in CLASSES {
        let path = config.tree.pod(class, uid);
        result = result.and(
            counted("destroy", || cgroups.remove(&path)).map_err(|e| failed("failed to remove the pod cgroup", &e)),
        );
    }
    result
}

/// What limits the pod's cgroup has, and what is used in it and in the cgroups below.
pub(crate) fn read(cgroups: &dyn CgroupFs, config: &Config, pod: &Pod) -> Result<PodCgroupUse, CgroupError> {
    let path = config.tree.pod(resources::qos_class(pod), &pod::uid(pod));
    let values = cgroups.get(&path).map_err(|e| failed("failed to read the pod cgroup", &e))?;
    let names = cgroups.children(&path).map_err(|e| failed("failed to list the cgroups of the pod", &e))?;
    let used = |path: &str| match cgroups.memory_usage_bytes(path) {
        Ok(bytes) => Some(Some(bytes)),
        Err(e) if e.is_not_found() => None,
        Err(e) => {
            // Whoever shrinks it must know that nobody knows.
            tracing::warn!(cgroup = path, error = %actor::chain(&e), "memory in use cannot be read");
            Some(None)
        }
    };
    // A container may end meanwhile.
    let children = names.into_iter().filter_map(|name| Some((used(&format!("{path}/{name}"))?, name)));
    let children = children.map(|(bytes, name)| (name, bytes)).collect();
    Ok(PodCgroupUse { values, memory_bytes: used(&path).flatten(), children })
}

/// Writes limits of the pod's cgroup.
pub(crate) fn resize(
    cgroups: &dyn CgroupFs,
    config: &Config,
    pod: &Pod,
    values: &CgroupValues,
) -> Result<(), CgroupError> {
    let path = config.tree.pod(resources::qos_class(pod), &pod::uid(pod));
    counted("update", || cgroups.set(&path, values)).map_err(|e| failed("failed to resize the pod cgroup", &e))
}

/// Cuts the pod's cpu to the least.
pub(crate) fn throttle(cgroups: &dyn CgroupFs, path: &str) -> Result<(), CgroupError> {
    counted("update", || cgroups.set(path, &tree::orphan_values()))
        .map_err(|e| failed("failed to throttle the pod cgroup", &e))
}

/// So often the root is looked at: processes may fork while they are moved.
const PASSES: usize = 11;

/// Moves processes of the system out of the root of the tree. What is not moved in so many passes is told, and has to wait.
pub(crate) fn empty_root(cgroups: &dyn CgroupFs, path: &str) -> Result<(), CgroupError> {
    let mut result = Ok(());
    for _ in 0..PASSES {
        let pids = match cgroups.processes("/") {
            Ok(processes) => system::movable(&processes),
            Err(e) => {
                result = Err(failed("failed to list processes of the root", &e));
                continue;
            }
        };
        if pids.is_empty() {
            return Ok(());
        }
        if let Err(e) = cgroups.move_processes(path, &pids) {
            result = Err(failed(&format!("failed to move processes of the root to {path}"), &e));
        }
    }
    result
}

/// Pod cgroups that exist, with their paths.
pub(crate) fn scan(cgroups: &dyn CgroupFs, config: &Config) -> Result<BTreeMap<PodUid, String>, CgroupError> {
    let mut found = BTreeMap::new();
    for class in CLASSES {
        let tier = config.tree.tier(class);
        let names = cgroups.children(&tier).map_err(|e| failed("failed to list pod cgroups", &e))?;
        for name in names {
            if let Some(uid) = config.tree.pod_of_dir(&name) {
                found.insert(uid, format!("{tier}/{name}"));
            }
        }
    }
    Ok(found)
}
