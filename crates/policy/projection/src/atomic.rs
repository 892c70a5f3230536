//! The atomic writer: consumers see the old files or the new ones, never a mixture (node-and-resources 6.9).
//!
//! Files stand in a directory of their own, named after the time. `..data` is a link to it, and each name that users see is
//! a link through `..data`, so that one rename of `..data` switches all of them.

use std::collections::{BTreeMap, BTreeSet};

use model::Timestamp;

use crate::path::{PathError, check, clean};
use crate::payload::{Payload, ProjectedFile};

#[cfg(test)]
mod tests;

/// Link to the directory that holds the files now.
pub const DATA: &str = "..data";
/// The same link while it is made.
pub const NEW_DATA: &str = "..data_tmp";
/// Mode of the directories that hold the files.
const DIR_MODE: u32 = 0o755;

/// What stands in the root of a volume.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Entry {
    /// A directory.
    Dir,
    /// A link, and where it points.
    Link(String),
    /// Anything else.
    Other,
}

/// The volume as it is.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Current {
    /// Everything in the root of the volume, by name.
    pub entries: BTreeMap<String, Entry>,
    /// Content of every file in the directory that [`DATA`] points to, by path relative to it. Empty without such a
    /// directory.
    pub files: BTreeMap<String, Vec<u8>>,
}

impl Current {
    /// Name of the directory that holds the files, where there is one.
    #[must_use]
    pub fn data_dir(&self) -> Option<&str> {
        match self.entries.get(DATA) {
            Some(Entry::Link(target)) if matches!(self.entries.get(target), Some(Entry::Dir)) => Some(target),
            _ => None,
        }
    }
}

/// Whether something in the root of a volume was made by an atomic writer, ours or a kubelet's.
#[must_use]
pub fn is_own(name: &str, entry: &Entry) -> bool {
    match entry {
        Entry::Dir => is_ours(name),
        Entry::Link(target) => name == DATA || name == NEW_DATA || target.starts_with("..data/"),
        Entry::Other => false,
    }
}

/// One thing to do. Paths are relative to the root of the volume.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step {
    /// Make a directory; its parent is there.
    MakeDir {
        /// Where.
        path: String,
        /// Exact permission bits.
        mode: u32,
    },
    /// Write a file that is not there yet, with its mode and owner.
    Write {
        /// Where.
        path: String,
        /// What.
        file: ProjectedFile,
    },
    /// Let the pod's group into a directory and everything in it, where the pod has one.
    GiveToGroup {
        /// The directory.
        path: String,
    },
    /// Make a symbolic link that is not there.
    Link {
        /// Where.
        path: String,
        /// To what.
        target: String,
    },
    /// Rename over what is there: the switch.
    Rename {
        /// From.
        from: String,
        /// To.
        to: String,
    },
    /// Remove a link or file, if it is there.
    Remove {
        /// Which.
        path: String,
    },
    /// Remove a directory with all that is in it, if it is there.
    RemoveDir {
        /// Which.
        path: String,
    },
}

/// Name of the directory for files that are written now.
#[must_use]
pub fn dir_name(now: Timestamp, random: u32) -> String {
    // `2026-11-20T09:08:37.000000000Z`
    let text = now.rfc3339_nano();
    let seconds: String = text.chars().take(19).map(|c| if c.is_ascii_digit() { c } else { '_' }).collect();
    format!("..{seconds}.{random:010}")
}

/// Whether this writer made the directory.
fn is_ours(name: &str) -> bool {
    let year = name.strip_prefix("..").and_then(|n| n.split_once('_')).map(|(year, _)| year);
    year.is_some_and(|y| y.len() == 4 && y.bytes().all(|b| b.is_ascii_digit()))
}

/// Steps from what is there to what is wanted; none when nothing differs. `new_dir` is a fresh [`dir_name`]. Modes and
/// owners alone make no difference: only content is compared, as by a kubelet. Steps may be cut off anywhere: readers see
/// whole old or whole new content, and the next plan finishes and cleans up.
///
/// # Errors
/// A path cannot be written.
pub fn plan(wanted: &Payload, now: &Current, new_dir: &str) -> Result<Vec<Step>, PathError> {
    let files = cleaned(wanted)?;
    let mut steps = Vec::new();
    let same = now.data_dir().is_some()
        && files.len() == now.files.len()
        && files.iter().all(|(path, f)| now.files.get(path).is_some_and(|have| *have == f.data));
    let current = if same { now.data_dir().unwrap_or(new_dir) } else { new_dir };
    if !same {
        write_all(&files, new_dir, &mut steps);
        steps.push(Step::GiveToGroup { path: new_dir.to_owned() });
        if now.entries.contains_key(NEW_DATA) {
            steps.push(Step::Remove { path: NEW_DATA.to_owned() });
        }
        steps.push(Step::Link { path: NEW_DATA.to_owned(), target: new_dir.to_owned() });
        steps.push(Step::Rename { from: NEW_DATA.to_owned(), to: DATA.to_owned() });
    }
    links(&files, now, &mut steps);
    for (name, _) in now.entries.iter().filter(|(n, e)| **e == Entry::Dir && is_ours(n) && n.as_str() != current) {
        steps.push(Step::RemoveDir { path: name.clone() });
    }
    Ok(steps)
}

/// Files by their clean paths, all of which can exist together.
fn cleaned(wanted: &Payload) -> Result<BTreeMap<String, &ProjectedFile>, PathError> {
    let mut out = BTreeMap::new();
    for (path, file) in wanted {
        check(path)?;
        out.insert(clean(path), file);
    }
    for path in out.keys() {
        if let Some(file) = parents(path).find(|p| out.contains_key(*p)) {
            return Err(PathError::BelowFile(path.clone(), file.to_owned()));
        }
    }
    Ok(out)
}

/// `a`, `a/b` for `a/b/c`.
fn parents(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(i, _)| &path[..i])
}

fn write_all(files: &BTreeMap<String, &ProjectedFile>, dir: &str, steps: &mut Vec<Step>) {
    steps.push(Step::MakeDir { path: dir.to_owned(), mode: DIR_MODE });
    let mut made = BTreeSet::new();
    for (path, file) in files {
        for parent in parents(path) {
            if made.insert(parent) {
                steps.push(Step::MakeDir { path: format!("{dir}/{parent}"), mode: DIR_MODE });
            }
        }
        steps.push(Step::Write { path: format!("{dir}/{path}"), file: (*file).clone() });
    }
}

/// Names that users see: added after the switch, so that they never dangle, and removed after it.
fn links(files: &BTreeMap<String, &ProjectedFile>, now: &Current, steps: &mut Vec<Step>) {
    let through = |name: &str| format!("{DATA}/{name}");
    let names: BTreeSet<&str> = files.keys().map(|p| p.split('/').next().unwrap_or(p)).collect();
    for name in &names {
        let target = through(name);
        match now.entries.get(*name) {
            Some(Entry::Link(there)) if *there == target => continue,
            Some(Entry::Link(_)) => steps.push(Step::Remove { path: (*name).to_owned() }),
            _ => {}
        }
        steps.push(Step::Link { path: (*name).to_owned(), target });
    }
    for (name, entry) in &now.entries {
        if !names.contains(name.as_str()) && *entry == Entry::Link(through(name)) {
            steps.push(Step::Remove { path: name.clone() });
        }
    }
}
