//! Containers, and commands in them, that a supervisor starts by itself, without an OCI runtime (`pod-supervisor`).

use oci_spec::runtime::{Capabilities, Capability, LinuxNamespaceType, Process, Spec};
use serde_json::Value;

/// Parts of a spec that it carries out.
const PLAIN_SPEC: [&str; 6] = ["annotations", "linux", "mounts", "ociVersion", "process", "root"];
/// Of its `linux`.
const PLAIN_LINUX: [&str; 7] =
    ["cgroupsPath", "devices", "maskedPaths", "namespaces", "readonlyPaths", "resources", "seccomp"];
/// Of the `resources` in it.
const PLAIN_RESOURCES: [(&str, &[&str]); 5] = [
    ("cpu", &["cpus", "mems", "period", "quota", "shares"]),
    ("devices", ANY),
    ("hugepageLimits", ANY),
    ("memory", &["limit", "swap"]),
    ("unified", ANY),
];
/// No names of parts, but lists and names that the cgroups have.
const ANY: &[&str] = &[];
/// Of a mount.
const PLAIN_MOUNT: [&str; 4] = ["destination", "options", "source", "type"];
/// Types of mounts.
const PLAIN_TYPES: [&str; 7] = ["bind", "cgroup", "devpts", "mqueue", "proc", "sysfs", "tmpfs"];
/// Their options; those with a value by its name.
const PLAIN_OPTIONS: [&str; 17] = [
    "gid=",
    "memory_recursiveprot",
    "mode=",
    "newinstance",
    "nodev",
    "noexec",
    "nosuid",
    "nsdelegate",
    "ptmxmode=",
    "rbind",
    "relatime",
    "ro",
    "rprivate",
    "rw",
    "size=",
    "strictatime",
    "uid=",
];
/// Parts of `process`.
const PLAIN: [&str; 10] = [
    "apparmorProfile",
    "args",
    "capabilities",
    "cwd",
    "env",
    "noNewPrivileges",
    "oomScoreAdj",
    "rlimits",
    "terminal",
    "user",
];
/// And of its `user`.
const PLAIN_USER: [&str; 4] = ["additionalGids", "gid", "uid", "umask"];

/// Whether a value has parts of these names alone.
fn only(value: &Value, names: &[&str]) -> bool {
    value.as_object().is_some_and(|parts| parts.keys().all(|name| names.contains(&name.as_str())))
}

fn is_plain_process(process: &Process) -> bool {
    let parts = serde_json::to_value(process).unwrap_or_default();
    // What is wrong with the others the OCI runtime says.
    let is_pair = |entry: &String| entry.contains('=');
    // Who may trace could trace what enters the container before it is held in.
    let traces = |all: &Capabilities| all.contains(&Capability::SysPtrace);
    let may_trace = process.capabilities().as_ref().is_some_and(|sets| {
        [sets.bounding(), sets.effective(), sets.permitted(), sets.inheritable(), sets.ambient()]
            .into_iter()
            .flatten()
            .any(traces)
    });
    process.capabilities().is_some()
        && !may_trace
        && process.cwd().is_absolute()
        && process.env().iter().flatten().all(is_pair)
        && only(&parts, &PLAIN)
        && only(&parts["user"], &PLAIN_USER)
}

/// Whether a container's processes are held to a seccomp or AppArmor profile.
#[must_use]
pub fn has_profile(spec: &Spec) -> bool {
    let is_guarded = spec.linux().as_ref().is_some_and(|l| l.seccomp().is_some());
    is_guarded || spec.process().as_ref().is_some_and(|p| p.apparmor_profile().is_some())
}

/// Whether a command in a container of `spec` takes nothing that an OCI runtime has to do, besides loading its filter ([`crate::profile_filter`]): no
/// label of SELinux, no users of the pod's own, and nothing that this crate does not know of.
#[must_use]
pub fn is_plain_command(spec: &Spec, command: &Process) -> bool {
    let Some(linux) = spec.linux() else { return false };
    let namespaces = linux.namespaces().as_deref().unwrap_or_default();
    let has = |kind| namespaces.iter().any(|n| n.typ() == kind);
    linux.personality().is_none()
        && has(LinuxNamespaceType::Mount)
        && !has(LinuxNamespaceType::User)
        && !has(LinuxNamespaceType::Time)
        && is_plain_process(command)
}

/// Whether the start of a container of `spec` takes nothing that an OCI runtime has to do. Besides what goes for commands in it: mounts
/// and PID namespace are its own, no mount is seen by others or sees theirs, and its cgroup is a path. Then commands in it take nothing
/// of the kind either.
#[must_use]
pub fn is_plain_container(spec: &Spec) -> bool {
    let Some(process) = spec.process() else { return false };
    let parts = serde_json::to_value(spec).unwrap_or_default();
    let all = |value: &Value, check: fn(&Value) -> bool| value.as_array().is_none_or(|all| all.iter().all(check));
    is_plain_command(spec, process)
        && only(&parts, &PLAIN_SPEC)
        && only(&parts["root"], &["path", "readonly"])
        && only(&parts["linux"], &PLAIN_LINUX)
        && parts["linux"]["cgroupsPath"].as_str().is_some_and(is_plain_cgroup)
        && all(&parts["linux"]["devices"], has_plain_numbers)
        && all(&parts["linux"]["resources"]["devices"], is_plain_rule)
        && is_plain_resources(&parts["linux"]["resources"])
        && all(&parts["linux"]["namespaces"], is_plain_namespace)
        && spec
            .linux()
            .as_ref()
            .and_then(|l| l.namespaces().as_ref())
            .is_some_and(|all| all.iter().any(|n| n.typ() == LinuxNamespaceType::Pid))
        && all(&parts["mounts"], is_plain_mount)
}

/// A path below another group's.
fn is_plain_cgroup(path: &str) -> bool {
    let below = path.strip_prefix('/').unwrap_or_default();
    below.contains('/') && below.split('/').all(|part| !["", ".", ".."].contains(&part)) && !path.contains(':')
}

fn has_plain_numbers(device: &Value) -> bool {
    ["major", "minor"].iter().all(|name| device[name].is_null() || device[name].as_u64().is_some_and(|n| n < 1 << 20))
}

/// None at first, or all, and then some more.
fn is_plain_rule(rule: &Value) -> bool {
    let kind = rule["type"].as_str().unwrap_or("a");
    let is_for_all = kind == "a";
    let has_access = rule["access"].as_str().is_some_and(|access| !access.is_empty());
    let has_number = |name: &str| rule[name].is_null() || rule[name].as_u64().is_some();
    has_access
        && ["a", "b", "c"].contains(&kind)
        && (is_for_all || rule["allow"] == true)
        && has_number("major")
        && has_number("minor")
}

fn is_plain_resources(resources: &Value) -> bool {
    let Some(parts) = resources.as_object() else { return resources.is_null() };
    parts.iter().all(|(name, value)| {
        let known = PLAIN_RESOURCES.iter().find(|(n, _)| n == name);
        known.is_some_and(|(_, names)| names.is_empty() || only(value, names))
    })
}

/// Mounts, processes and the view of cgroups are the container's own, what else there is the pod's.
fn is_plain_namespace(namespace: &Value) -> bool {
    match namespace["type"].as_str() {
        Some("cgroup" | "mount" | "pid") => namespace["path"].is_null(),
        Some("ipc" | "network" | "uts") => namespace["path"].is_string(),
        _ => false,
    }
}

fn is_plain_mount(mount: &Value) -> bool {
    let option = |option: &Value| {
        let name = option.as_str().unwrap_or_default();
        let name = name.find('=').map_or(name, |end| &name[..=end]);
        PLAIN_OPTIONS.contains(&name)
    };
    only(mount, &PLAIN_MOUNT)
        && mount["type"].as_str().is_some_and(|kind| PLAIN_TYPES.contains(&kind))
        && mount["source"].is_string()
        && mount["options"].as_array().is_none_or(|all| all.iter().all(option))
}

#[cfg(test)]
mod tests {
    use oci_spec::runtime::{LinuxBuilder, LinuxNamespace, LinuxNamespaceBuilder, SpecBuilder};

    use super::*;

    fn spec(kinds: &[LinuxNamespaceType]) -> Spec {
        let one = |kind: &LinuxNamespaceType| LinuxNamespaceBuilder::default().typ(*kind).build().unwrap();
        let all: Vec<LinuxNamespace> = kinds.iter().map(one).collect();
        let linux = LinuxBuilder::default().namespaces(all);
        SpecBuilder::default().linux(linux.build().unwrap()).build().unwrap()
    }

    /// As specs are read: only what a file says is in it.
    fn command(more: &str) -> Process {
        let text = format!(
            r#"{{"user": {{"uid": 1, "gid": 1}}, "args": ["a"], "cwd": "/", "noNewPrivileges": true, "oomScoreAdj": 5,
            "rlimits": [{{"type": "RLIMIT_NOFILE", "soft": 1, "hard": 2}}],
            "capabilities": {{"bounding": []}}{more}}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn what_an_oci_runtime_has_to_do_is_left_to_it() {
        use LinuxNamespaceType::{Mount, Pid, Time, User};
        let plain = spec(&[Mount, Pid]);
        assert!(is_plain_command(&plain, &command("")));
        assert!(is_plain_command(&plain, &command(r#", "terminal": true"#)));
        assert!(is_plain_command(&plain, &command(r#", "apparmorProfile": "a""#)));
        for (spec, why) in
            [(spec(&[Mount, User]), "users"), (spec(&[Mount, Time]), "a clock"), (spec(&[Pid]), "the node's mounts")]
        {
            assert!(!is_plain_command(&spec, &command("")), "{why}");
        }
        for more in [r#", "selinuxLabel": "a""#, r#", "ioPriority": {"class": "IOPRIO_CLASS_IDLE", "priority": 1}"#] {
            assert!(!is_plain_command(&plain, &command(more)), "{more}");
        }
        let tracing = command("").capabilities().clone().map(|mut sets| {
            sets.set_bounding(Some([Capability::SysPtrace].into()));
            sets
        });
        let mut tracer = command("");
        tracer.set_capabilities(tracing);
        assert!(!is_plain_command(&plain, &tracer), "it may trace what enters it");
        let mut bare = command("");
        bare.set_capabilities(None);
        assert!(!is_plain_command(&plain, &bare));
    }

    /// A spec of a plain container with something changed in it.
    fn with(change: impl FnOnce(&mut serde_json::Value)) -> bool {
        let mut text = serde_json::json!({
            "ociVersion": "1.0.2",
            "root": {"path": "rootfs", "readonly": true},
            "process": serde_json::to_value(command("")).unwrap(),
            "mounts": [
                {"destination": "/proc", "type": "proc", "source": "proc", "options": ["nosuid"]},
                {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["mode=755", "size=65536k"]},
                {"destination": "/a", "type": "bind", "source": "/b", "options": ["rbind", "rprivate", "ro"]},
            ],
            "annotations": {"a": "b"},
            "linux": {
                "namespaces": [{"type": "mount"}, {"type": "pid"}, {"type": "network", "path": "/n"}],
                "resources": {"cpu": {"shares": 2}, "hugepageLimits": [{"pageSize": "2MB", "limit": 0}], "unified": {"a": "b"}, "memory": {"limit": 1, "swap": 1}, "devices": [{"allow": false, "access": "rwm"}]},
                "cgroupsPath": "/a/b",
                "maskedPaths": ["/proc/kcore"],
                "devices": [],
            },
        });
        change(&mut text);
        is_plain_container(&serde_json::from_value(text).unwrap())
    }

    #[test]
    fn a_container_is_plain_unless_something_is_asked_for_that_is_not_known() {
        use serde_json::json;
        assert!(with(|_| ()));
        assert!(
            with(|spec| spec["linux"]["seccomp"] = json!({"defaultAction": "SCMP_ACT_ERRNO"})),
            "besides its filter"
        );
        let rows: [(&str, serde_json::Value); 21] = [
            ("/hostname", json!("h")),
            ("/hooks", json!({"prestart": [{"path": "/x"}]})),
            ("/linux/mountLabel", json!("l")),
            ("/linux/rootfsPropagation", json!("rshared")),
            ("/linux/sysctl", json!({"a": "b"})),
            ("/linux/intelRdt", json!({"closID": "c"})),
            ("/linux/cgroupsPath", json!("a.slice:cri-containerd:b")),
            ("/linux/resources/pids", json!({"limit": 1})),
            ("/linux/cgroupsPath", json!("/a")),
            ("/linux/cgroupsPath", json!("/a/../b")),
            ("/linux/devices", json!([{"path": "/dev/x", "type": "c", "major": -1, "minor": 0}])),
            ("/linux/resources/devices", json!([{"allow": true, "type": "c", "access": ""}])),
            ("/linux/resources/devices", json!([{"allow": false, "type": "c", "access": "r"}])),
            ("/linux/namespaces", json!([{"type": "mount"}, {"type": "pid"}, {"type": "cgroup", "path": "/p"}])),
            ("/linux/resources/devices", json!([{"allow": true, "type": "u", "access": "r"}])),
            ("/process/cwd", json!("a")),
            ("/process/env", json!(["A"])),
            ("/linux/namespaces", json!([{"type": "mount"}, {"type": "pid", "path": "/p"}])),
            ("/linux/namespaces", json!([{"type": "mount"}])),
            ("/mounts/2/options", json!(["rbind", "rslave"])),
            ("/mounts/2/options", json!(["rbind", "rro"])),
        ];
        for (path, value) in rows {
            let changed = with(|spec| {
                let (parent, name) = path.rsplit_once('/').unwrap();
                spec.pointer_mut(parent).unwrap().as_object_mut().unwrap().insert(name.to_owned(), value);
            });
            assert!(!changed, "{path}");
        }
        assert!(!with(|spec| spec["mounts"][0]["type"] = json!("nfs")));
        assert!(!with(|spec| spec["mounts"][2]["uidMappings"] = json!([{"containerID": 0, "hostID": 1, "size": 1}])));
    }
}
