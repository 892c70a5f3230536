//! What people are shown (`bosun get pressure`): all that may run short, and what came of it.

use std::collections::BTreeSet;
use std::time::Duration;

use contract::eviction::{ConditionView, OrderView, PressureView, ReclaimView, SignalView, ThresholdView, VictimView};
use eviction::{Ledger, Signal, Signals, Threshold};
use model::{Timestamp, pod};

use crate::evict::Order;

/// One observation: what was seen, and what is known of it.
pub(crate) struct Observation<'a> {
    pub(crate) thresholds: &'a [Threshold],
    pub(crate) seen: &'a Signals,
    pub(crate) ledger: &'a Ledger,
    /// `evictionPressureTransitionPeriod`.
    pub(crate) transition: Duration,
    /// On the ledger's clock, and on the wall.
    pub(crate) now: (Duration, Timestamp),
}

impl Observation<'_> {
    /// The observation takes the place of the one before; what came of earlier ones stays.
    pub(crate) fn onto(&self, before: &PressureView) -> PressureView {
        let of_thresholds = self.thresholds.iter().map(|t| t.signal);
        let all: BTreeSet<Signal> = self.seen.keys().copied().chain(of_thresholds).collect();
        let conditions = self.ledger.conditions(self.now.0, self.transition);
        PressureView {
            looked_at: self.now.1,
            signals: all.into_iter().map(|signal| self.signal(signal)).collect(),
            conditions: conditions
                .map(|(pressure, until)| ConditionView {
                    condition: pressure.as_str().to_owned(),
                    until: until.map(|until| self.wall(until)),
                })
                .collect(),
            reclaim: before.reclaim.clone(),
            victim: before.victim.clone(),
            ordered: before.ordered.clone(),
        }
    }

    fn signal(&self, signal: Signal) -> SignalView {
        let seen = self.seen.get(&signal);
        let thresholds = self.thresholds.iter().filter(|t| t.signal == signal);
        SignalView {
            signal: signal.as_str().to_owned(),
            available: seen.map(|o| o.available),
            capacity: seen.map(|o| o.capacity),
            thresholds: thresholds.map(|t| self.threshold(t)).collect(),
        }
    }

    fn threshold(&self, threshold: &Threshold) -> ThresholdView {
        ThresholdView {
            below: threshold.below.to_string(),
            reclaim: threshold.min_reclaim.map(|amount| amount.to_string()).unwrap_or_default(),
            grace_ms: u64::try_from(threshold.grace.as_millis()).unwrap_or(u64::MAX),
            since: self.ledger.crossed_since(threshold).map(|since| self.wall(since)),
            due: self.ledger.is_due(threshold),
        }
    }

    fn wall(&self, at: Duration) -> Timestamp {
        let (now, wall) = self.now;
        match now.checked_sub(at) {
            Some(ago) => Timestamp(wall.0.saturating_sub(i64::try_from(ago.as_nanos()).unwrap_or(i64::MAX))),
            None => wall.plus(at.saturating_sub(now)),
        }
    }
}

/// After something was tidied up.
pub(crate) fn reclaimed(at: Timestamp, signal: Signal, freed_bytes: Option<u64>, enough: bool) -> ReclaimView {
    ReclaimView { at, signal: signal.as_str().to_owned(), freed_bytes, enough }
}

/// Before a pod is told to end.
pub(crate) fn ordered(at: Timestamp, order: &Order, due: &[Threshold], looked_at: Timestamp) -> OrderView {
    OrderView {
        uid: pod::uid(&order.pod),
        victim: VictimView {
            at,
            pod: pod::namespaced_name(&order.pod),
            signal: order.signal.clone(),
            message: order.message.clone(),
        },
        annotations: order.annotations.clone(),
        due: due.iter().map(|t| t.signal.as_str().to_owned()).collect(),
        looked_at,
    }
}
