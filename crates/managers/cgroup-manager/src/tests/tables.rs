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

#[test]
fn specifications_that_a_restart_lost_are_looked_up() {
    let mut state = State::default();
    state.refresh(found(&["a", "b"]));
    state.learn(|u| (*u == uid("a")).then(|| Arc::new(pod("a", "500m"))));
    let written = state.tiers_to_write(&HostFacts::default(), &LimitRules::standard(), false).unwrap();
    assert_eq!(written.burstable.cpu_shares, Some(512));
}
