//! Scenarios: what happens to a node as data, made by chance from a seed, played on a node in memory, judged, and made shorter
//! when something is wrong.
//!
//! **Owns** no behaviour of the node and no fake: [`Scenario`] is plain data, [`generate`] a function of a seed, [`check`] a
//! function of what was seen. [`play`] alone runs a node (crate `sim`).
//! **Never** looks at what the node thinks of itself where the world outside tells: its containers, its API server.
//! **Read next** `step.rs`, `history.rs`, `check.rs`, then `play.rs`.

#![forbid(unsafe_code)]

mod check;
mod coverage;
mod generate;
mod history;
mod observe;
mod play;
mod shape;
mod shrink;
mod step;

pub use check::{CHECKERS, Finding, check};
pub use coverage::{Coverage, all_decisions};
pub use generate::{Mix, generate};
pub use history::{Fact, History, Of, Told, ToldContainer};
pub use play::{Outcome, play};
pub use shape::{Does, Means, Part, ProbeKind, Rest, Restart, Shape, Stop, Volume};
pub use shrink::shrink;
pub use step::{ApiTrouble, DiskTrouble, RuntimeTrouble, Scenario, Step, Timed};
