//! The mounts of a container: its root, which becomes the root of this process, and all that is mounted in it.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, mkdirat, openat, symlinkat};
use rustix::mount::{MountFlags, MountPropagationFlags, UnmountFlags, mount_bind_recursive, mount_change, unmount};

use super::joined::Joined;
use super::mounts::{Detached, Options};
use super::place::{self, Make, Place};
use super::spec::{Mount, Spec};
use super::{devices, hide};
use crate::cgroups::Groups;
use crate::helper::{Own, at};

/// `PROC_SUPER_MAGIC`.
const PROC: i128 = 0x9fa0;

/// What is to be mounted, its sources opened on the node's side.
enum Part {
    /// A new file system of a type.
    New(String),
    /// Something of the node's.
    Of(Detached),
    /// The container's own groups in hierarchies of version 1, by their names.
    Groups(Vec<(OsString, Detached)>),
}

/// Makes the container's root this process's own, with all mounts of the spec. Answers whether `/dev` is one of its own.
pub(super) fn make(own: &Own, bundle: &Path, spec: &Spec, groups: &Groups, joined: &mut Joined) -> io::Result<bool> {
    // Nothing of what follows is seen by the node.
    mount_change("/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC)?;
    let root = bundle.join(&spec.root.path);
    mount_bind_recursive(&root, &root).map_err(io::Error::from).map_err(at(&root))?;
    mount_change(&root, MountPropagationFlags::PRIVATE).map_err(io::Error::from).map_err(at(&root))?;
    let mut parts = Vec::new();
    for mount in &spec.mounts {
        let options = Options::of(&mount.options).map_err(at(&mount.destination))?;
        let part = open(mount, &options, groups).map_err(at(&mount.source))?;
        parts.push((mount, options, part));
    }
    enter(&root).map_err(at(&root))?;
    for (mount, options, part) in &parts {
        // Of version 2 what is seen there is what was the top when it was mounted.
        if mount.kind == "cgroup" && matches!(part, Part::New(_)) {
            joined.enter()?;
        }
        put(own, mount, options, part).map_err(at(&mount.destination))?;
    }
    if spec.mounts.iter().any(|m| m.kind == "bind" && place::is(&m.destination, "/dev")) {
        return Ok(false);
    }
    devices::make(&spec.linux.devices).map(|()| true)
}

/// What is left to do when all has been written that is to be written.
pub(super) fn finish(own: &Own, spec: &Spec) -> io::Result<()> {
    for mount in spec.mounts.iter().filter(|m| m.kind == "tmpfs" || place::is(&m.destination, "/dev")) {
        let options = Options::of(&mount.options)?;
        if options.is_read_only() {
            let there = place::open(&mount.destination, OFlags::PATH)?;
            Detached(there).set_flags(own, options.flags)?;
        }
    }
    if spec.root.readonly {
        Detached(place::open(Path::new("/"), OFlags::PATH)?).set_flags(own, MountFlags::RDONLY)?;
    }
    hide::read_only(own, &spec.linux.readonly_paths)?;
    hide::mask(&spec.linux.masked_paths)
}

fn open(mount: &Mount, options: &Options, groups: &Groups) -> io::Result<Part> {
    Ok(match mount.kind.as_str() {
        "bind" => Part::Of(Detached::again(&mount.source, options.recursive)?),
        "cgroup" if groups.in_version_2().is_some() => Part::New("cgroup2".to_owned()),
        "cgroup" => {
            let mut all = Vec::new();
            for group in groups.of_version_1() {
                let name = group.mount.file_name().unwrap_or(OsStr::new("cgroup")).to_owned();
                all.push((name, Detached::again(&group.folder, true)?));
            }
            Part::Groups(all)
        }
        "proc" | "sysfs" | "tmpfs" | "devpts" | "mqueue" => Part::New(mount.kind.clone()),
        other => return Err(io::Error::other(format!("file systems of type {other} are not mounted here"))),
    })
}

/// `pivot_root(".", ".")`: the old root is then under the new one, and is let go of.
fn enter(root: &Path) -> io::Result<()> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let (old, new) = (rustix::fs::open("/", flags, Mode::empty())?, rustix::fs::open(root, flags, Mode::empty())?);
    rustix::process::fchdir(&new)?;
    rustix::process::pivot_root(".", ".")?;
    rustix::process::fchdir(&old)?;
    mount_change(".", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC)?;
    unmount(".", UnmountFlags::DETACH)?;
    Ok(rustix::process::chdir("/")?)
}

fn put(own: &Own, mount: &Mount, options: &Options, part: &Part) -> io::Result<()> {
    match part {
        Part::Of(source) => {
            let facts = rustix::fs::fstat(&source.0)?;
            let is_folder = FileType::from_raw_mode(facts.st_mode) == FileType::Directory;
            let place = place::place(&mount.destination, if is_folder { Make::Folder } else { Make::File })?;
            let is_proc = i128::from(rustix::fs::fstatfs(&source.0)?.f_type) == PROC;
            if place.path == Path::new("/proc") && !is_proc {
                return Err(io::Error::other("only /proc of a node may stand in the place of /proc"));
            }
            source.attach(&place.there)?;
            source.settle(own, options)
        }
        Part::Groups(all) => put_groups(own, mount, options, all),
        Part::New(kind) => put_new(mount, options.clone(), kind),
    }
}

/// A new file system. `/proc` and `/sys` are what the kernel says of itself: no link may lead elsewhere.
fn put_new(mount: &Mount, mut options: Options, kind: &str) -> io::Result<()> {
    let Place { there, path } = place::place(&mount.destination, Make::Folder)?;
    let facts = rustix::fs::fstat(&there)?;
    let is_folder = FileType::from_raw_mode(facts.st_mode) == FileType::Directory;
    if ["proc", "sysfs"].contains(&mount.kind.as_str()) && !(is_folder && place::is(&mount.destination, &path)) {
        return Err(io::Error::other(format!("{} must be mounted on an ordinary folder", mount.kind)));
    }
    if path == Path::new("/proc") && mount.kind != "proc" {
        return Err(io::Error::other(format!("{} cannot stand in the place of /proc", mount.kind)));
    }
    if mount.kind == "tmpfs" {
        // Written to yet; see `finish`.
        options.flags -= MountFlags::RDONLY;
        if !options.names("mode") {
            options.tell(format!("mode={:o}", facts.st_mode & 0o7777));
        }
    }
    Detached::new(kind, &mount.source, &options)?.attach(&there)
}

/// `/sys/fs/cgroup` of version 1: in a folder of memory, the container's group of each hierarchy.
fn put_groups(own: &Own, mount: &Mount, options: &Options, all: &[(OsString, Detached)]) -> io::Result<()> {
    let place = place::place(&mount.destination, Make::Folder)?;
    let plain = ["nosuid", "nodev", "noexec", "mode=755"].map(str::to_owned);
    let folder = Detached::new("tmpfs", Path::new("tmpfs"), &Options::of(&plain)?)?;
    folder.attach(&place.there)?;
    for (name, group) in all {
        mkdirat(&folder.0, name, Mode::from_raw_mode(0o755))?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        group.attach(openat(&folder.0, name, flags, Mode::empty())?)?;
        group.settle(own, options)?;
        // Those that are mounted together are found one by one.
        let names = name.to_str().filter(|n| n.contains(',')).into_iter().flat_map(|n| n.split(','));
        for one in names {
            symlinkat(name, &folder.0, one)?;
        }
    }
    if options.is_read_only() { folder.set_flags(own, options.flags) } else { Ok(()) }
}
