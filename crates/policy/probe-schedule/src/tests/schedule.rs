use std::time::Duration;

use proptest::prelude::*;

use model::Timestamp;

use crate::First::{AtOnce, AtPlace, GoesOn};
use crate::{Schedule, first, until_place};

fn s(n: u64) -> Duration {
    Duration::from_secs(n)
}

const NO_WAIT: Duration = Duration::ZERO;

#[test]
fn a_probe_ticks_at_once_and_then_once_per_period() {
    let mut x = Schedule::default();
    x.insert("a", s(100), AtOnce, NO_WAIT, s(10));
    assert_eq!(x.next_due(), Some(s(100)));
    assert_eq!(x.pop_due(s(100)), ["a"]);
    assert_eq!(x.pop_due(s(109)), Vec::<&str>::new());
    assert_eq!(x.pop_due(s(110)), ["a"]);
    assert_eq!(x.next_due(), Some(s(120)));
}

#[test]
fn first_ticks_are_spread_while_the_daemon_is_young_and_after_a_change_8_1() {
    let rows = [
        ("younger than a period", s(9), false, AtPlace),
        ("younger, goes on", s(9), true, GoesOn),
        ("exactly a period", s(10), false, AtOnce),
        ("older", s(11), false, AtOnce),
        ("older, goes on", s(11), true, GoesOn),
    ];
    for (name, age, goes_on, want) in rows {
        assert_eq!(first(age, s(10), goes_on), want, "{name}");
    }
    let mut x = Schedule::default();
    x.insert("a", s(100), AtPlace, s(5), s(20));
    assert_eq!(x.next_due(), Some(s(105)));
}

#[test]
fn who_takes_over_goes_on_in_step() {
    let (period, called) = (s(10), "uid/app/Readiness");
    let at = |seconds: u64| Timestamp::from_secs(1_800_000_000 + i64::try_from(seconds).unwrap());
    let until = until_place(called, at(0), period);
    assert!(until < period);
    for later in [1, 7, 10, 12_345] {
        // Both are after the same number of whole periods.
        let place = s(later) + until_place(called, at(later), period);
        assert_eq!((place.as_nanos() - until.as_nanos()) % period.as_nanos(), 0, "{later}");
    }
    assert_eq!(
        until_place(called, Timestamp(-5), period),
        until_place(called, Timestamp(0), period),
        "before all time"
    );
}

#[test]
fn places_of_many_probes_are_spread_over_the_period() {
    let mut at = [0_u32; 10];
    for n in 0..200 {
        let called = format!("5eed0000-0000-4000-8000-{n:012x}/c0/Readiness");
        let until = until_place(&called, Timestamp(0), s(10));
        at[usize::try_from(until.as_secs()).unwrap()] += 1;
    }
    assert!(at.iter().all(|n| (8..=36).contains(n)), "{at:?}");
}

#[test]
fn what_goes_on_ticks_within_half_a_period_and_then_at_its_place() {
    let table = [(s(3), [103, 113, 123]), (s(5), [100, 105, 115]), (s(9), [104, 109, 119])];
    for (until, want) in table {
        let mut x = Schedule::default();
        x.insert("a", s(100), GoesOn, until, s(10));
        let ticks = want.map(|_| {
            let due = x.next_due().unwrap();
            assert_eq!(x.pop_due(due), ["a"]);
            due.as_secs()
        });
        assert_eq!(ticks, want, "{until:?}");
    }
}

#[test]
fn missed_periods_are_not_replayed_and_the_phase_stays() {
    let mut x = Schedule::default();
    x.insert("a", s(0), AtOnce, NO_WAIT, s(10));
    assert_eq!(x.pop_due(s(0)), ["a"]);
    assert_eq!(x.pop_due(s(47)), ["a"]);
    assert_eq!(x.next_due(), Some(s(50)));
}

#[test]
fn a_tick_during_a_run_is_made_up_for_once() {
    let mut x = Schedule::default();
    x.insert("a", s(0), AtOnce, NO_WAIT, s(1));
    assert_eq!(x.pop_due(s(0)), ["a"]);
    x.begin(&"a");
    assert_eq!(x.pop_due(s(1)), Vec::<&str>::new());
    assert_eq!(x.pop_due(s(2)), Vec::<&str>::new());
    assert!(x.end(&"a"));
    x.begin(&"a");
    assert!(!x.end(&"a"), "once only");
    assert_eq!(x.pop_due(s(3)), ["a"], "the phase stays");
}

#[test]
fn a_trigger_counts_the_period_anew() {
    let mut x = Schedule::default();
    x.insert("a", s(0), AtOnce, NO_WAIT, s(10));
    x.pop_due(s(0));
    x.trigger(&"a", s(3));
    assert_eq!(x.pop_due(s(3)), ["a"]);
    assert_eq!(x.next_due(), Some(s(13)));
    x.begin(&"a");
    x.trigger(&"a", s(5));
    assert_eq!(x.next_due(), Some(s(13)), "not while it runs");
}

#[test]
fn a_hastened_tick_never_comes_later() {
    let mut x = Schedule::default();
    x.insert("a", s(0), AtOnce, NO_WAIT, s(10));
    x.pop_due(s(0));
    x.hasten(&"a", s(1));
    assert_eq!(x.next_due(), Some(s(1)));
    x.hasten(&"a", s(5));
    assert_eq!(x.pop_due(s(1)), ["a"]);
    assert_eq!(x.next_due(), Some(s(11)));
    x.hasten(&"b", s(1));
}

#[test]
fn a_removed_probe_is_gone() {
    let mut x = Schedule::default();
    x.insert("a", s(0), AtOnce, NO_WAIT, s(1));
    x.begin(&"a");
    x.remove(&"a");
    assert!(x.is_empty() && x.next_due().is_none() && !x.contains(&"a"));
    assert!(!x.end(&"a"));
    x.trigger(&"a", s(1));
    assert_eq!(x.pop_due(s(9)), Vec::<&str>::new());
}

#[test]
fn the_earliest_comes_first() {
    let mut x = Schedule::default();
    for (key, at) in [("c", 3), ("a", 5), ("b", 1)] {
        x.insert(key, s(at), AtOnce, NO_WAIT, s(60));
    }
    assert_eq!(x.pop_due(s(10)), ["b", "c", "a"]);
    assert_eq!(x.len(), 3);
}

proptest! {
    /// However late it is asked, each probe ticks at most once per call and never drifts from its phase.
    #[test]
    fn phases_never_drift(period in 1..20u64, first in 0..50u64, steps in prop::collection::vec(0..60u64, 1..30)) {
        let mut x = Schedule::default();
        x.insert("a", s(first), AtOnce, NO_WAIT, s(period));
        let mut now = 0;
        for step in steps {
            now += step;
            let due = x.pop_due(s(now));
            prop_assert!(due.len() <= 1);
            let next = x.next_due().unwrap();
            prop_assert!(next > s(now));
            prop_assert_eq!((next.as_secs() - first) % period, 0);
            prop_assert!(next <= s(now.max(first) + period));
        }
    }
}
