//! Which inspections of a pod are asked for: one runs at a time, what is asked for meanwhile is joined into the next. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use contract::runtime::CallError;
use model::Timestamp;
use model::runtime::{ContainerState, PodObservation};
use ports::runtime::PodStatuses;
use tokio::sync::oneshot;

use crate::inspect::Scope;
use crate::view::age;
use crate::view::list::Listed;

/// A status may follow its event later, on a busy machine by seconds. The next inspection comes after one step, then two more,
/// three more ... for ten seconds in all.
const EXPECT_STEP: Duration = Duration::from_millis(5);
const EXPECT_TRIES: u32 = 63;
/// Between failed inspections of one pod.
const RETRY_FIRST: Duration = Duration::from_secs(1);
const RETRY_MOST: Duration = Duration::from_secs(30);
/// After so many failed inspections in a row what lists lack is gone: there are runtimes that have other words than NotFound.
const DOUBTS: u32 = 3;
/// Sandboxes whose state events may carry to one inspection; with more of them it lists itself.
const CARRIED: usize = 8;

/// Somebody who waits for an inspection or a relist.
pub(crate) type Reply = oneshot::Sender<Result<(), CallError>>;

/// What an event says that an inspection will show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Expectation {
    Anything,
    Started,
    Stopped,
    Gone,
}

impl Expectation {
    /// Whether what is known of `id` is as expected.
    pub(crate) fn met(self, id: &str, pod: Option<&PodObservation>) -> bool {
        let sandbox = pod.and_then(|p| p.sandboxes.iter().find(|s| s.id.as_str() == id));
        let container = pod.and_then(|p| p.containers.iter().find(|c| c.id.as_str() == id));
        match (self, sandbox, container) {
            (Self::Anything, _, _) | (_, None, None) => true,
            (Self::Started, Some(_), _) => true,
            (Self::Started, _, Some(c)) => age(c.state) > age(ContainerState::Created),
            (Self::Stopped, Some(s), _) => !s.ready,
            (Self::Stopped, _, Some(c)) => c.state == ContainerState::Exited,
            (Self::Gone, _, _) => false,
        }
    }
}

/// What the next inspection is for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Request {
    pub(crate) scope: Scope,
    /// Ids, what is expected of each, and how often it was not as expected.
    pub(crate) ids: BTreeMap<String, (Expectation, u32)>,
    pub(crate) carried: Vec<PodStatuses>,
    /// Asked for by an audit alone: what it finds, events have not told.
    pub(crate) audit: bool,
}

impl Request {
    /// Everything that the runtime has of the pod.
    pub(crate) fn all() -> Self {
        Self { scope: Scope::All, ..Self::default() }
    }

    pub(crate) fn listed(listed: Listed, seq: u64, at: Timestamp, audit: bool) -> Self {
        Self { scope: Scope::Listed(listed, seq, at), audit, ..Self::default() }
    }

    pub(crate) fn id(id: &str, expectation: Expectation) -> Self {
        Self { ids: BTreeMap::from([(id.to_owned(), (expectation, 0))]), ..Self::default() }
    }

    pub(crate) fn carried(statuses: PodStatuses) -> Self {
        Self { carried: vec![statuses], ..Self::default() }
    }

    fn is_empty(&self) -> bool {
        self.scope == Scope::Named && self.ids.is_empty() && self.carried.is_empty()
    }

    pub(crate) fn join(&mut self, other: Self) {
        self.audit = other.audit && (self.is_empty() || self.audit);
        self.scope = match (std::mem::take(&mut self.scope), other.scope) {
            (Scope::Named, scope) | (scope, Scope::Named) => scope,
            // Two sets of ids of different times: let the inspection list them itself.
            _ => Scope::All,
        };
        for (id, (expectation, tries)) in other.ids {
            let entry = self.ids.entry(id).or_insert((expectation, tries));
            *entry = (entry.0.max(expectation), entry.1.max(tries));
        }
        for statuses in other.carried {
            // What the later event carries of a sandbox is all there is of it.
            match self.carried.iter_mut().find(|c| c.sandbox.id == statuses.sandbox.id) {
                Some(earlier) => *earlier = statuses,
                None => self.carried.push(statuses),
            }
        }
        if self.carried.len() > CARRIED {
            self.carried.clear();
            self.scope = Scope::All;
        }
    }

    /// Whether an event had said more than there is to see.
    pub(crate) fn is_unmet(&self, pod: Option<&PodObservation>) -> bool {
        self.ids.iter().any(|(id, (expectation, _))| !expectation.met(id, pod))
    }

    /// Where an event had said more than there is to see: requests to inspect that again, and when.
    pub(crate) fn unmet(&self, pod: Option<&PodObservation>) -> Vec<(Duration, Self)> {
        let late =
            self.ids.iter().filter(|(id, (expectation, tries))| *tries < EXPECT_TRIES && !expectation.met(id, pod));
        let again = late.map(|(id, &(expectation, tries))| {
            let ids = BTreeMap::from([(id.clone(), (expectation, tries + 1))]);
            (EXPECT_STEP * (tries + 1), Self { ids, ..Self::default() })
        });
        again.collect()
    }
}

/// Inspections of one pod: what is asked for, what is under way, and who waits.
#[derive(Debug, Default)]
pub(crate) struct PodRequests {
    pending: Request,
    running: bool,
    /// Asked before the inspection under way began / since then.
    serving: Vec<Reply>,
    waiting: Vec<Reply>,
    /// Own calls under way that start something.
    pub(crate) starting: u32,
    /// What own calls under way stop or remove for good: their answers tell that it is done.
    pub(crate) ending: BTreeSet<String>,
    failures: u32,
    /// Waits before it is inspected again.
    resting: bool,
    /// When something last happened to the pod.
    pub(crate) touched: u64,
}

impl PodRequests {
    /// No inspection is asked for or under way.
    pub(crate) fn is_settled(&self) -> bool {
        !self.running && self.pending.is_empty()
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.is_settled() && self.waiting.is_empty() && self.starting == 0 && self.ending.is_empty()
    }

    /// Whether what a list lacks is asked for by its id before it counts as gone.
    pub(crate) fn doubts_lists(&self) -> bool {
        self.failures < DOUBTS
    }

    pub(crate) fn add(&mut self, request: Request) {
        self.pending.join(request);
    }

    /// `reply` is answered by the next inspection to begin.
    pub(crate) fn wait_for_next(&mut self, reply: Reply) {
        self.waiting.push(reply);
    }

    /// `reply` is answered by the inspection under way, if that is all that was asked for; else by the next.
    pub(crate) fn wait_for_current(&mut self, reply: Reply) {
        let replies = if self.pending.is_empty() { &mut self.serving } else { &mut self.waiting };
        replies.push(reply);
    }

    /// Ends the rest after a failure.
    pub(crate) fn wake(&mut self) {
        self.resting = false;
    }

    /// The request to be worked on now, if there is one and none is under way. What of it `is_known` meanwhile is left out.
    pub(crate) fn begin(&mut self, is_known: impl Fn(&str, Expectation) -> bool) -> Option<Request> {
        if self.running || self.resting || self.pending.is_empty() {
            return None;
        }
        self.pending.ids.retain(|id, (expectation, _)| !is_known(id, *expectation));
        if self.pending.is_empty() {
            // All that those who wait asked for is known.
            self.waiting.drain(..).for_each(|reply| drop(reply.send(Ok(()))));
            return None;
        }
        self.running = true;
        self.serving.append(&mut self.waiting);
        Some(std::mem::take(&mut self.pending))
    }

    /// An inspection ended: who waited for it is answered. After a failure the request stands again; returns how long the
    /// pod rests.
    pub(crate) fn end(&mut self, request: Request, answer: &Result<(), CallError>) -> Option<Duration> {
        self.running = false;
        for reply in self.serving.drain(..) {
            let _ = reply.send(answer.clone());
        }
        if answer.is_ok() {
            self.failures = 0;
            return None;
        }
        self.pending.join(request);
        self.failures += 1;
        // Somebody who asked meanwhile is not kept waiting.
        self.resting = self.waiting.is_empty();
        Some(RETRY_FIRST.saturating_mul(1 << (self.failures - 1).min(5)).min(RETRY_MOST))
    }
}

#[cfg(test)]
mod tests;
