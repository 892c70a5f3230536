//! A manager of a bosun node in a process of its own.
//!
//! An operator writes the same actor as one that is linked into a node: `impl Handler<StartProbes>`, a `Crew` of its role for all
//! that it asks, reads and posts, the kernel's clock, supervision by the kernel, a journal. [`main`] is the whole program around it:
//!
//! ```no_run
//! # use actor::{Actor, Ctx, Handler, supervised};
//! # use contract::{Crew, probe::{RetainProbes, StartProbes, StopProbes}};
//! # struct Probes;
//! # impl Actor for Probes { type Context = Ctx<Self>; }
//! # supervised!(Probes);
//! # impl Handler<StartProbes> for Probes { type Result = (); fn handle(&mut self, _: StartProbes, _: &mut Ctx<Self>) {} }
//! # impl Handler<StopProbes> for Probes { type Result = (); fn handle(&mut self, _: StopProbes, _: &mut Ctx<Self>) {} }
//! # impl Handler<RetainProbes> for Probes { type Result = (); fn handle(&mut self, _: RetainProbes, _: &mut Ctx<Self>) {} }
//! # impl Probes { fn new(_: Crew<contract::ProbeManager>) -> Self { Probes } }
//! fn main() -> std::process::ExitCode {
//!     bosun_manager_sdk::main(|crew, _outside| Probes::new(crew))
//! }
//! ```
//!
//! What it counts is told with the metrics of its node: what bosun counts in the same role, and what the program counts into the default
//! registry of [`prometheus`](metrics::prometheus).
//!
//! **Owns** the socket, one life of the manager at a time (it begins when a node attaches and ends with the connection), and
//! mirrors of the boards that it reads.
//! **Never** decides anything of the manager's, and never talks to another user's process.
//! **Lost on restart** what the manager holds in its factory; its rows and journal lines are the node's and come back.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod asks;
mod journal;
mod listen;
mod outside;
mod program;
mod repeats;
mod serve;
mod service;
mod session;

pub use actor;
pub use contract;
pub use metrics;
pub use outside::Outside;
pub use ports;
pub use program::main;
pub use serve::{Options, ServeError, serve, serve_each};

/// The service of a manager.
#[allow(unreachable_pub, missing_docs, clippy::all, clippy::pedantic)]
mod stub {
    include!(concat!(env!("OUT_DIR"), "/bosun.manager.v1.rs"));
}
