//! The kernel, seen from outside, in simulated time.

mod crew;
mod messages;
mod panics;
