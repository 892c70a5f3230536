//! Setting volumes up. Every function blocks and may be repeated.

use std::path::{Path, PathBuf};

use contract::volume::{MountedVolume, MountedVolumes, VolumeError};
use model::core::{Pod, Volume};
use model::pod;
use ports::host::{FileKind, HostError, HostFs, MemoryMount, TMPFS_MAGIC};

use crate::actor::{Config, Deps};
use crate::layout::{EMPTY_DIR, PRIVATE, PodLayout, marker};
use crate::measure::counted;
use crate::ownership::{Grant, give_to_group};
use crate::projected::{self, Content, Trouble};
use crate::wanted::{self, Kind, Medium};

/// A volume that is not in place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Failed {
    pub volume: String,
    pub error: String,
    /// Another try cannot help.
    pub hopeless: bool,
}

pub(crate) fn text(e: &HostError) -> String {
    actor::chain(e)
}

/// The directories that a pod has before anything else.
pub(crate) fn pod_dirs(deps: &Deps, layout: &PodLayout) -> Result<(), VolumeError> {
    for dir in [layout.dir().to_owned(), layout.volumes(), layout.plugins()] {
        deps.fs.create_dir(&dir, PRIVATE).map_err(|e| VolumeError::new(text(&e)))?;
    }
    Ok(())
}

/// How a try on all volumes of a pod went.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// What can be mounted.
    pub done: MountedVolumes,
    /// What cannot.
    pub failed: Vec<Failed>,
    /// What can, with content of an earlier try.
    pub stale: Vec<Failed>,
}

/// Sets up every volume that is used; one that fails does not hold up the others.
pub(crate) fn all(deps: &Deps, config: &Config, pod: &Pod, content: &Content) -> Outcome {
    let mut out = Outcome::default();
    for (volume, kind) in wanted::used_volumes(pod) {
        let name = || volume.name.clone();
        let plugin = plugin(&kind);
        match counted("volume_mount", plugin, || one((deps, config), pod, volume, &kind, content)) {
            Ok(Some(mounted)) => {
                out.done.volumes.insert(name(), mounted);
            }
            Ok(None) => {}
            Err(Trouble::Absent(error)) => {
                let hopeless = matches!(kind, Kind::Unsupported(_) | Kind::EmptyDir(Medium::Refused(_)));
                out.failed.push(Failed { volume: name(), error, hopeless });
            }
            Err(Trouble::Stale(path, error)) => {
                out.done.volumes.insert(name(), holding_objects(path));
                out.stale.push(Failed { volume: name(), error, hopeless: false });
            }
        }
    }
    out
}

/// Directory name of the kind; `None`: nothing is mounted for it here.
fn plugin(kind: &Kind) -> Option<&'static str> {
    match kind {
        Kind::EmptyDir(_) => Some(EMPTY_DIR),
        Kind::HostPath { .. } => Some("kubernetes.io~host-path"),
        Kind::Projected { plugin, .. } => Some(plugin),
        Kind::Image | Kind::Unsupported(_) => None,
    }
}

/// Nothing that a container writes there would last.
fn holding_objects(host_path: PathBuf) -> MountedVolume {
    MountedVolume { host_path, read_only: true, selinux_relabel: true }
}

fn one(
    (deps, config): (&Deps, &Config),
    pod: &Pod,
    volume: &Volume,
    kind: &Kind,
    content: &Content,
) -> Result<Option<MountedVolume>, Trouble> {
    match kind {
        Kind::Image => Ok(None),
        Kind::Unsupported(name) => {
            Err(Trouble::Absent(format!("volume {:?}: {name} volumes are not supported", volume.name)))
        }
        Kind::HostPath { path, check } => {
            host_path(&*deps.fs, path, check).map_err(Trouble::Absent)?;
            Ok(Some(MountedVolume { host_path: path.into(), read_only: false, selinux_relabel: false }))
        }
        Kind::EmptyDir(medium) => {
            let host_path = empty_dir(deps, config, pod, volume, medium).map_err(Trouble::Absent)?;
            Ok(Some(MountedVolume { host_path, read_only: false, selinux_relabel: true }))
        }
        Kind::Projected { plugin, medium } => {
            let path = projected::set_up((deps, config), pod, volume, (plugin, medium), content)?;
            Ok(Some(holding_objects(path)))
        }
    }
}

/// node-and-resources 6.8.
fn host_path(fs: &dyn HostFs, path: &str, check: &str) -> Result<(), String> {
    if path.split('/').any(|part| part == "..") {
        return Err(format!("invalid HostPath `{path}`: must not contain '..'"));
    }
    let at = Path::new(path);
    let found = |e: HostError| text(&e);
    let kind = fs.stat(at).map_err(found)?.map(|s| s.kind);
    let (fits, what) = match check {
        "" => return Ok(()),
        "DirectoryOrCreate" if kind.is_none() => return fs.create_dir(at, 0o755).map_err(found),
        "FileOrCreate" if kind.is_none() => return fs.create_file(at, 0o644).map_err(found),
        "DirectoryOrCreate" | "Directory" => (FileKind::Dir, "directory"),
        "FileOrCreate" | "File" => (FileKind::File, "file"),
        "Socket" => (FileKind::Socket, "socket file"),
        "CharDevice" => (FileKind::CharDevice, "character device"),
        "BlockDevice" => (FileKind::BlockDevice, "block device"),
        other => return Err(format!("{other} is an invalid volume type")),
    };
    if kind == Some(fits) { Ok(()) } else { Err(format!("hostPath type check failed: {path} is not a {what}")) }
}

/// node-and-resources 6.7.
fn empty_dir(deps: &Deps, config: &Config, pod: &Pod, volume: &Volume, medium: &Medium) -> Result<PathBuf, String> {
    let refused = |e: VolumeError| e.message;
    let layout = PodLayout::new(&config.root_dir, &pod::uid(pod)).map_err(refused)?;
    let dir = layout.volume(EMPTY_DIR, &volume.name).map_err(refused)?;
    let marker_dir = layout.marker_dir(EMPTY_DIR, &volume.name).map_err(refused)?;
    if let Medium::Refused(why) = medium {
        return Err(why.clone());
    }
    let size_bytes = wanted::tmpfs_size(pod, volume, config.memory_allocatable_bytes);
    let wrapper = Wrapper { dir: &dir, marker_dir: &marker_dir, fs_group: wanted::fs_group(pod), size_bytes };
    make_wrapper(deps, &wrapper, medium).map_err(|e| text(&e))?;
    Ok(dir)
}

/// A directory of the pod's own.
#[derive(Clone, Copy)]
pub(crate) struct Wrapper<'a> {
    /// Where.
    pub dir: &'a Path,
    /// Where it is noted that it is whole.
    pub marker_dir: &'a Path,
    /// Group that may write.
    pub fs_group: Option<u32>,
    /// Most bytes, where it is made of memory.
    pub size_bytes: Option<u64>,
}

/// Makes it, if it is not there. The marker is written last: what has it is whole.
pub(crate) fn make_wrapper(deps: &Deps, wrapper: &Wrapper<'_>, medium: &Medium) -> Result<(), HostError> {
    let memory = match medium {
        Medium::Disk | Medium::Refused(_) => None,
        Medium::Memory => Some(MemoryMount::Tmpfs { size_bytes: wrapper.size_bytes }),
        Medium::HugePages(page_size_bytes) => Some(MemoryMount::Hugetlbfs { page_size_bytes: *page_size_bytes }),
    };
    let Wrapper { dir, marker_dir, fs_group, .. } = *wrapper;
    let (fs, mounts) = (&*deps.fs, &*deps.mounts);
    let there = fs.stat_link(dir)?.is_some_and(|s| s.kind == FileKind::Dir);
    let mounted = there && mounts.is_mount_point(dir)?;
    let ready = marker(marker_dir);
    if fs.stat_link(&ready)?.is_some() {
        if if memory.is_some() { mounted } else { there } {
            return Ok(());
        }
        // Somebody removed the volume behind our back: begin again.
        fs.remove_tree(marker_dir)?;
    }
    if let Some(parent) = dir.parent() {
        fs.create_dir(parent, PRIVATE)?;
    }
    if !mounted {
        fs.create_dir(dir, 0o777)?;
        fs.set_mode(dir, 0o777)?;
    }
    if let Some(what) = &memory {
        let is_tmpfs = mounted && fs.stat_fs(dir)?.magic == TMPFS_MAGIC;
        let right = is_tmpfs == matches!(what, MemoryMount::Tmpfs { .. });
        if mounted && !right {
            let other = std::io::Error::new(std::io::ErrorKind::AlreadyExists, "another medium is mounted there");
            return Err(HostError::new("mount", dir, other));
        }
        if !mounted {
            mounts.mount_memory(dir, what)?;
        }
    }
    if let Some(gid) = fs_group {
        give_to_group(fs, dir, gid, Grant::Write);
    }
    fs.create_dir(marker_dir, PRIVATE)?;
    fs.write_file(&ready, &[], 0o644)
}
