//! Pods with users of their own (`hostUsers: false`).

use std::fs;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, chown};
use std::path::Path;

use container_spec::{NodeFacts, pod_namespace_options};
use cri_api::v1;
use pod_supervisor::IdRange;

use crate::error::{At, Done, RuntimeError};
use crate::records::SandboxRecord;

/// Others may pass through a folder and see nothing in it.
const PASSED: u32 = 0o711;
/// As the same for the group.
const PASSED_BY_GROUP: u32 = 0o710;

/// The users that a pod has of its own: one range, the same for groups, as kubelets ask for.
pub(crate) fn range(config: &v1::PodSandboxConfig) -> Done<Option<IdRange>> {
    let users = pod_namespace_options(config).and_then(|o| o.userns_options.as_ref());
    let Some(users) = users else { return Ok(None) };
    let refused = |why: &str| Err(RuntimeError::Refused(format!("user namespace: {why}")));
    match users.mode() {
        v1::NamespaceMode::Node => return Ok(None),
        v1::NamespaceMode::Pod => {}
        other => return refused(&format!("mode {} is not for it", other.as_str_name())),
    }
    match (users.uids.as_slice(), users.gids.as_slice()) {
        ([uids], [gids]) if uids == gids => match *uids {
            v1::IdMapping { container_id: 0, host_id, length }
                if length > 0 && host_id.checked_add(length).is_some() =>
            {
                Ok(Some(IdRange { container_id: 0, host_id, length }))
            }
            _ => refused("the range has to begin with id 0 of the container, and to have a place on the node"),
        },
        _ => refused("one range is needed, the same for users and groups"),
    }
}

/// Process 1 of a PID namespace that containers share is the node's root, with the node's files, and belongs to the users of the pod: who
/// may trace processes there would have both.
pub(crate) fn refuse_shared_processes(config: &v1::PodSandboxConfig) -> Done<()> {
    match pod_namespace_options(config).map(v1::NamespaceOption::pid) {
        Some(v1::NamespaceMode::Pod) => Err(RuntimeError::Unsupported(
            "a pod with users of its own (hostUsers: false) cannot share processes between its containers (shareProcessNamespace)".into(),
        )),
        _ => Ok(()),
    }
}

/// Whether such pods can run here.
pub(crate) fn check(node: &NodeFacts, run: &Path) -> Done<()> {
    if !node.idmap_mounts {
        return Err(RuntimeError::Unsupported(
            "pods with users of their own need an OCI runtime that mounts with mapped ids, such as runc 1.2 and later"
                .into(),
        ));
    }
    let closed = run.ancestors().find(|folder| !fs::metadata(folder).is_ok_and(|m| m.mode() & 0o1 != 0));
    match closed {
        Some(folder) => Err(RuntimeError::Unsupported(format!(
            "pods with users of their own are not possible: others than root may not pass through {}",
            folder.display()
        ))),
        None => Ok(()),
    }
}

/// Makes the folders above that of all pods where they are missing, so that others may pass.
pub(crate) fn make_way(run: &Path) -> Done<()> {
    let Some(above) = run.parent() else { return Ok(()) };
    fs::DirBuilder::new().recursive(true).mode(PASSED).create(above).at("mkdir", above)
}

/// Lets users of pods pass through the folder of all pods: they find nothing in it that they do not know the name of, and may pass through
/// those of their own pod only.
pub(crate) fn open_way(run: &Path) -> Done<()> {
    fs::set_permissions(run, fs::Permissions::from_mode(PASSED)).at("chmod", run)
}

/// Lets the users of a pod pass through a folder of it.
pub(crate) fn let_in(sandbox: &SandboxRecord, folders: &[&Path]) -> Done<()> {
    let Some(range) = range(&sandbox.config)? else { return Ok(()) };
    for folder in folders {
        chown(folder, None, Some(range.host_id)).at("chown", folder)?;
        fs::set_permissions(folder, fs::Permissions::from_mode(PASSED_BY_GROUP)).at("chmod", folder)?;
    }
    Ok(())
}

/// Gives files of a pod to its root.
pub(crate) fn give(sandbox: &SandboxRecord, files: &[&Path]) -> Done<()> {
    let Some(range) = range(&sandbox.config)? else { return Ok(()) };
    files.iter().try_for_each(|file| chown(file, Some(range.host_id), Some(range.host_id)).at("chown", file))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(mode: v1::NamespaceMode, uids: &[(u32, u32, u32)], gids: &[(u32, u32, u32)]) -> v1::PodSandboxConfig {
        let mappings = |all: &[(u32, u32, u32)]| {
            let one = |(container_id, host_id, length): &(u32, u32, u32)| v1::IdMapping {
                container_id: *container_id,
                host_id: *host_id,
                length: *length,
            };
            all.iter().map(one).collect()
        };
        let users = v1::UserNamespace { mode: mode.into(), uids: mappings(uids), gids: mappings(gids) };
        let options = v1::NamespaceOption { userns_options: Some(users), ..Default::default() };
        let context = v1::LinuxSandboxSecurityContext { namespace_options: Some(options), ..Default::default() };
        let linux = v1::LinuxPodSandboxConfig { security_context: Some(context), ..Default::default() };
        v1::PodSandboxConfig { linux: Some(linux), ..Default::default() }
    }

    #[test]
    fn one_range_from_zero_on_is_what_a_pod_can_have() {
        use v1::NamespaceMode as M;
        let good = (0, 65_536, 65_536);
        assert_eq!(range(&v1::PodSandboxConfig::default()).expect("none"), None);
        assert_eq!(range(&asked(M::Node, &[], &[])).expect("the node's"), None);
        let found = range(&asked(M::Pod, &[good], &[good])).expect("good");
        assert_eq!(found, Some(IdRange { container_id: 0, host_id: 65_536, length: 65_536 }));
        for (mode, uids, gids) in [
            (M::Pod, &[][..], &[][..]),
            (M::Pod, &[good, (0, 200_000, 5)], &[good, (0, 200_000, 5)]),
            (M::Pod, &[good], &[(0, 65_536, 5)]),
            (M::Pod, &[(1, 65_536, 5)], &[(1, 65_536, 5)]),
            (M::Pod, &[(0, u32::MAX, 5)], &[(0, u32::MAX, 5)]),
            (M::Pod, &[(0, 65_536, 0)], &[(0, 65_536, 0)]),
            (M::Container, &[good], &[good]),
            (M::Target, &[good], &[good]),
        ] {
            assert!(range(&asked(mode, uids, gids)).is_err(), "{mode:?} {uids:?} {gids:?}");
        }
    }

    #[test]
    fn with_users_of_its_own_a_pod_shares_no_processes() {
        use v1::NamespaceMode as M;
        let good = (0, 65_536, 65_536);
        for (mode, is_refused) in [(M::Pod, true), (M::Container, false), (M::Node, false)] {
            let mut config = asked(M::Pod, &[good], &[good]);
            let context = config.linux.as_mut().and_then(|l| l.security_context.as_mut()).expect("made above");
            context.namespace_options.get_or_insert_default().pid = mode.into();
            assert_eq!(refuse_shared_processes(&config).is_err(), is_refused, "{mode:?}");
        }
        refuse_shared_processes(&v1::PodSandboxConfig::default()).expect("it asks for nothing");
    }

    #[test]
    fn where_others_may_not_pass_no_such_pod_runs() {
        let node = NodeFacts { idmap_mounts: true, ..crate::node::nothing() };
        let dir = tempfile::tempdir().expect("folder");
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o700)).expect("mode");
        let run = dir.path().join("run");
        fs::create_dir(&run).expect("folder");
        let refused = check(&node, &run).expect_err("closed").to_string();
        assert!(refused.contains(&*dir.path().to_string_lossy()), "{refused}");
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o711)).expect("mode");
        open_way(&run).expect("opened");
        check(&node, &run).expect("open");
        assert!(check(&crate::node::nothing(), &run).is_err(), "the OCI runtime cannot");
    }
}
