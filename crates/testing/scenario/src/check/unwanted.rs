//! No container runs that nobody wants, beyond the time that its pod has to end, and some. Time in trouble does not count.

use std::collections::BTreeMap;

use crate::history::{Fact, History, Of, SECOND, quiet_between};

/// Beyond the grace of a pod: looks at the folder, hooks, what an actor needs.
const SLACK: i64 = 90 * SECOND;
/// What a node may take to find back after trouble: an actor's back-off, a deadline of the runtime (two minutes), a full round.
const FIND_BACK: i64 = 300 * SECOND;

pub(super) fn check(history: &History) -> Vec<(i64, String)> {
    let spans = history.disturbed(FIND_BACK);
    let mut since: BTreeMap<&str, (i64, i64)> = BTreeMap::new();
    let mut running: BTreeMap<&str, (&Of, i64)> = BTreeMap::new();
    let mut found = Vec::new();
    let mut judge = |of: &Of, started: i64, until: i64, since: &BTreeMap<&str, (i64, i64)>| {
        let Some((from, grace)) = since.get(of.pod.as_str()) else { return };
        let quiet = quiet_between(&spans, started.max(*from), until);
        if quiet > grace + SLACK {
            found.push((until, format!("{} ran for {} s unwanted", of.label(), quiet / SECOND)));
        }
    };
    for (at, fact) in &history.facts {
        match fact {
            Fact::Unwanted(pod, grace) => {
                let own = history.shapes.get(pod).map_or(30, |shape| shape.grace_s);
                let (from, before) = since.get(pod.as_str()).copied().unwrap_or((*at, i64::MAX));
                since.insert(pod, (from, before.min(grace.unwrap_or(own) * SECOND)));
            }
            Fact::Wanted(pod, _) => drop(since.remove(pod.as_str())),
            Fact::Started(of) => drop(running.insert(&of.id, (of, *at))),
            Fact::Ended(of, ..) | Fact::Removed(of) => {
                if let Some((of, started)) = running.remove(of.id.as_str()) {
                    judge(of, started, *at, &since);
                }
            }
            _ => {}
        }
    }
    for (of, started) in running.values() {
        judge(of, *started, history.end, &since);
    }
    found
}

#[cfg(test)]
mod tests {
    use crate::check::made::{ended, history, shape, started, unwanted, wanted};
    use crate::history::Fact;

    #[test]
    fn what_nobody_wants_ends_in_its_grace_but_for_time_in_trouble() {
        let fine = history([(0, wanted(shape())), (1, started(0)), (9, unwanted()), (60, ended(0, 0))]);
        assert!(super::check(&fine).is_empty());
        let late = history([(0, wanted(shape())), (1, started(0)), (9, unwanted()), (200, ended(0, 0))]);
        assert_eq!(super::check(&late).len(), 1);
        let never = history([(0, wanted(shape())), (1, started(0)), (9, unwanted())]);
        assert_eq!(super::check(&never).len(), 1);
        let trouble = [
            (0, wanted(shape())),
            (1, started(0)),
            (9, unwanted()),
            (10, Fact::Down),
            (100, Fact::Up),
            (200, ended(0, 0)),
        ];
        assert!(super::check(&history(trouble)).is_empty());
    }
}
