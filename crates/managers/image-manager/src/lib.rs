//! ImageManager: images that containers need, pulled when they must be, removed when there is no room.
//!
//! **Owns** pull back-off, the rate of pulls, which image is being pulled for whom, which credentials a pull is tried with,
//! the records below `<root>/image_manager`, and the removal of images.
//! **Asks** ObjectStore (service accounts for plugins); reads RuntimeClient's board (images in use); tells EventRecorder;
//! calls the image service and credential plugins through their ports.
//! **Never** cancels a pull because the pod or this actor is gone: a pull runs on the pool and answers whoever still waits.
//! Never lets one pod use what another pod's secret opened, unless the records allow it.
//! **Lost on restart** are the back-off (a failed pull is tried once early, as after a restart of a kubelet), who could
//! join a pull under way (it is then pulled twice at most), and how old images are. Slots and the vault live outside of the
//! actor.
//! **Read next** `ensure.rs` (one request from start to end), `credentials.rs`, `records.rs`, `gc.rs`, `actor.rs` (what needs
//! memory), policy/image-pull and policy/pull-credentials (the rules).

#![forbid(unsafe_code)]

mod actor;
mod credentials;
mod ensure;
mod gc;
mod records;
mod slots;
mod vault;

#[cfg(test)]
mod tests;

pub use crate::actor::{Config, Deps, ImageManager};
pub use crate::slots::Slots;
pub use crate::vault::Vault;
