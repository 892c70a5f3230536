//! A real node's surroundings on a plain machine, for demos, benches and end-to-end tests.
//!
//! Owns: a container runtime of its own, containerd or bosun's (config, root, state, socket in one folder), a CNI bridge, images built from local
//! parts, registries on loopback, a daemon under test, and the removal of all of it.
//! Never: touches a system containerd, another bed, or a process that this bed did not start.
//!
//! A [`Guest`] is a machine of its own, with another kernel, for what the one around it cannot show.
//!
//! Everything that a bed leaves on the machine is named in its `bed.json`, so that the next start can remove what
//! a killed owner left behind ([`sweep_orphans`]).

#![forbid(unsafe_code)]

mod bed;
mod bosun;
mod bus;
mod cleanup;
mod cluster;
mod cluster_node;
mod command;
mod config;
mod cri;
mod elsewhere;
mod error;
mod guest;
mod images;
mod machine;
mod network;
mod pod;
mod process;
mod registry;
mod resizes;
mod runtime;
mod socket;

pub use bed::{Options, TestBed, plain_id};
pub use bosun::{Bosun, BosunOptions};
pub use bus::BusDaemon;
pub use cleanup::{remove_bed, sweep_orphans};
pub use cluster::{
    Access, Answer, Authority, CONTROL_PLANE, Cluster, ClusterOptions, ControlPlane, ETCD, KeyPairFiles, Request, Seen,
    Subject, Watch,
};
pub use cluster_node::{ClusterNode, Identity, NodeOptions};
pub use cri::Cri;
pub use elsewhere::{Lasting, MANAGERS, Place, Processes, kills, swaps, wait_served, wanted};
pub use error::BedError;
pub use guest::{GUEST_PACKAGES, Guest, GuestDisk, GuestImage, GuestOptions, Ran, unfit_processor};
pub use images::{BASH_IMAGE, BUSYBOX_IMAGES, Image, PAUSE_IMAGE};
pub use machine::{Need, Problem, REQUIRED, Requirement, missing};
pub use pod::{http_get, identity, state};
pub use process::{Usage, cpu_of_each_thread, let_pass, proportional_kib, usage};
pub use registry::{Login, Registry};
pub use resizes::{Fate, Note, Room, Tally, Wish, Wishes, failed_starts, granted, notes, write_noting_runc};
pub use runtime::{RUNTIME_VARIABLE, RuntimeKind};

/// The program under test: what `BOSUN_BIN` names, else `bosun` as `PATH` has it.
#[must_use]
pub fn program_under_test() -> std::path::PathBuf {
    std::env::var_os("BOSUN_BIN").map_or_else(|| "bosun".into(), Into::into)
}

/// How many times as long as usual a slow machine may take for everything (`TESTBED_PATIENCE`).
#[must_use]
pub fn patience() -> u32 {
    let given = std::env::var("TESTBED_PATIENCE").ok();
    given.and_then(|times| times.parse().ok()).unwrap_or(1).max(1)
}

/// Asks `probe` every few milliseconds until it answers or `limit`, times [`patience`], has passed.
///
/// # Errors
/// [`BedError::Timeout`] with `what` and the last detail that `probe` gave.
pub fn wait_until<T>(
    what: &str,
    limit: std::time::Duration,
    mut probe: impl FnMut() -> Result<T, String>,
) -> Result<T, BedError> {
    let (start, limit) = (std::time::Instant::now(), limit.saturating_mul(patience()));
    loop {
        match probe() {
            Ok(value) => return Ok(value),
            Err(detail) if start.elapsed() > limit => {
                return Err(BedError::Timeout { what: what.to_owned(), limit, detail });
            }
            Err(_) => process::pause(),
        }
    }
}
