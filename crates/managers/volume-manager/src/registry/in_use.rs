//! What is on the disk, and which volumes must stay attached because of it.

use std::collections::BTreeSet;
use std::sync::Arc;

use volume_plan::lun::attach_name_of;
use volume_plan::names::is_attachable;
use volume_plan::state::Mount;

use super::{Entry, State, Volumes};

impl Volumes {
    /// A look at the disk begins. Answers its number.
    pub(crate) fn begin_look(&self) -> u64 {
        let mut state = self.state();
        state.looks += 1;
        state.looks
    }

    /// What is on the disk, as all of it was read by this look: what is neither there nor wanted nor under way is forgotten, but for what
    /// came meanwhile. Answers whether this was the first look.
    pub(crate) fn note_disk(&self, look: u64, there: &BTreeSet<String>) -> bool {
        let mut state = self.state();
        (state.is_known, state.assumed) = (true, None);
        let is_first = state.note_there(there);
        state.volumes.retain(|name, e| {
            e.is_on_disk = there.contains(name) || (e.is_on_disk && e.changed_in >= look);
            let wanted = &e.wanted;
            e.parts.retain(|part, k| {
                part.as_ref().is_none_or(|uid| wanted.contains_key(uid))
                    || k.mount != Mount::Absent
                    || k.doing.is_some()
            });
            e.is_on_disk || !e.wanted.is_empty() || Arc::strong_count(&e.turn) > 1
        });
        state.targets.retain(|_, turn| Arc::strong_count(turn) > 1);
        is_first
    }

    /// What is on the disk, of which not all could be read: nothing is forgotten. Where all of it never could be, what the Node `told`
    /// of volumes in use counts on, as soon as that is known.
    pub(crate) fn note_part_of_disk(&self, there: &BTreeSet<String>, told: Option<BTreeSet<String>>) -> bool {
        let mut state = self.state();
        if !state.is_known && state.assumed.is_none() {
            state.assumed = told;
        }
        state.note_there(there)
    }

    /// Names of volumes that must stay attached; `None` before that is known.
    pub(crate) fn in_use(&self) -> Option<BTreeSet<String>> {
        let state = self.state();
        // Work on it may be under way for a pod that wants it no more.
        let is_here = |e: &Entry| e.is_on_disk || !e.wanted.is_empty() || Arc::strong_count(&e.turn) > 1;
        let held = |e: &Entry| e.is_attachable != Some(false) && is_here(e);
        let told = |name: &String, e: &Entry| {
            e.attach_name.clone().or_else(|| attach_name_of(name)).unwrap_or_else(|| name.clone())
        };
        let names = state.volumes.iter().filter(|(name, e)| is_attachable(name) && held(e)).map(|(n, e)| told(n, e));
        let assumed = state.assumed.iter().flatten().cloned();
        (state.is_known || state.assumed.is_some()).then(|| names.chain(assumed).collect())
    }
}

impl State {
    fn note_there(&mut self, there: &BTreeSet<String>) -> bool {
        for name in there {
            self.volumes.entry(name.clone()).or_default().is_on_disk = true;
        }
        !std::mem::replace(&mut self.is_read, true)
    }
}
