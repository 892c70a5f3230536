//! CSI drivers and plugins that register themselves, over gRPC on their unix sockets.
//!
//! Owns the connection of each call, its deadline, and how many calls one socket has at a time. A connection serves calls that
//! follow each other within a second (a kubelet makes one for each), and none of a driver that was started anew. Repeats no call
//! and knows no volume.

#![forbid(unsafe_code)]

mod client;
mod node;
mod registration;

#[cfg(test)]
mod tests;

pub use client::CsiClient;

/// Generated client stubs.
#[allow(unreachable_pub, missing_docs, clippy::all, clippy::pedantic)]
mod stubs {
    pub mod csi {
        include!(concat!(env!("OUT_DIR"), "/csi.v1.rs"));
    }
    pub mod registration {
        include!(concat!(env!("OUT_DIR"), "/pluginregistration.rs"));
    }
}
