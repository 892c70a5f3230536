//! How a connection fails.

use thiserror::Error;

use crate::frame::FrameError;
use crate::headers::HeaderError;

/// Why a connection ended before its holders let go of it.
#[derive(Debug, Error)]
pub enum ConnectionError {
    /// The transport failed.
    #[error("the connection failed")]
    Io(#[from] std::io::Error),
    /// The peer sent no SPDY/3.1.
    #[error("the peer broke the protocol")]
    Frame(#[from] FrameError),
    /// The peer sent a header block that cannot be read.
    #[error("the peer broke the protocol")]
    Header(#[from] HeaderError),
    /// The peer asks for answers faster than it takes them.
    #[error("the peer floods the connection")]
    Flood,
    /// The peer closed the connection in the middle of a frame.
    #[error("the connection ended within a frame")]
    Cut,
}
