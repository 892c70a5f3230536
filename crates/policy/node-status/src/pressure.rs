//! Pressure from signals and thresholds (node-and-resources 3.1, 3.4).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use model::node::Pressure;
use model::quantity::Quantity;
use model::resources::{EPHEMERAL_STORAGE, MEMORY, ResourceList};

/// What a threshold is set on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "named after the signals")]
pub enum Signal {
    MemoryAvailable,
    AllocatableMemoryAvailable,
    NodefsAvailable,
    NodefsInodesFree,
    ImagefsAvailable,
    ImagefsInodesFree,
    ContainerfsAvailable,
    ContainerfsInodesFree,
    PidAvailable,
}

const NAMES: [(Signal, &str); 9] = [
    (Signal::MemoryAvailable, "memory.available"),
    (Signal::AllocatableMemoryAvailable, "allocatableMemory.available"),
    (Signal::NodefsAvailable, "nodefs.available"),
    (Signal::NodefsInodesFree, "nodefs.inodesFree"),
    (Signal::ImagefsAvailable, "imagefs.available"),
    (Signal::ImagefsInodesFree, "imagefs.inodesFree"),
    (Signal::ContainerfsAvailable, "containerfs.available"),
    (Signal::ContainerfsInodesFree, "containerfs.inodesFree"),
    (Signal::PidAvailable, "pid.available"),
];

impl Signal {
    /// From its name in the configuration.
    #[must_use]
    pub fn parse(s: &str) -> Option<Self> {
        NAMES.iter().find(|(_, name)| *name == s).map(|(signal, _)| *signal)
    }

    /// Name in the configuration.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        NAMES.iter().find(|(signal, _)| *signal == self).map_or("", |(_, name)| name)
    }

    /// The condition that it causes.
    #[must_use]
    pub const fn pressure(self) -> Pressure {
        match self {
            Signal::MemoryAvailable | Signal::AllocatableMemoryAvailable => Pressure::Memory,
            Signal::PidAvailable => Pressure::Pid,
            _ => Pressure::Disk,
        }
    }
}

/// How much of a signal is too little.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Amount {
    /// So many bytes, inodes or processes.
    Absolute(i64),
    /// This share of the capacity, 0 to 1. A kubelet keeps it in single precision, and so does this.
    Share(f32),
}

impl Amount {
    /// `10` percent.
    #[must_use]
    pub fn percent(percent: f32) -> Self {
        Amount::Share(percent / 100.0)
    }

    /// The amount at a capacity, in its unit.
    #[must_use]
    #[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "as the kubelet computes it")]
    pub fn at(self, capacity: i64) -> i64 {
        match self {
            Amount::Absolute(n) => n,
            Amount::Share(share) => (capacity as f64 * f64::from(share)) as i64,
        }
    }
}

/// A threshold: hard or soft makes no difference to the condition, which does not wait for a grace period.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Threshold {
    /// What it is set on.
    pub signal: Signal,
    /// Below this there is pressure.
    pub below: Amount,
    /// Once there is pressure, it lasts until so much more is available.
    pub min_reclaim: Option<Amount>,
}

/// One observed signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observed {
    /// What is left.
    pub available: i64,
    /// What there is.
    pub capacity: i64,
}

/// Observed signals. One that could not be read is not in here, and its thresholds are passed over.
pub type Signals = BTreeMap<Signal, Observed>;

/// Whether the threshold is crossed: strictly below it. With `reclaim`, whether it is still not fully relieved.
#[must_use]
pub fn is_met(threshold: &Threshold, seen: &Signals, reclaim: bool) -> bool {
    let Some(o) = seen.get(&threshold.signal) else { return false };
    let extra = if reclaim { threshold.min_reclaim.map_or(0, |a| a.at(o.capacity)) } else { 0 };
    o.available < threshold.below.at(o.capacity).saturating_add(extra)
}

/// Remembers pressure, so that a condition does not flap. Instants are time since any fixed start.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pressures {
    met: BTreeSet<Signal>,
    seen: BTreeMap<Pressure, Duration>,
}

impl Pressures {
    /// Takes in what was observed and tells what runs short: crossed thresholds at once, relieved ones for the
    /// `transition` period (`evictionPressureTransitionPeriod`) afterwards.
    pub fn observe(
        &mut self,
        thresholds: &[Threshold],
        seen: &Signals,
        now: Duration,
        transition: Duration,
    ) -> Vec<Pressure> {
        let holds = |t: &&Threshold| is_met(t, seen, false) || (self.met.contains(&t.signal) && is_met(t, seen, true));
        let met: BTreeSet<Signal> = thresholds.iter().filter(holds).map(|t| t.signal).collect();
        for signal in &met {
            self.seen.insert(signal.pressure(), now);
        }
        self.met = met;
        self.seen.retain(|_, at| *at == now || now.saturating_sub(*at) < transition);
        self.seen.keys().copied().collect()
    }
}

/// What hard thresholds set aside before pods get anything (node-and-resources 1.11): `memory.available` and
/// `nodefs.available` only.
#[must_use]
pub fn reserved(hard: &[Threshold], capacity: &ResourceList) -> ResourceList {
    let of = |t: &Threshold| {
        let name = match t.signal {
            Signal::MemoryAvailable => MEMORY,
            Signal::NodefsAvailable => EPHEMERAL_STORAGE,
            _ => return None,
        };
        let all = capacity.get(name)?.value();
        Some((name.to_owned(), Quantity::from_bytes(t.below.at(all))))
    };
    hard.iter().filter_map(of).collect()
}
