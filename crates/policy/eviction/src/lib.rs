//! What a node does when something runs short on it, as pure functions (node-and-resources 3).
//!
//! Owns signals and thresholds, when one is crossed and for how long, which conditions follow, what is tidied up before a
//! pod has to go, which pod goes, what is said of it, and when to look again. Never reads a host, a clock or a board.

#![forbid(unsafe_code)]

mod layout;
mod ledger;
mod local;
mod message;
mod pace;
mod rank;
mod signal;

pub use layout::{Layout, Reclaim, for_layout, reclaim};
pub use ledger::{Ledger, Verdict, is_relieved, would_relieve};
pub use local::{Overrun, has_local_limit, is_unmeasured, local_overrun};
pub use message::{Told, told, was_for};
pub use pace::{LONGEST, SHORTEST, UNWARNED, next_look};
pub use rank::{Candidate, grace_seconds, rank};
pub use signal::{Amount, Observed, Resource, Signal, Signals, Threshold, is_met, with_allocatable};

#[cfg(test)]
mod tests;
