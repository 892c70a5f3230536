//! Mounts of a container: what every container has, what its pod gives it, what it asks for.

use std::path::Path;

use cri_api::v1;
use oci_spec::runtime::{Mount, MountBuilder};

use crate::facts::{MountSource, Request, SourcePropagation};
use crate::mappings::mappings;
use crate::{SpecError, context, namespaces};

const SHM: &str = "/dev/shm";

/// Mounts in the order in which they are made, and how the root's mount takes part in propagation.
pub(crate) struct Mounts {
    pub(crate) mounts: Vec<Mount>,
    pub(crate) rootfs_propagation: Option<&'static str>,
}

/// All mounts of a container. What is asked for stands in the place of what would be there anyway; a mount that lies in another
/// one is made after it.
///
/// # Errors
/// [`SpecError::Mount`].
pub(crate) fn mounts(request: &Request<'_>) -> Result<Mounts, SpecError> {
    let mut wanted = Vec::new();
    for (mount, source) in request.config.mounts.iter().zip(request.sources) {
        wanted.push(bind(mount, source, request)?);
    }
    for given in pod_files(request)? {
        if !wanted.iter().any(|w| same(w.destination(), given.destination())) {
            wanted.push(given);
        }
    }
    wanted.sort_by_key(|m| depth(m.destination()));
    let brings_dev = wanted.iter().any(|w| same(w.destination(), Path::new("/dev")));
    let mut mounts = defaults(request)?;
    mounts.retain(|d| {
        let replaced = wanted.iter().any(|w| same(w.destination(), d.destination()));
        let in_other_dev = brings_dev && d.destination().starts_with("/dev");
        !replaced && !in_other_dev
    });
    mounts.extend(wanted);
    Ok(Mounts { mounts, rootfs_propagation: rootfs_propagation(&request.config.mounts) })
}

/// Equal but for slashes.
fn same(a: &Path, b: &Path) -> bool {
    a.components().eq(b.components())
}

/// A mount that lies in another one is made after it.
pub(crate) fn depth(path: &Path) -> usize {
    path.components().count()
}

fn made(destination: &str, kind: &str, source: &Path, options: &[&str]) -> Result<Mount, SpecError> {
    let options: Vec<String> = options.iter().map(|o| (*o).to_owned()).collect();
    let mount = MountBuilder::default().destination(destination).typ(kind).source(source).options(options);
    Ok(mount.build()?)
}

/// `/proc`, `/dev` and its parts, `/sys` and cgroups, as containerd makes them.
fn defaults(request: &Request<'_>) -> Result<Vec<Mount>, SpecError> {
    let privileged = context::is_privileged(request.config);
    let access = if privileged { "rw" } else { "ro" };
    let plain = |d: &str, kind: &str, options: &[&str]| made(d, kind, Path::new(kind), options);
    let mut mounts = vec![
        plain("/proc", "proc", &["nosuid", "noexec", "nodev"])?,
        plain("/dev", "tmpfs", &["nosuid", "strictatime", "mode=755", "size=65536k"])?,
        plain("/dev/pts", "devpts", &["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5"])?,
        made(SHM, "tmpfs", Path::new("shm"), &["nosuid", "noexec", "nodev", "mode=1777", "size=65536k"])?,
        plain("/dev/mqueue", "mqueue", &["nosuid", "noexec", "nodev"])?,
    ];
    mounts.push(if namespaces::host_network(request.sandbox) && namespaces::has_users(request.config) {
        // A user namespace that does not own the network may not mount sysfs.
        made("/sys", "bind", Path::new("/sys"), &["rbind", "rro", "nosuid", "nodev", "noexec"])?
    } else {
        plain("/sys", "sysfs", &["nosuid", "noexec", "nodev", access])?
    });
    let mut options = vec!["nosuid", "noexec", "nodev", "relatime", access];
    if !namespaces::own_cgroups(request) {
        options.extend(request.node.cgroup_mount_options.iter().map(String::as_str));
    }
    mounts.push(plain("/sys/fs/cgroup", "cgroup", &options)?);
    Ok(mounts)
}

/// `/etc/hostname`, `/etc/hosts`, `/etc/resolv.conf` (read-only where the root is) and the pod's `/dev/shm`.
fn pod_files(request: &Request<'_>) -> Result<Vec<Mount>, SpecError> {
    let read_only = context::security(request.config).is_some_and(|s| s.readonly_rootfs);
    let access = if read_only { "ro" } else { "rw" };
    let files = request.files;
    let all = [
        ("/etc/hostname", &files.hostname, access),
        ("/etc/hosts", &files.hosts, access),
        ("/etc/resolv.conf", &files.resolv_conf, access),
        (SHM, &files.shm, "rw"),
    ];
    let given = all.into_iter().filter_map(|(to, from, access)| Some((to, from.as_ref()?, access)));
    given.map(|(to, from, access)| made(to, "bind", from, &["rbind", "rprivate", access])).collect()
}

/// Whether a mount of a config is an image (KEP-4639), not a path of the node.
#[must_use]
pub fn is_image(mount: &v1::Mount) -> bool {
    mount.image.as_ref().is_some_and(|i| !i.image.is_empty())
}

/// One mount of the config.
fn bind(mount: &v1::Mount, source: &MountSource, request: &Request<'_>) -> Result<Mount, SpecError> {
    let refused = |reason| SpecError::Mount { path: mount.container_path.clone(), reason };
    if !mount.container_path.starts_with('/') {
        return Err(refused("its place in the container must be an absolute path"));
    }
    let propagation = propagation(mount, source.propagation).map_err(refused)?;
    let access = access(mount, request.node.recursive_read_only).map_err(refused)?;
    // An image is data (node-and-resources 6.14): nothing of it is run.
    let data: &[&str] = if is_image(mount) { &["noexec", "nosuid", "nodev"] } else { &[] };
    let options: Vec<String> = ["rbind", propagation, access].iter().chain(data).map(|o| (*o).to_owned()).collect();
    let mut made = MountBuilder::default()
        .destination(&mount.container_path)
        .typ("bind")
        .source(source.path.clone())
        .options(options)
        .build()?;
    if !mount.uid_mappings.is_empty() || !mount.gid_mappings.is_empty() {
        if !request.node.idmap_mounts {
            return Err(refused("the OCI runtime makes no mounts with mapped ids"));
        }
        made.set_uid_mappings(Some(mappings(&mount.uid_mappings)?));
        made.set_gid_mappings(Some(mappings(&mount.gid_mappings)?));
    }
    Ok(made)
}

fn propagation(mount: &v1::Mount, source: SourcePropagation) -> Result<&'static str, &'static str> {
    match mount.propagation() {
        v1::MountPropagation::PropagationPrivate => Ok("rprivate"),
        v1::MountPropagation::PropagationHostToContainer if source == SourcePropagation::Private => {
            Err("it should get mounts of the node, but lies on a mount that is neither shared nor slave")
        }
        v1::MountPropagation::PropagationHostToContainer => Ok("rslave"),
        v1::MountPropagation::PropagationBidirectional if source != SourcePropagation::Shared => {
            Err("it should give mounts to the node, but lies on a mount that is not shared")
        }
        v1::MountPropagation::PropagationBidirectional => Ok("rshared"),
    }
}

fn access(mount: &v1::Mount, recursive: bool) -> Result<&'static str, &'static str> {
    match (mount.readonly, mount.recursive_read_only) {
        (false, true) => Err("recursive read-only conflicts with a writable mount"),
        (false, false) => Ok("rw"),
        (true, false) => Ok("ro"),
        (true, true) if !recursive => Err("the OCI runtime does not support recursive read-only mounts"),
        (true, true) if mount.propagation() != v1::MountPropagation::PropagationPrivate => {
            Err("recursive read-only needs private propagation")
        }
        (true, true) => Ok("rro"),
    }
}

/// The root takes part as far as any mount in it has to; else it is private, the OCI runtime's default.
fn rootfs_propagation(mounts: &[v1::Mount]) -> Option<&'static str> {
    let any = |wanted| mounts.iter().any(|m| m.propagation() == wanted);
    if any(v1::MountPropagation::PropagationBidirectional) {
        Some("rshared")
    } else if any(v1::MountPropagation::PropagationHostToContainer) {
        Some("rslave")
    } else {
        None
    }
}
