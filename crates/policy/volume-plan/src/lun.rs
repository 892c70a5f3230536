//! Disks that the host reaches over a network, of either kind: where they are mounted for all pods, and what they are called.

use crate::fc::{Fc, Id};
use crate::iscsi::{self, Iscsi};

/// How a disk is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Transport {
    /// iSCSI.
    Iscsi,
    /// Fibre Channel.
    Fc,
}

impl Transport {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Iscsi, Self::Fc];

    /// The API's name of the kind, which is that of its directory below `plugins/kubernetes.io` as well.
    #[must_use]
    pub const fn kind(self) -> &'static str {
        match self {
            Self::Iscsi => "iscsi",
            Self::Fc => "fc",
        }
    }

    /// Name of the kind's directory in a pod's folder.
    #[must_use]
    pub const fn plugin(self) -> &'static str {
        match self {
            Self::Iscsi => "kubernetes.io~iscsi",
            Self::Fc => "kubernetes.io~fc",
        }
    }

    /// Name of the file in a disk's directory that says which disk it is.
    #[must_use]
    pub const fn file(self) -> &'static str {
        match self {
            Self::Iscsi => "iscsi.json",
            Self::Fc => "links",
        }
    }

    /// How many directories lie between that of the kind and what is in that of a disk: the interface, or none.
    #[must_use]
    pub const fn has_interfaces(self) -> bool {
        matches!(self, Self::Iscsi)
    }

    /// Name of the disk in this process, by the name of its directory: the same for all who have it, whatever they say of it.
    #[must_use]
    pub fn key(self, dir: &str) -> String {
        format!("kubernetes.io/{}/{dir}", self.kind())
    }
}

/// A disk that the host reaches over a network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lun {
    /// By iSCSI.
    Iscsi(Iscsi),
    /// By Fibre Channel.
    Fc(Fc),
}

impl Lun {
    /// How it is reached.
    #[must_use]
    pub const fn transport(&self) -> Transport {
        match self {
            Self::Iscsi(_) => Transport::Iscsi,
            Self::Fc(_) => Transport::Fc,
        }
    }

    /// File system; empty: ext4.
    #[must_use]
    pub fn fs_type(&self) -> &str {
        match self {
            Self::Iscsi(disk) => &disk.fs_type,
            Self::Fc(disk) => &disk.fs_type,
        }
    }

    /// Names of its directories, one in the other, below that of its kind.
    #[must_use]
    pub fn dirs(&self) -> Vec<String> {
        match self {
            Self::Iscsi(disk) => disk.dirs(),
            Self::Fc(disk) => vec![disk.dir()],
        }
    }

    /// See [`Transport::key`].
    #[must_use]
    pub fn key(&self) -> String {
        self.transport().key(self.dirs().last().map_or("", String::as_str))
    }

    /// Name by which the API server and the attach controller know it.
    #[must_use]
    pub fn attach_name(&self) -> String {
        let (kind, name) = match self {
            Self::Iscsi(disk) => ("iscsi", disk.attach_name()),
            Self::Fc(disk) => ("fc", disk.attach_name()),
        };
        format!("kubernetes.io/{kind}/{name}")
    }
}

/// What the attach controller may call the disk of this key, where nobody here has it, as a kubelet has it; `None`: it is no
/// such disk.
#[must_use]
pub fn attach_name_of(key: &str) -> Option<String> {
    let (kind, dir) = key.strip_prefix("kubernetes.io/")?.split_once('/')?;
    let name = match kind {
        "iscsi" => {
            let iscsi::Config { portals, iqn, lun, .. } = iscsi::of_dirs("", dir)?;
            format!("{}:{iqn}:{lun}", portals.first()?)
        }
        "fc" => Fc { id: Id::of_dir(dir)?, fs_type: String::new() }.attach_name(),
        _ => return None,
    };
    Some(format!("kubernetes.io/{kind}/{name}"))
}
