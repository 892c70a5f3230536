//! The manager with fakes around it, on a paused clock.

mod bed;
mod faults;
mod probing;
