//! Where the cgroups of a pod are.

use std::path::{Path, PathBuf};

use host_linux::{DeviceKind, DeviceRule};
use oci_spec::runtime::LinuxResources;
use pod_supervisor::cgroups::{Resources, put_into};
use ports::host::CgroupFs;
use ports::stats::StatsSource;

use crate::error::{At, Done, RuntimeError};
use crate::records::SandboxRecord;
use crate::runtime::Runtime;
use crate::supervisor::SupervisorError;

/// The cgroup of supervisor and process 1; with systemd a scope. None, where the pod has none that it could be in, or a slice that is not systemd's.
pub(crate) fn of_sandbox(rt: &Runtime, sandbox: &SandboxRecord) -> Option<String> {
    let cgroup = container_spec::cgroup_of(sandbox.cgroup_parent(), &sandbox.id)?;
    (scope(&cgroup).is_none() || rt.options.systemd_cgroup).then_some(cgroup)
}

/// The unit that a cgroup is, if systemd makes it, and that of the slice it is in.
fn scope(cgroup: &str) -> Option<(&str, &str)> {
    let (slice, scope) = cgroup.strip_suffix('/').unwrap_or(cgroup).rsplit_once('/')?;
    scope.ends_with(".scope").then_some((scope, slice.rsplit('/').next()?))
}

/// Where memory is accounted: version 2's one hierarchy, or that of version 1.
fn hierarchy(rt: &Runtime) -> &'static Path {
    Path::new(if rt.handlers.node().cgroup_v2 { "/sys/fs/cgroup" } else { "/sys/fs/cgroup/memory" })
}

/// The folder of a cgroup there.
fn folder(rt: &Runtime, cgroup: &str) -> PathBuf {
    hierarchy(rt).join(cgroup.trim_start_matches('/'))
}

/// `cgroup.procs` of a cgroup, where a supervisor is to be. A node without that hierarchy has none.
pub(crate) fn procs_files(rt: &Runtime, cgroup: &str) -> Vec<PathBuf> {
    // Memory is what a supervisor uses.
    let is_mounted = rt.hierarchies.iter().any(|h| h.is_at(hierarchy(rt)));
    if is_mounted { vec![folder(rt, cgroup).join("cgroup.procs")] } else { Vec::new() }
}

/// Makes the cgroup of a supervisor where that is to be; answers its [`procs_files`].
pub(crate) fn make_for_supervisor(rt: &Runtime, cgroup: &str) -> Done<Vec<PathBuf>> {
    let files = procs_files(rt, cgroup);
    if scope(cgroup).is_some() {
        // Made with the supervisor in it.
        return Ok(files);
    }
    if rt.handlers.node().cgroup_v2 {
        rt.cgroups.create(cgroup)?;
    } else if !files.is_empty() {
        let folder = folder(rt, cgroup);
        std::fs::create_dir_all(&folder).at("make", &folder)?;
    }
    Ok(files)
}

/// Moves a supervisor into its cgroup, with all that it starts from then on.
pub(crate) fn join(rt: &Runtime, supervisor: Option<u32>, procs_files: &[PathBuf]) -> Done<()> {
    let pid = supervisor.ok_or(SupervisorError::Gone)?;
    let failed = |source| RuntimeError::Io { what: "move a supervisor".to_owned(), source };
    procs_files.iter().try_for_each(|file| {
        let cgroup = of_procs_file(rt, file).unwrap_or_default();
        match scope(&cgroup) {
            Some((scope, slice)) => Ok(rt.scopes.start(slice, scope, pid)?),
            None => put_into(file, pid).map_err(failed),
        }
    })
}

/// As [`join`], unless it is in it.
pub(crate) fn join_if_outside(rt: &Runtime, supervisor: Option<u32>, procs_files: &[PathBuf]) -> Done<()> {
    let pid = supervisor.ok_or(SupervisorError::Gone)?.to_string();
    let is_scope = |file: &Path| of_procs_file(rt, file).is_some_and(|cgroup| scope(&cgroup).is_some());
    let mut outside = Vec::new();
    for file in procs_files {
        match std::fs::read_to_string(file) {
            Ok(inside) if inside.lines().any(|line| line == pid) => {}
            // A scope that was never made; any other cgroup was.
            Err(e) if !is_scope(file) => return Err(e).at("read", file),
            Ok(_) | Err(_) => outside.push(file.clone()),
        }
    }
    join(rt, supervisor, &outside)
}

/// Whether somebody is in each of these.
pub(crate) fn are_entered(procs_files: &[PathBuf]) -> Done<bool> {
    let mut all = procs_files.iter().map(|file| std::fs::read(file).at("read", file));
    all.try_fold(true, |entered, inside| Ok(entered && !inside?.is_empty()))
}

/// The cgroup that such a file is of.
pub(crate) fn of_procs_file(rt: &Runtime, file: &Path) -> Option<String> {
    let below = file.parent()?.strip_prefix(hierarchy(rt)).ok()?.to_str()?;
    (!below.is_empty()).then(|| format!("/{below}"))
}

/// Whether the start of a container was begun, and nobody has ended it. Of version 2 its cgroup may be there before ([`make_v2`]).
pub(crate) fn has_container(rt: &Runtime, sandbox: &SandboxRecord, id: &str) -> bool {
    let is_begun =
        || !rt.handlers.node().cgroup_v2 || rt.options.is_own_start(&sandbox.id, id) || is_used(rt, sandbox, id);
    oom_file(rt, sandbox, id).is_some_and(|file| file.exists()) && is_begun()
}

fn is_used(rt: &Runtime, sandbox: &SandboxRecord, id: &str) -> bool {
    let folder = of_container(rt, sandbox, id).map(|cgroup| folder(rt, &cgroup));
    folder.is_some_and(|folder| std::fs::read(folder.join("cgroup.procs")).is_ok_and(|all| !all.is_empty()))
}

/// The cgroup of a container, for whoever reads or empties it, whether it is there or not; with systemd it may have another name.
pub(crate) fn of_container(rt: &Runtime, sandbox: &SandboxRecord, id: &str) -> Option<String> {
    let parent = sandbox.cgroup_parent();
    match container_spec::cgroup_of(parent, id) {
        Some(path) if scope(&path).is_some() => {
            rt.stats.container_cgroup(&container_spec::slice_of(parent), id).or(Some(path))
        }
        Some(path) => Some(path),
        // Without a parent, the OCI runtime makes one of this name.
        None => Some(format!("/{id}")),
    }
}

/// Limits as the supervisor takes them.
///
/// # Errors
/// There is one that it does not know.
pub(crate) fn own_limits(limits: &LinuxResources) -> std::io::Result<Resources> {
    Ok(serde_json::from_value(serde_json::to_value(limits)?)?)
}

/// Makes the cgroup of a container in version 2, with its rules for devices.
pub(crate) fn make_v2(rt: &Runtime, cgroup: &str, limits: &Resources) -> Done<()> {
    let (all, rules) = limits.rules();
    let number = |n: Option<i64>| n.and_then(|n| u32::try_from(n).ok());
    let rules: Vec<DeviceRule> = rules
        .iter()
        .map(|rule| DeviceRule {
            allow: rule.allow,
            kind: match rule.kind {
                Some('b') => Some(DeviceKind::Block),
                Some('c') => Some(DeviceKind::Char),
                _ => None,
            },
            major: number(rule.major),
            minor: number(rule.minor),
            make: rule.access.contains('m'),
            read: rule.access.contains('r'),
            write: rule.access.contains('w'),
        })
        .collect();
    rt.cgroups.create(cgroup)?;
    let filtered = host_linux::allow_devices(&folder(rt, cgroup), &rules, all);
    // One that lets all devices through is not to be found by anybody.
    if filtered.is_err()
        && let Err(e) = rt.cgroups.remove(cgroup)
    {
        tracing::warn!(cgroup, "a cgroup without rules for devices stays: {e}");
    }
    Ok(filtered?)
}

/// The file that says whether the kernel killed in a container for lack of memory.
pub(crate) fn oom_file(rt: &Runtime, sandbox: &SandboxRecord, id: &str) -> Option<PathBuf> {
    let file = if rt.handlers.node().cgroup_v2 { "memory.events" } else { "memory.oom_control" };
    Some(folder(rt, &of_container(rt, sandbox, id)?).join(file))
}

/// The file with what the kernel killed in all of a pod, where containers' own files may be gone before anybody reads them: systemd removes a scope with its
/// last process. Version 1 counts in each cgroup alone.
pub(crate) fn pod_oom_file(rt: &Runtime, sandbox: &SandboxRecord) -> Option<PathBuf> {
    let is_of_systemd = scope(&of_sandbox(rt, sandbox)?).is_some();
    let slice = container_spec::slice_of(sandbox.cgroup_parent());
    (is_of_systemd && rt.handlers.node().cgroup_v2).then(|| folder(rt, &slice).join("memory.events"))
}
