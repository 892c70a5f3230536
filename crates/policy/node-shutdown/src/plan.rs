//! Groups of pods, and the time that each has.

use std::time::Duration;

use model::core::Pod;

/// Pods without a priority, where no class is the default one.
const DEFAULT_PRIORITY: i32 = 0;
/// Priority of `system-cluster-critical`: pods of this one and higher are critical.
const CRITICAL: i32 = 2_000_000_000;

/// Pods from this priority on, up to that of the next group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// Lowest priority of the group; the lowest group has also those below.
    pub priority: i32,
    /// How long its pods have, in seconds.
    pub period_s: u64,
}

/// What is configured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Periods {
    /// `shutdownGracePeriod`: for all pods together.
    pub total: Duration,
    /// `shutdownGracePeriodCriticalPods`: the part of it that critical pods have, after all others. Never more than `total`.
    pub critical: Duration,
    /// `shutdownGracePeriodByPodPriority`: instead of the two, if it names any group.
    pub by_priority: Vec<Group>,
}

/// The groups, lowest priority first; none: pods are not stopped before the machine goes down. Parts of a second are cut off.
#[must_use]
pub fn groups(periods: &Periods) -> Vec<Group> {
    if periods.by_priority.is_empty() {
        return two_groups(periods.total, periods.critical);
    }
    let mut groups = periods.by_priority.clone();
    groups.sort_by_key(|group| group.priority);
    groups
}

fn two_groups(total: Duration, critical: Duration) -> Vec<Group> {
    let Some(others) = total.checked_sub(critical) else { return Vec::new() };
    if total.is_zero() {
        return Vec::new();
    }
    vec![
        Group { priority: DEFAULT_PRIORITY, period_s: others.as_secs() },
        Group { priority: CRITICAL, period_s: critical.as_secs() },
    ]
}

/// What logind has to wait for all groups.
#[must_use]
pub fn needed_delay(groups: &[Group]) -> Duration {
    Duration::from_secs(groups.iter().fold(0, |sum, group| sum.saturating_add(group.period_s)))
}

/// The number of a pod's group: the highest one whose priority is not above the pod's; the lowest for a pod below all.
#[must_use]
pub fn group_of(groups: &[Group], pod: &Pod) -> usize {
    let priority = pod.spec.as_ref().and_then(|spec| spec.priority).unwrap_or(DEFAULT_PRIORITY);
    groups.partition_point(|group| group.priority <= priority).saturating_sub(1)
}

/// Seconds that a pod of a group has: its own grace period, and no more than the group's.
#[must_use]
pub fn grace_s(group: &Group, pod: &Pod) -> i64 {
    let most = i64::try_from(group.period_s).unwrap_or(i64::MAX);
    let own = pod.spec.as_ref().and_then(|spec| spec.termination_grace_period_seconds);
    own.map_or(most, |own| own.min(most))
}
