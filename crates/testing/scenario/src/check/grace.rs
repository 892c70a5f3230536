//! Grace is kept: who is told to end has the time that its pod or its deletion gives, and nobody is killed who was not told.
//!
//! Not judged: pods that the node itself ends (eviction, preemption), and what happens to unwanted pods in and after trouble: of
//! a pod that only the runtime knows nobody knows the grace.

use std::collections::{BTreeMap, BTreeSet};

use fakes::runtime::Cause;

use crate::history::{Fact, History, Of, SECOND, is_within};

const FIND_BACK: i64 = 300 * SECOND;
/// A hook before the stop, and how times are rounded.
const LESS: i64 = 3;

pub(super) fn check(history: &History) -> Vec<(i64, String)> {
    let spans = history.disturbed(FIND_BACK);
    let by_node = |(_, fact): &'_ (i64, Fact)| match fact {
        Fact::Status(told) if !told.reason.is_empty() => Some(told.pod.clone()),
        _ => None,
    };
    let ended_by_node: BTreeSet<String> = history.facts.iter().filter_map(by_node).collect();
    let mut grace: BTreeMap<&str, i64> = BTreeMap::new();
    let mut asked: BTreeSet<&str> = BTreeSet::new();
    // Sidecars have what is left of it when their turn comes.
    let mut first: BTreeMap<&str, i64> = BTreeMap::new();
    let mut found = Vec::new();
    for (at, fact) in &history.facts {
        match fact {
            Fact::Wanted(pod, shape) => drop(grace.insert(pod, shape.grace_s)),
            Fact::Unwanted(pod, given) => {
                let own = grace.entry(pod).or_insert(30);
                *own = (*own).min(given.unwrap_or(*own));
            }
            Fact::StopAsked(of, given) => {
                asked.insert(&of.id);
                let passed = (at - *first.entry(&of.sandbox).or_insert(*at)) / SECOND;
                let least = grace.get(of.pod.as_str()).copied().unwrap_or(0) - LESS - passed;
                if *given < least && is_judged(of, *at, &spans, &ended_by_node) {
                    found.push((*at, format!("{} is given {given} s to end, not {least} s", of.label())));
                }
            }
            Fact::Ended(of, _, Cause::WithSandbox | Cause::Removal)
                if !asked.contains(of.id.as_str()) && is_judged(of, *at, &spans, &ended_by_node) =>
            {
                found.push((*at, format!("{} is killed with its sandbox, and was not told to end", of.label())));
            }
            _ => {}
        }
    }
    found
}

fn is_judged(of: &Of, at: i64, spans: &[(i64, i64)], ended_by_node: &BTreeSet<String>) -> bool {
    !is_within(spans, at) && !ended_by_node.contains(of.pod.as_str())
}

#[cfg(test)]
mod tests {
    use fakes::runtime::Cause;

    use crate::check::made::{history, of, shape, started, wanted};
    use crate::history::Fact;

    #[test]
    fn a_stop_gives_what_the_pod_or_its_deletion_gives() {
        let stop = |given, least| {
            let facts = [
                (0, wanted(shape())),
                (1, started(0)),
                (2, Fact::Unwanted("p-sim".to_owned(), least)),
                (3, Fact::StopAsked(of("a", 0), given)),
            ];
            super::check(&history(facts)).len()
        };
        assert_eq!((stop(30, None), stop(27, None), stop(5, Some(5))), (0, 0, 0));
        assert_eq!((stop(5, None), stop(6, Some(10))), (1, 1));
    }

    #[test]
    fn nobody_is_killed_who_was_not_told_to_end() {
        let killed = |cause| {
            let end = Fact::Ended(of("a", 0), 137, cause);
            super::check(&history([(0, wanted(shape())), (1, started(0)), (2, end)])).len()
        };
        assert_eq!((killed(Cause::Itself), killed(Cause::WithSandbox), killed(Cause::Removal)), (0, 1, 1));
    }
}
