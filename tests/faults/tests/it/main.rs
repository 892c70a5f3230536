//! A whole node on a virtual clock: scenarios, then faults at every point of every actor.

#![allow(clippy::unwrap_used, reason = "tests")]

mod start;
