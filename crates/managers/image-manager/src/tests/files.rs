//! Real files in a temporary folder, on a disk that is full.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use ports::host::{DirEntry, FileEnd, FileStat, FsStat, HostError, HostFs, HostResult, Links};

/// The part of the host that images need.
pub(super) struct FakeFiles;

fn at<T>(op: &'static str, path: &Path, r: io::Result<T>) -> HostResult<T> {
    r.map_err(|e| HostError::new(op, path, e))
}

fn never<T>(op: &'static str, path: &Path) -> HostResult<T> {
    Err(HostError::new(op, path, io::ErrorKind::Unsupported))
}

impl HostFs for FakeFiles {
    fn create_dir(&self, path: &Path, mode: u32) -> HostResult<()> {
        at("mkdir", path, fs::create_dir_all(path))?;
        at("chmod", path, fs::set_permissions(path, fs::Permissions::from_mode(mode)))
    }
    fn write_file(&self, path: &Path, content: &[u8], mode: u32) -> HostResult<()> {
        at("write", path, fs::write(path, content))?;
        at("chmod", path, fs::set_permissions(path, fs::Permissions::from_mode(mode)))
    }
    fn write_file_synced(&self, path: &Path, _: &[u8], _: u32) -> HostResult<()> {
        never("write", path)
    }
    fn sync_dir(&self, path: &Path) -> HostResult<()> {
        never("fsync", path)
    }
    fn read_file(&self, path: &Path, _: u64) -> HostResult<Vec<u8>> {
        at("read", path, fs::read(path))
    }
    fn read_within(&self, base: &Path, _: &Path, _: u64) -> HostResult<Vec<u8>> {
        never("read", base)
    }
    fn read_end(&self, path: &Path, _: u64, _: Links) -> HostResult<FileEnd> {
        never("read", path)
    }
    fn list_dir(&self, path: &Path) -> HostResult<Vec<DirEntry>> {
        let mut out = Vec::new();
        for e in at("readdir", path, fs::read_dir(path))? {
            let e = at("readdir", path, e)?;
            let is_dir = e.file_type().unwrap().is_dir();
            out.push(DirEntry { name: e.file_name().into_string().unwrap(), is_dir });
        }
        out.sort();
        Ok(out)
    }
    fn remove_file(&self, path: &Path) -> HostResult<()> {
        match fs::remove_file(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
            other => at("unlink", path, other),
        }
    }
    fn stat_fs(&self, path: &Path) -> HostResult<FsStat> {
        assert_eq!(path, Path::new("/var/lib/images"));
        Ok(FsStat { magic: 0, total_bytes: 1 << 40, available_bytes: 100 << 30, total_inodes: 0, free_inodes: 0 })
    }
    fn create_dir_within(&self, base: &Path, _: &Path, _: u32) -> HostResult<()> {
        never("mkdir", base)
    }
    fn create_file(&self, path: &Path, _: u32) -> HostResult<()> {
        never("create", path)
    }
    fn remove_empty_dir(&self, path: &Path) -> HostResult<()> {
        never("rmdir", path)
    }
    fn remove_tree(&self, path: &Path) -> HostResult<()> {
        never("remove", path)
    }
    fn symlink(&self, _: &Path, link: &Path) -> HostResult<()> {
        never("symlink", link)
    }
    fn read_link(&self, path: &Path) -> HostResult<PathBuf> {
        never("readlink", path)
    }
    fn rename(&self, from: &Path, _: &Path) -> HostResult<()> {
        never("rename", from)
    }
    fn set_owner(&self, path: &Path, _: Option<u32>, _: Option<u32>) -> HostResult<()> {
        never("chown", path)
    }
    fn set_mode(&self, path: &Path, _: u32) -> HostResult<()> {
        never("chmod", path)
    }
    fn stat(&self, path: &Path) -> HostResult<Option<FileStat>> {
        never("stat", path)
    }
    fn stat_link(&self, path: &Path) -> HostResult<Option<FileStat>> {
        never("stat", path)
    }
}
