//! A role whose actor lives in another process: what crosses the border between them, by name and as JSON.
//!
//! From a declaration come, for whoever builds a border ([`Visit`]): its messages, the boards that it reads ([`Feed`]: a snapshot,
//! then numbered changes) and the rows that it posts ([`Taker`], past the fence of its role). [`StandIn`] is the actor that
//! answers in this process for one elsewhere, [`hash`] what both sides must have in common. Nothing here knows sockets or frames.

mod hash;
mod stand_in;

pub use crate::feed::{Changes, Feed};
pub use crate::role::{Posted, Visit};
pub use crate::taker::{Refusal, Taken, Taker};
pub use hash::hash;
pub use stand_in::{Far, Forwarded, StandIn};

#[cfg(test)]
mod tests;
