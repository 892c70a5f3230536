//! What each file holds, and the set of pods that follows from it. No I/O.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use contract::config_sources::{ManifestState, Source};
use model::core::Pod;
use model::{Timestamp, pod};
use static_pod::{Shadowed, collapse};

use super::read::{Found, Listing, Mark, Marks};
use super::report::Report;
use crate::own::own;

/// Pods that count by file, and those that others hide.
type Collapsed = (Vec<(OsString, Arc<Pod>)>, Vec<Shadowed<OsString>>);

/// Files of one folder, or one file (under the empty name).
#[derive(Debug)]
pub(super) struct FolderContent {
    path: PathBuf,
    files: BTreeMap<OsString, Entry>,
    /// Files whose pod another file hides, with that file.
    shadowed: BTreeMap<OsString, OsString>,
    /// Rank of the next event.
    next_rank: u64,
}

#[derive(Debug)]
struct Entry {
    /// The pod that this file stands for; a broken file may still stand for its former pod.
    pod: Option<Arc<Pod>>,
    /// Why the content is refused; empty when it is good.
    errors: Vec<String>,
    mark: Option<Mark>,
    /// Of two files with one pod name the one of higher rank counts: in a listing the later name, between listings the
    /// later event.
    rank: u64,
}

impl FolderContent {
    pub(super) fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), files: BTreeMap::new(), shadowed: BTreeMap::new(), next_rank: 0 }
    }

    /// Content known so far.
    pub(super) fn marks(&self) -> Marks {
        self.files.iter().filter_map(|(name, e)| Some((name.clone(), e.mark?))).collect()
    }

    /// Replaces all by a complete listing of the path. `None`: the set stays as it is and is not to be handed over (pod-lifecycle 1.5).
    pub(super) fn list(&mut self, listing: Listing, now: Timestamp) -> Option<Vec<Report>> {
        let mut reports = Vec::new();
        let (found, single) = match listing {
            Listing::Unreadable(_) => return None,
            Listing::Missing => (Vec::new(), false),
            Listing::Folder(files) => (files, false),
            Listing::Single(found) => (vec![(OsString::new(), found)], true),
        };
        let mut old = std::mem::take(&mut self.files);
        self.next_rank = 0;
        for (name, found) in found {
            let before = old.remove(&name);
            self.put(name, before, found, (single, now), &mut reports);
        }
        self.note_shadows(&mut reports);
        Some(reports)
    }

    /// Replaces files that an event named. A file that is broken now keeps its former pod until the next complete listing.
    pub(super) fn events(&mut self, found: Vec<(OsString, Found)>, now: Timestamp) -> Vec<Report> {
        let mut reports = Vec::new();
        for (name, found) in found {
            let before = self.files.remove(&name);
            self.put(name, before, found, (true, now), &mut reports);
        }
        self.note_shadows(&mut reports);
        reports
    }

    /// Puts what a file holds now in the place of what it held `before`.
    fn put(
        &mut self,
        name: OsString,
        before: Option<Entry>,
        found: Found,
        (keep_old, now): (bool, Timestamp),
        reports: &mut Vec<Report>,
    ) {
        let file = self.file(&name);
        let rank = self.next_rank;
        self.next_rank += 1;
        let entry = match found {
            Found::Gone => return,
            Found::Unchanged => {
                let Some(mut entry) = before else { return };
                if !entry.errors.is_empty() && !keep_old {
                    give_up(&mut entry, &file, reports);
                }
                // An event without a change of content moves nothing up.
                let rank = if keep_old && !name.is_empty() { entry.rank } else { rank };
                Entry { rank, ..entry }
            }
            Found::Pod { pod, warnings, mark } => {
                if !warnings.is_empty() {
                    reports.push(Report::Warned { file, warnings });
                }
                let before = before.and_then(|e| e.pod);
                let pod = own(pod, Source::File, before.as_ref(), now);
                // The same pod in other words is the same object, so that nobody compares it twice.
                let pod = before.filter(|old| **old == *pod).unwrap_or(pod);
                Entry { pod: Some(pod), errors: Vec::new(), mark: Some(mark), rank }
            }
            Found::Bad { errors, mark } => {
                let known = before.as_ref().is_some_and(|e| e.errors == errors);
                let mut entry = Entry { pod: before.and_then(|e| e.pod), errors, mark, rank };
                if !known {
                    let keeps_old = keep_old && entry.pod.is_some();
                    reports.push(Report::Refused { file: file.clone(), errors: entry.errors.clone(), keeps_old });
                }
                if !keep_old {
                    give_up(&mut entry, &file, reports);
                }
                entry
            }
            Found::Skipped { reason } => {
                if before.is_none_or(|e| e.errors != [reason.as_str()]) {
                    reports.push(Report::Skipped { file, reason: reason.clone() });
                }
                Entry { pod: None, errors: vec![reason], mark: None, rank }
            }
        };
        self.files.insert(name, entry);
    }

    /// The set: one pod per namespace and name.
    pub(super) fn pods(&self) -> Vec<Arc<Pod>> {
        self.collapsed().0.into_iter().map(|(_, pod)| pod).collect()
    }

    fn collapsed(&self) -> Collapsed {
        let mut ranked: Vec<_> =
            self.files.iter().filter_map(|(name, e)| Some((e.rank, name, e.pod.as_ref()?))).collect();
        ranked.sort_by_key(|(rank, ..)| *rank);
        collapse(ranked.into_iter().map(|(_, name, pod)| (name.clone(), pod.clone())))
    }

    fn note_shadows(&mut self, reports: &mut Vec<Report>) {
        let mut shadowed = BTreeMap::new();
        for shadow in self.collapsed().1 {
            if self.shadowed.get(&shadow.from) != Some(&shadow.by) {
                let (file, by) = (self.file(&shadow.from), self.file(&shadow.by));
                reports.push(Report::Shadowed { file, by, pod: shadow.full_name.clone() });
            }
            shadowed.insert(shadow.from, shadow.by);
        }
        self.shadowed = shadowed;
    }

    /// What is published, by path.
    pub(super) fn view(&self) -> BTreeMap<String, ManifestState> {
        let state = |name: &OsString, e: &Entry| match (&e.pod, self.shadowed.get(name)) {
            _ if !e.errors.is_empty() => {
                ManifestState::Refused { errors: e.errors.clone(), keeps_old: e.pod.is_some() }
            }
            (Some(pod), Some(by)) => ManifestState::Refused {
                errors: vec![format!("{} is defined by {} too, which counts", key(pod), self.file(by).display())],
                keeps_old: false,
            },
            (Some(pod), None) => ManifestState::Accepted { pod: key(pod) },
            (None, _) => ManifestState::Refused { errors: Vec::new(), keeps_old: false },
        };
        self.files.iter().map(|(name, e)| (self.file(name).to_string_lossy().into_owned(), state(name, e))).collect()
    }

    fn file(&self, name: &OsString) -> PathBuf {
        if name.is_empty() { self.path.clone() } else { self.path.join(name) }
    }
}

/// `namespace/name`.
fn key(p: &Pod) -> String {
    pod::namespaced_name(p)
}

fn give_up(entry: &mut Entry, file: &Path, reports: &mut Vec<Report>) {
    if let Some(old) = entry.pod.take() {
        reports.push(Report::Dropped { file: file.to_owned(), pod: key(&old) });
    }
}
