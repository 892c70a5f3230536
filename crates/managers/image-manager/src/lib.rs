//! ImageManager: images that containers need, pulled when they must be.
//!
//! **Owns** pull back-off, the rate of pulls, and which image is being pulled for whom.
//! **Asks** nobody; tells EventRecorder; calls the image service through its port.
//! **Never** cancels a pull because the pod or this actor is gone: a pull runs on the pool and answers whoever still waits.
//! **Lost on restart** are the back-off (a failed pull is tried once early, as after a restart of a kubelet) and who could
//! join a pull under way (it is then pulled twice at most). Slots and the view live in [`Slots`], outside of the actor.
//! **Read next** `ensure.rs` (one request from start to end), `actor.rs` (what needs memory), policy/image-pull (the rules).

#![forbid(unsafe_code)]

mod actor;
mod ensure;
mod slots;

#[cfg(test)]
mod tests;

pub use crate::actor::{Config, Deps, ImageManager};
pub use crate::slots::Slots;
