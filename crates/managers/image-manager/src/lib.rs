//! ImageManager: images that containers need, pulled when they must be, removed when there is no room.
//!
//! **Owns** pull back-off, the rate of pulls, which image is being pulled for whom, which credentials a pull is tried with,
//! the records below `<root>/image_manager`, and the removal of images.
//! **Asks** ObjectStore (service accounts for plugins); reads RuntimeClient's board (images in use); tells EventRecorder;
//! calls the image service and credential plugins through their ports.
//! **Never** cancels a pull because the pod or this actor is gone: a pull runs on the pool and answers whoever still waits.
//! Never lets one pod use what another pod's secret opened, unless the records allow it.
//! **Lost on restart** are the back-off (a failed pull is tried once early, as after a restart of a kubelet) and who could
//! join a pull under way (it is then pulled twice at most). Slots, the credential cache, how old images are and the order of
//! record keeping live outside of the actor, and are lost with its process. How old images are is forgotten, too, when no pass has
//! looked for ten minutes, as while another process had the place: they count as new then.
//! **Read next** `ensure.rs` and `pull.rs` (one request from start to end), `pulls.rs` (which may start), `credentials.rs`,
//! `pull_records.rs`, `gc.rs`, `actor.rs`, policy/image-pull and policy/pull-credentials (the rules).

#![forbid(unsafe_code)]

mod actor;
mod ages;
mod credential_cache;
mod credentials;
mod deps;
mod ensure;
mod gc;
mod pull;
mod pull_records;
mod pulls;
mod recover;
mod request;
mod slots;

#[cfg(test)]
mod tests;

pub use crate::actor::ImageManager;
pub use crate::ages::ImageAges;
pub use crate::credential_cache::CredentialCache;
pub use crate::deps::{Config, Deps};
pub use crate::pull_records::PullRecords;
pub use crate::slots::Slots;
