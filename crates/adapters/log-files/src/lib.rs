//! What reading and rotating container logs needs of the system.
//!
//! **Owns** one inotify instance for all who follow logs, reads that do not wait for a disk, and compression.
//! **Never** opens a log by its path (whoever does takes `host_linux::open_regular`), knows what a line is, who asked for it, or
//! when a log is rotated.

#![forbid(unsafe_code)]

mod file;
mod gzip;
mod watch;

#[cfg(test)]
mod tests;

pub use file::{LogFile, ResolveError, resolve};
pub use gzip::{Gzip, Open};
pub use watch::{FolderChanges, FolderWatch};
