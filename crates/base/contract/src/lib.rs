//! The protocols of the crew: one file per manager with its messages and rows, and `roles.rs` with the one declaration of each
//! that says what it answers, what it posts, whom it may ask and what it may read.
//!
//! From the declarations come routes and boards ([`Wiring`]), the capabilities that each manager is given ([`Crew`]), the
//! tables of ARCHITECTURE.md, and the list of actors that fault tests strike ([`DECLARATIONS`]). A message that a role does
//! not declare does not compile:
//!
//! ```compile_fail,E0277
//! use contract::{ProbeManager, Wiring};
//! use contract::runtime::Relist;
//!
//! let crew = Wiring::default().crew::<ProbeManager>();
//! let answer = crew.ask(Relist); // ProbeManager does not declare that it sends `Relist`
//! ```
//!
//! nor does a board that a role does not read, nor one that it does not own:
//!
//! ```compile_fail,E0277
//! use contract::{ProbeManager, Wiring, volume::PodVolumes};
//! let board = Wiring::default().crew::<ProbeManager>().board::<PodVolumes>();
//! ```
//!
//! ```compile_fail,E0271
//! use contract::{ProbeManager, Wiring, status::StatusEntry};
//! let poster = Wiring::default().crew::<ProbeManager>().poster::<StatusEntry>();
//! ```
//!
//! What is declared does:
//!
//! ```
//! use contract::{ProbeManager, Wiring, probe::PodProbes, status::StatusEntry};
//! let crew = Wiring::default().crew::<ProbeManager>();
//! let (statuses, own) = (crew.board::<StatusEntry>(), crew.poster::<PodProbes>());
//! ```
//!
//! Whoever answers a manager's messages *is* that manager (the crate here, an operator's, a process elsewhere, a fake).
//! Messages, answers, rows and errors are owned plain data that can cross a process border. Their enums are
//! [`model::tolerant!`]: a newer peer may send a variant that is not known here. Of fields a reader passes over what it does not
//! know, and one that a struct did not have at first is an `Option` or has `serde(default)`: an older peer does not send it.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

#[macro_use]
mod role;
mod roles;

pub mod board;
pub mod certificates;
pub mod cgroup;
pub mod config_sources;
mod crew;
mod declaration;
pub mod event;
pub mod eviction;
mod feed;
mod fence;
pub mod image;
pub mod lookup;
mod memory;
pub mod node;
pub mod objects;
pub mod plugin;
pub mod pod_manager;
pub mod pod_worker;
pub mod probe;
pub mod record;
#[cfg(test)]
mod round_trip;
pub mod runtime;
pub mod seam;
mod seat;
pub mod shutdown;
pub mod stats;
pub mod status;
mod taker;
mod tally;
pub mod volume;
mod wire;
mod wiring;

pub use crew::Crew;
pub use declaration::{Declaration, Edge, Memory, MessageDeclaration, Named, Outcome, RowDeclaration, Unanswered};
pub use fence::{Fence, FenceToken};
pub use memory::Told;
pub use role::{Answers, Asks, Endpoint, Reads, Role, RoleMessage, SingleValue, TableRow};
pub use roles::{
    ApiSource, CertificateManager, CgroupManager, DECLARATIONS, EventRecorder, EvictionManager, FolderSource,
    HttpSource, ImageManager, LogManager, NodeLease, NodeManager, ObjectStore, OomWatcher, PluginManager, PodManager,
    PodWorker, ProbeManager, RuntimeClient, Server, ShutdownManager, StatsManager, StatusManager, StatusSyncer,
    Supervisor, VolumeManager,
};
pub use seat::{Answered, Compare, Seat};
pub use wiring::Wiring;
