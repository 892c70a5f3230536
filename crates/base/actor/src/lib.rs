//! The actor kernel: everything that makes an actix actor survive its own bugs.
//!
//! Owns: the actor context ([`Ctx`]), the envelope of every message, supervision with groups, restart budgets and back-off,
//! bounded mailboxes, deadlines, fair turns, stuck detection, fault points, the clock, seeded randomness, metrics, spans.
//! Never does: anything about pods; no I/O, no configuration files. Nobody outside this crate touches `actix::Context`,
//! `Supervisor`, `SyncArbiter` or `Addr`.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod clock;
mod context;
mod control;
mod directory;
mod envelope;
mod error;
mod faults;
mod group;
mod inlet;
mod kernel;
mod macros;
mod place;
mod record;
mod reference;
mod reply;
mod seed;
mod supervise;
pub mod testing;
mod watchdog;

pub use actix::{
    Actor, ActorContext, ActorFutureExt, ActorState, ArbiterHandle, AsyncContext, Handler, Message, MessageResult,
    Running, SpawnHandle, Supervised, WrapFuture,
};

pub use clock::Clock;
pub use context::Ctx;
pub use directory::{ActorInfo, ActorPhase, Directory, TURN_BUCKETS_US};
pub use envelope::{Mail, Turn};
pub use error::{AskError, TellError, chain};
pub use faults::{Action, FaultHandle, Faults, Rule, RuleError, When};
pub use group::{Group, Policy, Strategy};
pub use inlet::Inlet;
pub use kernel::{Kernel, KernelConfig, Spec};
pub use place::{Arbiters, Place, run_system};
pub use reference::{ActorRef, Managed};
pub use reply::{Deferred, Detached};
pub use watchdog::{Blocked, Watchdog};
