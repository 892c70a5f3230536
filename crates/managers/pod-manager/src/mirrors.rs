//! Mirror pods: what the API server holds for static pods, and the writes under way to keep it right. Nothing waits for them.
//!
//! `decision.rs` says what is to be done about one (pure), `write.rs` does it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use model::PodUid;
use model::core::{Node, Pod};
use model::pod::{CONFIG_HASH, CONFIG_MIRROR, annotation};
use ports::api::ApiError;

mod decision;
mod write;

#[cfg(test)]
mod tests;

pub(crate) use decision::{Original, desired, is_mirror_of, mirror_pod, undesired};
pub(crate) use write::{MirrorWrite, Written};

use decision::{Step, step};

/// First pause after a failure; doubles up to [`MAX_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// Longest pause after a failure.
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// Mirror pods by full name, and the writes under way.
#[derive(Debug, Default)]
pub(crate) struct MirrorPods {
    /// As the API server has them.
    known: BTreeMap<String, Arc<Pod>>,
    /// Of which version the last mirror was that the API server had, by its hash.
    shown: BTreeMap<String, String>,
    writes: BTreeMap<String, WriteState>,
}

/// How the writes of one mirror pod go.
#[derive(Debug, Default)]
struct WriteState {
    running: bool,
    /// Nothing is tried before the pause is over.
    paused: bool,
    failures: u32,
}

impl MirrorPods {
    /// The mirror pod that the API server has of this static pod, of whatever version.
    pub(crate) fn of(&self, pod: &Pod) -> Option<&Arc<Pod>> {
        self.known.get(&model::pod::full_name(pod))
    }

    /// Full names of all that the API server has.
    pub(crate) fn names(&self) -> impl Iterator<Item = &String> {
        self.known.keys()
    }

    /// Adds one that the board still shows.
    pub(crate) fn recover(&mut self, mirror: Arc<Pod>) {
        self.show(&mirror);
        self.known.insert(model::pod::full_name(&mirror), mirror);
    }

    /// Notes that the API server has had this one.
    fn show(&mut self, mirror: &Pod) {
        if let Some(hash) = annotation(mirror, CONFIG_MIRROR) {
            self.shown.insert(model::pod::full_name(mirror), hash.to_owned());
        }
    }

    /// Whether the API server has had a mirror of this version of the static pod, as far as is known.
    fn was_shown(&self, pod: &Pod) -> bool {
        let hash = self.shown.get(&model::pod::full_name(pod)).map(String::as_str);
        hash.is_some() && hash == annotation(pod, CONFIG_HASH)
    }

    /// Only pods of these names are of interest.
    pub(crate) fn retain(&mut self, names: &BTreeSet<String>) {
        self.shown.retain(|name, _| names.contains(name));
    }

    /// Replaces all by the full set that the API server has; gives the names whose mirror pod changed.
    pub(crate) fn replace(&mut self, incoming: Vec<Arc<Pod>>) -> BTreeSet<String> {
        incoming.iter().for_each(|pod| self.show(pod));
        let next = incoming.into_iter().map(|pod| (model::pod::full_name(&pod), pod)).collect();
        let before = std::mem::replace(&mut self.known, next);
        let now = &self.known;
        before.keys().chain(now.keys()).filter(|name| before.get(*name) != now.get(*name)).cloned().collect()
    }

    /// Takes in mirror pods that came or changed in the API; gives the names whose mirror pod changed.
    pub(crate) fn change(&mut self, changed: Vec<Arc<Pod>>) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        for pod in changed {
            let name = model::pod::full_name(&pod);
            self.show(&pod);
            if self.known.get(&name) != Some(&pod) {
                self.known.insert(name.clone(), pod);
                names.insert(name);
            }
        }
        names
    }

    /// A pod of the API went; gives the name if it was a mirror pod.
    pub(crate) fn remove(&mut self, uid: &PodUid) -> Option<String> {
        let is_it = |pod: &Pod| pod.metadata.uid.as_deref() == Some(uid.as_str());
        let name = self.known.iter().find(|(_, pod)| is_it(pod)).map(|(name, _)| name.clone())?;
        self.known.remove(&name);
        Some(name)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.known.contains_key(name)
    }

    /// The next write for this name, which counts as running from now on; `None`: nothing is to be done now. `node` is this
    /// node's object in the API, which owns the mirror pods.
    pub(crate) fn next_write(
        &mut self,
        name: &str,
        original: Original<'_>,
        node: Option<&Node>,
    ) -> Option<MirrorWrite> {
        let mirror = self.known.get(name);
        let step =
            step(original, mirror.map(|m| &**m), matches!(original, Original::Ended(pod) if self.was_shown(pod)));
        if self.writes.get(name).is_some_and(|write| write.running || write.paused) {
            return None;
        }
        let made = || match original {
            Original::Runs(pod) | Original::Ended(pod) => mirror_pod(pod, node?),
            _ => None,
        };
        let write = match step {
            Step::Nothing => return None,
            Step::Create => MirrorWrite { old: None, new: Some(made()?) },
            Step::Replace => MirrorWrite { old: mirror.cloned(), new: made() },
            Step::Delete => MirrorWrite { old: mirror.cloned(), new: None },
        };
        if original == Original::Absent {
            // Should the pod come again it is another life of it.
            self.shown.remove(name);
        }
        self.writes.entry(name.to_owned()).or_default().running = true;
        Some(write)
    }

    /// A write has ended. Gives the pause after which [`Self::resume`] is due when it failed.
    pub(crate) fn written(&mut self, name: &str, outcome: Result<Written, ApiError>) -> Option<Duration> {
        let write = self.writes.entry(name.to_owned()).or_default();
        write.running = false;
        match outcome {
            Ok(Written::Created(pod)) => {
                write.failures = 0;
                self.show(&pod);
                self.known.insert(name.to_owned(), pod);
                None
            }
            Ok(Written::Deleted) => {
                self.writes.remove(name);
                self.known.remove(name);
                None
            }
            Err(error) => {
                write.failures += 1;
                write.paused = true;
                let pause = FIRST_PAUSE.saturating_mul(1 << (write.failures - 1).min(6)).min(MAX_PAUSE);
                tracing::warn!(pod = name, %error, pause_s = pause.as_secs(), "mirror pod is not as it should be");
                Some(pause)
            }
        }
    }

    /// The pause after a failure is over.
    pub(crate) fn resume(&mut self, name: &str) {
        if let Some(write) = self.writes.get_mut(name) {
            write.paused = false;
        }
    }
}
