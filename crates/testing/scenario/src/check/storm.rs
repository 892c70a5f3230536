//! Nobody is flooded: of one pod only so many statuses, events, objects and containers come within ten minutes, whatever is wrong.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::history::{Fact, History, SECOND};

const WINDOW: i64 = 600 * SECOND;
/// Statuses: five for each start of three containers, of which no more than one each 10 s is right.
const STATUSES: usize = 400;
/// Events: 25 at once, then one each five minutes: what a kubelet lets through of one object.
const EVENTS: usize = 40;
/// Objects of one name: a mirror comes again when somebody deletes it or its manifest changes.
const OBJECTS: usize = 30;
/// Containers and sandboxes that are made.
const MADE: usize = 200;

pub(super) fn check(history: &History) -> Vec<(i64, String)> {
    let mut recent: BTreeMap<(&str, &'static str), VecDeque<i64>> = BTreeMap::new();
    let mut objects: BTreeSet<&str> = BTreeSet::new();
    let mut told: BTreeSet<(&str, &str)> = BTreeSet::new();
    let mut found = Vec::new();
    for (at, fact) in &history.facts {
        let (pod, what, most) = match fact {
            // Who counts them begins anew.
            Fact::Down => {
                recent.retain(|(_, what), _| *what != "events");
                continue;
            }
            // It is another pod, of the same name.
            Fact::Edited(pod) | Fact::Wanted(pod, _) => {
                recent.remove(&(pod.as_str(), "events"));
                continue;
            }
            Fact::Status(status) if objects.insert(&status.uid) => (status.pod.as_str(), "objects", OBJECTS),
            Fact::Status(status) => (status.pod.as_str(), "statuses", STATUSES),
            Fact::Event(pod, _) => (pod.as_str(), "events", EVENTS),
            Fact::Made(of, _) => (of.pod.as_str(), "containers", MADE),
            _ => continue,
        };
        let times = recent.entry((pod, what)).or_default();
        times.push_back(*at);
        while times.front().is_some_and(|first| first + WINDOW < *at) {
            times.pop_front();
        }
        if times.len() > most && told.insert((pod, what)) {
            found.push((*at, format!("{pod} has more than {most} {what} within ten minutes")));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use crate::check::made::{of, running, told};
    use crate::history::{Fact, History, SECOND};

    fn each(seconds: i64, fact: impl Fn(u32) -> Fact) -> usize {
        let facts = (0..1000_u32).map(|n| (i64::from(n) * seconds * SECOND, fact(n))).collect();
        super::check(&History { facts, ..History::default() }).len()
    }

    #[test]
    fn what_comes_again_and_again_is_found_once() {
        let status = |_| told("Running", running(0));
        assert_eq!((each(1, status), each(3, status)), (1, 0));
        let made = |n| Fact::Made(of("a", n), true);
        assert_eq!((each(2, made), each(5, made)), (1, 0));
        let event = |_| Fact::Event("p-sim".to_owned(), "BackOff".to_owned());
        assert_eq!((each(10, event), each(30, event)), (1, 0));
        let object = |n: u32| {
            let Fact::Status(status) = told("Running", running(0)) else { unreachable!("it is a status") };
            Fact::Status(crate::history::Told { uid: n.to_string(), ..status })
        };
        assert_eq!((each(15, object), each(30, object)), (1, 0));
    }
}
