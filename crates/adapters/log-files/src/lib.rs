//! What reading and rotating container logs needs of the system.
//!
//! **Owns** one inotify instance for all who follow logs, reads that do not wait for a disk, and compression.
//! **Never** knows what a line is, who asked for it, or when a log is rotated.

#![forbid(unsafe_code)]

mod file;
mod gzip;
mod watch;

#[cfg(test)]
mod tests;

pub use file::{LogFile, ResolveError, resolve};
pub use gzip::Gzip;
pub use watch::{FolderChanges, FolderWatch};
