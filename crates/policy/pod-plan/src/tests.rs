//! Tables of pod-lifecycle 4, one row per row, and properties over random worlds.

mod backoff;
mod init;
mod kill;
mod names;
mod properties;
mod regular;
mod resize;
mod restart_all;
mod sandbox;
mod world;
