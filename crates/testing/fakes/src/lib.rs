//! Stand-ins for what lies outside of the node daemon: one fake for each port. They keep state and answer by it, as the real
//! thing does; they are not lists of expected calls. Managers that a test plays itself are [`StandIn`]s of their role. All of them run on tokio's clock, so a paused runtime makes them deterministic.

#![forbid(unsafe_code)]

pub mod api;
mod credential;
mod csi_volumes;
pub mod files;
pub mod host;
pub mod journal;
mod kernel_log;
mod logind;
pub mod luns;
mod memory_alarm;
pub mod net;
mod objects;
mod plugins;
mod pods;
mod rows;
pub mod runtime;
mod stand_in;
pub mod stats;
mod watch;
pub mod web;

pub use api::FakeApi;
pub use credential::FakePlugin;
pub use csi_volumes::{FakeVolumes, VolumeCall};
pub use files::{Folder, MemFs};
pub use host::{FakeCgroups, FakeMachine, FakeQuotas};
/// Files of tests are real, in a temporary folder; so are cgroups' counters.
pub use host_linux::{LinuxFs, LinuxStats};

pub use journal::MemoryJournal;
pub use kernel_log::FakeKernelLog;
pub use logind::FakeLogind;
pub use memory_alarm::FakeMemoryAlarm;
pub use net::FakeNet;
pub use objects::Objects;
pub use plugins::{FakeDriver, FakePlugins, PluginTrouble};
pub use pods::{object, pod, pull_secret};
pub use rows::{desire, observe, status_entry, well};
pub use runtime::FakeRuntime;
pub use stand_in::{Events, StandIn, start};
pub use watch::FakeWatch;
pub use web::FakeWeb;

/// Generated server stubs.
#[allow(unreachable_pub, missing_docs, clippy::all, clippy::pedantic)]
mod stubs {
    pub mod cri {
        include!(concat!(env!("OUT_DIR"), "/runtime.v1.rs"));
    }
    pub mod containerd {
        include!(concat!(env!("OUT_DIR"), "/containerd.services.events.v1.rs"));
    }
}
