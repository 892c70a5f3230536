//! What has to be looked at on the node before a container's spec can be made.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use container_spec::{DeviceKind, DeviceNode, MountSource, SourcePropagation, UserFiles};
use cri_api::v1;
use host_linux::mounts::unescaped;
use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};

use crate::error::{At, Done, RuntimeError};

/// Bytes of `/etc/passwd` and `/etc/group` of an image: an image may hold anything.
const MAX_USERS: u64 = 1 << 20;
/// Bytes of a seccomp profile.
const MAX_PROFILE: u64 = 1 << 20;
/// Devices of a node.
const MAX_DEVICES: usize = 4096;
/// Parts of `/dev` that are no devices, or no node's own (containerd's list).
const NO_DEVICES: [&str; 7] = ["pts", "shm", "fd", "mqueue", ".lxc", ".lxd-mounts", ".udev"];

/// Users of a root file system, read without leaving it: links in an image lead nowhere else.
pub(crate) fn user_files(rootfs: &Path) -> Done<UserFiles> {
    Ok(UserFiles { passwd: read_in(rootfs, "etc/passwd")?, group: read_in(rootfs, "etc/group")? })
}

fn read_in(rootfs: &Path, file: &str) -> Done<String> {
    let path = rootfs.join(file);
    let root = File::open(rootfs).at("open", rootfs)?;
    // A pipe must not hold us up.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let how = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    let file = match openat2(&root, file, flags, Mode::empty(), how) {
        Ok(fd) => File::from(fd),
        Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => return Ok(String::new()),
        Err(e) => return Err(e).at("open", &path),
    };
    if !file.metadata().at("stat", &path)?.is_file() {
        return Ok(String::new());
    }
    let mut text = Vec::new();
    file.take(MAX_USERS).read_to_end(&mut text).at("read", &path)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// A seccomp profile of the node.
pub(crate) fn seccomp_file(path: &str) -> Done<String> {
    let path = Path::new(path);
    let file = host_linux::open_regular(path, ports::host::Links::Follow).at("open", path)?;
    let mut text = String::new();
    file.take(MAX_PROFILE).read_to_string(&mut text).at("read", path)?;
    Ok(text)
}

/// Where mounts come from: `volumes` has places of those that are images, by number. How they take part in propagation is looked for where somebody
/// asks for more than none. A folder of the node that is not there is made, as
/// every runtime of the CRI does.
pub(crate) fn mount_sources(mounts: &[v1::Mount], volumes: &BTreeMap<usize, PathBuf>) -> Done<Vec<MountSource>> {
    // It has a line for each mount of each pod.
    let is_asked = mounts.iter().any(|m| m.propagation() != v1::MountPropagation::PropagationPrivate);
    let mountinfo = Path::new("/proc/self/mountinfo");
    let table = if is_asked { fs::read_to_string(mountinfo).at("read", mountinfo)? } else { String::new() };
    let mut sources = Vec::new();
    for (number, mount) in mounts.iter().enumerate() {
        if let Some(path) = volumes.get(&number) {
            sources.push(MountSource { path: path.clone(), propagation: SourcePropagation::Private });
            continue;
        }
        let path = Path::new(&mount.host_path);
        if !path.exists() {
            fs::create_dir_all(path).at("mkdir", path)?;
        }
        let path = fs::canonicalize(path).at("resolve", path)?;
        let propagation = propagation(&table, &path);
        sources.push(MountSource { path, propagation });
    }
    Ok(sources)
}

/// How the mount that a path lies on takes part in propagation, by `/proc/self/mountinfo`. Of mounts on one point the last counts.
fn propagation(table: &str, path: &Path) -> SourcePropagation {
    let mut best = (0, SourcePropagation::Private);
    for line in table.lines() {
        let mut fields = line.split(' ');
        let Some(at) = fields.nth(4).map(|at| PathBuf::from(unescaped(at))) else { continue };
        let depth = at.components().count();
        if !path.starts_with(&at) || depth < best.0 {
            continue;
        }
        let optional: Vec<&str> = fields.skip(1).take_while(|f| *f != "-").collect();
        let has = |kind: &str| optional.iter().any(|f| f.starts_with(kind));
        let propagation = match (has("shared:"), has("master:")) {
            (true, _) => SourcePropagation::Shared,
            (false, true) => SourcePropagation::Slave,
            (false, false) => SourcePropagation::Private,
        };
        best = (depth, propagation);
    }
    best.1
}

/// Devices that a config names: one, or all in a folder.
pub(crate) fn devices(asked: &[v1::Device]) -> Done<Vec<Vec<DeviceNode>>> {
    let one = |d: &v1::Device| {
        let host = Path::new(&d.host_path);
        let host = fs::canonicalize(host).at("resolve", host)?;
        let mut found = Vec::new();
        collect(&host, Path::new(&d.container_path), &mut found)?;
        if found.is_empty() {
            return Err(RuntimeError::Refused(format!("{}: no device", d.host_path)));
        }
        Ok(found)
    };
    asked.iter().map(one).collect()
}

/// The device, or named pipe, at a path of this node; `None`: something else is there, or nothing.
pub(crate) fn device(path: &Path) -> Done<Option<DeviceNode>> {
    match fs::metadata(path) {
        Ok(facts) => Ok(node(&facts, path)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e).at("stat", path),
    }
}

/// All devices of this node.
pub(crate) fn host_devices() -> Done<Vec<DeviceNode>> {
    let mut found = Vec::new();
    collect(Path::new("/dev"), Path::new("/dev"), &mut found)?;
    found.retain(|d| d.path != Path::new("/dev/console"));
    Ok(found)
}

fn collect(host: &Path, container: &Path, found: &mut Vec<DeviceNode>) -> Done<()> {
    let facts = fs::symlink_metadata(host).at("stat", host)?;
    if facts.is_dir() {
        for entry in fs::read_dir(host).at("readdir", host)? {
            let name = entry.at("readdir", host)?.file_name();
            if !NO_DEVICES.iter().any(|n| name == *n) {
                collect(&host.join(&name), &container.join(&name), found)?;
            }
        }
        return Ok(());
    }
    let Some(device) = node(&facts, container).filter(|d| d.kind != DeviceKind::Fifo) else { return Ok(()) };
    if found.len() >= MAX_DEVICES {
        return Err(RuntimeError::Refused(format!("{}: too many devices", host.display())));
    }
    found.push(device);
    Ok(())
}

fn node(facts: &fs::Metadata, path: &Path) -> Option<DeviceNode> {
    let kind = match facts.file_type() {
        t if t.is_block_device() => DeviceKind::Block,
        t if t.is_char_device() => DeviceKind::Char,
        t if t.is_fifo() => DeviceKind::Fifo,
        _ => return None,
    };
    Some(DeviceNode {
        path: path.to_owned(),
        kind,
        major: rustix::fs::major(facts.rdev()).into(),
        minor: rustix::fs::minor(facts.rdev()).into(),
        mode: facts.mode() & 0o777,
        uid: facts.uid(),
        gid: facts.gid(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_mount_says_how_it_propagates() {
        let table = "1 0 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n\
            2 1 0:5 / /data\\040x rw master:3 - ext4 /dev/sdb rw\n\
            3 1 0:6 / /data\\040x/in rw - tmpfs tmpfs rw\n\
            4 1 0:7 / /top rw - tmpfs tmpfs rw\n\
            5 4 0:8 / /top rw shared:9 master:1 - tmpfs tmpfs rw\n";
        for (path, want) in [
            ("/etc", SourcePropagation::Shared),
            ("/data x/a", SourcePropagation::Slave),
            ("/data x/in/b", SourcePropagation::Private),
            ("/data xy", SourcePropagation::Shared),
            ("/top/c", SourcePropagation::Shared),
        ] {
            assert_eq!(propagation(table, Path::new(path)), want, "{path}");
        }
    }

    #[test]
    fn users_of_an_image_are_read_inside_of_it() {
        let root = tempfile::tempdir().expect("folder");
        let etc = root.path().join("etc");
        fs::create_dir(&etc).expect("etc");
        std::os::unix::fs::symlink("/etc/real", etc.join("passwd")).expect("link");
        std::os::unix::fs::symlink("../../../../../../proc/self/status", etc.join("group")).expect("link");
        assert_eq!(user_files(root.path()).expect("read").passwd, "");
        fs::write(etc.join("real"), "a:x:1:1::").expect("write");
        let files = user_files(root.path()).expect("read");
        assert_eq!((files.passwd.as_str(), files.group.as_str()), ("a:x:1:1::", ""));
        fs::remove_file(etc.join("group")).expect("remove");
        fs::create_dir(etc.join("group")).expect("folder in the place of a file");
        assert_eq!(user_files(root.path()).expect("read").group, "");
    }

    #[test]
    fn devices_are_found_one_by_one_and_in_folders() {
        let ask = |host: &str| {
            devices(&[v1::Device { host_path: host.into(), container_path: "/dev/x".into(), permissions: "r".into() }])
        };
        let null = ask("/dev/null").expect("null");
        assert_eq!((null[0][0].major, null[0][0].minor, null[0][0].path.as_path()), (1, 3, Path::new("/dev/x")));
        assert!(ask("/etc/passwd").is_err());
        assert!(host_devices().expect("devices").iter().any(|d| d.path == Path::new("/dev/null")));
    }
}
