//! What `/stats/summary` answers: the kubelet's `stats/v1alpha1` types (interfaces 6.1).
//!
//! An absent number is unknown, a zero is a measured zero. Times have nanoseconds, between processes too
//! (`/metrics/resource` needs milliseconds); a kubelet shows whole seconds: [`Summary::in_whole_seconds`]. Sizes are bytes.

use serde::{Deserialize, Serialize};

use crate::Timestamp;

mod node;
mod readings;
mod whole_seconds;
mod wire;

pub use node::{NodeStats, RlimitStats, RuntimeStats};
pub use readings::{
    ContainerStats, CpuStats, FsStats, InterfaceStats, IoStats, MemoryStats, NetworkStats, ProcessStats, PsiData,
    PsiStats, PvcReference, SwapStats, VolumeHealthStats, VolumeStats,
};

/// The whole answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The machine.
    pub node: NodeStats,
    /// Pods with at least one container that was measured, by namespace and name.
    pub pods: Vec<PodStats>,
}

/// Which pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PodReference {
    /// Name.
    pub name: String,
    /// Namespace.
    pub namespace: String,
    /// UID as the runtime has it: a static pod's own.
    pub uid: String,
}

/// One pod.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodStats {
    /// Which.
    pub pod_ref: PodReference,
    /// Creation of its sandbox.
    #[serde(with = "wire::time")]
    pub start_time: Timestamp,
    /// Containers that run.
    pub containers: Vec<ContainerStats>,
    /// Of the pod's cgroup.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<CpuStats>,
    /// Of the pod's cgroup.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryStats>,
    /// Of the pod's cgroup.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub io: Option<IoStats>,
    /// Of the sandbox; absent for pods in the host's network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkStats>,
    /// Volumes that were measured.
    #[serde(rename = "volume", default, skip_serializing_if = "Vec::is_empty")]
    pub volumes: Vec<VolumeStats>,
    /// What counts against `ephemeral-storage`.
    #[serde(rename = "ephemeral-storage", default, skip_serializing_if = "Option::is_none")]
    pub ephemeral_storage: Option<FsStats>,
    /// Processes in its containers.
    #[serde(rename = "process_stats", default, skip_serializing_if = "Option::is_none")]
    pub process_stats: Option<ProcessStats>,
    /// Of the pod's cgroup.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swap: Option<SwapStats>,
}

#[cfg(test)]
mod tests;
