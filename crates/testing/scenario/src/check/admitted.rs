//! A pod is not started beside others that together request more than the node has to give.
//!
//! Counted are the pods that the daemon had let in before, in its present life, and that have a sandbox still. Not counted, as with a
//! kubelet: pods that are being stopped and that no source has (their manifest is gone or was written anew, or they were deleted by
//! force or are unknown to an API server that was restored), as it counts what its sources have told it so far (`GetActivePods`); pods of an earlier life of the daemon of which the
//! present one does not know yet, as it learns of pods one source after the other; and pods that have run to their end. Not judged is
//! a static pod whose manifest comes again while it is being stopped: nothing is decided about it a second time.

use std::collections::{BTreeMap, BTreeSet};

use crate::history::{Fact, History, Of, SECOND, is_within};
use crate::shape::{Restart, Shape};

/// Processor of the simulated machine, in thousandths of a core.
pub(crate) const ALLOCATABLE_M: u32 = 4000;
const FIND_BACK: i64 = 300 * SECOND;

#[derive(Default)]
struct Seen<'a> {
    shapes: BTreeMap<&'a str, &'a Shape>,
    /// When the daemon let a pod in, in its present life; by UID.
    admitted: BTreeMap<&'a str, i64>,
    /// Sandboxes, by id: UID and name of the pod, and what it requests.
    here: BTreeMap<&'a str, (&'a str, &'a str, u32)>,
    /// Sandboxes of pods that no source has any more, with their UIDs.
    stopping: BTreeMap<&'a str, &'a str>,
    /// Pods that came again meanwhile; by UID.
    undecided: BTreeSet<&'a str>,
    /// Containers that run, and pods that had one; by UID.
    running: BTreeMap<&'a str, BTreeSet<&'a str>>,
}

pub(super) fn check(history: &History) -> Vec<(i64, String)> {
    let (spans, mut seen, mut found) = (history.disturbed(FIND_BACK), Seen::default(), Vec::new());
    for (at, fact) in &history.facts {
        match fact {
            Fact::Wanted(pod, shape) => {
                seen.shapes.insert(pod, shape);
            }
            Fact::Admitted(uid, _) => {
                seen.admitted.insert(uid, *at);
                if seen.stopping.values().any(|stops| stops == uid) {
                    seen.undecided.insert(uid);
                }
            }
            Fact::Down => seen.admitted.clear(),
            Fact::SourceGone(pod) => {
                let gone = seen.here.extract_if(.., |_, (_, of, _)| of == pod);
                seen.stopping.extend(gone.map(|(sandbox, (uid, ..))| (sandbox, uid)));
            }
            // Of a mirror it is another UID.
            Fact::Gone(_, uid) => seen.here.retain(|_, (of, ..)| of != uid),
            Fact::Made(of, _) if of.name.is_empty() => {
                let shape = seen.shapes.get(of.pod.as_str());
                let is_critical = of.is_static() || shape.is_some_and(|s| s.priority.is_some());
                seen.here.insert(&of.sandbox, (&of.uid, &of.pod, shape.map_or(0, |s| s.cpu_m())));
                // A critical pod does not wait for ever for those that have to make room.
                let is_decided = !seen.undecided.remove(of.uid.as_str());
                if is_decided && !(is_critical && is_within(&spans, *at)) {
                    found.extend(seen.too_much(of).map(|text| (*at, text)));
                }
            }
            Fact::Started(of) => {
                seen.running.entry(&of.uid).or_default().insert(&of.id);
            }
            Fact::Ended(of, ..) | Fact::Removed(of) if of.name.is_empty() => {
                seen.here.remove(of.sandbox.as_str());
                seen.stopping.remove(of.sandbox.as_str());
            }
            Fact::Ended(of, ..) | Fact::Removed(of) => {
                if let Some(ids) = seen.running.get_mut(of.uid.as_str()) {
                    ids.remove(of.id.as_str());
                }
            }
            _ => {}
        }
    }
    found
}

impl Seen<'_> {
    fn too_much(&self, of: &Of) -> Option<String> {
        let when = *self.admitted.get(of.uid.as_str())?;
        let counts = |uid: &str, pod: &str| {
            uid == of.uid || (self.admitted.get(uid).is_some_and(|at| *at <= when) && !self.has_run_to_end(uid, pod))
        };
        let counted: BTreeMap<&str, (&str, u32)> = self
            .here
            .values()
            .filter(|(uid, pod, _)| counts(uid, pod))
            .map(|(uid, pod, size)| (*uid, (*pod, *size)))
            .collect();
        let sum: u32 = counted.values().map(|(_, size)| size).sum();
        (sum > ALLOCATABLE_M).then(|| format!("with {} pods request {sum}m: {counted:?}", of.pod))
    }

    fn has_run_to_end(&self, uid: &str, pod: &str) -> bool {
        let ends = self.shapes.get(pod).is_some_and(|shape| shape.restart != Restart::Always);
        ends && self.running.get(uid).is_some_and(BTreeSet::is_empty)
    }
}

#[cfg(test)]
mod tests {
    use fakes::runtime::Cause;

    use crate::check::made::{history, part, shape};
    use crate::history::{Fact, Of};
    use crate::shape::{Part, Shape};

    fn big(name: &str) -> Fact {
        let shape = Shape { containers: vec![Part { cpu_m: 2500, ..part("a") }], ..shape() };
        Fact::Wanted(name.to_owned(), Box::new(shape))
    }

    fn of(name: &str) -> Of {
        Of { uid: format!("u-{name}"), pod: name.to_owned(), sandbox: format!("s-{name}"), ..Of::default() }
    }

    fn admitted(name: &str) -> Fact {
        Fact::Admitted(format!("u-{name}"), name.to_owned())
    }

    fn made(name: &str) -> Fact {
        Fact::Made(of(name), true)
    }

    /// What is found when `q` is made after `between`, and `p` was before.
    fn after<const N: usize>(between: [Fact; N]) -> usize {
        let mut facts = vec![big("p"), big("q"), admitted("p"), made("p")];
        facts.extend(between);
        facts.push(made("q"));
        super::check(&history((0..).zip(facts))).len()
    }

    #[test]
    fn what_is_started_fits_beside_what_is_there() {
        assert_eq!(after([admitted("q")]), 1);
        assert_eq!(after([Fact::Ended(of("p"), 0, Cause::Term), admitted("q")]), 0);
        assert_eq!(after([admitted("q"), Fact::Ended(of("p"), 0, Cause::Term)]), 0);
        assert_eq!(after([Fact::SourceGone("p".to_owned()), admitted("q")]), 0);
        assert_eq!(after([Fact::Gone("p".to_owned(), of("p").uid), admitted("q")]), 0);
    }

    /// What is found when `p` stays, whom a pod of this UID does not wait for any longer while the runtime is in trouble.
    fn beside_what_cannot_be_stopped(uid: &str) -> usize {
        let q = Of { uid: uid.to_owned(), ..of("q") };
        let admitted_q = Fact::Admitted(q.uid.clone(), "q".to_owned());
        let facts = [big("p"), big("q"), admitted("p"), made("p"), Fact::Trouble, admitted_q, Fact::Made(q, true)];
        super::check(&history((0..).zip(facts))).len()
    }

    #[test]
    fn a_static_pod_is_critical_and_does_not_wait_for_ever() {
        assert_eq!(beside_what_cannot_be_stopped("5eed0000-0000-4000-8000-000000000010"), 1);
        assert_eq!(beside_what_cannot_be_stopped("4f769d5d3958544f2e98003c7dc5efc9"), 0);
    }

    #[test]
    fn a_manifest_that_comes_again_while_its_pod_is_stopped_is_not_decided_about() {
        let again = |is_stopping: bool| {
            let ended = || Fact::Ended(of("q"), 0, Cause::Term);
            let first = [big("q"), admitted("q"), made("q"), Fact::SourceGone("q".to_owned())];
            let other = [big("p"), admitted("p"), made("p"), big("q")];
            let then = if is_stopping { [admitted("q"), ended()] } else { [ended(), admitted("q")] };
            let facts = first.into_iter().chain(other).chain(then).chain([made("q")]);
            super::check(&history((0..).zip(facts))).len()
        };
        assert_eq!((again(true), again(false)), (0, 1));
    }

    #[test]
    fn a_daemon_counts_what_it_knows_of() {
        assert_eq!(after([Fact::Down, Fact::Up, admitted("q")]), 0, "it has not heard of p");
        assert_eq!(after([Fact::Down, Fact::Up, admitted("q"), admitted("p")]), 0, "it heard of p later");
        assert_eq!(after([Fact::Down, Fact::Up, admitted("p"), admitted("q")]), 1);
    }
}
