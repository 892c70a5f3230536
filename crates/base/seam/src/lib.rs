//! The border between bosun and a manager in another process: the frames of `proto/bosun/manager/v1/manager.proto` as plain data,
//! and what both sides do alike.
//!
//! **Owns** the order of what is said ([`Out`]: rows before the message that may rest on them), calls that wait for an answer
//! ([`Calls`]), which messages and boards a role has by name ([`Desk`], [`Boards`]), and the limits of all that.
//! **Never** opens a socket: that is done by the adapters `remote-manager` (bosun's side) and `bosun-manager-sdk` (the manager's).

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod boards;
mod calls;
mod desk;
pub mod numbers;
mod out;

pub use boards::{Boards, Feeds};
pub use calls::{Calls, Lost};
pub use desk::{Asked, Desk};
pub use out::{Ended, Out, Said};

/// Package `bosun.manager.v1`.
#[allow(missing_docs, missing_debug_implementations, clippy::pedantic, clippy::doc_markdown)]
pub mod v1 {
    include!(concat!(env!("OUT_DIR"), "/bosun.manager.v1.rs"));
}

/// A frame that is larger is refused by whoever would read it. Larger than any object of the API server, which holds 1.5 MiB.
pub const MAX_FRAME: usize = 4 << 20;
/// A message or an answer of this size is not sent: its frame would be too large.
const MAX_BODY: usize = MAX_FRAME - 4096;
/// Rows of one frame: a frame is closed when they take this much.
const FRAME_OF_ROWS: usize = 256 << 10;
/// Frames that may wait until the other side reads.
pub const WAITING_FRAMES: usize = 256;
/// Calls of one side that may be without an answer.
pub const MAX_CALLS: usize = 512;

#[cfg(test)]
mod tests;
