//! One look at the daemon.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use anyhow::Result;
use model::Timestamp;
use serde::Deserialize;
use server::local::PodItems;

use crate::client::{Refused, get};
use crate::columns::now;

/// What to show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Section {
    /// Pods and actors.
    #[default]
    All,
    /// Pods.
    Pods,
    /// Actors.
    Actors,
}

impl Section {
    pub(super) fn pods(self) -> bool {
        self != Section::Actors
    }

    pub(super) fn actors(self) -> bool {
        self != Section::Pods
    }
}

/// What `/stats/summary` says, as far as it is shown.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Summary {
    pub(super) node: NodeStats,
    pub(super) pods: Vec<PodStats>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct NodeStats {
    pub(super) node_name: String,
    pub(super) cpu: Option<Cpu>,
    pub(super) memory: Option<Memory>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct PodStats {
    pub(super) pod_ref: PodRef,
    pub(super) cpu: Option<Cpu>,
    pub(super) memory: Option<Memory>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct PodRef {
    pub(super) uid: String,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Cpu {
    pub(super) usage_nano_cores: Option<u64>,
    pub(super) usage_core_nano_seconds: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Memory {
    pub(super) working_set_bytes: Option<u64>,
    pub(super) available_bytes: Option<u64>,
}

/// A line of `/v1/actors`, as far as it is shown.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ActorLine {
    pub(super) name: String,
    pub(super) state: String,
    pub(super) generation: u64,
    pub(super) restarts: u64,
    pub(super) mailbox_depth: u64,
    pub(super) mailbox_capacity: u64,
    pub(super) turns: u64,
    pub(super) turn_sum_ns: u64,
    pub(super) last_cause: Option<String>,
}

#[derive(Clone, Debug)]
pub(super) struct Sample {
    /// Monotonic, for rates.
    pub(super) taken: Instant,
    /// Wall clock, to show.
    pub(super) at: Timestamp,
    pub(super) pods: PodItems,
    /// Or why there are no figures.
    pub(super) summary: std::result::Result<Summary, String>,
    pub(super) actors: Vec<ActorLine>,
}

impl Sample {
    /// Asks the daemon. Figures that it refuses are a note; that it does not answer is an error.
    pub(super) async fn gather(socket: &Path, what: Section) -> Result<Self> {
        // Names of pods are wanted with actors too: a worker is named by a UID.
        let pods: PodItems = get(socket, "/v1/pods").await?;
        let summary = if what.pods() {
            match get::<Summary>(socket, "/stats/summary?only_cpu_and_memory=true").await {
                Ok(summary) => Ok(summary),
                Err(e) if e.is::<Refused>() => Err(format!("no figures: {e}")),
                Err(e) => return Err(e),
            }
        } else {
            Ok(Summary::default())
        };
        let actors: Vec<ActorLine> = if what.actors() { get(socket, "/v1/actors").await? } else { Vec::new() };
        Ok(Self { taken: Instant::now(), at: now(), pods, summary, actors })
    }

    /// Whether a pod has a counter but no rate.
    pub(super) fn lacks_rates(&self) -> bool {
        let lacks = |cpu: &Cpu| cpu.usage_nano_cores.is_none() && cpu.usage_core_nano_seconds.is_some();
        self.summary.iter().flat_map(|s| &s.pods).filter_map(|p| p.cpu.as_ref()).any(lacks)
    }

    pub(super) fn stats(&self) -> BTreeMap<&str, &PodStats> {
        self.summary.iter().flat_map(|s| &s.pods).map(|p| (p.pod_ref.uid.as_str(), p)).collect()
    }
}
