//! ConfigSources: desired pods from a folder or a single file of static pod manifests, from a URL, and from the API server.
//! Each source is an actor of its own, and one that fails disturbs no other.
//!
//! **Owns** what each file holds (its pod, or why it has none), the last good answer of the URL, and the API server's pods
//! with their copies in the journal (`api-pods/<uid>`), from which pods go on when the server is away.
//! **Asks** PodManager (the complete set, every time); tells EventRecorder; follows the API server. Reads the NodeManager's
//! view: the API source starts when the Node object is known.
//! **Never** lets one bad file disturb another, and never writes to the folder.
//! **Lost on restart** is only that a broken file had an older good version: the folder is read again, and a pod whose file
//! is broken at that moment is gone from the set, as it would be at the next periodic listing.
//! **Read next** a folder per source: `folder.rs`, with `folder/manifests.rs` (pure: the rules of the folder); `api.rs`, with
//! `api/set.rs` (pure), `api/boot.rs` and `api/storing.rs`; `http.rs` for the URL. `own.rs` and `handover.rs` are common to them.

#![forbid(unsafe_code)]

pub mod api;
pub mod folder;
mod handover;
pub mod http;
mod own;
mod view;

#[cfg(test)]
mod tests;
