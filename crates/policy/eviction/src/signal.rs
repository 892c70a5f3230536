//! What may run short, and how much of it is too little (node-and-resources 3.1).

use std::collections::BTreeMap;
use std::time::Duration;

use model::node::Pressure;
use model::quantity::Quantity;
use model::resources::{EPHEMERAL_STORAGE, MEMORY};

/// What a threshold is set on. The order is the one in which they are looked after: memory first.
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

/// What a signal is short of, in the words of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "named after the resources")]
pub enum Resource {
    Memory,
    EphemeralStorage,
    Inodes,
    Pids,
}

impl Resource {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Resource::Memory => MEMORY,
            Resource::EphemeralStorage => EPHEMERAL_STORAGE,
            Resource::Inodes => "inodes",
            Resource::Pids => "pids",
        }
    }

    /// An observed amount of it, as it prints.
    #[must_use]
    pub const fn quantity(self, amount: i64) -> Quantity {
        match self {
            Resource::Memory | Resource::EphemeralStorage => Quantity::from_bytes(amount),
            Resource::Inodes | Resource::Pids => Quantity::from_units(amount),
        }
    }
}

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

    /// What it is short of.
    #[must_use]
    pub const fn resource(self) -> Resource {
        match self {
            Signal::MemoryAvailable | Signal::AllocatableMemoryAvailable => Resource::Memory,
            Signal::NodefsAvailable | Signal::ImagefsAvailable | Signal::ContainerfsAvailable => {
                Resource::EphemeralStorage
            }
            Signal::NodefsInodesFree | Signal::ImagefsInodesFree | Signal::ContainerfsInodesFree => Resource::Inodes,
            Signal::PidAvailable => Resource::Pids,
        }
    }
}

/// How much of a signal is too little.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Amount {
    /// So many bytes, inodes or processes.
    Absolute(Quantity),
    /// This share of the capacity, 0 to 1. A kubelet keeps it in single precision, and so does this.
    Share(f32),
}

impl Amount {
    /// `10` percent.
    #[must_use]
    pub fn percent(percent: f32) -> Self {
        Amount::Share(percent / 100.0)
    }

    /// The amount at a capacity, as it prints.
    #[must_use]
    #[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "as the kubelet computes it")]
    pub fn quantity(self, capacity: i64) -> Quantity {
        match self {
            Amount::Absolute(amount) => amount,
            Amount::Share(share) => Quantity::from_bytes((capacity as f64 * f64::from(share)) as i64),
        }
    }

    /// The amount at a capacity, in its unit.
    #[must_use]
    pub fn at(self, capacity: i64) -> i64 {
        self.quantity(capacity).value()
    }
}

/// As it is configured: `100Mi`, `10%`.
impl std::fmt::Display for Amount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Amount::Absolute(amount) => write!(f, "{amount}"),
            // Single precision has no more digits than these.
            Amount::Share(share) => write!(f, "{}%", (f64::from(*share) * 1e6).round() / 1e4),
        }
    }
}

/// A threshold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Threshold {
    /// What it is set on.
    pub signal: Signal,
    /// Below this there is pressure.
    pub below: Amount,
    /// Once there is pressure, it lasts until so much more is available.
    pub min_reclaim: Option<Amount>,
    /// For how long it must be crossed before a pod goes; none: a hard one. The condition does not wait for it.
    pub grace: Duration,
}

impl Threshold {
    /// Whether pods go at once, with a grace period of one second.
    #[must_use]
    pub const fn is_hard(&self) -> bool {
        self.grace.is_zero()
    }
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

/// Where all pods together have a limit on memory, what is left below that limit has the hard threshold of the machine's
/// memory (`enforceNodeAllocatable: [pods]`).
#[must_use]
pub fn with_allocatable(mut thresholds: Vec<Threshold>) -> Vec<Threshold> {
    let of_machine = |t: &&Threshold| t.signal == Signal::MemoryAvailable && t.is_hard();
    let of_pods: Vec<Threshold> = thresholds
        .iter()
        .filter(of_machine)
        .map(|t| Threshold { signal: Signal::AllocatableMemoryAvailable, ..*t })
        .collect();
    thresholds.extend(of_pods);
    thresholds
}
