//! Managers in processes of their own, for tests of the border: `honest`, which is served by the SDK, `images`, `statuses` and
//! `volumes`, which are bosun's own, and `lies`, which breaks every rule it is told to.

#![forbid(unsafe_code)]

/// The service of a manager, both sides.
#[allow(missing_docs, clippy::all, clippy::pedantic)]
pub mod stub {
    include!(concat!(env!("OUT_DIR"), "/bosun.manager.v1.rs"));
}

/// A variable of the environment that a program needs.
///
/// # Errors
/// It is not set, or no text.
pub fn variable(name: &str) -> Result<String, String> {
    std::env::var(name).map_err(|e| format!("{name}: {e}"))
}
