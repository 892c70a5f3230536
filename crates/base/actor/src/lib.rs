//! The actor kernel: everything that makes an actix actor survive its own bugs.
//!
//! Owns: the actor context ([`Ctx`]), the envelope of every message, supervision with groups, restart budgets and back-off,
//! bounded mailboxes, deadlines, fair turns, threads for work that blocks, stuck detection, fault points, the clock, seeded randomness, metrics, spans.
//! Never does: anything about pods; no I/O, no configuration files. Nobody outside this crate touches `actix::Context`,
//! `Supervisor`, `SyncArbiter` or `Addr`.
//!
//! ```
//! use actor::{Actor, AskError, Ctx, Handler, Spec, message, supervised, testing};
//! use std::time::Duration;
//!
//! struct Counter(u64);
//! impl Actor for Counter {
//!     type Context = Ctx<Self>;
//! }
//! supervised!(Counter);
//!
//! struct Divide { by: u64 }
//! message!(Divide => u64);
//! impl Handler<Divide> for Counter {
//!     type Result = u64;
//!     fn handle(&mut self, Divide { by }: Divide, _: &mut Ctx<Self>) -> u64 {
//!         self.0 / by
//!     }
//! }
//!
//! testing::run(7, |kernel| async move {
//!     let counter = kernel.spawn(Spec::new("counter"), |_generation| Counter(10));
//!     let second = Duration::from_secs(1);
//!     assert_eq!(counter.ask(Divide { by: 0 }, second).await, Err(AskError::Crashed));
//!     assert_eq!(counter.ask(Divide { by: 2 }, second).await, Ok(5)); // rebuilt, same address
//! });
//! ```
//!
//! # Rules
//! - Messages and results are owned plain data. Every ask has a deadline; an expired ask is not started, a tell never
//!   dropped.
//! - A turn never blocks and never waits. Slow work is an effect: [`Ctx::run`], [`Deferred`] (both end with their
//!   generation) or [`Detached`] (outlives it). What blocks its thread goes through [`Ctx::blocking`], or [`Effects`] inside
//!   of an effect: each [`Class`] has threads of its own.
//! - State is rebuilt by looking: the factory makes an empty actor, `started` looks. Exclusive things (sockets, locks,
//!   files) are taken in `started`: the factory runs while the crashed state still exists.
//! - Nothing but flags in `stopping`, `stopped` and `Drop`. A second panic while a turn unwinds (from a `Drop` of a local)
//!   ends the process; no kernel can catch that.
//! - Each wake looks at a flag of every future of the actor: keep hundreds of them, not many thousands.
//! - Time from [`Ctx::clock`], randomness from [`Ctx::rng`]: then the same seed gives the same run in [`testing`].

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod blocking;
mod clock;
mod context;
mod control;
mod crash;
mod directory;
mod envelope;
mod error;
mod family;
mod faults;
mod group;
mod info;
mod inlet;
mod kernel;
mod macros;
mod passages;
mod place;
mod poison;
mod record;
mod reference;
mod reply;
mod seed;
mod send;
mod spawn;
mod supervise;
pub mod testing;
mod turn;
mod type_name;
mod unattended;
pub mod watch;
mod watchdog;

pub use actix::{
    Actor, ActorContext, ActorFutureExt, ActorState, AsyncContext, Handler, Message, MessageResult, Running,
    SpawnHandle, Supervised, WrapFuture,
};

pub use blocking::{Class, ClassInfo, Effects, Hold, Serial, WorkPanicked};
pub use clock::Clock;
pub use context::{Ctx, Managed};
pub use directory::{Directory, Totals};
pub use error::{AskError, TellError, chain};
pub use family::Family;
pub use faults::{Action, FaultHandle, Faults, Rule, RuleError, When};
pub use group::{Group, Policy, Strategy};
pub use info::{ActorInfo, ActorPhase, TURN_BUCKETS_US};
pub use inlet::{Inlet, Route};
pub use kernel::{Kernel, KernelConfig, Unhealthy};
pub use place::run_system;
pub use poison::{SetAside, Subject};
pub use reference::ActorRef;
pub use reply::{Deferred, Detached};
pub use spawn::Spec;
pub use turn::{Mail, Turn};
pub use watchdog::{Blocked, Watchdog};
