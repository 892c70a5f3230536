//! ConfigSources: desired pods from a folder or a single file of static pod manifests.
//!
//! **Owns** what each file holds: its pod, or why it has none.
//! **Asks** PodManager (the complete set, every time); tells EventRecorder. Reads no view.
//! **Never** lets one bad file disturb another, and never writes to the folder.
//! **Lost on restart** is only that a broken file had an older good version: the folder is read again, and a pod whose file
//! is broken at that moment is gone from the set, as it would be at the next periodic look.
//! **Read next** `store.rs` (the rules), then `actor.rs`, then `folder.rs` (reading) and `watch.rs` (inotify).

#![forbid(unsafe_code)]

mod actor;
mod folder;
mod store;
mod watch;

#[cfg(test)]
mod tests;

pub use crate::actor::{Config, ConfigSources, Deps};
pub use crate::watch::{Change, Changes, FolderWatch, InotifyWatch};
