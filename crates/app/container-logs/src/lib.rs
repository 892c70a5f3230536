//! `GET /containerLogs/{namespace}/{pod}/{container}`: the logs of containers, also while they are written.
//!
//! **Owns** the way from a request to a stream of bytes: which file, from where, until when.
//! **Never** reads anything but the log file that the runtime names for the container; a client chooses among containers,
//! not among paths. A kubelet does the same: it follows symlinks in that path once (Docker's shim relies on it), so whoever
//! may write below the pod log folder chooses what is read. Here, other than there, the resolved path is opened without
//! following a link that was put there since, also after a rotation, and only if it is a regular file.
//! **Never** runs a task or thread of its own per reader: the connection's own task reads while it can send, and holds two
//! chunks of 32 KiB at most that the client has not taken.
//! **Read next** `route.rs`, then `reader.rs`, then `file.rs` and `liveness.rs`.

#![forbid(unsafe_code)]

mod file;
mod liveness;
mod reader;
mod route;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use actor::{Clock, Effects};
use contract::lookup::PodLookup;
use ports::runtime::ContainerRuntime;

pub use route::router;

/// What the route works with. Cheap to clone.
#[derive(Clone)]
pub struct Deps {
    /// Pods, their statuses, and what the runtime has of them.
    pub lookup: PodLookup,
    /// Asked about a container that the runtime board does not show.
    pub runtime: Arc<dyn ContainerRuntime>,
    /// Reads what is not in memory.
    pub effects: Effects,
    /// What `sinceSeconds` counts back from.
    pub clock: Clock,
    /// Tells of changes in log folders: one for the whole node.
    pub watch: log_files::FolderWatch,
    /// Settings.
    pub settings: Settings,
}

impl std::fmt::Debug for Deps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("container_logs::Deps")
    }
}

/// Settings.
#[derive(Clone, Copy, Debug, Default)]
pub struct Settings {
    /// Feature gate `PodLogsQuerySplitStreams` (alpha since 1.32): one output alone may be asked for.
    pub split_streams: bool,
}
