//! exec, attach and port-forward (interfaces 3.7): a client's upgrade request, carried to the runtime's streaming
//! server and spliced to it.
//!
//! Owns the three routes, WebSocket v5 and its translation to SPDY, SPDY within WebSocket, and the client for our own
//! command line ([`client`]). Never authenticates, never looks into bytes that it only passes on, keeps no task and no
//! buffer of a stream that is over.

#![forbid(unsafe_code)]

use std::sync::Arc;
use std::time::Duration;

use contract::lookup::PodLookup;
use ports::runtime::ContainerRuntime;

mod backend;
pub mod client;
mod handlers;
mod handshake;
mod options;
mod relay;
mod remote_command;
mod splice;
mod status;
mod streams;
mod tunnel;
mod websocket;

pub use handlers::router;
pub use status::Outcome;
pub use streams::Streams;

/// What the routes need.
#[derive(Clone)]
pub struct Deps {
    /// Finds pods.
    pub lookup: PodLookup,
    /// Gives the URL of its streaming server.
    pub runtime: Arc<dyn ContainerRuntime>,
    /// Limits and switches.
    pub settings: Settings,
    /// The streams that are open; close it when the daemon stops.
    pub streams: Streams,
}

/// Limits and switches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// A stream on which nothing moves for so long is closed: `streamingConnectionIdleTimeout`.
    pub idle_timeout: Duration,
    /// How long the runtime's streaming server may take to accept a connection, and again to answer the upgrade. Ours; a
    /// kubelet has no limit here.
    pub answer_timeout: Duration,
    /// Terminate WebSocket v5 and tunnels here, and relay other WebSockets: gate `ExtendWebSocketsToKubelet`.
    pub websockets: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self { idle_timeout: Duration::from_secs(4 * 3600), answer_timeout: Duration::from_secs(30), websockets: true }
    }
}

#[cfg(test)]
mod tests;
