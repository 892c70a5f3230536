//! Places of mounts and devices in a container, from within: made where they are not there.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, fstat, mkdirat, openat, openat2, readlinkat};
use rustix::io::Errno;

use crate::helper::at;

/// Links that are followed on the way to one place (the kernel's own bound).
const MAX_LINKS: usize = 40;
/// Parts of `/proc` over which files may be mounted (`runc`'s list, for lxcfs); elsewhere below it nobody would look at what the kernel says.
const IN_PROC: [&str; 10] = [
    "cpuinfo",
    "diskstats",
    "meminfo",
    "stat",
    "swaps",
    "uptime",
    "loadavg",
    "slabinfo",
    "sys/kernel/ns_last_pid",
    "sys/crypto/fips_enabled",
];

/// What is to be at a place where nothing is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Make {
    Folder,
    File,
}

/// Something in the container.
#[derive(Debug)]
pub(super) struct Place {
    /// What is there, not opened.
    pub(super) there: OwnedFd,
    /// Without links.
    pub(super) path: PathBuf,
}

/// The place of a mount; it is made if it is not there.
pub(super) fn place(destination: &Path, make: Make) -> io::Result<Place> {
    let found = walk(&root()?, destination, make).map_err(at(destination))?;
    let refused = |why: &str| Err(io::Error::other(format!("{} cannot be mounted on: {why}", destination.display())));
    if found.path == Path::new("/") {
        return refused("it is the root of the container");
    }
    if let Ok(below) = found.path.strip_prefix("/proc")
        && below != Path::new("")
        && !IN_PROC.iter().any(|p| below == Path::new(p))
    {
        return refused("it is inside /proc");
    }
    Ok(found)
}

/// Equal but for slashes and dots.
pub(super) fn is(a: &Path, b: impl AsRef<Path>) -> bool {
    a.components().filter(|c| *c != Component::CurDir).eq(b.as_ref().components())
}

/// Makes a folder, and those above it.
pub(super) fn folders(path: &Path) -> io::Result<Place> {
    walk(&root()?, path, Make::Folder).map_err(at(path))
}

/// What is at a path, though links lead to it; those of `/proc`, which lead to what other paths do not, are not followed.
pub(super) fn open(path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let how = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    Ok(openat2(root()?, path, flags | OFlags::CLOEXEC, Mode::empty(), how)?)
}

fn root() -> io::Result<OwnedFd> {
    Ok(rustix::fs::open("/", HANDLE, Mode::empty())?)
}

/// Of a folder, or anything.
const HANDLE: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Follows links, also those that lead to what is not there yet, which is made: an image may have `/var/run` lead to a `/run` that it lacks. One
/// part after the other, from the folder that the last one was found to be: somebody may exchange them at the same time.
fn walk(root: &OwnedFd, path: &Path, make: Make) -> io::Result<Place> {
    let mut ahead: VecDeque<OsString> = parts(path).collect();
    // Names and what they are, to the root.
    let mut way: Vec<(OsString, OwnedFd)> = Vec::new();
    let mut links = 0;
    while let Some(part) = ahead.pop_front() {
        if part == ".." {
            way.pop();
            continue;
        }
        let above = way.last().map_or(root, |(_, folder)| folder);
        let next = match openat(above, &part, HANDLE, Mode::empty()) {
            Err(Errno::NOENT) => make_one(above, &part, if ahead.is_empty() { make } else { Make::Folder })?,
            found => found?,
        };
        match FileType::from_raw_mode(fstat(&next)?.st_mode) {
            FileType::Symlink => {
                links += 1;
                if links > MAX_LINKS {
                    return Err(Errno::LOOP.into());
                }
                let target = OsString::from_vec(readlinkat(&next, "", Vec::new())?.into_bytes());
                if Path::new(&target).is_absolute() {
                    way.clear();
                }
                for part in parts(Path::new(&target)).collect::<Vec<_>>().into_iter().rev() {
                    ahead.push_front(part);
                }
            }
            FileType::Directory => way.push((part, next)),
            _ if ahead.is_empty() => way.push((part, next)),
            _ => return Err(Errno::NOTDIR.into()),
        }
    }
    let path = Path::new("/").join(way.iter().map(|(name, _)| name).collect::<PathBuf>());
    let there = way.pop().map_or_else(|| root.try_clone(), |(_, there)| Ok(there))?;
    Ok(Place { there, path })
}

fn parts(path: &Path) -> impl Iterator<Item = OsString> {
    path.components().filter_map(|c| match c {
        Component::Normal(part) => Some(part.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    })
}

fn make_one(above: &OwnedFd, name: &OsStr, make: Make) -> io::Result<OwnedFd> {
    let made = match make {
        Make::Folder => mkdirat(above, name, Mode::from_raw_mode(0o755)),
        Make::File => {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            openat(above, name, flags, Mode::from_raw_mode(0o644)).map(drop)
        }
    };
    match made {
        // Another container made the same in the same volume.
        Err(Errno::EXIST) => {}
        other => other?,
    }
    Ok(openat(above, name, HANDLE, Mode::empty())?)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn places_are_found_through_links_and_made_where_they_lead() {
        let dir = tempfile::tempdir().expect("folder");
        let top = dir.path().canonicalize().expect("a path");
        for (to, from) in [("run", "relative"), ("up/../run", "winding"), ("loop", "loop"), ("file", "to-file")] {
            symlink(to, top.join(from)).expect("link");
        }
        symlink("/absolute/target", top.join("far")).expect("link");
        symlink("/../../outside", top.join("out")).expect("link");
        fs::write(top.join("plain"), "").expect("file");
        // As if it were the root.
        let root = rustix::fs::open(&top, HANDLE, Mode::empty()).expect("opened");
        let found = |name: &str, make| {
            walk(&root, Path::new(name), make).map(|p| p.path.strip_prefix("/").expect("absolute").to_owned())
        };
        assert_eq!(found("relative/secrets/x", Make::Folder).expect("made"), Path::new("run/secrets/x"));
        assert!(top.join("run/secrets/x").is_dir());
        assert_eq!(found("winding/y", Make::File).expect("made"), Path::new("run/y"));
        assert!(top.join("run/y").is_file());
        assert_eq!(found("to-file", Make::File).expect("made"), Path::new("file"));
        assert_eq!(found("far", Make::Folder).expect("made"), Path::new("absolute/target"));
        assert_eq!(found("a/./b/../c", Make::Folder).expect("made"), Path::new("a/c"));
        assert_eq!(found("out", Make::Folder).expect("made"), Path::new("outside"));
        assert!(!top.parent().expect("a folder").join("outside").exists());
        assert_eq!(found("plain", Make::Folder).expect("is there"), Path::new("plain"));
        assert_eq!(found("loop/x", Make::Folder).unwrap_err().raw_os_error(), Some(Errno::LOOP.raw_os_error()));
        assert_eq!(found("plain/x", Make::Folder).unwrap_err().kind(), io::ErrorKind::NotADirectory);
    }

    #[test]
    fn some_places_are_no_places_of_mounts() {
        for refused in ["/", "/..", "/proc/self", "/proc/sys/kernel/core_pattern"] {
            assert!(place(Path::new(refused), Make::Folder).is_err(), "{refused}");
        }
        assert_eq!(place(Path::new("/proc"), Make::Folder).expect("is there").path, Path::new("/proc"));
        assert_eq!(place(Path::new("/proc/uptime"), Make::File).expect("is there").path, Path::new("/proc/uptime"));
    }
}
