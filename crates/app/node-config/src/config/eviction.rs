//! Eviction thresholds (step 4 of interfaces 1.1; interfaces 1.3).

use std::collections::BTreeMap;
use std::time::Duration;

use model::quantity::Quantity;

/// Signals that a threshold may be set on.
pub(crate) const SIGNALS: &[&str] = &[
    "memory.available",
    "nodefs.available",
    "nodefs.inodesFree",
    "imagefs.available",
    "imagefs.inodesFree",
    "containerfs.available",
    "containerfs.inodesFree",
    "allocatableMemory.available",
    "pid.available",
];

/// Thresholds of a Linux node whose file names none.
pub(crate) const LINUX: [(&str, &str); 5] = [
    ("imagefs.available", "15%"),
    ("imagefs.inodesFree", "5%"),
    ("memory.available", "100Mi"),
    ("nodefs.available", "10%"),
    ("nodefs.inodesFree", "5%"),
];

/// When a signal is under pressure.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Threshold {
    /// Below this amount.
    Amount(Quantity),
    /// Below this share of the capacity, percent (more than 0, less than 100; of a minimum reclaim also 100).
    Percent(f64),
}

impl Threshold {
    /// The amount that the threshold stands for at a capacity, in the capacity's unit. To the byte what a kubelet has, which
    /// keeps shares in single precision.
    #[must_use]
    pub fn amount(&self, capacity: i64) -> i64 {
        match self {
            Self::Amount(q) => q.value(),
            #[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "as a kubelet counts")]
            Self::Percent(share) => (capacity as f64 * f64::from(*share as f32 / 100.0)) as i64,
        }
    }

    /// `100Mi` or `10%`; `None` inside: switched off (`0%`, `100%`).
    pub(crate) fn parse(text: &str) -> Result<Option<Self>, &'static str> {
        if let Some(number) = text.strip_suffix('%') {
            let share: f64 = number.parse().map_err(|_| "is no percentage")?;
            return match share {
                s if s == 0.0 || s == 100.0 => Ok(None),
                s if s > 0.0 && s < 100.0 => Ok(Some(Self::Percent(s))),
                _ => Err("is no percentage from 0% to 100%"),
            };
        }
        let amount: Quantity = text.parse().map_err(|_| "is neither a quantity nor a percentage")?;
        if amount.is_zero() || amount.is_negative() {
            return Err("must be more than 0");
        }
        Ok(Some(Self::Amount(amount)))
    }
}

/// As [`Threshold::parse`], of `evictionMinimumReclaim`: nothing more than the threshold may be freed (`0Mi`), and all (`100%`).
pub(crate) fn parse_reclaim(text: &str) -> Result<Option<Threshold>, &'static str> {
    match Threshold::parse(text) {
        Ok(None) if text.starts_with("100") => Ok(Some(Threshold::Percent(100.0))),
        Ok(None) => Err("is no percentage of more than 0%"),
        Err(_) if text.parse().is_ok_and(|amount: Quantity| amount.is_zero()) => Ok(None),
        parsed => parsed,
    }
}

/// A threshold that must be crossed for a while.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SoftThreshold {
    /// When the signal is under pressure.
    pub threshold: Threshold,
    /// For how long it must be.
    pub grace: Duration,
}

/// When pods are evicted. Keys are signals such as `memory.available`.
#[derive(Clone, PartialEq, Debug)]
pub struct Eviction {
    /// `evictionHard`: evict at once. The default of a node with a configuration file; empty without one.
    pub hard: BTreeMap<String, Threshold>,
    /// `evictionSoft` with `evictionSoftGracePeriod`.
    pub soft: BTreeMap<String, SoftThreshold>,
    /// `evictionMinimumReclaim`: how much more than the threshold is freed.
    pub minimum_reclaim: BTreeMap<String, Threshold>,
    /// `evictionPressureTransitionPeriod`: how long a condition outlives its pressure.
    pub pressure_transition_period: Duration,
    /// `evictionMaxPodGracePeriod`: longest grace period at soft evictions; 0: one second.
    pub max_pod_grace_period: Duration,
    /// `kernelMemcgNotification`: the kernel of cgroup v1 tells when memory crosses a threshold.
    pub memcg_notification: bool,
}

impl Default for Eviction {
    fn default() -> Self {
        let threshold = |text: &str| Threshold::parse(text).ok().flatten();
        Self {
            hard: LINUX.iter().filter_map(|(k, v)| Some(((*k).to_owned(), threshold(v)?))).collect(),
            soft: BTreeMap::new(),
            minimum_reclaim: BTreeMap::new(),
            pressure_transition_period: Duration::from_secs(300),
            max_pod_grace_period: Duration::ZERO,
            memcg_notification: false,
        }
    }
}
