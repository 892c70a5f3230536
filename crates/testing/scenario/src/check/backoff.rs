//! A container that ended waits as long as the rule says before it is made again, and not longer (pod-lifecycle 6.1): at once, then
//! 10 s, twice as long each time up to 300 s, and anew after ten minutes without an end. One that could not be started and did not
//! end, either, is made again 10 s later.
//!
//! What makes a node forget, or lets it start a container for another reason, begins the count anew: a daemon that dies, an actor
//! that is struck, another sandbox, a changed image, an end that the node itself brought about. After these a node may know more than
//! this file, and wait for up to 300 s; as it may where a container waited while there was trouble, since each one that could not be made counts.
//! Where a sidecar before it ends meanwhile, it waits for that as well, for as long as that takes to start.

use std::collections::{BTreeMap, BTreeSet};

use fakes::runtime::Cause;

use crate::history::{Fact, History, Of, SECOND, quiet_between};

const FIRST: i64 = 10 * SECOND;
const MOST: i64 = 300 * SECOND;
const FORGOTTEN: i64 = 600 * SECOND;
/// Beyond the rule.
const SLACK: i64 = 60 * SECOND;
const FIND_BACK: i64 = 300 * SECOND;

/// What is known of one container of a pod.
#[derive(Default)]
struct Known<'a> {
    sandbox: &'a str,
    ended: Option<i64>,
    /// When it was made, while it neither runs nor has ended.
    waits_since: Option<i64>,
    /// How long it has to wait, and when that was raised.
    delay: Option<(i64, i64)>,
    /// A sidecar that it waits for has ended since it did.
    held: bool,
    /// Nothing has made the node forget or remember more, since its first attempt.
    exact: bool,
}

pub(super) fn check(history: &History) -> Vec<(i64, String)> {
    let spans = history.disturbed(FIND_BACK);
    let mut known: BTreeMap<(&str, &str), Known<'_>> = BTreeMap::new();
    // Whoever is being stopped and ends by itself meanwhile ends by the node's own decision.
    let mut stopped: BTreeSet<&str> = BTreeSet::new();
    let (mut trouble, mut found) = (false, Vec::new());
    for (at, fact) in &history.facts {
        match fact {
            Fact::Trouble => {
                trouble = true;
                known.values_mut().filter(|k| k.ended.is_some()).for_each(|k| k.exact = false);
            }
            Fact::Calm => trouble = false,
            Fact::StopAsked(of, _) => drop(stopped.insert(&of.id)),
            Fact::Made(of, _) if !of.name.is_empty() => {
                let k = known.entry((&of.uid, &of.name)).or_default();
                found.extend(judge(k, of, *at, &spans).map(|text| (*at, text)));
                let first = of.attempt == 0 && k.sandbox.is_empty();
                let exact = first || (of.attempt > 0 && k.exact && k.sandbox == of.sandbox);
                let delay = raised(k, *at, &of.sandbox);
                *k = Known { sandbox: &of.sandbox, ended: None, waits_since: Some(*at), delay, held: false, exact };
            }
            Fact::Started(of) => {
                if let Some(k) = known.get_mut(&(of.uid.as_str(), of.name.as_str())) {
                    k.waits_since = None;
                }
            }
            Fact::Ended(of, _, cause) => {
                let behind = behind_sidecar(history, of);
                let waiting = known.iter_mut().filter(|((uid, name), _)| *uid == of.uid && behind.contains(name));
                waiting.for_each(|(_, k)| k.held = true);
                if let Some(k) = known.get_mut(&(of.uid.as_str(), of.name.as_str())) {
                    k.waits_since = None;
                    if matches!(cause, Cause::Itself | Cause::NoStart) && !stopped.contains(of.id.as_str()) {
                        (k.ended, k.held) = (Some(*at), false);
                        k.exact &= !trouble;
                    } else {
                        (k.ended, k.delay, k.exact) = (None, None, false);
                    }
                }
            }
            Fact::Struck(_) | Fact::Rebooted | Fact::ClockSet | Fact::Down => known.clear(),
            Fact::Edited(pod) => {
                let uids = history.facts.iter().filter_map(|(_, f)| match f {
                    Fact::Made(of, _) if of.pod == *pod => Some(of.uid.as_str()),
                    _ => None,
                });
                let uids: Vec<&str> = uids.collect();
                known.retain(|(uid, _), _| !uids.contains(uid));
            }
            _ => {}
        }
    }
    found
}

/// Containers that wait for this one, if it is a sidecar.
fn behind_sidecar<'a>(history: &'a History, of: &Of) -> BTreeSet<&'a str> {
    let parts = history.shapes.get(&of.pod).into_iter().flat_map(|s| s.init.iter().chain(&s.containers));
    let mut from = parts.skip_while(|part| part.name != of.name);
    if from.next().is_none_or(|part| !part.sidecar) {
        return BTreeSet::new();
    }
    from.map(|part| part.name.as_str()).collect()
}

/// The delay in force for an end at `ended`.
fn in_force(known: &Known<'_>, ended: i64) -> Option<i64> {
    known.delay.filter(|(_, raised)| ended - raised <= FORGOTTEN).map(|(delay, _)| delay)
}

fn raised(known: &Known<'_>, at: i64, sandbox: &str) -> Option<(i64, i64)> {
    let ended = known.ended.filter(|_| known.sandbox == sandbox)?;
    let delay = in_force(known, ended).map_or(FIRST, |delay| (delay * 2).min(MOST));
    Some((delay, at))
}

fn judge(known: &Known<'_>, of: &Of, at: i64, spans: &[(i64, i64)]) -> Option<String> {
    let since = known.waits_since.filter(|since| known.sandbox == of.sandbox && at - since < FIRST);
    if let Some(since) = since {
        let text = "after one that could not be started";
        return Some(format!("{} is made {} s {text}, not {} s", of.label(), (at - since) / SECOND, FIRST / SECOND));
    }
    let ended = known.ended.filter(|_| known.sandbox == of.sandbox)?;
    let (waited, least) = (at - ended, in_force(known, ended).unwrap_or(0));
    if waited < least {
        return Some(format!("{} is made {} s after an end, not {} s", of.label(), waited / SECOND, least / SECOND));
    }
    let (quiet, most) = (quiet_between(spans, ended, at), if known.exact { least } else { MOST });
    (quiet > most + SLACK && !known.held)
        .then(|| format!("{} is made {} s after an end, {} s were to wait", of.label(), quiet / SECOND, most / SECOND))
}

#[cfg(test)]
mod tests {
    use fakes::runtime::Cause;

    use crate::check::made::{ended, history, of, part, shape, wanted};
    use crate::history::{Fact, Of};
    use crate::shape::{Part, Shape};

    fn made(attempt: u32) -> Fact {
        Fact::Made(of("a", attempt), true)
    }

    #[test]
    fn the_second_restart_waits_ten_seconds_and_the_third_twenty() {
        let with = |second: i64, third: i64| {
            let facts = [
                (0, made(0)),
                (1, ended(0, 1)),
                (1, made(1)),
                (2, ended(1, 1)),
                (second, made(2)),
                (50, ended(2, 1)),
                (third, made(3)),
            ];
            super::check(&history(facts)).len()
        };
        assert_eq!(with(12, 70), 0);
        assert_eq!(with(11, 70), 1, "too early");
        assert_eq!(with(12, 69), 1, "too early");
        assert_eq!(with(12, 131), 1, "too late");
    }

    #[test]
    fn a_node_may_remember_more_where_it_was_in_trouble_or_its_pod_has_another_sandbox() {
        let third = |between: &[Fact], last: Fact| {
            let before = [(0, made(0)), (1, ended(0, 1)), (1, made(1)), (2, ended(1, 1))];
            let between = between.iter().map(|fact| (3, fact.clone()));
            super::check(&history(before.into_iter().chain(between).chain([(400, last)]))).len()
        };
        assert_eq!(third(&[], made(2)), 1, "too late");
        assert_eq!(third(&[Fact::Trouble, Fact::Calm], made(2)), 0);
        let while_it_ran = [(0, made(0)), (1, Fact::Trouble), (2, Fact::Calm), (400, ended(0, 1)), (480, made(1))];
        assert_eq!(super::check(&history(while_it_ran)).len(), 1, "nothing was made meanwhile");
        let elsewhere = |attempt| Of { sandbox: "s2".to_owned(), ..of("a", attempt) };
        let moved = [Fact::Made(elsewhere(2), true), Fact::Ended(elsewhere(2), 1, Cause::Itself)];
        assert_eq!(third(&moved, Fact::Made(elsewhere(3), true)), 1, "beyond the longest");
        let [made_there, ended_there] = moved;
        let within_300 =
            [(0, made(0)), (1, ended(0, 1)), (1, made_there), (2, ended_there), (302, Fact::Made(elsewhere(3), true))];
        assert_eq!(super::check(&history(within_300)).len(), 0);
    }

    /// Found as seed 2194: its startup probe failed again and again.
    #[test]
    fn a_container_waits_for_a_sidecar_before_it() {
        let with = |is_sidecar, of_side: &[Fact]| {
            let side = Part { sidecar: is_sidecar, ..part("side") };
            let wanted = (0, wanted(Shape { init: vec![side], ..shape() }));
            let first = [wanted, (0, made(0)), (1, ended(0, 1))];
            let between = of_side.iter().map(|fact| (2, fact.clone()));
            super::check(&history(first.into_iter().chain(between).chain([(400, made(1))]))).len()
        };
        let killed = Fact::Ended(of("side", 0), 137, Cause::Kill);
        assert_eq!((with(true, &[]), with(true, std::slice::from_ref(&killed))), (1, 0));
        assert_eq!(with(false, &[killed]), 1, "no sidecar");
        let other = Fact::Ended(of("b", 0), 137, Cause::Kill);
        assert_eq!(with(true, &[other]), 1);
    }

    #[test]
    fn what_could_not_be_started_is_not_made_again_at_once() {
        let with = |second: i64| {
            let facts = [(0, made(0)), (second, made(1)), (second, Fact::Started(of("a", 1)))];
            super::check(&history(facts)).len()
        };
        assert_eq!((with(9), with(10)), (1, 0));
        let started = [(0, made(0)), (1, Fact::Started(of("a", 0))), (2, ended(0, 1)), (3, made(1))];
        assert!(super::check(&history(started)).is_empty());
    }

    #[test]
    fn a_dead_daemon_or_ten_good_minutes_begin_anew() {
        let down = [
            (0, made(0)),
            (1, ended(0, 1)),
            (1, made(1)),
            (2, Fact::Down),
            (3, ended(1, 1)),
            (4, Fact::Up),
            (5, made(2)),
        ];
        assert!(super::check(&history(down)).is_empty());
        let killed = Fact::Ended(of("a", 1), 137, Cause::Kill);
        let probed = [(0, made(0)), (1, ended(0, 1)), (1, made(1)), (2, killed), (2, made(2))];
        assert!(super::check(&history(probed)).is_empty());
        let stopped = Fact::StopAsked(of("a", 1), 30);
        let meanwhile = [(0, made(0)), (1, ended(0, 1)), (1, made(1)), (2, stopped), (3, ended(1, 1)), (4, made(2))];
        assert!(super::check(&history(meanwhile)).is_empty());
        let good = [(0, made(0)), (1, ended(0, 1)), (1, made(1)), (700, ended(1, 1)), (701, made(2))];
        assert!(super::check(&history(good)).is_empty());
    }
}
