//! Which pods are looked at next, which wait for a place, and which for a time. What it costs to keep follows the changes:
//! nothing here goes through all pods but what asks for all of them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use model::{PodUid, Timestamp};
use tokio::time::Instant;

use crate::pod_sync::Urgency;

/// Requests under way at most, those left out that the server lets wait: one stuck pod takes nobody's place.
const WIDTH: usize = 8;
/// Requests under way at most, in all.
const WIDTH_MAX: usize = 64;
/// A request that takes longer than this takes no place any more; a status that waits longer goes to the journal.
pub(super) const SLOW: Duration = Duration::from_secs(1);

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    /// To be looked at in the next pass.
    touched: BTreeSet<PodUid>,
    /// Due, and not started for want of a place; the most urgent first, then the one that waits for longest.
    due: BTreeSet<(Urgency, Timestamp, PodUid)>,
    /// To be looked at again at a time though nothing happens.
    wakes: BTreeSet<(Instant, PodUid)>,
    plans: BTreeMap<PodUid, Plan>,
    /// Requests under way, since.
    in_flight: BTreeMap<PodUid, Instant>,
    /// When the timer fires that was set last.
    timer: Option<Instant>,
}

/// What a look at one pod came to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Plan {
    /// It is due; of equally urgent pods the one whose status changed first goes first.
    pub(super) due: Option<(Urgency, Timestamp)>,
    /// When to look again.
    pub(super) wake_at: Option<Instant>,
}

impl Schedule {
    /// Has a pod looked at in the next pass.
    pub(super) fn touch(&mut self, uid: PodUid) {
        self.touched.insert(uid);
    }

    /// The pods to be looked at now: those touched, and those whose time has come.
    pub(super) fn take_touched(&mut self, now: Instant) -> BTreeSet<PodUid> {
        while self.wakes.first().is_some_and(|(at, _)| *at <= now) {
            let Some((_, uid)) = self.wakes.pop_first() else { break };
            if let Some(plan) = self.plans.get_mut(&uid) {
                plan.wake_at = None;
            }
            self.touched.insert(uid);
        }
        std::mem::take(&mut self.touched)
    }

    /// Puts what a look at a pod came to in the place of what the last one did.
    pub(super) fn plan(&mut self, uid: &PodUid, plan: Plan) {
        let before = if plan.due.is_none() && plan.wake_at.is_none() {
            self.plans.remove(uid)
        } else {
            self.plans.insert(uid.clone(), plan)
        };
        let before = before.unwrap_or_default();
        if let Some((urgency, since)) = before.due {
            self.due.remove(&(urgency, since, uid.clone()));
        }
        if let Some(at) = before.wake_at {
            self.wakes.remove(&(at, uid.clone()));
        }
        self.due.extend(plan.due.map(|(urgency, since)| (urgency, since, uid.clone())));
        self.wakes.extend(plan.wake_at.map(|at| (at, uid.clone())));
    }

    /// The pod that goes next, if there is a place for it.
    pub(super) fn next_due(&mut self, now: Instant) -> Option<PodUid> {
        let (_, _, uid) = self.due.first().filter(|_| self.has_room(now))?.clone();
        self.plan(&uid, Plan::default());
        Some(uid)
    }

    /// Whether pods wait for a place.
    pub(super) fn has_due(&self) -> bool {
        !self.due.is_empty()
    }

    fn has_room(&self, now: Instant) -> bool {
        let quick = self.in_flight.values().filter(|since| now.duration_since(**since) < SLOW).count();
        quick < WIDTH && self.in_flight.len() < WIDTH_MAX
    }

    pub(super) fn begin(&mut self, uid: &PodUid, now: Instant) {
        self.in_flight.insert(uid.clone(), now);
    }

    pub(super) fn end(&mut self, uid: &PodUid) {
        self.in_flight.remove(uid);
    }

    /// How long until a pod must be looked at though nothing happens, unless a timer fires by then already. One is set now.
    pub(super) fn next_wake(&mut self, now: Instant) -> Option<Duration> {
        let (next, _) = self.wakes.first()?;
        if self.timer.is_some_and(|at| at <= *next && at > now) {
            return None;
        }
        self.timer = Some(*next);
        Some(next.duration_since(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uid(n: usize) -> PodUid {
        PodUid::from(format!("u{n}"))
    }

    fn due(urgency: Urgency, since: i64) -> Plan {
        Plan { due: Some((urgency, Timestamp(since))), wake_at: None }
    }

    #[test]
    fn the_most_urgent_goes_first_then_the_one_that_waits_for_longest() {
        let (mut schedule, now) = (Schedule::default(), Instant::now());
        schedule.plan(&uid(1), due(Urgency::Then, 1));
        schedule.plan(&uid(2), due(Urgency::First, 9));
        schedule.plan(&uid(3), due(Urgency::First, 3));
        schedule.plan(&uid(4), due(Urgency::First, 1));
        schedule.plan(&uid(4), Plan::default());
        let order: Vec<PodUid> = std::iter::from_fn(|| schedule.next_due(now)).collect();
        assert_eq!(order, [uid(3), uid(2), uid(1)]);
        assert!(schedule.plans.is_empty());
    }

    #[test]
    fn slow_requests_free_their_place_up_to_a_limit() {
        let (mut schedule, now) = (Schedule::default(), Instant::now());
        for n in 0..100 {
            schedule.plan(&uid(n), due(Urgency::Then, 1));
        }
        let mut began = |at: Instant| -> usize {
            let start = |schedule: &mut Schedule| schedule.next_due(at).map(|uid| schedule.begin(&uid, at));
            std::iter::from_fn(|| start(&mut schedule)).count()
        };
        assert_eq!((began(now), began(now)), (WIDTH, 0));
        let all: usize = (1..20).map(|n| began(now + SLOW * n)).sum();
        assert_eq!(WIDTH + all, WIDTH_MAX);
    }

    #[test]
    fn a_pod_is_woken_at_its_latest_time_only() {
        let (mut schedule, now) = (Schedule::default(), Instant::now());
        let at = |s: u64| now + Duration::from_secs(s);
        let wake = |s: u64| Plan { due: None, wake_at: Some(at(s)) };
        schedule.plan(&uid(1), wake(5));
        assert_eq!(schedule.next_wake(now), Some(Duration::from_secs(5)));
        assert_eq!(schedule.next_wake(now), None, "the timer is set");
        schedule.plan(&uid(2), wake(3));
        assert_eq!(schedule.next_wake(now), Some(Duration::from_secs(3)), "a sooner one");
        schedule.plan(&uid(1), wake(9));
        assert_eq!(schedule.take_touched(at(5)), [uid(2)].into());
        assert_eq!(schedule.next_wake(at(5)), Some(Duration::from_secs(4)));
        assert_eq!(schedule.take_touched(at(9)), [uid(1)].into());
        assert_eq!((schedule.take_touched(at(99)), schedule.next_wake(at(99))), ([].into(), None));
    }
}
