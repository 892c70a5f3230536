//! The mounts of a container: its root, which becomes the root of this process, and all that is mounted in it.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags};
use rustix::mount::{MountFlags, MountPropagationFlags, UnmountFlags, mount_bind_recursive, mount_change, unmount};

use super::mounts::{Detached, Options};
use super::place::{self, Make};
use super::spec::{Mount, Spec};
use super::{devices, hide};
use crate::cgroups::Groups;
use crate::helper::at;

/// `PROC_SUPER_MAGIC`.
const PROC: i128 = 0x9fa0;

/// What is to be mounted, its sources opened on the node's side.
enum Part {
    /// A new file system.
    New,
    /// Something of the node's.
    Of(Detached),
    /// The container's own groups in hierarchies of version 1, by their names.
    Groups(Vec<(OsString, Detached)>),
}

/// Makes the container's root this process's own, with all mounts of the spec.
pub(super) fn make(own: &OwnedFd, bundle: &Path, spec: &Spec, groups: &Groups) -> io::Result<()> {
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
        put(own, mount, options, part).map_err(at(&mount.destination))?;
    }
    if spec.mounts.iter().any(|m| m.kind == "bind" && place::is(&m.destination, "/dev")) {
        return Ok(());
    }
    devices::make(&spec.linux.devices)
}

/// What is left to do when all has been written that is to be written.
pub(super) fn finish(own: &OwnedFd, spec: &Spec) -> io::Result<()> {
    for mount in spec.mounts.iter().filter(|m| m.kind == "tmpfs" || place::is(&m.destination, "/dev")) {
        let options = Options::of(&mount.options)?;
        if options.read_only {
            let there = place::open(&place::folders(&mount.destination)?)?;
            Detached(there).set_flags(own, options.flags())?;
        }
    }
    if spec.root.readonly {
        Detached(place::open(Path::new("/"))?).set_flags(own, MountFlags::RDONLY)?;
    }
    hide::read_only(own, &spec.linux.readonly_paths)?;
    hide::mask(&spec.linux.masked_paths)
}

fn open(mount: &Mount, options: &Options, groups: &Groups) -> io::Result<Part> {
    Ok(match mount.kind.as_str() {
        "bind" => Part::Of(Detached::again(&mount.source, options.recursive)?),
        "cgroup" => {
            let mut all = Vec::new();
            for group in groups.of_version_1() {
                let name = group.mount.file_name().unwrap_or(OsStr::new("cgroup")).to_owned();
                all.push((name, Detached::again(&group.folder, true)?));
            }
            Part::Groups(all)
        }
        "proc" | "sysfs" | "tmpfs" | "devpts" | "mqueue" => Part::New,
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

fn put(own: &OwnedFd, mount: &Mount, options: &Options, part: &Part) -> io::Result<()> {
    match part {
        Part::Of(source) => {
            let facts = rustix::fs::fstat(&source.0)?;
            let is_folder = FileType::from_raw_mode(facts.st_mode) == FileType::Directory;
            let (there, path) = place::place(&mount.destination, if is_folder { Make::Folder } else { Make::File })?;
            let is_proc = i128::from(rustix::fs::fstatfs(&source.0)?.f_type) == PROC;
            if path == Path::new("/proc") && !is_proc {
                return Err(io::Error::other("only /proc of a node may stand in the place of /proc"));
            }
            source.attach(&there)?;
            source.settle(own, options)
        }
        Part::Groups(all) => put_groups(own, mount, options, all),
        Part::New => put_new(mount),
    }
}

/// A new file system. `/proc` and `/sys` are what the kernel says of itself: no link may lead elsewhere.
fn put_new(mount: &Mount) -> io::Result<()> {
    let is_kernels = ["proc", "sysfs"].contains(&mount.kind.as_str());
    if is_kernels && fs::symlink_metadata(&mount.destination).is_ok_and(|facts| !facts.is_dir()) {
        return Err(io::Error::other(format!("{} must be mounted on an ordinary folder", mount.kind)));
    }
    let was = fs::metadata(&mount.destination).map(|facts| facts.mode() & 0o7777).ok();
    let (there, path) = place::place(&mount.destination, Make::Folder)?;
    if is_kernels && !place::is(&mount.destination, &path) {
        return Err(io::Error::other(format!("{} would be mounted on {}", mount.kind, path.display())));
    }
    if path == Path::new("/proc") && mount.kind != "proc" {
        return Err(io::Error::other(format!("{} cannot stand in the place of /proc", mount.kind)));
    }
    let mut options = Options::of(&mount.options)?;
    if mount.kind == "tmpfs" {
        // Written to yet; see `finish`.
        options.read_only = false;
        if let Some(mode) = was.filter(|_| !options.names("mode")) {
            options.tell(format!("mode={mode:o}"));
        }
    }
    Detached::new(&mount.kind, &mount.source, &options)?.attach(&there)
}

/// `/sys/fs/cgroup` of version 1: in a folder of memory, the container's group of each hierarchy.
fn put_groups(own: &OwnedFd, mount: &Mount, options: &Options, all: &[(OsString, Detached)]) -> io::Result<()> {
    let (there, path) = place::place(&mount.destination, Make::Folder)?;
    let plain = ["nosuid", "nodev", "noexec", "mode=755"].map(str::to_owned);
    let folder = Detached::new("tmpfs", Path::new("tmpfs"), &Options::of(&plain)?)?;
    folder.attach(&there)?;
    for (name, group) in all {
        let to = path.join(name);
        fs::create_dir(&to)?;
        group.attach(place::open(&to)?)?;
        group.settle(own, options)?;
        // Those that are mounted together are found one by one.
        let names = name.to_str().filter(|n| n.contains(',')).into_iter().flat_map(|n| n.split(','));
        for one in names {
            std::os::unix::fs::symlink(name, path.join(one))?;
        }
    }
    if options.read_only { folder.set_flags(own, options.flags()) } else { Ok(()) }
}
