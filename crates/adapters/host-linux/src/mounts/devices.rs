//! Block devices: bound to files, kept open by loop devices, with their file systems.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use ports::host::{HostError, HostResult, Mounter};
use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, open, openat};
use rustix::io::Errno;
use rustix::mount::mount_bind;

use super::paths::real;
use super::programs;
use crate::At;

const LOOPS: &str = "/sys/block";
/// How long a program may take that looks at a device, or at loop devices.
const LOOK_LIMIT: Duration = Duration::from_secs(180);
/// How long a mount may take: a large log is replayed in it.
const MOUNT_LIMIT: Duration = Duration::from_secs(900);
/// How long a repair or a format may take.
const REPAIR_LIMIT: Duration = Duration::from_secs(3600);
/// So much at either end of a disk must be readable before it is formatted, in bytes.
const ENDS: u64 = 1 << 20;
/// Exit code of `blkid`: nothing is known of what is on the device.
const BLANK: i32 = 2;
/// Exit code of `fsck`: errors are left that a person must look at.
const UNCORRECTED: i32 = 4;
/// What is on a disk with partitions, in the words of an operator; no `mkfs` has this name.
const PARTITIONS: &str = "unknown data, probably partitions";

/// A block device that a path leads to, links followed. It is not opened itself.
pub(super) struct Device {
    node: OwnedFd,
    number: u64,
}

/// Opens a block device as who has it for himself alone; `BUSY`: somebody else has.
pub(super) fn open_alone(device: &Path) -> Result<File, Errno> {
    let fd = open(device, OFlags::RDONLY | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NONBLOCK, Mode::empty())?;
    Ok(File::from(fd))
}

pub(super) fn look_up(path: &Path) -> HostResult<Device> {
    let node = openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).at("open", path)?;
    let found = fstat(&node).at("stat", path)?;
    if FileType::from_raw_mode(found.st_mode) != FileType::BlockDevice {
        return Err(HostError::new("bind mount", path, io::Error::other("not a block device")));
    }
    Ok(Device { node, number: found.st_rdev })
}

/// Binds a device on a file that is there.
pub(super) fn bind(mounts: &impl Mounter, device: &Device, target: &Path) -> HostResult<()> {
    if mounts.is_mount_point(target)? {
        let there = rustix::fs::stat(target).at("stat", target)?;
        if FileType::from_raw_mode(there.st_mode) == FileType::BlockDevice && there.st_rdev == device.number {
            return Ok(());
        }
        release(target)?;
        mounts.unmount(target)?;
    }
    // The descriptor, not the path: what was looked at is what gets mounted.
    mount_bind(format!("/proc/self/fd/{}", device.node.as_raw_fd()), target).at("bind mount", target)
}

pub(super) fn hold(target: &Path) -> HostResult<()> {
    if !loops_over(target)?.is_empty() {
        return Ok(());
    }
    programs::done("losetup", LOOK_LIMIT, &[OsStr::new("-f"), target.as_os_str()], target)
}

pub(super) fn release(target: &Path) -> HostResult<()> {
    for device in loops_over(target)? {
        programs::done("losetup", LOOK_LIMIT, &[OsStr::new("-d"), device.as_os_str()], target)?;
    }
    Ok(())
}

/// Loop devices whose file is at this path.
pub(super) fn loops_over(target: &Path) -> HostResult<Vec<PathBuf>> {
    let (mut found, target) = (Vec::new(), real(target));
    for entry in fs::read_dir(LOOPS).at("readdir", LOOPS)? {
        let name = entry.at("readdir", LOOPS)?.file_name();
        if !name.as_encoded_bytes().starts_with(b"loop") {
            continue;
        }
        // One without a file has no such entry; one that goes at this moment is none.
        let Ok(file) = fs::read_to_string(Path::new(LOOPS).join(&name).join("loop/backing_file")) else { continue };
        if Path::new(backing_file(&file)) == target.as_path() {
            found.push(Path::new("/dev").join(name));
        }
    }
    Ok(found)
}

/// The path in the kernel's words, which say of a file without a name that it is deleted.
fn backing_file(text: &str) -> &str {
    let path = text.strip_suffix('\n').unwrap_or(text);
    path.strip_suffix(" (deleted)").unwrap_or(path)
}

pub(super) fn mount(device: &Path, target: &Path, fs_type: &str, options: &[String]) -> HostResult<()> {
    let fs_type = if fs_type.is_empty() { "ext4" } else { fs_type };
    if !fs_type.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b)) {
        let why = format!("{fs_type:?} is no type of a file system");
        return Err(HostError::new("mount", device, io::Error::other(why)));
    }
    let read_only = options.iter().any(|o| o == "ro");
    match format_of(device)? {
        None if read_only => {
            let why = "cannot mount an unformatted disk read-only";
            return Err(HostError::new("mount", device, io::Error::other(why)));
        }
        None => format_blank(device, fs_type)?,
        Some(_) if read_only => {}
        Some(found) => {
            if found != fs_type {
                tracing::warn!(device = %device.display(), fs_type, found, "the disk has another file system than it should");
            }
            check(device)?;
        }
    }
    let options = options.iter().map(String::as_str).chain(["defaults"]).collect::<Vec<_>>().join(",");
    let words = ["-t", fs_type, "-o", &options].map(OsStr::new);
    programs::done("mount", MOUNT_LIMIT, &[&words[..], &[device.as_os_str(), target.as_os_str()]].concat(), target)
}

/// What is on a device; `None`: nothing.
fn format_of(device: &Path) -> HostResult<Option<String>> {
    let words = ["-p", "-s", "TYPE", "-s", "PTTYPE", "-o", "export"].map(OsStr::new);
    let arguments = [&words[..], &[device.as_os_str()]].concat();
    let out = programs::run_within(LOOK_LIMIT, &device.to_string_lossy(), OsStr::new("blkid"), &arguments)
        .at("blkid", device)?;
    match out.status.code() {
        Some(0) => Ok(format_in(&String::from_utf8_lossy(&out.stdout))),
        Some(BLANK) => Ok(None),
        _ => Err(programs::failed("blkid", device, &out)),
    }
}

/// What `blkid` says. A table of partitions counts before all else: what is behind it must not be formatted.
fn format_in(text: &str) -> Option<String> {
    let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    if value("PTTYPE").is_some_and(|t| !t.is_empty()) {
        return Some(PARTITIONS.to_owned());
    }
    value("TYPE").filter(|t| !t.is_empty()).map(str::to_owned)
}

/// Formats a device that is blank. `blkid` finds nothing on a disk that it cannot read, too: so it is read, and looked at again.
fn format_blank(device: &Path, fs_type: &str) -> HostResult<()> {
    let refused = |why: String| HostError::new("mkfs", device, io::Error::other(format!("it is not formatted: {why}")));
    match open_alone(device) {
        Err(Errno::BUSY) => return Err(refused("somebody else on this node has it".to_owned())),
        Err(e) => return Err(refused(format!("it cannot be opened: {e}"))),
        Ok(file) => read_ends(file).map_err(|e| refused(format!("it cannot be read: {e}")))?,
    }
    match format_of(device)? {
        None => format(device, fs_type),
        Some(found) => Err(refused(format!("{found} was found on it at a second look"))),
    }
}

/// Reads what a device begins and ends with.
fn read_ends(mut file: File) -> io::Result<()> {
    let length = file.seek(SeekFrom::End(0))?;
    if length == 0 {
        return Err(io::Error::other("its size is 0"));
    }
    let mut room = vec![0; usize::try_from(length.min(ENDS)).map_err(io::Error::other)?];
    for at in [0, length.saturating_sub(ENDS)] {
        file.seek(SeekFrom::Start(at))?;
        file.read_exact(&mut room)?;
    }
    Ok(())
}

fn format(device: &Path, fs_type: &str) -> HostResult<()> {
    let program = format!("mkfs.{fs_type}");
    let words: &[&str] = match fs_type {
        "ext3" | "ext4" => &["-F", "-m0"],
        "xfs" => &["-f"],
        _ => &[],
    };
    let arguments: Vec<&OsStr> = words.iter().map(OsStr::new).chain([device.as_os_str()]).collect();
    let out = programs::run_within(REPAIR_LIMIT, &device.to_string_lossy(), OsStr::new(&program), &arguments)
        .at("mkfs", device)?;
    if out.status.success() { Ok(()) } else { Err(programs::failed("mkfs", device, &out)) }
}

/// Repairs what can be repaired without a person. Only what cannot be is an error: a program that is missing or fails otherwise
/// says nothing against the mount.
fn check(device: &Path) -> HostResult<()> {
    match programs::run_within(
        REPAIR_LIMIT,
        &device.to_string_lossy(),
        OsStr::new("fsck"),
        &[OsStr::new("-a"), device.as_os_str()],
    ) {
        Ok(out) if out.status.code() == Some(UNCORRECTED) => Err(programs::failed("fsck", device, &out)),
        Ok(out) if !out.status.success() => {
            tracing::info!(device = %device.display(), status = %out.status, words = programs::words(&out), "fsck");
            Ok(())
        }
        Ok(_) => Ok(()),
        // It may have been killed over a repair.
        Err(error) if error.kind() == io::ErrorKind::TimedOut => Err(HostError::new("fsck", device, error)),
        Err(error) => {
            tracing::warn!(device = %device.display(), %error, "fsck cannot be run: the disk is mounted as it is");
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Seek as _, SeekFrom, Write as _};

    use super::{PARTITIONS, backing_file, format_in, read_ends};

    #[test]
    fn a_device_without_a_readable_byte_is_not_taken_for_a_blank_one() {
        let mut file = tempfile::tempfile().unwrap();
        let e = read_ends(file.try_clone().unwrap()).unwrap_err();
        assert_eq!(e.to_string(), "its size is 0");
        for length in [1, 512, (1 << 20) + 1, 5 << 20] {
            file.seek(SeekFrom::Start(length - 1)).unwrap();
            file.write_all(b"x").unwrap();
            read_ends(file.try_clone().unwrap()).unwrap();
        }
        let directory = std::fs::File::open("/").unwrap();
        read_ends(directory).unwrap_err();
    }

    #[test]
    fn what_blkid_says_decides_whether_a_disk_is_blank() {
        for (text, want) in [
            ("", None),
            ("DEVNAME=/dev/x\n", None),
            ("DEVNAME=/dev/x\nTYPE=ext4\n", Some("ext4")),
            ("TYPE=\n", None),
            ("DEVNAME=/dev/x\nPTTYPE=gpt\n", Some(PARTITIONS)),
            ("TYPE=vfat\nPTTYPE=dos\n", Some(PARTITIONS)),
        ] {
            assert_eq!(format_in(text).as_deref(), want, "{text:?}");
        }
    }

    #[test]
    fn the_file_of_a_loop_device_is_its_path_alone() {
        for text in ["/a b/dev\n", "/a b/dev (deleted)\n", "/a b/dev"] {
            assert_eq!(backing_file(text), "/a b/dev");
        }
    }
}
