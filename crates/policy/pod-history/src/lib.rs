//! Where a pod stands: what is remembered of its life, and what it waits for.
//!
//! Owns: what is recorded and counted together, the bounds of a history, its form in the journal, its words, the bars that a
//! life is shown as, and the verdict of `bosun why`, from facts that others read. Never: I/O, a clock, a failure.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod facts;
mod found;
mod journal;
mod pending;
mod record;
mod timeline;
mod verdict;
mod words;

pub use facts::{ApiFacts, Facts, Probes, Pulls, RuntimeFacts, VolumeFacts, WorkerFacts, WorkerStage};
pub use found::Cause;
pub use journal::{from_bytes, to_bytes};
pub use record::{MOST, New, TEXT_BYTES, TEXTS, begin, close_open, end, note, open, was_done};
pub use timeline::{Bar, Timeline, timeline};
pub use verdict::{Decision, Verdict, why};
pub use words::sentence;

#[cfg(test)]
mod tests;
