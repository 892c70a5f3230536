//! What a container's log file says, which part of it a request asks for, and when the file is rotated.
//!
//! **Owns** the line formats (CRI, Docker JSON), the query of `/containerLogs`, the choice of the container instance, the
//! search for the last lines, and the plan of a rotation (interfaces 4).
//! **Never** opens a file, waits, or asks what time it is.
//! **Read next** `printer.rs` (bytes of a file in, bytes of an answer out), then `options.rs`, then `rotation.rs`.

#![forbid(unsafe_code)]

mod choice;
mod line;
mod options;
mod printer;
mod quote;
pub mod rotation;
mod stamp;
mod tail;

#[cfg(test)]
mod tests;

pub use choice::choose;
pub use line::{BadLine, Format, Line, Source};
pub use options::{LogOptions, Refusal, Streams, decode};
pub use printer::{Fed, LONG_LINE, MAX_JSON_LINE, Printer, Wanted};
pub use quote::quote;
pub use stamp::Stamp;
pub use tail::TailScan;
