//! Places of mounts and devices in a container, from within: made where they are not there.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Mode, OFlags};

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

/// The place of a mount, without links on the way to it; it is made if it is not there.
pub(super) fn place(destination: &Path, make: Make) -> io::Result<(OwnedFd, PathBuf)> {
    let path = resolve(destination, make).map_err(at(destination))?;
    let refused = |why: &str| Err(io::Error::other(format!("{} cannot be mounted on: {why}", destination.display())));
    if path == Path::new("/") {
        return refused("it is the root of the container");
    }
    if let Ok(below) = path.strip_prefix("/proc")
        && below != Path::new("")
        && !IN_PROC.iter().any(|p| below == Path::new(p))
    {
        return refused("it is inside /proc");
    }
    Ok((open(&path).map_err(at(&path))?, path))
}

/// Equal but for slashes and dots.
pub(super) fn is(a: &Path, b: impl AsRef<Path>) -> bool {
    a.components().filter(|c| *c != Component::CurDir).eq(b.as_ref().components())
}

/// What is at a path, not followed if it is a link.
pub(super) fn open(path: &Path) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?)
}

/// Makes a folder, and those above it; answers it without links.
pub(super) fn folders(path: &Path) -> io::Result<PathBuf> {
    resolve(path, Make::Folder).map_err(at(path))
}

/// Follows links, also those that lead to what is not there yet, which is made: an image may have `/var/run` lead to a `/run` that it lacks.
fn resolve(path: &Path, make: Make) -> io::Result<PathBuf> {
    let mut ahead: VecDeque<OsString> = parts(path).collect();
    let (mut at, mut links) = (PathBuf::from("/"), 0);
    while let Some(part) = ahead.pop_front() {
        if part == ".." {
            at.pop();
            continue;
        }
        let next = at.join(&part);
        let facts = match fs::symlink_metadata(&next) {
            Ok(facts) => facts,
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                make_one(&next, if ahead.is_empty() { make } else { Make::Folder })?;
                at = next;
                continue;
            }
            Err(e) => return Err(e),
        };
        if facts.is_symlink() {
            links += 1;
            if links > MAX_LINKS {
                return Err(rustix::io::Errno::LOOP.into());
            }
            let target = fs::read_link(&next)?;
            if target.is_absolute() {
                at = PathBuf::from("/");
            }
            for part in parts(&target).collect::<Vec<_>>().into_iter().rev() {
                ahead.push_front(part);
            }
        } else if facts.is_dir() || ahead.is_empty() {
            at = next;
        } else {
            return Err(io::ErrorKind::NotADirectory.into());
        }
    }
    Ok(at)
}

fn parts(path: &Path) -> impl Iterator<Item = OsString> {
    path.components().filter_map(|c| match c {
        Component::Normal(part) => Some(part.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    })
}

fn make_one(path: &Path, make: Make) -> io::Result<()> {
    match make {
        Make::Folder => fs::DirBuilder::new().mode(0o755).create(path),
        Make::File => fs::OpenOptions::new().write(true).create_new(true).mode(0o644).open(path).map(drop),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn places_are_found_through_links_and_made_where_they_lead() {
        let dir = tempfile::tempdir().expect("folder");
        let top = dir.path().canonicalize().expect("a path");
        for (to, from) in [("run", "relative"), ("up/../run", "winding"), ("loop", "loop"), ("file", "to-file")] {
            symlink(to, top.join(from)).expect("link");
        }
        symlink(top.join("absolute/target"), top.join("far")).expect("link");
        fs::write(top.join("plain"), "").expect("file");
        let found =
            |name: &str, make| resolve(&top.join(name), make).map(|p| p.strip_prefix(&top).expect("below").to_owned());
        assert_eq!(found("relative/secrets/x", Make::Folder).expect("made"), Path::new("run/secrets/x"));
        assert!(top.join("run/secrets/x").is_dir());
        assert_eq!(found("winding/y", Make::File).expect("made"), Path::new("run/y"));
        assert!(top.join("run/y").is_file());
        assert_eq!(found("to-file", Make::File).expect("made"), Path::new("file"));
        assert_eq!(found("far", Make::Folder).expect("made"), Path::new("absolute/target"));
        assert_eq!(found("a/./b/../c", Make::Folder).expect("made"), Path::new("a/c"));
        assert_eq!(found("plain", Make::Folder).expect("is there"), Path::new("plain"));
        assert_eq!(
            found("loop/x", Make::Folder).unwrap_err().raw_os_error(),
            Some(rustix::io::Errno::LOOP.raw_os_error())
        );
        assert_eq!(found("plain/x", Make::Folder).unwrap_err().kind(), io::ErrorKind::NotADirectory);
    }

    #[test]
    fn some_places_are_no_places_of_mounts() {
        for refused in ["/", "/..", "/proc/self", "/proc/sys/kernel/core_pattern"] {
            assert!(place(Path::new(refused), Make::Folder).is_err(), "{refused}");
        }
        assert_eq!(place(Path::new("/proc"), Make::Folder).expect("is there").1, Path::new("/proc"));
        assert_eq!(place(Path::new("/proc/uptime"), Make::File).expect("is there").1, Path::new("/proc/uptime"));
    }
}
