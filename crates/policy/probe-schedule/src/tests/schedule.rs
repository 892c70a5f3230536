use std::time::Duration;

use proptest::prelude::*;

use crate::{Schedule, spread};

fn s(n: u64) -> Duration {
    Duration::from_secs(n)
}

const AT_ONCE: Duration = Duration::ZERO;

#[test]
fn a_probe_ticks_at_once_and_then_once_per_period() {
    let mut x = Schedule::default();
    x.insert("a", s(100), AT_ONCE, s(10), 0.7);
    assert_eq!(x.next_due(), Some(s(100)));
    assert_eq!(x.pop_due(s(100)), ["a"]);
    assert_eq!(x.pop_due(s(109)), Vec::<&str>::new());
    assert_eq!(x.pop_due(s(110)), ["a"]);
    assert_eq!(x.next_due(), Some(s(120)));
}

#[test]
fn first_ticks_are_spread_while_the_daemon_is_young_and_after_a_change_8_1() {
    let rows = [
        ("younger than a period", s(9), false, s(10)),
        ("younger, goes on", s(9), true, s(10)),
        ("exactly a period", s(10), false, s(0)),
        ("older", s(11), false, s(0)),
        ("older, goes on", s(11), true, s(1)),
    ];
    for (name, age, is_resumed, want) in rows {
        assert_eq!(spread(age, s(10), is_resumed), want, "{name}");
    }
    assert_eq!(spread(s(1), Duration::from_millis(10), true), Duration::from_millis(5), "half a period at most");
    let mut x = Schedule::default();
    x.insert("a", s(100), s(10), s(20), 0.5);
    assert_eq!(x.next_due(), Some(s(105)));
}

#[test]
fn what_goes_on_after_a_change_is_probed_soon_and_then_spread_over_the_period() {
    let mut x = Schedule::default();
    for n in 0..100_u32 {
        x.insert(n, s(100), spread(s(1000), s(10), true), s(10), f64::from(n) / 100.0);
    }
    assert_eq!(x.pop_due(s(101)).len(), 100, "nobody waits for longer than a second");
    let mut at = [0; 16];
    for second in 1..=16_u64 {
        at[second as usize - 1] = x.pop_due(s(101 + second)).len();
    }
    assert!(at[..3].iter().all(|n| *n == 0) && at[4..14].iter().all(|n| (5..25).contains(n)), "{at:?}");
    let per_second: Vec<usize> = (1..=10).map(|n| x.pop_due(s(117 + n)).len()).collect();
    assert!(per_second.iter().all(|n| (8..=14).contains(n)), "{per_second:?}");
}

#[test]
fn missed_periods_are_not_replayed_and_the_phase_stays() {
    let mut x = Schedule::default();
    x.insert("a", s(0), AT_ONCE, s(10), 0.0);
    assert_eq!(x.pop_due(s(0)), ["a"]);
    assert_eq!(x.pop_due(s(47)), ["a"]);
    assert_eq!(x.next_due(), Some(s(50)));
}

#[test]
fn a_tick_during_a_run_is_made_up_for_once() {
    let mut x = Schedule::default();
    x.insert("a", s(0), AT_ONCE, s(1), 0.0);
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
    x.insert("a", s(0), AT_ONCE, s(10), 0.0);
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
    x.insert("a", s(0), AT_ONCE, s(10), 0.0);
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
    x.insert("a", s(0), AT_ONCE, s(1), 0.0);
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
        x.insert(key, s(at), AT_ONCE, s(60), 0.0);
    }
    assert_eq!(x.pop_due(s(10)), ["b", "c", "a"]);
    assert_eq!(x.len(), 3);
}

proptest! {
    /// However late it is asked, each probe ticks at most once per call and never drifts from its phase.
    #[test]
    fn phases_never_drift(period in 1..20u64, first in 0..50u64, steps in prop::collection::vec(0..60u64, 1..30)) {
        let mut x = Schedule::default();
        x.insert("a", s(first), AT_ONCE, s(period), 0.0);
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
