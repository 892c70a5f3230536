//! What was seen of a node from outside, in order: what checkers judge.

use std::collections::{BTreeMap, BTreeSet};

use fakes::runtime::Cause;

use crate::shape::Shape;

/// One second, in the unit of times here.
pub(crate) const SECOND: i64 = 1_000_000_000;

/// What strikes when the machine is shut down.
pub(crate) const SHUTDOWN: &str = "shutdown";

/// What strikes when the runtime starts anew without some of its containers.
pub(crate) const FORGOTTEN: &str = "containers that the runtime has lost";

/// All that was seen.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// Nanoseconds since the node started, and what.
    pub facts: Vec<(i64, Fact)>,
    /// Pods by their full name, as they were wanted last.
    pub shapes: BTreeMap<String, Shape>,
    /// When the node had to be at rest; 0: it is not over.
    pub end: i64,
}

/// Something that was seen.
#[derive(Clone, Debug, PartialEq)]
pub enum Fact {
    /// From now on a pod is wanted, in this shape.
    Wanted(String, Box<Shape>),
    /// From now on it is not, and may take so many seconds to end; `None`: as long as its specification says.
    Unwanted(String, Option<i64>),
    /// Something was done to it that an untouched pod does not see: a container was ended, probes fail.
    Touched(String),
    /// No source has a pod any more, which may still run: its manifest is gone, or another one is in its place, or it was deleted by force.
    SourceGone(String),
    /// Its specification was changed, so that containers start anew.
    Edited(String),
    /// A container or sandbox was made. `cgroup`: that which it belongs in was there.
    Made(Of, bool),
    /// A container runs.
    Started(Of),
    /// The runtime was asked to stop a container, with this grace in seconds.
    StopAsked(Of, i64),
    /// A container ended with this code, or a sandbox is no longer ready.
    Ended(Of, i32, Cause),
    /// It is gone from the runtime.
    Removed(Of),
    /// A container runs without a volume that it was started with.
    VolumeLost(Of, String),
    /// The API server holds a new status of a pod.
    Status(Told),
    /// The API server holds a pod no more.
    Gone(String, String),
    /// The API server was told of an event of a pod, once more or for the first time, with this reason.
    Event(String, String),
    /// The daemon has decided that a pod may run: UID, and its full name.
    Admitted(String, String),
    /// The node does not run a pod, by its own decision: it is refused, evicted, preempted.
    Refused(String),
    /// A row of the status board: UID and version.
    Version(String, u64),
    /// The daemon starts.
    Up,
    /// The daemon is dead.
    Down,
    /// An actor was killed or struck, or a manager gave its place to another.
    Struck(String),
    /// Trouble begins that may delay or spoil what the node does.
    Trouble,
    /// All trouble is over.
    Calm,
    /// The machine started anew.
    Rebooted,
    /// Its clock was set.
    ClockSet,
    /// The API server was restored from a backup.
    Restored,
    /// Of the end: what is left where nothing should be, in words.
    Left(String),
}

/// A sandbox or a container.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Of {
    /// UID of the pod.
    pub uid: String,
    /// Full name of the pod.
    pub pod: String,
    /// Id of the sandbox.
    pub sandbox: String,
    /// Name of the container; empty: the sandbox itself.
    pub name: String,
    /// Id of the container.
    pub id: String,
    /// Attempt of the container.
    pub attempt: u32,
}

impl Of {
    /// Whether its pod is static: the UID of such a pod is a hash, of 32 digits without dashes.
    #[must_use]
    pub fn is_static(&self) -> bool {
        self.uid.len() == 32 && self.uid.bytes().all(|digit| digit.is_ascii_hexdigit())
    }
}

/// Pods that the node does not run, by its own decision: refused, evicted, preempted.
#[derive(Debug, Default)]
pub(crate) struct Refusals<'a>(BTreeSet<&'a str>);

impl<'a> Refusals<'a> {
    /// The next fact, whatever it is of.
    pub(crate) fn note(&mut self, fact: &'a Fact) {
        match fact {
            Fact::Refused(pod) => drop(self.0.insert(pod)),
            // A static pod of that name is another one then, and in its next life a daemon decides anew.
            Fact::Wanted(pod, _) => drop(self.0.remove(pod.as_str())),
            Fact::Up => self.0.clear(),
            _ => {}
        }
    }

    pub(crate) fn has(&self, pod: &str) -> bool {
        self.0.contains(pod)
    }
}

/// A status that the API server holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Told {
    /// Full name of the pod.
    pub pod: String,
    /// UID of the API object: of a mirror it is not that of the static pod.
    pub uid: String,
    /// It is the mirror of a static pod.
    pub mirror: bool,
    /// Phase.
    pub phase: String,
    /// Reason.
    pub reason: String,
    /// Its condition `Ready`.
    pub ready: bool,
    /// It is being deleted.
    pub deleting: bool,
    /// Its containers, of whatever kind.
    pub containers: Vec<ToldContainer>,
}

/// A container as the API server has it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToldContainer {
    /// Name.
    pub name: String,
    /// Id of the instance that runs, if one does.
    pub running: Option<String>,
    /// Id and exit code of the one that ended, in its state.
    pub ended: Option<(String, i32)>,
    /// As `ended`, in its last state.
    pub last: Option<(String, i32)>,
    /// Restart count.
    pub restarts: i32,
    /// Ready.
    pub ready: bool,
}

impl Fact {
    /// The full name of the pod that it is about.
    #[must_use]
    pub fn pod(&self) -> Option<&str> {
        match self {
            Self::Wanted(pod, _)
            | Self::Unwanted(pod, _)
            | Self::Touched(pod)
            | Self::Edited(pod)
            | Self::Refused(pod)
            | Self::Gone(pod, _) => Some(pod),
            Self::Made(of, _)
            | Self::Started(of)
            | Self::StopAsked(of, _)
            | Self::Ended(of, ..)
            | Self::Removed(of)
            | Self::VolumeLost(of, _) => Some(&of.pod),
            Self::Status(told) => Some(&told.pod),
            _ => None,
        }
    }
}

impl Of {
    /// `pod/container` for people.
    #[must_use]
    pub fn label(&self) -> String {
        format!("{}/{} {}", self.pod, self.name, short(&self.id))
    }
}

/// An id without its zeros.
#[must_use]
pub(crate) fn short(id: &str) -> String {
    let start = id.chars().next().unwrap_or('?');
    format!("{start}{}", id.trim_start_matches(['5', 'c', '0']))
}

impl History {
    /// Spans in which something disturbs the node: trouble, a daemon that is down, and as long afterwards as the node may take to
    /// find back. Sorted, without overlap.
    #[must_use]
    pub fn disturbed(&self, find_back: i64) -> Vec<(i64, i64)> {
        let mut spans: Vec<(i64, i64)> = Vec::new();
        let (mut trouble, mut down) = (None, None);
        for (at, fact) in &self.facts {
            match fact {
                Fact::Trouble => trouble = trouble.or(Some(*at)),
                Fact::Down => down = down.or(Some(*at)),
                Fact::Calm => spans.extend(trouble.take().map(|from| (from, at + find_back))),
                Fact::Up => spans.extend(down.take().map(|from| (from, at + find_back))),
                Fact::Struck(_) | Fact::Rebooted | Fact::ClockSet => spans.push((*at, at + find_back)),
                _ => {}
            }
        }
        spans.extend([trouble, down].into_iter().flatten().map(|from| (from, i64::MAX)));
        spans.sort_unstable();
        let mut joined: Vec<(i64, i64)> = Vec::new();
        for (from, to) in spans {
            match joined.last_mut() {
                Some(last) if from <= last.1 => last.1 = last.1.max(to),
                _ => joined.push((from, to)),
            }
        }
        joined
    }

    /// The last status of each pod that the API server still holds, by full name.
    #[must_use]
    pub fn last_told(&self) -> BTreeMap<&str, &Told> {
        let mut told = BTreeMap::new();
        for (_, fact) in &self.facts {
            match fact {
                Fact::Status(status) => drop(told.insert(status.pod.as_str(), status)),
                Fact::Gone(pod, _) => drop(told.remove(pod.as_str())),
                _ => {}
            }
        }
        told
    }

    /// Pods that are wanted at the end, by full name.
    #[must_use]
    pub fn wanted(&self) -> BTreeMap<&str, &Shape> {
        let mut wanted: BTreeMap<&str, &Shape> = BTreeMap::new();
        for (_, fact) in &self.facts {
            match fact {
                Fact::Wanted(pod, shape) => drop(wanted.insert(pod, shape)),
                Fact::Unwanted(pod, _) => drop(wanted.remove(pod.as_str())),
                _ => {}
            }
        }
        wanted
    }
}

/// Of a time, how much of the span from `from` to `to` lies outside of all `spans`.
#[must_use]
pub(crate) fn quiet_between(spans: &[(i64, i64)], from: i64, to: i64) -> i64 {
    let covered: i64 = spans.iter().map(|(a, b)| (to.min(*b) - from.max(*a)).max(0)).sum();
    (to - from - covered).max(0)
}

/// Whether a time lies in one of the spans.
#[must_use]
pub(crate) fn is_within(spans: &[(i64, i64)], at: i64) -> bool {
    spans.iter().any(|(a, b)| *a <= at && at < *b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_of_trouble_join_and_end_some_time_after_it() {
        let facts = [
            (10, Fact::Trouble),
            (20, Fact::Calm),
            (22, Fact::Down),
            (30, Fact::Up),
            (90, Fact::Struck("x".to_owned())),
            (200, Fact::Down),
        ];
        let history = History { facts: facts.to_vec(), ..History::default() };
        assert_eq!(history.disturbed(5), [(10, 35), (90, 95), (200, i64::MAX)]);
        let spans = history.disturbed(5);
        assert_eq!(quiet_between(&spans, 0, 100), 70);
        assert_eq!(quiet_between(&spans, 12, 20), 0);
        assert!(is_within(&spans, 34) && !is_within(&spans, 35));
    }
}
