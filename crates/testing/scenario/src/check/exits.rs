//! No exit code is lost: of each container that ended by itself while its pod was wanted, a status says how.
//!
//! Of two ends that follow each other while nobody can be told only the last one is in the status, as with a kubelet; ends in
//! and just after trouble are therefore judged only when they are the last ones of their container. What the runtime lost before it could be
//! told nobody can tell.

use std::collections::{BTreeMap, BTreeSet};

use fakes::runtime::Cause;

use crate::history::{FORGOTTEN, Fact, History, Of, SECOND, is_within};

/// How long the word of an end takes to the API server, at most, when nothing disturbs it.
const TOLD: i64 = 60 * SECOND;
const FIND_BACK: i64 = 300 * SECOND;

pub(super) fn check(history: &History) -> Vec<(i64, String)> {
    let spans = history.disturbed(FIND_BACK);
    let mut told: BTreeSet<(&str, i32)> = BTreeSet::new();
    let mut gone_at: BTreeMap<&str, i64> = BTreeMap::new();
    let mut ends: Vec<(i64, &Of, i32)> = Vec::new();
    let mut last: BTreeMap<(&str, &str), &str> = BTreeMap::new();
    let mut wanted_at: BTreeMap<&str, i64> = BTreeMap::new();
    let (mut forgets_at, mut forgotten) = (None, BTreeMap::new());
    for (at, fact) in &history.facts {
        match fact {
            Fact::Ended(of, code, Cause::Itself) if !of.name.is_empty() => {
                ends.push((*at, of, *code));
                last.insert((&of.uid, &of.name), &of.id);
            }
            Fact::Wanted(pod, _) => drop(wanted_at.insert(pod, *at)),
            Fact::Struck(what) if what == FORGOTTEN => forgets_at = Some(*at),
            Fact::Removed(of) if forgets_at == Some(*at) => drop(forgotten.insert(of.id.as_str(), *at)),
            Fact::Ended(of, ..) => drop(last.insert((&of.uid, &of.name), &of.id)),
            Fact::Status(status) => {
                for c in &status.containers {
                    told.extend(c.ended.iter().chain(&c.last).map(|(id, code)| (id.as_str(), *code)));
                }
            }
            Fact::Gone(pod, _) | Fact::Unwanted(pod, _) => drop(gone_at.entry(pod).or_insert(*at)),
            _ => {}
        }
    }
    let is_lost = |(at, of, code): &(i64, &Of, i32)| {
        let alone = gone_at.get(of.pod.as_str()).is_none_or(|gone| *gone > at + TOLD);
        let judged = !is_within(&spans, *at) && !is_within(&spans, at + TOLD);
        let is_last = last.get(&(of.uid.as_str(), of.name.as_str())) == Some(&of.id.as_str());
        // Of a manifest that is written anew the former pod may have no mirror any more.
        let is_same = wanted_at.get(of.pod.as_str()).is_none_or(|wanted| wanted <= at);
        let is_over = at + TOLD < history.end && !gone_at.contains_key(of.pod.as_str()) && is_same;
        let could_be_told = forgotten.get(of.id.as_str()).is_none_or(|lost| *lost > at + TOLD);
        ((judged && alone) || (is_last && is_over)) && could_be_told && !told.contains(&(of.id.as_str(), *code))
    };
    let text = |(at, of, code): (i64, &Of, i32)| (at, format!("no status says that {} ended with {code}", of.label()));
    ends.into_iter().filter(is_lost).map(text).collect()
}

#[cfg(test)]
mod tests {
    use crate::check::made::{ended, history, of, running, shape, started, told, unwanted, wanted};
    use crate::history::{FORGOTTEN, Fact, ToldContainer};

    fn after(code: i32) -> Fact {
        told("Running", ToldContainer { last: Some(("a0".to_owned(), code)), ..running(1) })
    }

    #[test]
    fn each_end_is_told() {
        let begin = || [(0, wanted(shape())), (1, started(0)), (9, ended(0, 3)), (10, after(3))];
        assert!(super::check(&history(begin())).is_empty());
        let mut wrong = begin();
        wrong[3] = (10, after(4));
        assert_eq!(super::check(&history(wrong)).len(), 1);
        let mut gone = begin();
        gone[3] = (10, unwanted());
        assert!(super::check(&history(gone)).is_empty());
    }

    #[test]
    fn an_end_that_the_runtime_forgets_at_once_need_not_be_told() {
        let with = |removed: i64, forgets: bool| {
            let what = if forgets { FORGOTTEN } else { "something else" };
            let facts = [(0, wanted(shape())), (1, started(0)), (9, ended(0, 3))];
            let after = [(removed, Fact::Struck(what.to_owned())), (removed, Fact::Removed(of("a", 0)))];
            super::check(&history(facts.into_iter().chain(after))).len()
        };
        assert_eq!((with(10, true), with(10, false), with(90, true)), (0, 1, 1));
    }

    #[test]
    fn an_end_in_trouble_of_a_manifest_that_is_written_anew_need_not_be_told() {
        let with = |last: Fact| {
            super::check(&history([(0, wanted(shape())), (1, Fact::Trouble), (9, ended(0, 3)), (10, last)])).len()
        };
        assert_eq!((with(wanted(shape())), with(Fact::Trouble)), (0, 1));
    }

    #[test]
    fn an_end_in_trouble_is_told_unless_another_one_follows() {
        let first = history([(0, Fact::Down), (5, ended(0, 3)), (6, Fact::Up), (7, ended(1, 4)), (8, after(4))]);
        assert_eq!(super::check(&first).len(), 1, "a1 is the last one, and nobody says how it ended");
        let last = ToldContainer { last: Some(("a1".to_owned(), 4)), ..running(2) };
        let fine = [(0, Fact::Down), (5, ended(0, 3)), (6, Fact::Up), (7, ended(1, 4)), (8, told("Running", last))];
        assert!(super::check(&history(fine)).is_empty());
    }
}
