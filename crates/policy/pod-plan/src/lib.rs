//! What to do with one pod now: the whole of a kubelet's `computePodActions` and its neighbours, as pure functions.
//!
//! Owns: the sandbox change test, init, sidecar, ephemeral and regular container decisions, restart rules, crash-loop and
//! image pull back-off, the container hash, termination order and grace, log names. Never: I/O, a clock, a failure.
//! Everything observable comes in through [`PlanInput`]; the caller carries a [`PodPlan`] out in the order in which its
//! fields stand. Behaviour: pod-lifecycle 4, 5.1, 5.2, 6, 8.6.
//!
//! Whether a resize is granted is decided elsewhere: the pod that comes in has what was granted to it.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod action;
pub mod backoff;
mod decide;
pub mod grace;
pub mod hash;
mod init;
mod input;
pub mod kill_order;
pub mod logs;
pub mod resize;
pub mod restart;
pub mod sandbox;

pub use action::{
    Cause, ContainerKill, ContainerReset, ContainerStart, CreateSandbox, How, KillPod, KillReason, PodPlan, Wait,
};
pub use backoff::{CrashBackoff, Hold, ImageBackoff};
pub use decide::plan;
pub use input::{Gates, PlanInput, ProbeResults};
pub use resize::{ContainerResize, Resize};
pub use sandbox::{SandboxChange, SandboxDecision};

#[cfg(test)]
mod tests;
