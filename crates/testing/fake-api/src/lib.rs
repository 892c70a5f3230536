//! An API server over real HTTP (plain or TLS, 1.1 or 2) on the state of [`fakes::FakeApi`], with watches as a real one
//! serves them, and with what a real one cannot be made to do: 410 storms, half-closed watches, bursts of 429, garbage.
//!
//! What a [`fakes::FakeApi`] is told to do wrong, this does too: failures with a status are answered, others cut the
//! connection. It checks no schemas and no permissions.

#![forbid(unsafe_code)]

mod answer;
mod pki;
mod reply;
mod serve;
mod state;
mod trouble;
mod watch;

pub use pki::{Authority, Issued};
pub use serve::{FakeApiServer, ServerTls};
pub use state::Peer;
pub use trouble::{HttpTrouble, WatchTrouble};

#[cfg(test)]
mod tests;
