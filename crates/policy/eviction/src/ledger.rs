//! Which thresholds are crossed, since when, and what follows (node-and-resources 3.4).

use std::collections::BTreeMap;
use std::time::Duration;

use model::node::Pressure;

use crate::signal::{Observed, Signals, Threshold, is_met};

/// What one observation comes to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdict {
    /// Conditions that hold.
    pub pressures: Vec<Pressure>,
    /// Thresholds that have been crossed for their grace period, the most urgent first.
    pub due: Vec<Threshold>,
}

/// Remembers crossed thresholds from one observation to the next. Instants are time since any fixed start.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ledger {
    /// Due at the last observation: these last until their minimum reclaim is there.
    due: Vec<Threshold>,
    /// Crossed at the last observation, and without a break since when.
    crossed: Vec<(Threshold, Duration)>,
    /// When each condition was observed last.
    observed: BTreeMap<Pressure, Duration>,
}

impl Ledger {
    /// Conditions that somebody else observed, as if just now: they last for the transition period.
    pub fn recover(&mut self, pressures: impl IntoIterator<Item = Pressure>, now: Duration) {
        self.observed.extend(pressures.into_iter().map(|pressure| (pressure, now)));
    }

    /// Takes in what was observed. A condition comes at once, also where a threshold has a grace period, and outlives its
    /// cause by the `transition` period (`evictionPressureTransitionPeriod`).
    pub fn observe(
        &mut self,
        thresholds: &[Threshold],
        seen: &Signals,
        now: Duration,
        transition: Duration,
    ) -> Verdict {
        let met = |t: &&Threshold| is_met(t, seen, false) || (self.due.contains(t) && is_met(t, seen, true));
        let since = |t: &Threshold| self.crossed.iter().find(|(known, _)| known == t).map_or(now, |(_, since)| *since);
        let crossed: Vec<_> = thresholds.iter().filter(met).map(|t| (*t, since(t))).collect();
        self.observed.extend(crossed.iter().map(|(t, _)| (t.signal.pressure(), now)));
        self.observed.retain(|_, at| *at == now || now.saturating_sub(*at) < transition);
        let is_due = |(t, since): &&(Threshold, Duration)| now.saturating_sub(*since) >= t.grace;
        self.due = crossed.iter().filter(is_due).map(|(t, _)| *t).collect();
        // Of two on one signal the hard one is the more urgent.
        self.due.sort_by_key(|t| (t.signal, t.grace));
        self.crossed = crossed;
        Verdict { pressures: self.observed.keys().copied().collect(), due: self.due.clone() }
    }

    /// Since when a threshold has been crossed, as of the last observation; `None`: it is not.
    #[must_use]
    pub fn crossed_since(&self, threshold: &Threshold) -> Option<Duration> {
        self.crossed.iter().find(|(known, _)| known == threshold).map(|(_, since)| *since)
    }

    /// Whether it has been for its grace period.
    #[must_use]
    pub fn is_due(&self, threshold: &Threshold) -> bool {
        self.due.contains(threshold)
    }

    /// Conditions of the last observation, which was at `now`; each with the instant at which it ends if nothing causes it again, or
    /// `None` while something does.
    pub fn conditions(
        &self,
        now: Duration,
        transition: Duration,
    ) -> impl Iterator<Item = (Pressure, Option<Duration>)> + '_ {
        let is_caused = |pressure: Pressure| self.crossed.iter().any(|(t, _)| t.signal.pressure() == pressure);
        let end = move |at: Duration| at.saturating_add(transition).max(now);
        self.observed.iter().map(move |(pressure, at)| (*pressure, (!is_caused(*pressure)).then(|| end(*at))))
    }
}

/// Whether nothing runs short any more, with all that thresholds want on top (`evictionMinimumReclaim`), whatever their grace.
#[must_use]
pub fn is_relieved(thresholds: &[Threshold], seen: &Signals) -> bool {
    !thresholds.iter().any(|t| is_met(t, seen, true))
}

/// The same of some thresholds, once so much more is available of each of their signals.
#[must_use]
pub fn would_relieve(thresholds: &[Threshold], seen: &Signals, freed: u64) -> bool {
    let freed = i64::try_from(freed).unwrap_or(i64::MAX);
    let more = |o: &Observed| Observed { available: o.available.saturating_add(freed), ..*o };
    is_relieved(thresholds, &seen.iter().map(|(signal, o)| (*signal, more(o))).collect())
}
