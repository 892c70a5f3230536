//! One mount: made apart from all folders, then put into its place, so that nobody can put something else between the two.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::CWD;
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags,
    fsconfig_create, fsconfig_set_flag, fsconfig_set_string, fsmount, fsopen, mount_change, mount_remount, move_mount,
    open_tree,
};

use crate::helper::Own;

/// Bytes of what a file system says of a refused mount.
const MAX_WORDS: usize = 256;

/// Options of a mount of a spec.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Options {
    /// What a mount can be given when it is in its place.
    pub(super) flags: MountFlags,
    strictatime: bool,
    pub(super) recursive: bool,
    private: bool,
    /// What the file system is told.
    data: Vec<String>,
}

/// Flags by both calls that take them.
const FLAGS: [(MountFlags, MountAttrFlags); 4] = [
    (MountFlags::RDONLY, MountAttrFlags::MOUNT_ATTR_RDONLY),
    (MountFlags::NOSUID, MountAttrFlags::MOUNT_ATTR_NOSUID),
    (MountFlags::NODEV, MountAttrFlags::MOUNT_ATTR_NODEV),
    (MountFlags::NOEXEC, MountAttrFlags::MOUNT_ATTR_NOEXEC),
];

impl Options {
    /// # Errors
    /// One is known that this does not carry out.
    pub(super) fn of(options: &[String]) -> io::Result<Self> {
        let mut all =
            Self { flags: MountFlags::empty(), strictatime: false, recursive: false, private: false, data: Vec::new() };
        for option in options {
            match option.as_str() {
                "ro" => all.flags |= MountFlags::RDONLY,
                "rw" => all.flags -= MountFlags::RDONLY,
                "nosuid" => all.flags |= MountFlags::NOSUID,
                "nodev" => all.flags |= MountFlags::NODEV,
                "noexec" => all.flags |= MountFlags::NOEXEC,
                "strictatime" => all.strictatime = true,
                // The kernel's default.
                "relatime" | "bind" => {}
                "rbind" => all.recursive = true,
                "rprivate" => all.private = true,
                word if REFUSED.contains(&word) => {
                    return Err(io::Error::other(format!("mounts with the option {word} are not made here")));
                }
                data => all.data.push(data.to_owned()),
            }
        }
        Ok(all)
    }

    pub(super) fn is_read_only(&self) -> bool {
        self.flags.contains(MountFlags::RDONLY)
    }

    fn attributes(&self) -> MountAttrFlags {
        let set = FLAGS.into_iter().filter(|(flag, _)| self.flags.contains(*flag));
        let atime = if self.strictatime { MountAttrFlags::MOUNT_ATTR_STRICTATIME } else { MountAttrFlags::empty() };
        set.fold(atime, |all, (_, attribute)| all | attribute)
    }

    /// Tells the file system one more.
    pub(super) fn tell(&mut self, data: String) {
        self.data.push(data);
    }

    /// Whether the file system is told a value of this name.
    pub(super) fn names(&self, name: &str) -> bool {
        self.data.iter().any(|d| d.split('=').next() == Some(name))
    }
}

/// Options of a mount that file systems do not take, and that mean something else than what is done here.
const REFUSED: [&str; 32] = [
    "async",
    "atime",
    "defaults",
    "dev",
    "diratime",
    "dirsync",
    "exec",
    "iversion",
    "loud",
    "mand",
    "noatime",
    "nodiratime",
    "noiversion",
    "nomand",
    "norelatime",
    "nostrictatime",
    "nosymfollow",
    "private",
    "remount",
    "rnoexec",
    "rro",
    "rslave",
    "rshared",
    "runbindable",
    "shared",
    "silent",
    "slave",
    "suid",
    "symfollow",
    "sync",
    "tmpcopyup",
    "unbindable",
];

/// A mount that is in no folder yet.
#[derive(Debug)]
pub(super) struct Detached(pub(super) OwnedFd);

impl Detached {
    /// A new file system, or a view of one that there is.
    pub(super) fn new(kind: &str, source: &Path, options: &Options) -> io::Result<Self> {
        let system = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
        let configured = || {
            fsconfig_set_string(&system, "source", source)?;
            for option in &options.data {
                match option.split_once('=') {
                    Some((name, value)) => fsconfig_set_string(&system, name, value)?,
                    None => fsconfig_set_flag(&system, option.as_str())?,
                }
            }
            if options.is_read_only() {
                fsconfig_set_flag(&system, "ro")?;
            }
            fsconfig_create(&system)
        };
        configured().map_err(|e| said(&system, e))?;
        Ok(Self(fsmount(&system, FsMountFlags::FSMOUNT_CLOEXEC, options.attributes())?))
    }

    /// What is at a path, mounted once more.
    pub(super) fn again(path: &Path, recursive: bool) -> io::Result<Self> {
        Ok(Self(open_tree(CWD, path, flags(recursive))?))
    }

    /// What a descriptor is of, mounted once more.
    pub(super) fn again_of(what: impl AsFd, recursive: bool) -> io::Result<Self> {
        Ok(Self(open_tree(what, "", flags(recursive) | OpenTreeFlags::AT_EMPTY_PATH)?))
    }

    /// Puts it over what is at `place`.
    pub(super) fn attach(&self, place: impl AsFd) -> io::Result<()> {
        let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
        Ok(move_mount(&self.0, "", place, "", flags)?)
    }

    /// Gives one that is in its place these flags and no others.
    pub(super) fn set_flags(&self, own: &Own, flags: MountFlags) -> io::Result<()> {
        own.with(&self.0, |name| Ok(mount_remount(name, MountFlags::BIND | flags, "")?))
    }

    /// Has one that is in its place, and what is mounted in it, take no part in mounts of the node.
    fn keep_apart(&self, own: &Own) -> io::Result<()> {
        own.with(&self.0, |name| Ok(mount_change(name, MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?))
    }

    /// One that is in its place gets what its options say.
    pub(super) fn settle(&self, own: &Own, options: &Options) -> io::Result<()> {
        if options.private {
            self.keep_apart(own)?;
        }
        // Without any, it stays as its source is.
        if options.flags.is_empty() { Ok(()) } else { self.set_flags(own, options.flags) }
    }
}

fn flags(recursive: bool) -> OpenTreeFlags {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    if recursive { flags | OpenTreeFlags::AT_RECURSIVE } else { flags }
}

/// An error with what the file system says of it.
fn said(system: &OwnedFd, e: Errno) -> io::Error {
    let mut words = [0; MAX_WORDS];
    let count = system.try_clone().map(File::from).and_then(|mut f| f.read(&mut words)).unwrap_or_default();
    let words = String::from_utf8_lossy(&words[..count]).trim().to_owned();
    let e = io::Error::from(e);
    if words.is_empty() { e } else { io::Error::new(e.kind(), format!("{e} ({words})")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(options: &[&str]) -> io::Result<Options> {
        Options::of(&options.iter().map(|o| (*o).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn options_are_flags_or_for_the_file_system() {
        let tmpfs = of(&["nosuid", "strictatime", "mode=755", "size=65536k"]).expect("known");
        assert_eq!(tmpfs.data, ["mode=755", "size=65536k"]);
        assert!(tmpfs.names("mode") && !tmpfs.names("mod"));
        assert_eq!(tmpfs.attributes(), MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_STRICTATIME);
        let bind = of(&["rbind", "rprivate", "ro"]).expect("known");
        assert!(bind.recursive && bind.private && bind.data.is_empty());
        assert_eq!(bind.flags, MountFlags::RDONLY);
        assert!(of(&["rbind", "rprivate", "rw"]).expect("known").flags.is_empty());
        assert_eq!(of(&["ro", "rw"]).expect("known"), of(&[]).expect("nothing"));
    }

    #[test]
    fn what_is_not_carried_out_is_not_taken_for_an_option_of_a_file_system() {
        for word in REFUSED {
            assert!(of(&[word]).unwrap_err().to_string().contains(word), "{word}");
        }
    }
}
