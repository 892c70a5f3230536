//! The v1.PodStatus that the API would see, as pure functions (pod-lifecycle 9).
//!
//! Owns every rule about phase, conditions, container states and reasons, and the rules by which a status replaces an
//! older one. Never reads a clock, talks to a runtime, remembers anything or fails: time, observation, probe verdicts and
//! the status of before come in as arguments.
//!
//! * [`generate()`]: what a pod's worker computes on each sync (pod-lifecycle 9.1 to 9.5).
//! * [`patch`]: statuses made without an observation: rejected, evicted, terminated, a probe's verdict (pod-lifecycle
//!   1.10, 2.10, 9.9).
//! * [`store`]: how StatusManager takes a new status in place of the old one (pod-lifecycle 9.6).
//! * [`merge`]: what of it may be written to the API now (pod-lifecycle 9.8).
//! * [`wire`]: the strategic merge patch that writes it.

#![forbid(unsafe_code)]

mod conditions;
mod containers;
mod generate;
mod input;
mod ips;
pub mod merge;
pub mod patch;
mod phase;
mod probes;
pub mod reasons;
mod resources;
mod restart_all;
pub mod store;
pub mod wire;

#[cfg(test)]
mod testing;

pub use conditions::{is_owned_condition, is_shared_condition, needs_new_sandbox};
pub use generate::{active_deadline_left, generate};
pub use input::{ContainerVerdicts, ProbeFacts, ResizeFacts, StatusInput, WaitingReason};
pub use probes::readiness_to_trigger;
pub use restart_all::restarting_all;
