//! Commands in containers.

use oci_spec::runtime::{LinuxNamespaceType, Process, Spec};

/// Parts of `process` that a supervisor carries out by itself (`pod-supervisor`, `Request::Exec`).
const PLAIN: [&str; 9] =
    ["args", "capabilities", "cwd", "env", "noNewPrivileges", "oomScoreAdj", "rlimits", "terminal", "user"];
/// And of its `user`.
const PLAIN_USER: [&str; 4] = ["additionalGids", "gid", "uid", "umask"];

/// Whether a command in a container of `spec` takes nothing that an OCI runtime has to do: no seccomp profile, no label or profile of a
/// security module, no terminal, no users of the pod's own, and nothing that this crate does not know of.
#[must_use]
pub fn is_plain_command(spec: &Spec, command: &Process) -> bool {
    let Some(linux) = spec.linux() else { return false };
    let namespaces = linux.namespaces().as_deref().unwrap_or_default();
    let has = |kind| namespaces.iter().any(|n| n.typ() == kind);
    let only = |value: &serde_json::Value, names: &[&str]| {
        value.as_object().is_some_and(|parts| parts.keys().all(|name| names.contains(&name.as_str())))
    };
    let parts = serde_json::to_value(command).unwrap_or_default();
    linux.seccomp().is_none()
        && linux.personality().is_none()
        && has(LinuxNamespaceType::Mount)
        && !has(LinuxNamespaceType::User)
        && !has(LinuxNamespaceType::Time)
        && command.terminal() != Some(true)
        && command.capabilities().is_some()
        && only(&parts, &PLAIN)
        && only(&parts["user"], &PLAIN_USER)
}

#[cfg(test)]
mod tests {
    use oci_spec::runtime::{
        LinuxBuilder, LinuxNamespace, LinuxNamespaceBuilder, LinuxSeccompAction, LinuxSeccompBuilder, SpecBuilder,
    };

    use super::*;

    fn spec(kinds: &[LinuxNamespaceType], guarded: bool) -> Spec {
        let one = |kind: &LinuxNamespaceType| LinuxNamespaceBuilder::default().typ(*kind).build().unwrap();
        let all: Vec<LinuxNamespace> = kinds.iter().map(one).collect();
        let mut linux = LinuxBuilder::default().namespaces(all);
        if guarded {
            let profile = LinuxSeccompBuilder::default().default_action(LinuxSeccompAction::ScmpActErrno);
            linux = linux.seccomp(profile.build().unwrap());
        }
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
        let plain = spec(&[Mount, Pid], false);
        assert!(is_plain_command(&plain, &command("")));
        for (spec, why) in [
            (spec(&[Mount], true), "a profile"),
            (spec(&[Mount, User], false), "users"),
            (spec(&[Mount, Time], false), "a clock"),
            (spec(&[Pid], false), "the node's mounts"),
        ] {
            assert!(!is_plain_command(&spec, &command("")), "{why}");
        }
        for more in [
            r#", "terminal": true"#,
            r#", "apparmorProfile": "a""#,
            r#", "selinuxLabel": "a""#,
            r#", "ioPriority": {"class": "IOPRIO_CLASS_IDLE", "priority": 1}"#,
        ] {
            assert!(!is_plain_command(&plain, &command(more)), "{more}");
        }
        let mut bare = command("");
        bare.set_capabilities(None);
        assert!(!is_plain_command(&plain, &bare));
    }
}
