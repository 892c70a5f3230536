//! Directories of a pod's own (node-and-resources 6.7): on disk, or a memory file system. Every function blocks and may be
//! repeated.

use std::path::{Path, PathBuf};

use actor::chain;
use contract::volume::VolumeError;
use model::core::{Pod, Volume};
use model::pod;
use model::userns::has_own_users;
use ports::host::{FileKind, HostError, MemoryMount, TMPFS_MAGIC};

use crate::deps::{Config, Deps};
use crate::layout::{EMPTY_DIR, PRIVATE, PodLayout, marker};
use crate::ownership::{Grant, give_to_group};
use crate::spec::{self, Medium};

/// Sets an emptyDir up.
pub(crate) fn set_up(
    deps: &Deps,
    config: &Config,
    pod: &Pod,
    volume: &Volume,
    medium: &Medium,
) -> Result<PathBuf, String> {
    let refused = |e: VolumeError| e.message;
    let layout = PodLayout::new(&config.root_dir, &pod::uid(pod)).map_err(refused)?;
    let dir = layout.volume(EMPTY_DIR, &volume.name).map_err(refused)?;
    let marker_dir = layout.marker_dir(EMPTY_DIR, &volume.name).map_err(refused)?;
    if let Medium::Refused(why) = medium {
        return Err(why.clone());
    }
    let size_bytes = spec::tmpfs_size(pod, volume, config.memory_allocatable_bytes);
    let wrapper = Wrapper { dir: &dir, fs_group: spec::fs_group(pod), size_bytes };
    with_marker(deps, &wrapper, &marker_dir, medium).map_err(|e| chain(&e))?;
    // Who is root among the host's users can take files out of their project.
    if let (Some(quotas), Medium::Disk, true) = (&deps.quotas, medium, has_own_users(pod))
        && let Err(e) = quotas.assign(&dir)
    {
        // Without it the directory is walked, as on any other file system.
        tracing::warn!(logger = "volume-manager", pod = %pod::uid(pod), volume = volume.name, err = chain(&e), "no project quota");
    }
    Ok(dir)
}

/// A directory of the pod's own.
#[derive(Clone, Copy)]
pub(crate) struct Wrapper<'a> {
    /// Where.
    pub dir: &'a Path,
    /// Group that may write.
    pub fs_group: Option<u32>,
    /// Most bytes, where it is made of memory.
    pub size_bytes: Option<u64>,
}

/// Makes it, if it is not there. The marker is written last: what has it is complete.
fn with_marker(deps: &Deps, wrapper: &Wrapper<'_>, marker_dir: &Path, medium: &Medium) -> Result<(), HostError> {
    let fs = &*deps.fs;
    let ready = marker(marker_dir);
    if fs.stat_link(&ready)?.is_some() {
        let there = fs.stat_link(wrapper.dir)?.is_some_and(|s| s.kind == FileKind::Dir);
        if there && (*medium == Medium::Disk || deps.mounts.is_mount_point(wrapper.dir)?) {
            return Ok(());
        }
        // Somebody removed the volume behind our back: begin again.
        fs.remove_tree(marker_dir)?;
    }
    make_wrapper(deps, wrapper, medium)?;
    fs.create_dir(marker_dir, PRIVATE)?;
    fs.write_file(&ready, &[], 0o644)
}

/// Makes the directory, or brings to its end what a crash left of it.
pub(crate) fn make_wrapper(deps: &Deps, wrapper: &Wrapper<'_>, medium: &Medium) -> Result<(), HostError> {
    let memory = match medium {
        Medium::Disk | Medium::Refused(_) => None,
        Medium::Memory => Some(MemoryMount::Tmpfs { size_bytes: wrapper.size_bytes }),
        Medium::HugePages(page_size_bytes) => Some(MemoryMount::Hugetlbfs { page_size_bytes: *page_size_bytes }),
    };
    let Wrapper { dir, fs_group, .. } = *wrapper;
    let (fs, mounts) = (&*deps.fs, &*deps.mounts);
    let there = fs.stat_link(dir)?.is_some_and(|s| s.kind == FileKind::Dir);
    let mounted = there && mounts.is_mount_point(dir)?;
    if let Some(parent) = dir.parent() {
        fs.create_dir(parent, PRIVATE)?;
    }
    if !mounted {
        fs.create_dir(dir, 0o777)?;
    }
    if there && !mounted {
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
        // As a kubelet: the pod gets it all the same.
        if let Err(e) = give_to_group(fs, dir, gid, Grant::Write) {
            tracing::warn!(path = %dir.display(), error = %actor::chain(&e), "an emptyDir was not given to its group");
        }
    }
    Ok(())
}
