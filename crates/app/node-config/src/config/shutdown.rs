//! What pods have before the machine goes down.

use std::time::Duration;

/// `shutdownGracePeriod` and its like. All zero and empty: pods are not stopped before.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NodeShutdown {
    /// For all pods together.
    pub grace_period: Duration,
    /// The part of it that critical pods have, after all others.
    pub critical: Duration,
    /// Instead of the two: by priority.
    pub by_priority: Vec<ShutdownPeriod>,
}

/// What pods from one priority on have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ShutdownPeriod {
    /// Lowest priority.
    pub priority: i32,
    /// In seconds.
    pub period_s: u64,
}
