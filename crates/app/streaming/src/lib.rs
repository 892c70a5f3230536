//! exec, attach and port-forward (interfaces 3.7): a client's upgrade request, carried to the runtime's streaming
//! server and spliced to it.
//!
//! Owns the three routes, WebSocket v5 and its translation to SPDY, SPDY within WebSocket, and the client for our own
//! command line ([`client`]). Never authenticates, never looks into bytes that it only passes on, keeps no task and no
//! buffer of a stream that is over.

#![forbid(unsafe_code)]

mod backend;
pub mod client;
mod deps;
mod handlers;
mod handshake;
mod options;
mod refusal;
mod relay;
mod remote_command;
mod splice;
mod status;
mod streams;
mod tunnel;
mod websocket;

pub use deps::{Deps, Settings};
pub use handlers::router;
pub use status::Outcome;
pub use streams::Streams;

#[cfg(test)]
mod tests;
