//! The host: cgroups, mounts, files, facts.
//!
//! All calls block (callers go through the kernel: `Ctx::blocking`), answer within one call, and are safe to repeat. Paths are absolute
//! unless a parameter says otherwise. Errors name the operation and the path.

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use model::Timestamp;
use model::cgroup::Process;
use model::reading::DiskUse;
use model::resources::CgroupValues;

/// What went wrong on the host, with what, where.
#[derive(Debug, thiserror::Error)]
#[error("{op} {}", path.display())]
pub struct HostError {
    /// The operation, as the system names it (`mkdir`, `mount`).
    pub op: &'static str,
    /// What it was about.
    pub path: PathBuf,
    /// The system's answer.
    #[source]
    pub source: io::Error,
}

impl HostError {
    /// An error of `op` on `path`.
    #[must_use]
    pub fn new(op: &'static str, path: impl Into<PathBuf>, source: impl Into<io::Error>) -> Self {
        Self { op, path: path.into(), source: source.into() }
    }

    /// The system's error kind.
    #[must_use]
    pub fn kind(&self) -> io::ErrorKind {
        self.source.kind()
    }

    /// Whether what was asked for is not there.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.kind() == io::ErrorKind::NotFound
    }
}

/// Result of one call.
pub type HostResult<T> = Result<T, HostError>;

/// Which cgroup hierarchy the host runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CgroupVersion {
    /// One tree per controller.
    V1,
    /// The unified tree.
    V2,
}

/// The cgroup tree. Paths are those below the mount point, as the CRI has them (`/kubepods/burstable`); `..` and empty
/// components are refused.
pub trait CgroupFs: Send + Sync + 'static {
    /// Which hierarchy.
    fn version(&self) -> CgroupVersion;
    /// Controllers that the host lacks and without which no pod runs. On v2 there are none: as a kubelet, the node makes do with
    /// what the root has.
    fn missing_controllers(&self) -> Vec<String>;
    /// Whether swap can be limited.
    fn has_swap_controller(&self) -> bool;
    /// Whether the cgroup is there with every controller that it needs.
    fn exists(&self, path: &str) -> HostResult<bool>;
    /// Makes the cgroup and its parents, with their controllers. Idempotent.
    fn create(&self, path: &str) -> HostResult<()>;
    /// Writes the values that are set. Tries all of them; the first failure is the answer.
    fn set(&self, path: &str, values: &CgroupValues) -> HostResult<()>;
    /// CPU and memory limits that are in force; the rest is left out. What the host has no controller for is left out too.
    fn get(&self, path: &str) -> HostResult<CgroupValues>;
    /// Kills every process below (up to five passes), then removes the cgroup and its children. Absent is success.
    fn remove(&self, path: &str) -> HostResult<()>;
    /// Names of the child cgroups, sorted; none when the cgroup is absent.
    fn children(&self, path: &str) -> HostResult<Vec<String>>;
    /// Memory in use in bytes, children included. Not found: the cgroup is gone; another error is none of that.
    fn memory_usage_bytes(&self, path: &str) -> HostResult<u64>;
    /// Puts this very process into a cgroup, which is made when it is not there. Its place in systemd's own tree stays as it is.
    fn join(&self, path: &str) -> HostResult<()>;
    /// Processes of a cgroup itself, not of those below it.
    fn processes(&self, path: &str) -> HostResult<Vec<Process>>;
    /// As [`CgroupFs::join`] for other processes. Tries all of them; the first failure is the answer.
    fn move_processes(&self, path: &str, pids: &[i32]) -> HostResult<()>;
    /// Sets `oom_score_adj` of this very process. Needs `CAP_SYS_RESOURCE` to lower it.
    fn set_own_oom_score_adj(&self, value: i64) -> HostResult<()>;
}

/// What a memory-backed volume is made of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MemoryMount {
    /// tmpfs with a size limit in bytes, where there is one.
    Tmpfs {
        /// Most bytes it may hold; absent: the kernel's default of half of memory.
        size_bytes: Option<u64>,
    },
    /// hugetlbfs of one page size.
    Hugetlbfs {
        /// Page size in bytes.
        page_size_bytes: u64,
    },
}

/// How a program of the host ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProgramEnd {
    /// Its exit code; `None`: a signal ended it.
    pub code: Option<i32>,
    /// What it said in both its streams, the first 64 KiB.
    pub words: String,
}

/// A line of the mount table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MountLine {
    /// Mount point.
    pub at: PathBuf,
    /// What of the file system is mounted: a path in it.
    pub part: PathBuf,
    /// What is mounted, by the name that it was mounted by.
    pub source: String,
    /// Number of the device (`MAJOR:MINOR`): mounts of one file system have the same.
    pub device: String,
    /// What the file system is: `ext4`, ...
    pub fs_type: String,
    /// Options of the file system, with commas between them. One that has commas itself stands in quotation marks.
    pub options: String,
}

/// Mounts, and the programs of the host: what it has to reach disks, and what knows its users.
pub trait Mounter: Send + Sync + 'static {
    /// Mounts memory on an existing directory; tmpfs gets `noswap` where the kernel has it.
    fn mount_memory(&self, target: &Path, what: &MemoryMount) -> HostResult<()>;
    /// Bind-mounts `base/relative` on `target` without leaving `base` through a symlink, making `target` first (a directory
    /// 0750, or a file 0640 when the source is no directory). Mounted already: success.
    fn bind_within(&self, base: &Path, relative: &Path, target: &Path) -> HostResult<()>;
    /// Unmounts what is mounted on `target`, as often as needed. Not mounted or absent is success.
    fn unmount(&self, target: &Path) -> HostResult<()>;
    /// Mounts what a server shares (`mount -t KIND -o OPTIONS SOURCE`) on a directory, which is made 0750 where it is missing, by the
    /// host's program. Mounted already: success. After a failure nothing is mounted there, and the empty directory is gone; an
    /// error of the operation `mount` is what the program said. A server that does not answer is waited for three minutes.
    fn mount_share(&self, share: (&str, &str), options: &[String], target: &Path) -> HostResult<()>;
    /// Unmounts a share of this kind by the host's program, by force when that takes more than a minute. Its server is waited
    /// for two minutes at most. Not mounted is success, something else mounted there an error. An error of the operation `umount` is
    /// what the program said.
    fn unmount_share(&self, kind: &str, target: &Path) -> HostResult<()>;
    /// Runs a program of the host, for at most `limit`. Its exit code is the caller's to judge. One that the
    /// host lacks is `NotFound`, one that was killed over the limit `TimedOut`.
    fn run_program(&self, program: &'static str, arguments: &[String], limit: Duration) -> HostResult<ProgramEnd>;
    /// Writes into a file of the kernel's, below `/sys`, that is there.
    fn write_attribute(&self, path: &Path, text: &str) -> HostResult<()>;
    /// Whether somebody has the block device that a path leads to for himself: it is mounted, or a part of a RAID, of a volume group,
    /// of a multipath device, or swapped to. So is a disk with partitions of which one is. What is not there is had by nobody.
    fn is_held(&self, device: &Path) -> HostResult<bool>;
    /// The mount table, in its order: nothing that is mounted is touched. What is mounted below `root` is told by paths that begin
    /// with `root`, also where links lead there.
    fn mount_table(&self, root: &Path) -> HostResult<Vec<MountLine>>;
    /// Whether something is mounted on `path`.
    fn is_mount_point(&self, path: &Path) -> HostResult<bool>;
    /// Where in `dir`, itself left out, something is mounted, as the mount table says: nothing that is mounted is touched.
    fn mounts_below(&self, dir: &Path) -> HostResult<Vec<PathBuf>>;
    /// Binds the block device that `device` leads to (links followed) on the file `target`, which is made 0640 with its missing
    /// parents 0750. Bound there already: success; another device there: it is replaced.
    fn bind_device(&self, device: &Path, target: &Path) -> HostResult<()>;
    /// Keeps the device that is bound on `target` open by a loop device over it, so that the kernel gives its number to no other
    /// one. Lasts beyond this process. Repeatable.
    fn hold_device(&self, target: &Path) -> HostResult<()>;
    /// Undoes [`hold_device`](Self::hold_device), whoever did that. Not held or absent is success.
    fn release_device(&self, target: &Path) -> HostResult<()>;
    /// Mounts the file system of a block device on a directory (made 0750 where it is missing), with the options of `mount -o`.
    /// A blank device is formatted first, one with a file system is checked, neither with the option `ro`. Data that is no file
    /// system (partitions) is never overwritten, nor is what cannot be read. Mounted already: success. A repair or a format may take
    /// an hour.
    fn mount_device(&self, device: &Path, target: &Path, fs_type: &str, options: &[String]) -> HostResult<()>;
}

/// What a path is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FileKind {
    /// Regular file.
    File,
    /// Directory.
    Dir,
    /// Symbolic link.
    Symlink,
    /// Unix socket.
    Socket,
    /// Character device.
    CharDevice,
    /// Block device.
    BlockDevice,
    /// Named pipe.
    Fifo,
}

/// What the file system says of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileStat {
    /// What it is.
    pub kind: FileKind,
    /// Permission bits, setuid, setgid and sticky included.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Bytes.
    pub size: u64,
    /// Device that holds it.
    pub dev: u64,
    /// Inode.
    pub ino: u64,
    /// Names it has.
    pub links: u64,
    /// When its content was written last; of a socket or a device, when it was made.
    pub modified: Timestamp,
}

/// One entry of a directory.
#[derive(Clone, PartialEq, Eq, Debug, PartialOrd, Ord)]
pub struct DirEntry {
    /// Name.
    pub name: String,
    /// Whether it is a directory itself (no link to one).
    pub is_dir: bool,
}

/// What holds a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FsStat {
    /// Magic number of the file system type; see [`TMPFS_MAGIC`].
    pub magic: i64,
    /// Size in bytes.
    pub total_bytes: u64,
    /// Bytes free for this process.
    pub available_bytes: u64,
    /// Inodes; 0 where the file system counts none.
    pub total_inodes: u64,
    /// Inodes that are free.
    pub free_inodes: u64,
}

/// `statfs` magic of tmpfs.
pub const TMPFS_MAGIC: i64 = 0x0102_1994;
/// `statfs` magic of hugetlbfs.
pub const HUGETLBFS_MAGIC: i64 = 0x9584_58f6;

/// What a symbolic link as the last part of a path means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Links {
    /// It leads on.
    Follow,
    /// It is refused, like all that is no regular file.
    Refuse,
}

/// What [`HostFs::give_group`] gives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GroupGrant {
    /// The group.
    pub gid: u32,
    /// Permission bits that directories get beside those that they have.
    pub dir_bits: u32,
    /// The same for all else but links, which have none.
    pub file_bits: u32,
}

/// Hears of each thing that a walk met, and what was refused there; `false` ends the walk.
pub type Met<'a> = dyn Fn(Option<HostError>) -> bool + 'a;

/// The end of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileEnd {
    /// Its last bytes.
    pub bytes: Vec<u8>,
    /// There was more before them.
    pub cut: bool,
}

/// Files. Modes are exact: the process umask never shows. Nothing here waits for a process: what is no regular file is never
/// opened for its content.
pub trait HostFs: Send + Sync + 'static {
    /// Makes a directory and its missing parents, each new one with `mode`. One that is there keeps its mode.
    fn create_dir(&self, path: &Path, mode: u32) -> HostResult<()>;
    /// Makes `base/relative` and its missing parents with `mode`, never leaving `base` through a symlink.
    fn create_dir_within(&self, base: &Path, relative: &Path, mode: u32) -> HostResult<()>;
    /// Replaces the file in one step (new file beside it, then rename), so that readers see the old or the new content. Who dies
    /// over it may leave the new file, `.NAME.….tmp`, with at most 32 characters of the name.
    fn write_file(&self, path: &Path, content: &[u8], mode: u32) -> HostResult<()>;
    /// As [`write_file`](Self::write_file), and a loss of power after it leaves the new content; one during it the old or the
    /// new. Waits for the disk.
    fn write_file_synced(&self, path: &Path, content: &[u8], mode: u32) -> HostResult<()>;
    /// Brings a file and its name to the disk: after it a loss of power leaves both. Waits for the disk.
    fn sync_file(&self, path: &Path) -> HostResult<()>;
    /// Brings the names in a directory to the disk: after it a loss of power undoes no rename, link or removal in there.
    fn sync_dir(&self, path: &Path) -> HostResult<()>;
    /// Makes an empty file; fails with `AlreadyExists` when something is there.
    fn create_file(&self, path: &Path, mode: u32) -> HostResult<()>;
    /// The content of a regular file, links followed; an `InvalidData` error when it is longer than `max_bytes`, `InvalidInput`
    /// when it is something else.
    fn read_file(&self, path: &Path, max_bytes: u64) -> HostResult<Vec<u8>>;
    /// As [`read_file`](Self::read_file), of `base/relative`, never leaving `base` through a symlink: for what containers write.
    fn read_within(&self, base: &Path, relative: &Path, max_bytes: u64) -> HostResult<Vec<u8>>;
    /// At most `max_bytes` from the end of a regular file, whatever its size; `InvalidInput` when it is something else. For paths
    /// that a container can shape.
    fn read_end(&self, path: &Path, max_bytes: u64, links: Links) -> HostResult<FileEnd>;
    /// Entries sorted by name; names that are no UTF-8 are left out.
    fn list_dir(&self, path: &Path) -> HostResult<Vec<DirEntry>>;
    /// Removes a file or link. Absent is success.
    fn remove_file(&self, path: &Path) -> HostResult<()>;
    /// Removes an empty directory. Absent is success.
    fn remove_empty_dir(&self, path: &Path) -> HostResult<()>;
    /// Removes what is below and the path itself, on its own file system only: a mount point inside is an error and stays,
    /// with everything in it. Follows no symlink. Absent is success.
    fn remove_tree(&self, path: &Path) -> HostResult<()>;
    /// Makes a symbolic link; fails with `AlreadyExists` when something is there.
    fn symlink(&self, target: &Path, link: &Path) -> HostResult<()>;
    /// Where a symbolic link points.
    fn read_link(&self, path: &Path) -> HostResult<PathBuf>;
    /// Renames within one file system, replacing what is there.
    fn rename(&self, from: &Path, to: &Path) -> HostResult<()>;
    /// Changes owner and group of the path itself (no symlink is followed); `None` keeps.
    fn set_owner(&self, path: &Path, uid: Option<u32>, gid: Option<u32>) -> HostResult<()>;
    /// Changes permission bits of the path itself; a symlink is an error.
    fn set_mode(&self, path: &Path, mode: u32) -> HostResult<()>;
    /// Gives what is below the path to a group, children before their directory, and the path itself last: one that has the group is
    /// done. Whatever names containers chose, and whatever they move meanwhile, nothing else is changed: no link is followed but the
    /// path itself where `links` says so. What has group and bits is left alone. Absent is success.
    ///
    /// Answers whether it came to its end. It fails with the first thing that could not be looked at; the rest is given then, the path
    /// itself is not.
    fn give_group(&self, path: &Path, links: Links, grant: GroupGrant, met: &Met<'_>) -> HostResult<bool>;
    /// What a path is, links followed; `None` when there is nothing.
    fn stat(&self, path: &Path) -> HostResult<Option<FileStat>>;
    /// What a path is, the link itself; `None` when there is nothing.
    fn stat_link(&self, path: &Path) -> HostResult<Option<FileStat>>;
    /// What holds a path.
    fn stat_fs(&self, path: &Path) -> HostResult<FsStat>;
}

/// Project quotas: a file system counts what is below a directory, so that nobody has to walk it. They limit nothing here.
pub trait ProjectQuotas: Send + Sync + 'static {
    /// Gives an empty directory a project of its own, and answers whether it has one now: not where its file system counts none, or
    /// where the directory has content already. Repeatable.
    fn assign(&self, dir: &Path) -> HostResult<bool>;
    /// Takes the directory's project back, before the directory itself goes. It has none, or is not there: success.
    fn release(&self, dir: &Path) -> HostResult<()>;
    /// What is below the directory, itself included, by the project that it was given; `None`: it has none.
    fn usage(&self, dir: &Path) -> Option<DiskUse>;
}

/// Facts about the machine.
pub trait HostInfo: Send + Sync + 'static {
    /// Logical processors that are online.
    fn cpu_count(&self) -> u32;
    /// `MemTotal` in bytes.
    fn memory_total_bytes(&self) -> HostResult<u64>;
    /// Swap of all devices in bytes.
    fn swap_total_bytes(&self) -> HostResult<u64>;
    /// Page size of the kernel in bytes.
    fn page_bytes(&self) -> u64;
    /// Huge pages of the machine: size in bytes to number of pages, ascending.
    fn huge_pages(&self) -> HostResult<BTreeMap<u64, u64>>;
    /// Most processes and threads that there can be: the lesser of `pid_max` and `threads-max`.
    fn pid_capacity(&self) -> HostResult<u64>;
    /// Random id of this boot.
    fn boot_id(&self) -> HostResult<String>;
    /// Kernel release, e.g. `6.1.0-18-amd64`.
    fn kernel_version(&self) -> String;
    /// Host name of the machine.
    fn hostname(&self) -> String;
    /// What the policy of SELinux says of containers and their files (`lxc_contexts`), may be empty; `None`: SELinux is off.
    fn selinux_contexts(&self) -> HostResult<Option<String>>;
    /// `/sys/devices/system/cpu/cpuN/thermal_throttle` for each possible processor that has one.
    fn thermal_throttle_paths(&self) -> Vec<PathBuf>;
}

/// By what a machine is told apart, for the Node object. What cannot be read is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// `/etc/machine-id`.
    pub machine_id: String,
    /// UUID of the firmware, else the machine id.
    pub system_uuid: String,
    /// Random id of this boot.
    pub boot_id: String,
    /// Kernel release.
    pub kernel_version: String,
    /// `PRETTY_NAME` of os-release.
    pub os_image: String,
}

/// Addresses of the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Addresses {
    /// Of all interfaces, sorted.
    pub interfaces: Vec<IpAddr>,
    /// What the resolver says of a name, in its order.
    pub resolved: Vec<IpAddr>,
    /// The address that leaves by the default route, IPv4 before IPv6.
    pub default_route: Vec<IpAddr>,
}

/// Memory of the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// `MemTotal` in bytes.
    pub total_bytes: u64,
    /// In use and not easily given back: without page cache that nobody used lately.
    pub working_set_bytes: u64,
}

/// What the Node object tells of the machine, and what may run short on it.
pub trait NodeHost: Send + Sync + 'static {
    /// By what the machine is told apart.
    fn identity(&self) -> Identity;
    /// Its addresses; `name` is looked up unless it is empty, which may take the resolver some seconds.
    fn addresses(&self, name: &str) -> Addresses;
    /// Memory in use.
    fn memory_use(&self) -> HostResult<MemoryUse>;
    /// What holds a path.
    fn disk(&self, path: &Path) -> HostResult<FsStat>;
    /// Processes and threads that there are, and the most there can be.
    fn processes(&self) -> HostResult<(u64, u64)>;
}

/// Removes a container's log and its rotated siblings (`<log>`, `<log>.*`). Absent is success.
///
/// # Errors
/// The folder cannot be read, or a file not removed.
pub fn remove_log_files(fs: &dyn HostFs, log: &Path) -> HostResult<()> {
    let (Some(dir), Some(name)) = (log.parent(), log.file_name().and_then(|n| n.to_str())) else { return Ok(()) };
    let entries = match fs.list_dir(dir) {
        Err(e) if e.is_not_found() => return Ok(()),
        other => other?,
    };
    for entry in entries.iter().filter(|e| !e.is_dir && e.name.starts_with(name)) {
        fs.remove_file(&dir.join(&entry.name))?;
    }
    Ok(())
}
