//! Disks by Fibre Channel: by what names they are known and found.

use model::core::FCVolumeSource;

/// A disk, by what it is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fc {
    /// By what it is found.
    pub id: Id,
    /// File system; empty: ext4.
    pub fs_type: String,
}

/// By what a disk is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Id {
    /// Names of target ports, and the number of the disk.
    Ports(Vec<String>, i32),
    /// World wide identifiers of the disk.
    Wwids(Vec<String>),
}

impl Fc {
    /// # Errors
    /// It says not which disk.
    pub fn new(of: &FCVolumeSource) -> Result<Self, String> {
        let (ports, wwids) = (of.target_wwns.clone().unwrap_or_default(), of.wwids.clone().unwrap_or_default());
        let id = match of.lun {
            Some(lun) if !ports.is_empty() => Id::Ports(ports, lun),
            _ if !wwids.is_empty() => Id::Wwids(wwids),
            _ => return Err("fc: no fc disk information found. failed to make a new mounter".to_owned()),
        };
        Ok(Self { id, fs_type: of.fs_type.clone().unwrap_or_default() })
    }

    /// Name by which the API server knows the disk, after that of its kind.
    #[must_use]
    pub fn attach_name(&self) -> String {
        match &self.id {
            Id::Ports(ports, lun) => format!("[{}]:{lun}", ports.join(" ")),
            Id::Wwids(wwids) => format!("[{}]", wwids.join(" ")),
        }
    }

    /// Name of the directory of the disk below that of its kind.
    #[must_use]
    pub fn dir(&self) -> String {
        match &self.id {
            Id::Ports(ports, lun) => format!("{}-lun-{lun}", ports.join("-")),
            Id::Wwids(wwids) => wwids.iter().map(|id| plain(id)).collect::<Vec<_>>().join("-"),
        }
    }
}

/// As it stands in a name below `/dev`.
fn plain(wwid: &str) -> String {
    wwid.replace(' ', "_")
}

impl Id {
    /// What the name of its directory says, to tell people: identifiers may hold a `-` themselves.
    #[must_use]
    pub fn of_dir(name: &str) -> Option<Self> {
        let all = |text: &str| text.split('-').map(str::to_owned).collect();
        match name.rsplit_once("-lun-") {
            Some((ports, lun)) if !ports.is_empty() => Some(Self::Ports(all(ports), lun.parse().ok()?)),
            Some(_) => None,
            None => Some(Self::Wwids(all(name))).filter(|_| !name.is_empty()),
        }
    }

    /// Directory of links to such disks.
    #[must_use]
    pub const fn links(&self) -> &'static str {
        match self {
            Self::Ports(..) => "/dev/disk/by-path",
            Self::Wwids(_) => "/dev/disk/by-id",
        }
    }

    /// Which of these names of links lead to it, by each of its ports or identifiers in their order.
    #[must_use]
    pub fn matches<'a>(&self, names: &[&'a str]) -> Vec<&'a str> {
        let find = |is_it: &dyn Fn(&str) -> bool| names.iter().copied().find(|name| is_it(name));
        match self {
            Self::Ports(ports, lun) => {
                let one = |port: &String| {
                    let end = format!("fc-0x{port}-lun-{lun}");
                    find(&|name| match name.strip_suffix(&end) {
                        Some(before) => before.is_empty() || before.starts_with("pci-") && before.ends_with('-'),
                        None => false,
                    })
                };
                ports.iter().filter_map(one).collect()
            }
            Self::Wwids(wwids) => {
                let one = |id: &String| find(&|name| name.strip_prefix("scsi-") == Some(&plain(id)));
                wwids.iter().filter_map(one).collect()
            }
        }
    }
}
