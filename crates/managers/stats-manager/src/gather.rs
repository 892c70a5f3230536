//! One gathering: what is read, what the runtime is asked, what comes of it.

mod cadvisor;
mod paths;
mod pods;
mod sources;
mod summary;

pub(crate) use cadvisor::cadvisor;
pub(crate) use paths::{pod_dir, single_name};
pub(crate) use sources::{Cache, Sources, Volumes};
pub(crate) use summary::{cpu_and_memory, full};
