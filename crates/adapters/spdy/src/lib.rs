//! SPDY/3.1 as container runtimes speak it on their streaming servers: many two-way byte streams over one connection.
//!
//! Owns the frames ([`frame`]), the header blocks ([`headers`]) and one connection ([`Connection`]). It never opens a
//! socket, speaks no HTTP, spawns no task: the owner polls the future that comes with a connection.
//!
//! Streaming servers are built on one Go library, which keeps no flow-control windows: it neither sends WINDOW_UPDATE nor
//! looks at ours, so a window that we honoured would never open again after 64 KiB. Back-pressure is that of the
//! transport: queues are bounded, and who does not read stops the connection (as that library does).

#![forbid(unsafe_code)]

mod connection;
mod drive;
mod error;
pub mod frame;
pub mod headers;
mod reader;
mod shared;
mod stream;
mod writer;

pub use connection::{Connection, Incoming, connect, serve};
pub use error::ConnectionError;
pub use shared::{OpenError, Options};
pub use stream::{Closed, Receiver, Sender, Stream, StreamError};

#[cfg(test)]
mod tests;
