//! The container runtime over CRI v1 gRPC on a unix socket.
//!
//! Owns the connection, the deadline of each call (interfaces 7.3), the reconnect back-off, what the runtime
//! turned out not to implement, and the two tiers of events. Decides nothing about pods and retries no call.

#![forbid(unsafe_code)]

mod client;
mod deadline;
mod endpoint;
mod events;
mod handshake;
mod measure;
mod status;

pub use client::{CriClient, Options};
pub use deadline::Deadlines;
pub use endpoint::{Endpoint, EndpointError};
pub use grpc::{Connector, Link, Local};
pub use handshake::{Handshake, HandshakeError};

/// Largest message that is accepted.
pub const MAX_MESSAGE: usize = 16 << 20;

/// Generated client stubs.
#[allow(unreachable_pub, missing_docs, clippy::all, clippy::pedantic)]
mod stubs {
    pub mod cri {
        include!(concat!(env!("OUT_DIR"), "/runtime.v1.rs"));
    }
    pub mod containerd {
        include!(concat!(env!("OUT_DIR"), "/containerd.services.events.v1.rs"));
    }
}
