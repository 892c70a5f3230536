//! Mounts, loop devices and file systems, by the host's tools.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tonic::Status;

pub(crate) type Done<T = ()> = Result<T, Status>;

fn failed(what: &str, path: &Path, e: impl std::fmt::Display) -> Status {
    Status::internal(format!("{what} {}: {e}", path.display()))
}

/// Runs a program; its output.
fn run<S: AsRef<OsStr>>(program: &str, arguments: &[S]) -> Done<String> {
    let out = Command::new(program).args(arguments).output();
    let out = out.map_err(|e| Status::internal(format!("{program}: {e}")))?;
    if !out.status.success() {
        let said = String::from_utf8_lossy(&out.stderr).trim().to_owned();
        return Err(Status::internal(format!("{program}: {said}")));
    }
    Ok(String::from_utf8_lossy(&out.stdout).trim().to_owned())
}

/// Whether something is mounted at exactly this path.
pub(crate) fn is_mounted(path: &Path) -> Done<bool> {
    let table = fs::read_to_string("/proc/self/mountinfo").map_err(|e| failed("read", path, e))?;
    let wanted = path.to_string_lossy().replace('\\', "\\134").replace(' ', "\\040");
    Ok(table.lines().any(|line| line.split(' ').nth(4) == Some(wanted.as_str())))
}

pub(crate) fn make_dir(path: &Path) -> Done {
    fs::create_dir_all(path).map_err(|e| failed("mkdir", path, e))
}

/// Binds a directory or a file onto another.
pub(crate) fn bind(from: &Path, to: &Path, read_only: bool) -> Done {
    run("mount", &[OsStr::new("--bind"), from.as_os_str(), to.as_os_str()])?;
    if read_only {
        run("mount", &[OsStr::new("-o"), OsStr::new("remount,bind,ro"), to.as_os_str()])?;
    }
    Ok(())
}

/// Mounts the file system on a device.
pub(crate) fn mount(device: &Path, to: &Path, fs_type: &str, flags: &[String], read_only: bool) -> Done {
    let mut options: Vec<String> = flags.to_vec();
    options.push(if read_only { "ro" } else { "rw" }.to_owned());
    let options = options.join(",");
    let words = ["-t", fs_type, "-o", options.as_str()].map(OsStr::new);
    run("mount", &[words.as_slice(), &[device.as_os_str(), to.as_os_str()]].concat()).map(drop)
}

/// Nothing is mounted there afterwards.
pub(crate) fn unmount(path: &Path) -> Done {
    while is_mounted(path)? {
        run("umount", &[path])?;
    }
    Ok(())
}

/// Takes an empty directory, or the file that a device was bound to, away.
pub(crate) fn remove_target(path: &Path) -> Done {
    let Ok(found) = fs::symlink_metadata(path) else { return Ok(()) };
    let gone = if found.is_dir() { fs::remove_dir(path) } else { fs::remove_file(path) };
    gone.map_err(|e| failed("remove", path, e))
}

/// An image of at least that size.
pub(crate) fn image(path: &Path, size: u64) -> Done {
    let file = fs::File::options().create(true).append(true).open(path).map_err(|e| failed("open", path, e))?;
    let is = file.metadata().map_err(|e| failed("stat", path, e))?.len();
    if is < size {
        file.set_len(size).map_err(|e| failed("truncate", path, e))?;
    }
    Ok(())
}

/// The loop device of an image, if it has one.
pub(crate) fn loop_of(image: &Path) -> Done<Option<PathBuf>> {
    let listed =
        run("losetup", &[OsStr::new("-j"), image.as_os_str(), OsStr::new("-O"), OsStr::new("NAME"), OsStr::new("-n")])?;
    Ok(listed.lines().next().map(|name| PathBuf::from(name.trim())).filter(|p| !p.as_os_str().is_empty()))
}

/// The loop device of an image, which it has afterwards.
pub(crate) fn attach(image: &Path) -> Done<PathBuf> {
    if let Some(device) = loop_of(image)? {
        return Ok(device);
    }
    run("losetup", &[OsStr::new("-f"), OsStr::new("--show"), image.as_os_str()]).map(PathBuf::from)
}

pub(crate) fn detach(image: &Path) -> Done {
    match loop_of(image)? {
        Some(device) => run("losetup", &[OsStr::new("-d"), device.as_os_str()]).map(drop),
        None => Ok(()),
    }
}

/// A file system on a device that has none.
pub(crate) fn format(device: &Path, fs_type: &str) -> Done {
    let blank = run("blkid", &[OsStr::new("-p"), device.as_os_str()]).is_err();
    if blank { run(&format!("mkfs.{fs_type}"), &[device]).map(drop) } else { Ok(()) }
}

/// The device has its image's size, and its ext4 the device's.
pub(crate) fn grow(device: &Path, has_file_system: bool) -> Done {
    run("losetup", &[OsStr::new("-c"), device.as_os_str()])?;
    if has_file_system {
        run("resize2fs", &[device])?;
    }
    Ok(())
}
