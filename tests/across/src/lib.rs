//! Managers in processes of their own, for tests of the border: `honest`, which is served by the SDK, `statuses`, which is bosun's
//! own StatusManager, and `lies`, which breaks every rule it is told to.

#![forbid(unsafe_code)]

/// The service of a manager, both sides.
#[allow(missing_docs, clippy::all, clippy::pedantic)]
pub mod stub {
    include!(concat!(env!("OUT_DIR"), "/bosun.manager.v1.rs"));
}
