//! Devices of the Container Device Interface (CDI 1.1): what a vendor's files on the node say that a container with a device gets.
//!
//! The rules are those of the interface's own library, which containerd and CRI-O use: a file of a folder that is named later
//! outdoes one of a folder before it, two of one folder that have the same device make that device unknown, and what a file says
//! for all its devices comes once, before the first of them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use cri_api::v1;

use crate::SpecError;

mod file;

use file::SpecFile;
pub use file::{Edits, NodeEdit};
pub(crate) use file::{HookEdit, HookName, IntelRdt, MountEdit};

/// Annotations of a container whose values name devices, from before the CRI had a field for them.
const ANNOTATION: &str = "cdi.k8s.io/";

/// The devices that a container asks for, each once, in the order in which they are named: those of the CRI's field, then those of
/// annotations (by key, their values parted by commas).
#[must_use]
pub fn asked(config: &v1::ContainerConfig) -> Vec<String> {
    let named = config.cdi_devices.iter().map(|d| d.name.as_str());
    let annotated: BTreeMap<_, _> = config.annotations.iter().filter(|(key, _)| key.starts_with(ANNOTATION)).collect();
    let annotated = annotated.into_values().flat_map(|names| names.split(','));
    let mut seen = BTreeSet::new();
    named.chain(annotated).filter(|name| seen.insert(*name)).map(str::to_owned).collect()
}

/// A file as it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Where.
    pub path: PathBuf,
    /// Of which folder, counted from the one that all others outdo.
    pub folder: usize,
    /// What stands in it, or why it cannot be read.
    pub text: Result<String, String>,
}

/// What the node's files say. A file that says nothing that can be read takes nothing away from the others.
#[derive(Debug, Default)]
pub struct Known {
    files: Vec<SpecFile>,
    /// By `vendor/class=name`: file and device.
    devices: BTreeMap<String, (usize, usize)>,
    /// What is wrong with which file.
    faults: Vec<String>,
}

impl Known {
    /// Takes the files in: folders in their order, in each folder by name.
    #[must_use]
    pub fn of(mut found: Vec<Found>) -> Self {
        found.sort_by(|a, b| (a.folder, &a.path).cmp(&(b.folder, &b.path)));
        let mut known = Self::default();
        let mut from: BTreeMap<String, usize> = BTreeMap::new();
        let mut twice = BTreeSet::new();
        for Found { path, folder, text } in found {
            let file = match text.and_then(|text| SpecFile::parse(&path, &text)) {
                Ok(file) => file,
                Err(why) => {
                    known.faults.push(format!("{}: {why}", path.display()));
                    continue;
                }
            };
            let at = known.files.len();
            for (n, name) in file.names().enumerate() {
                if from.insert(name.clone(), folder) == Some(folder) {
                    known.faults.push(format!("{}: device {name} is in another file, too", path.display()));
                    twice.insert(name.clone());
                }
                known.devices.insert(name, (at, n));
            }
            known.files.push(file);
        }
        known.devices.retain(|name, _| !twice.contains(name));
        known
    }

    /// What a container with these devices gets.
    ///
    /// # Errors
    /// Devices that no file has, with what is wrong with files: [`SpecError::UnknownCdi`].
    pub fn edits(&self, names: &[String]) -> Result<Edits, SpecError> {
        let unknown: Vec<&str> = names.iter().filter(|n| !self.devices.contains_key(*n)).map(String::as_str).collect();
        if !unknown.is_empty() {
            return Err(SpecError::UnknownCdi { names: unknown.join(", "), faults: self.faults.clone() });
        }
        let (mut all, mut begun) = (Edits::default(), BTreeSet::new());
        for (file, device) in names.iter().filter_map(|name| self.devices.get(name)) {
            let spec = &self.files[*file];
            if begun.insert(file) {
                all.append(&spec.container_edits);
            }
            all.append(&spec.devices[*device].container_edits);
        }
        Ok(all)
    }
}

/// Whether a file of this name is one of CDI's.
#[must_use]
pub fn is_file_name(path: &Path) -> bool {
    path.extension().is_some_and(|e| e == "json" || e == "yaml")
}
