use std::time::Duration;

use model::core::{Pod, PodSpec};

use crate::{Group, Periods, Step, drop_in, grace_s, group_of, groups, needed_delay, next_step};

fn group(priority: i32, period_s: u64) -> Group {
    Group { priority, period_s }
}

fn pod(priority: Option<i32>, grace_s: Option<i64>) -> Pod {
    let spec = PodSpec { priority, termination_grace_period_seconds: grace_s, ..PodSpec::default() };
    Pod { spec: Some(spec), ..Pod::default() }
}

fn two(total_ms: u64, critical_ms: u64) -> Periods {
    let (total, critical) = (Duration::from_millis(total_ms), Duration::from_millis(critical_ms));
    Periods { total, critical, by_priority: Vec::new() }
}

#[test]
fn two_periods_make_two_groups() {
    let cases = [
        (two(0, 0), vec![]),
        (two(30_000, 10_000), vec![group(0, 20), group(2_000_000_000, 10)]),
        (two(30_000, 0), vec![group(0, 30), group(2_000_000_000, 0)]),
        (two(30_000, 30_000), vec![group(0, 0), group(2_000_000_000, 30)]),
        (two(30_500, 10_000), vec![group(0, 20), group(2_000_000_000, 10)]),
        (two(10_000, 30_000), vec![]),
    ];
    for (periods, expected) in cases {
        assert_eq!(groups(&periods), expected, "{periods:?}");
    }
}

#[test]
fn a_list_of_priorities_counts_instead_and_is_sorted() {
    let by_priority = vec![group(100_000, 10), group(0, 60), group(10_000, 20)];
    let periods = Periods { by_priority, ..Periods::default() };
    assert_eq!(groups(&periods), [group(0, 60), group(10_000, 20), group(100_000, 10)]);
    assert_eq!(needed_delay(&groups(&periods)), Duration::from_secs(90));
}

#[test]
fn the_delay_is_the_sum_and_is_written_in_seconds() {
    let needed = needed_delay(&groups(&two(30_000, 10_000)));
    assert_eq!(needed, Duration::from_secs(30));
    assert_eq!(drop_in(needed.as_secs()), "# Kubelet logind override\n[Login]\nInhibitDelayMaxSec=30\n");
    assert_eq!(needed_delay(&[group(0, u64::MAX), group(1, 1)]), Duration::from_secs(u64::MAX));
}

#[test]
fn a_pod_belongs_to_the_highest_group_that_is_not_above_it() {
    let all = [group(10, 1), group(100, 1), group(1000, 1)];
    let cases = [
        (None, 0),
        (Some(i32::MIN), 0),
        (Some(9), 0),
        (Some(10), 0),
        (Some(99), 0),
        (Some(100), 1),
        (Some(101), 1),
        (Some(999), 1),
        (Some(1000), 2),
        (Some(i32::MAX), 2),
    ];
    for (priority, expected) in cases {
        assert_eq!(group_of(&all, &pod(priority, None)), expected, "{priority:?}");
    }
    assert_eq!(group_of(&all, &Pod::default()), 0);
    let usual = groups(&two(30_000, 10_000));
    for (priority, expected) in [(-5, 0), (0, 0), (1_999_999_999, 0), (2_000_000_000, 1), (2_000_001_000, 1)] {
        assert_eq!(group_of(&usual, &pod(Some(priority), None)), expected, "{priority}");
    }
}

#[test]
fn a_pod_has_its_own_grace_and_no_more_than_the_groups() {
    let cases =
        [(20, Some(5), 5), (20, Some(30), 20), (20, Some(20), 20), (20, None, 20), (0, Some(30), 0), (20, Some(0), 0)];
    for (period_s, own, expected) in cases {
        assert_eq!(grace_s(&group(0, period_s), &pod(None, own)), expected, "{period_s} {own:?}");
    }
}

#[test]
fn a_group_is_waited_for_until_its_pods_are_gone_or_its_period_is_over() {
    let all = [group(0, 20), group(10, 0)];
    let s = Duration::from_secs;
    let cases = [
        (0, 2, s(0), Step::Wait(s(20))),
        (0, 2, s(19), Step::Wait(s(1))),
        (0, 2, s(20), Step::Next { in_time: false }),
        (0, 2, s(100), Step::Next { in_time: false }),
        (0, 0, s(3), Step::Next { in_time: true }),
        (1, 1, s(0), Step::Next { in_time: false }),
        (1, 0, s(0), Step::Next { in_time: true }),
        (2, 5, s(0), Step::Done),
    ];
    for (at, active, since, expected) in cases {
        assert_eq!(next_step(&all, at, active, since), expected, "{at} {active} {since:?}");
    }
    assert_eq!(next_step(&[], 0, 3, s(0)), Step::Done);
}
