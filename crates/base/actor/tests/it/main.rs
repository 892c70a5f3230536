//! The kernel, seen from outside, in simulated time (only `system` takes real threads).

#![allow(clippy::unwrap_used, reason = "tests")]

mod blocking;
mod crew;
mod fairness;
mod families;
mod faults;
mod groups;
mod inlets;
mod logs;
mod messages;
mod panics;
mod poison;
mod stuck;
mod system;
mod timers;
mod watch;
