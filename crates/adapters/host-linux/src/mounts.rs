//! Mounts.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write as _};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ports::host::{HostError, HostResult, MemoryMount, MountLine, Mounter, ProgramEnd};
use procfs::process::{MountInfo, MountInfos};
use rustix::fs::{AtFlags, CWD, FileType, OFlags, StatxAttributes, StatxFlags, fstat, statx};
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags, mount, mount_bind, unmount};

use crate::At;
use crate::files::{make_dirs, open_beneath};
use paths::real;
use programs::MAX_STACKED;

mod devices;
mod paths;
mod programs;
mod shares;

#[cfg(test)]
mod tests;

const PROC: &str = "/proc";

/// Whether the kernel can leave what is mounted in memory out of swap: it is tried in a folder that is made for it in `scratch`.
/// A folder that cannot be made is as good as a no, as for a kubelet.
#[must_use]
pub fn keeps_memory_off_swap(scratch: &Path) -> bool {
    let folder = scratch.join(format!("tmpfs-noswap-test-{}", std::process::id()));
    let tried = fs::create_dir(&folder).at("mkdir", &folder).and_then(|()| {
        let mounted = mount_fs("tmpfs", &folder, "noswap").at("mount", &folder);
        let unmounted = LinuxMounts.unmount(&folder);
        mounted.and(unmounted)
    });
    let removed = fs::remove_dir(&folder);
    match (&tried, &removed) {
        (Ok(()), Err(e)) => {
            tracing::warn!(folder = %folder.display(), error = %e, "a folder that was made to try stays")
        }
        (Err(e), _) => tracing::info!(error = %e, "tmpfs cannot be kept off swap"),
        (Ok(()), Ok(())) => {}
    }
    tried.is_ok()
}

/// The mounts that this process sees.
#[derive(Clone, Copy, Debug, Default)]
pub struct LinuxMounts;

impl Mounter for LinuxMounts {
    fn mount_memory(&self, target: &Path, what: &MemoryMount) -> HostResult<()> {
        match what {
            MemoryMount::Tmpfs { size_bytes } => {
                let size = size_bytes.map(|b| format!("size={b}"));
                let options = |noswap: bool| {
                    let words = size.iter().map(String::as_str).chain(noswap.then_some("noswap"));
                    words.collect::<Vec<_>>().join(",")
                };
                // Kernels before 6.3 do not know the option and refuse the mount.
                match mount_fs("tmpfs", target, &options(true)) {
                    Err(Errno::INVAL) => mount_fs("tmpfs", target, &options(false)),
                    other => other,
                }
            }
            MemoryMount::Hugetlbfs { page_size_bytes } => {
                mount_fs("hugetlbfs", target, &format!("pagesize={page_size_bytes}"))
            }
        }
        .at("mount", target)
    }

    fn bind_within(&self, base: &Path, relative: &Path, target: &Path) -> HostResult<()> {
        let source = open_beneath(base, relative, OFlags::PATH)?;
        let wanted = fstat(&source).at("stat", base.join(relative))?;
        make_target(target, FileType::from_raw_mode(wanted.st_mode) == FileType::Directory)?;
        if self.is_mount_point(target)? {
            let there = rustix::fs::stat(target).at("stat", target)?;
            if (there.st_dev, there.st_ino) == (wanted.st_dev, wanted.st_ino) {
                return Ok(());
            }
            self.unmount(target)?;
        }
        // The descriptor, not the path: what was checked is what gets mounted.
        mount_bind(format!("/proc/self/fd/{}", source.as_raw_fd()), target).at("bind mount", target)
    }

    fn unmount(&self, target: &Path) -> HostResult<()> {
        for _ in 0..MAX_STACKED {
            match unmount(target, UnmountFlags::NOFOLLOW) {
                Ok(()) => {}
                Err(Errno::INVAL | Errno::NOENT) => return Ok(()),
                Err(e) => return Err(HostError::new("unmount", target, e)),
            }
        }
        Err(HostError::new("unmount", target, io::ErrorKind::ResourceBusy))
    }

    fn mount_share(&self, share: (&str, &str), options: &[String], target: &Path) -> HostResult<()> {
        shares::Programs::default().mount(share, options, target, || has_share(share.0, target))
    }

    fn unmount_share(&self, kind: &str, target: &Path) -> HostResult<()> {
        shares::Programs::default().unmount(target, || has_share(kind, target))
    }

    fn run_program(&self, program: &'static str, arguments: &[String], limit: Duration) -> HostResult<ProgramEnd> {
        // What may not answer: a portal, else the device that such programs have as their last word.
        let portal = arguments.iter().skip_while(|a| *a != "-p").nth(1);
        let about = portal.or(arguments.last()).map_or(program, String::as_str);
        let out = programs::run_within(limit, about, OsStr::new(program), arguments).at("run", program)?;
        Ok(ProgramEnd { code: out.status.code(), words: String::from_utf8_lossy(&out.stdout).into_owned() })
    }

    fn write_attribute(&self, path: &Path, text: &str) -> HostResult<()> {
        // No `create`: what the kernel does not have is not made.
        let mut file = fs::OpenOptions::new().write(true).open(path).at("open", path)?;
        file.write_all(text.as_bytes()).at("write", path)
    }

    fn is_held(&self, device: &Path) -> HostResult<bool> {
        match devices::open_alone(device) {
            Ok(_) | Err(Errno::NOENT | Errno::NXIO | Errno::NODEV | Errno::NOMEDIUM) => Ok(false),
            Err(Errno::BUSY) => Ok(true),
            Err(e) => Err(HostError::new("open", device, e)),
        }
    }

    fn mount_table(&self, root: &Path) -> HostResult<Vec<MountLine>> {
        let path = Path::new(PROC).join("self/mountinfo");
        let (text, real) = (fs::read(&path).at("read", &path)?, root.canonicalize());
        let real = real.unwrap_or_else(|_| root.to_owned());
        let mut lines: Vec<_> = String::from_utf8_lossy(&text).lines().filter_map(line).collect();
        for line in &mut lines {
            if let Ok(below) = line.at.strip_prefix(&real) {
                line.at = root.join(below);
            }
        }
        Ok(lines)
    }

    fn is_mount_point(&self, path: &Path) -> HostResult<bool> {
        match statx(CWD, path, AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT, StatxFlags::TYPE) {
            Ok(s) if s.stx_attributes_mask.contains(StatxAttributes::MOUNT_ROOT) => {
                Ok(s.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
            }
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(false),
            // A dead network mount answers with errors of its own; the table still lists it. So does an old kernel.
            _ => {
                let path = real(path);
                Ok(mount_table(Path::new(PROC))?.iter().any(|m| m.mount_point == path))
            }
        }
    }

    fn mounts_below(&self, dir: &Path) -> HostResult<Vec<PathBuf>> {
        let path = Path::new(PROC).join("self/mountinfo");
        let (table, real) = (fs::read(&path).at("read", &path)?, real(dir));
        // A node has several mounts for each container, and this is asked for each pod: other lines are not taken apart.
        let prefix = escaped(&real.to_string_lossy());
        let mut below = Vec::new();
        for line in String::from_utf8_lossy(&table).lines().filter(|line| line.contains(&prefix)) {
            let mut mount = MountInfo::from_line(line).map_err(|e| crate::unread(&path, e))?;
            unescape(&mut mount);
            let part = mount.mount_point.strip_prefix(&real).ok();
            below.extend(part.filter(|part| !part.as_os_str().is_empty()).map(|part| dir.join(part)));
        }
        Ok(below)
    }

    fn bind_device(&self, device: &Path, target: &Path) -> HostResult<()> {
        let device = devices::look_up(device)?;
        make_target(target, false)?;
        devices::bind(self, &device, target)
    }

    fn hold_device(&self, target: &Path) -> HostResult<()> {
        devices::hold(target)
    }

    fn release_device(&self, target: &Path) -> HostResult<()> {
        devices::release(target)
    }

    fn mount_device(&self, device: &Path, target: &Path, fs_type: &str, options: &[String]) -> HostResult<()> {
        make_dirs(target, 0o750)?;
        if self.is_mount_point(target)? {
            return Ok(());
        }
        devices::mount(device, target, fs_type, options)
    }
}

/// Whether a share is mounted there, by the table alone: nothing asks its server.
fn has_share(kind: &str, target: &Path) -> HostResult<bool> {
    let (table, at) = (mount_table(Path::new(PROC))?, real(target));
    match table.iter().rfind(|m| m.mount_point == at) {
        None => Ok(false),
        Some(m) if m.fs_type.starts_with(kind) => Ok(true),
        Some(m) => {
            let other = format!("{} is mounted on it, which this node did not mount", m.fs_type);
            Err(HostError::new("look at", target, io::Error::new(io::ErrorKind::AlreadyExists, other)))
        }
    }
}

fn mount_fs(kind: &str, target: &Path, options: &str) -> Result<(), Errno> {
    let options = std::ffi::CString::new(options).map_err(|_| Errno::INVAL)?;
    mount(kind, target, kind, MountFlags::empty(), options.as_c_str())
}

fn make_target(target: &Path, dir: bool) -> HostResult<()> {
    if dir {
        return make_dirs(target, 0o750);
    }
    if let Some(parent) = target.parent() {
        make_dirs(parent, 0o750)?;
    }
    match fs::OpenOptions::new().write(true).create_new(true).open(target) {
        Ok(file) => rustix::fs::fchmod(&file, 0o640.into()).at("chmod", target),
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(e) => Err(HostError::new("create", target, e)),
    }
}

/// A line of the mount table. Not by `procfs`, which tears options apart that have commas in them.
fn line(text: &str) -> Option<MountLine> {
    let (mount, fs) = text.split_once(" - ")?;
    let (mut mount, mut fs) = (mount.split(' '), fs.split(' '));
    Some(MountLine {
        device: mount.nth(2)?.to_owned(),
        part: unescaped(mount.next()?).into(),
        at: unescaped(mount.next()?).into(),
        fs_type: fs.next()?.to_owned(),
        source: unescaped(fs.next()?),
        options: fs.next().unwrap_or_default().to_owned(),
    })
}

/// The mount table of this process, by its `/proc`.
pub(crate) fn mount_table(proc: &Path) -> HostResult<Vec<MountInfo>> {
    let mut table: MountInfos = crate::parsed(&proc.join("self/mountinfo"))?;
    table.0.iter_mut().for_each(unescape);
    Ok(table.0)
}

/// How blanks and backslashes stand in the table; `procfs` leaves them so.
const ESCAPES: [(&str, &str); 4] = [("\\", "\\134"), (" ", "\\040"), ("\t", "\\011"), ("\n", "\\012")];

fn escaped(text: &str) -> String {
    // The backslash first: what it makes is not escaped again.
    ESCAPES.iter().fold(text.to_owned(), |text, (plain, escape)| text.replace(plain, escape))
}

/// A field of the mount table as it was meant.
#[must_use]
pub fn unescaped(text: &str) -> String {
    ESCAPES.iter().rev().fold(text.to_owned(), |text, (plain, escape)| text.replace(escape, plain))
}

fn unescape(mount: &mut MountInfo) {
    let plain = |text: &str| text.contains('\\').then(|| unescaped(text));
    if let Some(point) = mount.mount_point.to_str().and_then(plain) {
        mount.mount_point = point.into();
    }
    for part in std::iter::once(&mut mount.root).chain(&mut mount.mount_source) {
        if let Some(text) = plain(part) {
            *part = text;
        }
    }
}
