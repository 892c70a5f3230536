//! Does a manager keep its contract? One suite per role, whoever is tried: an actor in this process, or a process behind a socket.
//!
//! A suite plays the node around one manager: it sends the role's messages, posts the boards that the role reads, answers what the
//! role asks of others, and judges what it sees: answers, rows, what was asked, events. It knows nothing of how a manager is
//! built, so the same cases run against ours and against an operator's ([`InProcess`], [`Elsewhere`]). A [`Case`] names its rule
//! and where that stands: `pod-lifecycle 8.2` is a chapter of `docs/spec`, `contract` a doc comment of `crates/base/contract`.
//!
//! **Owns** nothing of a manager's behaviour. **Never** looks into one.
//! **Read next** `stage.rs`, then `probes/thresholds.rs`.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod case;
mod chosen;
mod elsewhere;
pub mod images;
mod in_process;
pub mod ours;
mod outcome;
mod outside;
mod play;
pub mod probes;
mod report;
mod stage;
pub mod status;
mod subject;
pub mod volumes;
mod watch;

pub use case::Case;
pub use elsewhere::{Elsewhere, Way};
pub use in_process::{Given, InProcess};
pub use outcome::{Broken, Outcome};
pub use outside::Outside;
pub use play::{Choice, play, reach};
pub use report::{Report, Verdict};
pub use stage::Stage;
pub use subject::{Place, Served, Subject};
