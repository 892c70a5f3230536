//! Which pods end when, before the machine goes down (node-and-resources 8.6).
//!
//! Owns the rules: groups of pods by their priority, how long each group and each pod of it has, which delay logind has to
//! grant for all of them, and the words that a kubelet has for it. Never acts, knows no clock.

#![forbid(unsafe_code)]

mod plan;
mod progress;

#[cfg(test)]
mod tests;

pub use crate::plan::{Group, Periods, grace_s, group_of, groups, needed_delay};
pub use crate::progress::{Step, next_step};

/// `status.reason` of a pod that was stopped for it.
pub const REASON: &str = "Terminated";
/// `status.message` of such a pod.
pub const MESSAGE: &str = "Pod was terminated in response to imminent node shutdown.";
/// Reason of the node's event.
pub const EVENT: &str = "Shutdown";
/// Message of the event with which it begins.
pub const BEGINS: &str = "Shutdown manager detected shutdown event";
/// Message of the event when the machine stays up after all.
pub const CANCELLED: &str = "Shutdown manager detected shutdown cancellation";

/// Where logind reads what it is told besides its own file.
pub const DROP_IN_DIR: &str = "/etc/systemd/logind.conf.d";
/// The file there that a kubelet writes; what it says holds until somebody removes it.
pub const DROP_IN_NAME: &str = "99-kubelet.conf";

/// Content of that file: logind grants delays of so many seconds.
#[must_use]
pub fn drop_in(delay_s: u64) -> String {
    format!("# Kubelet logind override\n[Login]\nInhibitDelayMaxSec={delay_s}\n")
}
