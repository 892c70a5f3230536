//! The state without the actor.

use std::collections::BTreeMap;
use std::sync::Arc;

use cgroup_values::tiers::Tiers;
use cgroup_values::{HostFacts, LimitRules};
use model::PodUid;

use super::rig::pod;
use crate::state::{Difference, State};

fn uid(s: &str) -> PodUid {
    PodUid::from(s)
}

fn found(uids: &[&str]) -> BTreeMap<PodUid, String> {
    uids.iter().map(|u| (uid(u), format!("/kubepods/pod{u}"))).collect()
}

#[test]
fn a_look_tells_what_came_and_what_went() {
    let mut state = State::default();
    state.scan_begins();
    assert_eq!(state.refresh(found(&["a", "b"])), Difference { appeared: vec![uid("a"), uid("b")], vanished: vec![] });
    state.scan_begins();
    assert_eq!(state.refresh(found(&["b", "c"])), Difference { appeared: vec![uid("c")], vanished: vec![uid("a")] });
}

#[test]
fn what_happens_during_a_look_outlives_it() {
    let mut state = State::default();
    state.refresh(found(&["old"]));
    state.scan_begins();
    state.made(&uid("new"), "/x", Arc::new(pod("new", "100m")));
    state.removed(&uid("old"));
    let difference = state.refresh(found(&["old"]));
    assert_eq!(difference, Difference::default());
    assert_eq!(state.pods.keys().cloned().collect::<Vec<_>>(), [uid("new")]);
    state.scan_begins();
    assert_eq!(state.refresh(found(&[])).vanished, [uid("new")], "the next look counts again");
}

#[test]
fn tiers_are_written_once_per_change_and_never_twice_at_a_time() {
    let (facts, rules) = (HostFacts::default(), LimitRules::standard());
    let mut state = State::default();
    let shares = |w: Option<Tiers>| w.and_then(|w| w.burstable.cpu_shares);
    assert_eq!(shares(state.tiers_to_write(&facts, &rules, false)), Some(2));
    state.made(&uid("a"), "/a", Arc::new(pod("a", "250m")));
    assert_eq!(shares(state.tiers_to_write(&facts, &rules, false)), None, "one is under way");
    assert_eq!(state.tiers_written(true), Some(false));
    assert_eq!(shares(state.tiers_to_write(&facts, &rules, false)), Some(256));
    assert_eq!(state.tiers_written(true), None);
    assert_eq!(shares(state.tiers_to_write(&facts, &rules, false)), None, "nothing changed");
    assert_eq!(shares(state.tiers_to_write(&facts, &rules, true)), Some(256), "each minute all the same");
    assert_eq!(state.tiers_written(false), None);
    assert_eq!(shares(state.tiers_to_write(&facts, &rules, false)), Some(256), "a failed write is repeated");
    assert!(state.tiers_to_write(&facts, &rules, true).is_none());
    assert!(state.tiers_to_write(&facts, &rules, false).is_none());
    assert_eq!(state.tiers_written(true), Some(true), "force is not forgotten");
}

/// Each step of each pod asks. Other rules would give other sums: so it shows whether there was another one.
#[test]
fn requests_of_all_pods_are_summed_up_when_one_changed_and_not_at_each_step() {
    let facts = HostFacts { memory_allocatable_bytes: 100 << 20, ..HostFacts::default() };
    let rules = LimitRules::standard();
    let others = LimitRules { qos_reserved_memory: Some(100), ..LimitRules::standard() };
    let mut state = State::default();
    let mut sums_anew = |change: &dyn Fn(&mut State)| {
        let by = |state: &mut State, rules: &LimitRules| {
            let values = state.tiers_to_write(&facts, rules, true).expect("it is forced");
            state.tiers_written(true);
            values
        };
        let before = by(&mut state, &rules);
        change(&mut state);
        let anew = by(&mut state, &others) != before;
        // Whatever it was, the next case begins with sums by the usual rules.
        state.made(&uid("b"), "/b", Arc::new(pod("b", "1m")));
        by(&mut state, &rules);
        anew
    };
    let a = Arc::new(pod("a", "250m"));
    let same = || a.clone();
    assert!(sums_anew(&|s| s.made(&uid("a"), "/a", same())), "it came");
    assert!(!sums_anew(&|s| s.made(&uid("a"), "/a", same())), "a step of it");
    assert!(!sums_anew(&|s| drop(s.refresh(found(&["a", "b"])))), "a look that found nothing new");
    assert!(sums_anew(&|s| s.made(&uid("a"), "/a", Arc::new(pod("a", "500m")))), "it was resized");
    assert!(sums_anew(&|s| s.removed(&uid("a"))), "it went");
    let vanishes = |s: &mut State| {
        s.scan_begins();
        s.refresh(found(&["c"]));
    };
    assert!(sums_anew(&vanishes), "it vanished");
    assert!(sums_anew(&|s| s.learn(|u| (*u == uid("c")).then(same))), "it is known again");
}

#[test]
fn specifications_that_a_restart_lost_are_looked_up() {
    let mut state = State::default();
    state.refresh(found(&["a", "b"]));
    state.learn(|u| (*u == uid("a")).then(|| Arc::new(pod("a", "500m"))));
    let written = state.tiers_to_write(&HostFacts::default(), &LimitRules::standard(), false).unwrap();
    assert_eq!(written.burstable.cpu_shares, Some(512));
}
