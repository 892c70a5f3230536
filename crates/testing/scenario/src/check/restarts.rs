//! Restart counts are right: attempts go up one by one within a sandbox, and are told. More may be told: what the runtime lost counts,
//! and the count of init containers goes on in another sandbox, where their attempts begin anew (as with a kubelet). Nothing tells of a container
//! that the runtime lost before it ran: no status, no log. It does not count.

use std::collections::{BTreeMap, BTreeSet};

use fakes::runtime::Cause;

use crate::history::{Fact, History, Of};

pub(super) fn check(history: &History) -> Vec<(i64, String)> {
    let mut newest: BTreeMap<(&str, &str), &Of> = BTreeMap::new();
    // Pods of which the runtime lost something, or which had another sandbox.
    let mut counts_on: BTreeSet<&str> = BTreeSet::new();
    let mut sandboxes: BTreeMap<&str, &str> = BTreeMap::new();
    // Containers that have run, or could not be started; and whom something from outside was just done to.
    let mut began: BTreeSet<&str> = BTreeSet::new();
    let mut touched: Option<(i64, &str)> = None;
    let mut never_ran: BTreeSet<(&str, &str)> = BTreeSet::new();
    let mut found = Vec::new();
    for (at, fact) in &history.facts {
        match fact {
            Fact::Touched(pod) => touched = Some((*at, pod)),
            Fact::Removed(of) if touched == Some((*at, &of.pod)) && !began.contains(of.id.as_str()) => {
                never_ran.insert((&of.uid, &of.name));
            }
            Fact::Started(of) => drop(began.insert(&of.id)),
            Fact::Ended(of, _, Cause::Lost) => drop(counts_on.insert(&of.uid)),
            Fact::Ended(of, ..) => drop(began.insert(&of.id)),
            Fact::Made(of, _) if of.name.is_empty() => {
                let another = sandboxes.insert(&of.uid, &of.sandbox);
                counts_on.extend(another.map(|_| of.uid.as_str()));
            }
            Fact::Made(of, _) => {
                let before = newest.insert((&of.uid, &of.name), of);
                let before = before.filter(|b| b.sandbox == of.sandbox && !counts_on.contains(of.uid.as_str()));
                let may_stay = u32::from(never_ran.remove(&(of.uid.as_str(), of.name.as_str())));
                if before.is_some_and(|b| !(b.attempt + 1 - may_stay..=b.attempt + 1).contains(&of.attempt)) {
                    found.push((*at, format!("{} is made as attempt {} after {before:?}", of.label(), of.attempt)));
                }
            }
            _ => {}
        }
    }
    if history.end > 0 {
        found.extend(told_wrong(history, &newest, &counts_on).into_iter().map(|text| (history.end, text)));
    }
    found
}

fn told_wrong(history: &History, newest: &BTreeMap<(&str, &str), &Of>, counts_on: &BTreeSet<&str>) -> Vec<String> {
    let instances: BTreeMap<&str, &Of> = newest.values().map(|of| (of.id.as_str(), *of)).collect();
    let mut found = Vec::new();
    for (pod, status) in history.last_told() {
        for c in &status.containers {
            let id = c.running.as_deref().or(c.ended.as_ref().map(|(id, _)| id.as_str()));
            let Some(of) = id.and_then(|id| instances.get(id)) else { continue };
            let (told, attempt) = (i64::from(c.restarts), i64::from(of.attempt));
            if told < attempt || (told > attempt && !counts_on.contains(of.uid.as_str())) {
                found.push(format!("{pod}/{} has {told} restarts, and is attempt {attempt}", c.name));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use fakes::runtime::Cause;

    use crate::check::made::{history, of, running, told};
    use crate::history::{Fact, ToldContainer};

    #[test]
    fn attempts_go_up_one_by_one_and_are_told() {
        let made = |n| Fact::Made(of("a", n), true);
        assert!(super::check(&history([(1, made(0)), (2, made(1)), (3, told("Running", running(1)))])).is_empty());
        assert_eq!(super::check(&history([(1, made(0)), (2, made(2))])).len(), 1);
        assert_eq!(super::check(&history([(1, made(1)), (2, made(0))])).len(), 1);
        let less = ToldContainer { restarts: 0, ..running(1) };
        assert_eq!(super::check(&history([(1, made(0)), (2, made(1)), (3, told("Running", less))])).len(), 1);
        let more = || told("Running", ToldContainer { restarts: 2, ..running(1) });
        assert_eq!(super::check(&history([(1, made(0)), (2, made(1)), (3, more())])).len(), 1);
        let lost = Fact::Ended(of("a", 1), 137, Cause::Lost);
        assert!(super::check(&history([(1, made(0)), (2, made(1)), (3, lost), (4, made(1)), (5, more())])).is_empty());
    }

    #[test]
    fn nothing_tells_of_a_container_that_was_lost_before_it_ran() {
        let made = |attempt| Fact::Made(of("a", attempt), true);
        let again_as = |between: &[Fact], attempt| {
            let facts = [&[made(0)], between, &[made(attempt)]].concat();
            super::check(&history(facts.into_iter().map(|fact| (1, fact)))).len()
        };
        let again = |between: &[Fact]| again_as(between, 0);
        let (touched, removed) = (Fact::Touched("p-sim".to_owned()), Fact::Removed(of("a", 0)));
        let lost = [touched.clone(), removed.clone()];
        assert_eq!([0, 1, 2].map(|attempt| again_as(&lost, attempt)), [0, 0, 1]);
        assert_eq!(again(std::slice::from_ref(&removed)), 1, "by the daemon itself");
        assert_eq!(again(&[Fact::Started(of("a", 0)), touched, removed]), 1, "it has run");
    }
}
