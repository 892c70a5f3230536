//! The image that guests start from, and the packages that it takes to make and start one. Only looks; `cargo xtask guest` builds it.

use std::path::{Path, PathBuf};

use crate::machine::{BASH, BUSYBOX, GCC, LIBC, Need, Requirement};

/// Debian's user-mode-linux.
pub(super) const KERNEL: &str = "/usr/bin/linux.uml";

/// What running a guest, and making its image, needs of the machine.
pub const GUEST_PACKAGES: &[Requirement] = &[
    Requirement {
        package: "user-mode-linux",
        proof: KERNEL,
        why: "the guest's kernel and its modules",
        need: Need::Tests,
    },
    Requirement {
        package: "debootstrap",
        proof: "/usr/sbin/debootstrap",
        why: "the guest's root file system",
        need: Need::Tests,
    },
    Requirement { package: "e2fsprogs", proof: "/sbin/mkfs.ext4", why: "its disk", need: Need::Tests },
    BUSYBOX,
    BASH,
    GCC,
    LIBC,
];

/// An image by its folder: a disk, and what it was made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuestImage {
    dir: PathBuf,
}

impl GuestImage {
    /// The one that `cargo xtask guest` keeps.
    #[must_use]
    pub fn cached() -> Self {
        GuestImage { dir: "/var/cache/bosun-testbed/guest".into() }
    }

    /// One in another folder.
    #[must_use]
    pub fn at(dir: impl Into<PathBuf>) -> Self {
        GuestImage { dir: dir.into() }
    }

    /// Its folder.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The disk.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.dir.join("root.ext4")
    }

    /// Says of what it was made; written last, so what has it is complete.
    #[must_use]
    pub fn stamp_path(&self) -> PathBuf {
        self.dir.join("made-of")
    }

    /// Whether it is complete and was made of this.
    #[must_use]
    pub fn is_made_of(&self, what: &str) -> bool {
        self.path().is_file() && std::fs::read_to_string(self.stamp_path()).is_ok_and(|text| text == what)
    }
}
