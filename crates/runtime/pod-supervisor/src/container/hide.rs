//! Parts of a container's file systems that it is not to see, or not to change.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, OFlags, StatVfsMountFlags};
use rustix::mount::MountFlags;

use super::devices;
use super::mounts::{Detached, Options};
use super::place;
use crate::helper::{Own, at};

/// Has paths be read only, with nothing else changed of how they are mounted. One that is not there is fine.
pub(super) fn read_only(own: &Own, paths: &[PathBuf]) -> io::Result<()> {
    for path in paths {
        let Some(there) = there(path)? else { continue };
        let again = Detached::again_of(&there, true).map_err(at(path))?;
        let now = rustix::fs::fstatvfs(&there)?.f_flag;
        let kept = [
            (StatVfsMountFlags::NOSUID, MountFlags::NOSUID),
            (StatVfsMountFlags::NODEV, MountFlags::NODEV),
            (StatVfsMountFlags::NOEXEC, MountFlags::NOEXEC),
        ];
        let kept = kept.into_iter().filter(|(has, _)| now.contains(*has));
        let flags = kept.fold(MountFlags::RDONLY, |all, (_, flag)| all | flag);
        again.attach(&there).and_then(|()| again.set_flags(own, flags)).map_err(at(path))?;
    }
    Ok(())
}

/// Puts nothing over paths: an empty folder over a folder, `/dev/null` over all else. One that is not there is fine.
pub(super) fn mask(paths: &[PathBuf]) -> io::Result<()> {
    if paths.is_empty() {
        return Ok(());
    }
    let null = devices::null()?;
    let empty = Options::of(&["ro".to_owned()])?;
    for path in paths {
        let Some(there) = there(path)? else { continue };
        let is_folder = FileType::from_raw_mode(rustix::fs::fstat(&there)?.st_mode) == FileType::Directory;
        let nothing = if is_folder {
            Detached::new("tmpfs", Path::new("tmpfs"), &empty)
        } else {
            Detached::again_of(&null, false)
        };
        nothing.and_then(|nothing| nothing.attach(&there)).map_err(at(path))?;
    }
    Ok(())
}

fn there(path: &Path) -> io::Result<Option<OwnedFd>> {
    match place::open(path, OFlags::PATH) {
        Ok(there) => Ok(Some(there)),
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
        Err(e) => Err(e).map_err(at(path)),
    }
}
