//! The disk as a daemon sees it that is killed: from some change on it does nothing and sees nothing.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fakes::MemFs;
use fakes::files::give_group_by_path;
use ports::host::{
    DirEntry, FileEnd, FileStat, FsStat, GroupGrant, HostError, HostFs, HostResult, Links, MemoryMount, Met, MountLine,
    Mounter, ProgramEnd,
};

#[derive(Clone, Debug)]
pub(super) struct Mortal {
    disk: MemFs,
    left: Arc<AtomicUsize>,
}

impl Mortal {
    /// Dies over the change after so many.
    pub(super) fn after(disk: &MemFs, changes: usize) -> Self {
        Self { disk: disk.clone(), left: Arc::new(AtomicUsize::new(changes + 1)) }
    }

    pub(super) fn is_dead(&self) -> bool {
        self.left.load(Ordering::Relaxed) == 0
    }

    fn live(&self, path: &Path) -> HostResult<()> {
        if self.is_dead() { Err(HostError::new("live", path, std::io::ErrorKind::Interrupted)) } else { Ok(()) }
    }

    fn change(&self, path: &Path) -> HostResult<()> {
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1)).ok();
        self.live(path)
    }
}

macro_rules! through {
    ($($how:ident $name:ident($path:ident: $p:ty $(, $arg:ident: $t:ty)*) -> $out:ty;)*) => {
        $(fn $name(&self, $path: $p $(, $arg: $t)*) -> HostResult<$out> {
            self.$how($path)?;
            self.disk.$name($path $(, $arg)*)
        })*
    };
}

impl HostFs for Mortal {
    through! {
        change create_dir(path: &Path, mode: u32) -> ();
        change create_dir_within(path: &Path, relative: &Path, mode: u32) -> ();
        change write_file(path: &Path, content: &[u8], mode: u32) -> ();
        change write_file_synced(path: &Path, content: &[u8], mode: u32) -> ();
        live sync_file(path: &Path) -> ();
        live sync_dir(path: &Path) -> ();
        change create_file(path: &Path, mode: u32) -> ();
        live read_file(path: &Path, max_bytes: u64) -> Vec<u8>;
        live read_within(path: &Path, relative: &Path, max_bytes: u64) -> Vec<u8>;
        live read_end(path: &Path, max_bytes: u64, links: Links) -> FileEnd;
        live list_dir(path: &Path) -> Vec<DirEntry>;
        change remove_file(path: &Path) -> ();
        change remove_empty_dir(path: &Path) -> ();
        change remove_tree(path: &Path) -> ();
        change symlink(path: &Path, link: &Path) -> ();
        live read_link(path: &Path) -> PathBuf;
        change rename(path: &Path, to: &Path) -> ();
        change set_owner(path: &Path, uid: Option<u32>, gid: Option<u32>) -> ();
        change set_mode(path: &Path, mode: u32) -> ();
        live stat(path: &Path) -> Option<FileStat>;
        live stat_link(path: &Path) -> Option<FileStat>;
        live stat_fs(path: &Path) -> FsStat;
    }

    fn give_group(&self, path: &Path, _: Links, grant: GroupGrant, met: &Met<'_>) -> HostResult<bool> {
        give_group_by_path(self, path, grant, met)
    }
}

impl Mounter for Mortal {
    through! {
        change mount_memory(path: &Path, what: &MemoryMount) -> ();
        change bind_within(path: &Path, relative: &Path, target: &Path) -> ();
        change unmount(path: &Path) -> ();
        change write_attribute(path: &Path, text: &str) -> ();
        live is_mount_point(path: &Path) -> bool;
        live mounts_below(path: &Path) -> Vec<PathBuf>;
        change bind_device(path: &Path, target: &Path) -> ();
        live is_held(path: &Path) -> bool;
        change hold_device(path: &Path) -> ();
        change release_device(path: &Path) -> ();
        change mount_device(path: &Path, target: &Path, fs_type: &str, options: &[String]) -> ();
    }

    fn mount_share(&self, share: (&str, &str), options: &[String], target: &Path) -> HostResult<()> {
        self.change(target)?;
        self.disk.mount_share(share, options, target)
    }

    fn run_program(&self, program: &'static str, arguments: &[String], limit: Duration) -> HostResult<ProgramEnd> {
        self.change(Path::new(program))?;
        self.disk.run_program(program, arguments, limit)
    }

    fn mount_table(&self, root: &Path) -> HostResult<Vec<MountLine>> {
        self.live(Path::new("/proc/self/mountinfo"))?;
        self.disk.mount_table(root)
    }

    fn unmount_share(&self, kind: &str, target: &Path) -> HostResult<()> {
        self.change(target)?;
        self.disk.unmount_share(kind, target)
    }
}
