//! Gives the files of a root file system to the users of a pod that has users of its own.
//!
//! Mounts with mapped ids would do without, but overlayfs takes them only for its layers, and to make one needs a call that no safe
//! binding has. So each inode is owned anew, as containerd does on kernels without such mounts; with `metacopy` overlayfs copies what is
//! changed of an inode and none of its data.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown};
use std::path::{Path, PathBuf};

use pod_supervisor::IdRange;
use rustix::fs::{XattrFlags, lgetxattr, lsetxattr};
use rustix::io::Errno;

use crate::error::{At, Done, RuntimeError};

/// Inodes of one root file system.
const MAX_INODES: usize = 4 << 20;
const SET_ID: u32 = 0o6000;
const CAPABILITY: &str = "security.capability";
/// Bytes of capabilities of a file, version 2, without the user whose they are (`capability.h`).
const VERSION_2: usize = 20;

/// Gives everything below `root`, and itself, to the users of `range`. Nobody else changes it meanwhile.
pub(crate) fn give(root: &Path, range: IdRange) -> Done<()> {
    let mut folders: Vec<PathBuf> = Vec::new();
    let mut seen = 0;
    let mut one = |path: PathBuf, folders: &mut Vec<PathBuf>| {
        seen += 1;
        if seen > MAX_INODES {
            return Err(RuntimeError::Refused(format!("{}: more than {MAX_INODES} files", root.display())));
        }
        let facts = fs::symlink_metadata(&path).at("stat", &path)?;
        give_one(&path, &facts, range).at("chown", &path)?;
        if facts.is_dir() {
            folders.push(path);
        }
        Ok(())
    };
    one(root.to_owned(), &mut folders)?;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).at("readdir", &folder)? {
            one(entry.at("readdir", &folder)?.path(), &mut folders)?;
        }
    }
    Ok(())
}

/// Ids without a place in the range stay what they are: nobody's, inside.
fn give_one(path: &Path, facts: &Metadata, range: IdRange) -> io::Result<()> {
    let moved = |id: u32| if id < range.length { range.host_id.checked_add(id) } else { None };
    let (uid, gid) = (moved(facts.uid()), moved(facts.gid()));
    if uid.is_none() && gid.is_none() {
        return Ok(());
    }
    let capabilities = if facts.is_file() { capabilities(path)? } else { None };
    lchown(path, uid, gid)?;
    // The kernel takes both away from who gets a file.
    if facts.is_file() && facts.mode() & SET_ID != 0 {
        fs::set_permissions(path, fs::Permissions::from_mode(facts.mode() & 0o7777))?;
    }
    match capabilities.and_then(|c| of_user(&c, range.host_id)) {
        Some(theirs) => Ok(lsetxattr(path, CAPABILITY, &theirs, XattrFlags::empty())?),
        None => Ok(()),
    }
}

fn capabilities(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let mut value = vec![0; VERSION_2 + 4];
    match lgetxattr(path, CAPABILITY, &mut value[..]) {
        Ok(length) => {
            value.truncate(length);
            Ok(Some(value))
        }
        Err(Errno::NODATA | Errno::OPNOTSUPP | Errno::RANGE) => Ok(None),
        Err(e) => Err(e.into()),
    }
}

/// Capabilities that hold where `root` is root (version 3). `None`: they are of no form that could.
fn of_user(capabilities: &[u8], root: u32) -> Option<Vec<u8>> {
    let (magic, rest) = capabilities.get(..VERSION_2)?.split_first_chunk::<4>()?;
    let magic = u32::from_le_bytes(*magic);
    if !matches!(magic >> 24, 2 | 3) {
        return None;
    }
    let version_3 = (magic & 0x00ff_ffff) | 3 << 24;
    Some([&version_3.to_le_bytes()[..], rest, &root.to_le_bytes()[..]].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    const RANGE: IdRange = IdRange { container_id: 0, host_id: 700_000, length: 65_536 };

    #[test]
    fn files_get_their_owners_and_keep_what_they_could() {
        assert!(host_linux::is_root(), "only root can give files away");
        let dir = tempfile::tempdir().expect("folder");
        let (inner, program, link) = (dir.path().join("in"), dir.path().join("in/su"), dir.path().join("in/link"));
        fs::create_dir(&inner).expect("folder");
        fs::write(&program, "x").expect("file");
        lchown(&program, Some(5), Some(70_000)).expect("chown");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o4755)).expect("chmod");
        let v2 = [&[1, 0, 0, 2][..], &[0, 4, 0, 0], &[0; 12]].concat();
        lsetxattr(&program, CAPABILITY, &v2, XattrFlags::empty()).expect("a disk with extended attributes");
        std::os::unix::fs::symlink("/etc/passwd", &link).expect("link");
        give(dir.path(), RANGE).expect("given");
        let owners = |p: &Path| fs::symlink_metadata(p).map(|m| (m.uid(), m.gid())).expect("there");
        assert_eq!(owners(dir.path()), (700_000, 700_000));
        assert_eq!(owners(&inner), (700_000, 700_000));
        assert_eq!(owners(&link), (700_000, 700_000));
        assert_eq!(owners(&program), (700_005, 70_000), "a group without a place stays");
        assert_eq!(fs::metadata("/etc/passwd").map(|m| m.uid()).expect("there"), 0, "links are not followed");
        assert_eq!(fs::metadata(&program).expect("there").mode() & 0o7777, 0o4755);
        let now = capabilities(&program).expect("read").expect("some");
        assert_eq!(now, [&[1, 0, 0, 3][..], &[0, 4, 0, 0], &[0; 12], &700_000_u32.to_le_bytes()].concat());
    }

    #[test]
    fn capabilities_of_other_forms_go() {
        assert_eq!(of_user(&[0; 20], 7), None);
        assert_eq!(of_user(&[0, 0, 0, 2], 7), None);
    }
}
