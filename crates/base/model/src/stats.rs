//! What `/stats/summary` answers: the kubelet's `stats/v1alpha1` types (interfaces 6.1).
//!
//! An absent number is unknown, a zero is a measured zero. Times keep their nanoseconds in memory (`/metrics/resource`
//! needs milliseconds) and are whole seconds in JSON. Sizes are bytes.

use serde::{Deserialize, Serialize};

use crate::Timestamp;

mod wire;

/// The whole answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The machine.
    pub node: NodeStats,
    /// Pods with at least one container that was measured, by namespace and name.
    pub pods: Vec<PodStats>,
}

/// The machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeStats {
    /// Name of the Node.
    pub node_name: String,
    /// `kubelet`, `runtime`, `misc`, `pods`: cgroups that are known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub system_containers: Vec<ContainerStats>,
    /// Boot of the machine.
    #[serde(with = "wire::time")]
    pub start_time: Timestamp,
    /// Processor time of everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<CpuStats>,
    /// Memory of everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryStats>,
    /// Waits for I/O.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub io: Option<IoStats>,
    /// Interfaces of the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkStats>,
    /// The file system that holds the root directory of the node daemon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fs: Option<FsStats>,
    /// File systems of the runtime.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime: Option<RuntimeStats>,
    /// Processes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rlimit: Option<RlimitStats>,
    /// Swap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swap: Option<SwapStats>,
}

/// File systems of the runtime.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RuntimeStats {
    /// Images.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_fs: Option<FsStats>,
    /// Writable layers; the same as `image_fs` when they are not apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container_fs: Option<FsStats>,
}

/// Processes of the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RlimitStats {
    /// When it was read.
    #[serde(with = "wire::time")]
    pub time: Timestamp,
    /// Most processes and threads there can be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maxpid: Option<i64>,
    /// Processes and threads there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub curproc: Option<i64>,
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

/// One container, or one cgroup of the system.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContainerStats {
    /// Name in the pod.
    pub name: String,
    /// When it was created.
    #[serde(with = "wire::time")]
    pub start_time: Timestamp,
    /// Processor time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<CpuStats>,
    /// Memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryStats>,
    /// Waits for I/O.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub io: Option<IoStats>,
    /// Writable layer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rootfs: Option<FsStats>,
    /// Log files, rotated ones included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logs: Option<FsStats>,
    /// Swap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swap: Option<SwapStats>,
}

/// Processor time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CpuStats {
    /// When it was read.
    #[serde(with = "wire::time")]
    pub time: Timestamp,
    /// Billionths of a core in use of late; absent until there are two samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage_nano_cores: Option<u64>,
    /// Sum since it exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage_core_nano_seconds: Option<u64>,
    /// Waits for a processor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub psi: Option<PsiStats>,
}

/// Memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MemoryStats {
    /// When it was read.
    #[serde(with = "wire::time")]
    pub time: Timestamp,
    /// Limit less working set; absent without a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub available_bytes: Option<u64>,
    /// All, page cache included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage_bytes: Option<u64>,
    /// Usage less inactive file pages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_set_bytes: Option<u64>,
    /// Anonymous memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rss_bytes: Option<u64>,
    /// Page faults since it exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_faults: Option<u64>,
    /// Those that had to wait for a disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub major_page_faults: Option<u64>,
    /// Waits for memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub psi: Option<PsiStats>,
}

/// I/O.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct IoStats {
    /// When it was read.
    #[serde(with = "wire::time")]
    pub time: Timestamp,
    /// Waits for I/O.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub psi: Option<PsiStats>,
}

/// Pressure stall information of one resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PsiStats {
    /// All tasks waited.
    pub full: PsiData,
    /// Some task waited.
    pub some: PsiData,
}

/// One line of a pressure file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PsiData {
    /// Microseconds in all.
    pub total: u64,
    /// Share of the last 10 s in per cent.
    #[serde(serialize_with = "wire::go_float")]
    pub avg10: f64,
    /// Of the last minute.
    #[serde(serialize_with = "wire::go_float")]
    pub avg60: f64,
    /// Of the last five minutes.
    #[serde(serialize_with = "wire::go_float")]
    pub avg300: f64,
}

/// Swap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SwapStats {
    /// When it was read.
    #[serde(with = "wire::time")]
    pub time: Timestamp,
    /// What it may still take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swap_available_bytes: Option<u64>,
    /// What it has taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swap_usage_bytes: Option<u64>,
}

/// Network of a pod or of the machine: the counters of `eth0`, and those of all interfaces.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NetworkStats {
    /// When it was read.
    #[serde(with = "wire::time")]
    pub time: Timestamp,
    /// `eth0`; without one the name is empty and the counters are absent.
    #[serde(flatten)]
    pub default_interface: InterfaceStats,
    /// All but loopback and the host's ends of pods.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interfaces: Vec<InterfaceStats>,
}

/// One interface.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InterfaceStats {
    /// Name.
    pub name: String,
    /// Received bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rx_bytes: Option<u64>,
    /// Receive errors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rx_errors: Option<u64>,
    /// Sent bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tx_bytes: Option<u64>,
    /// Send errors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tx_errors: Option<u64>,
}

/// A file system, and what somebody uses of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FsStats {
    /// When it was read.
    #[serde(with = "wire::time")]
    pub time: Timestamp,
    /// Free for ordinary users, on the whole file system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub available_bytes: Option<u64>,
    /// Size of the whole file system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity_bytes: Option<u64>,
    /// Used by whom it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_bytes: Option<u64>,
    /// Free inodes of the whole file system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inodes_free: Option<u64>,
    /// Inodes of the whole file system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inodes: Option<u64>,
    /// Inodes used by whom it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inodes_used: Option<u64>,
}

/// One volume of a pod.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VolumeStats {
    /// Usage.
    #[serde(flatten)]
    pub fs: FsStats,
    /// Name in the pod.
    pub name: String,
    /// Claim behind it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pvc_ref: Option<PvcReference>,
}

/// Which claim.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PvcReference {
    /// Name.
    pub name: String,
    /// Namespace.
    pub namespace: String,
}

/// Processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessStats {
    /// How many.
    #[serde(rename = "process_count")]
    pub process_count: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_whole_seconds_and_unset_is_null() {
        let stats = CpuStats { time: Timestamp(1_795_165_689_999_000_000), ..CpuStats::default() };
        assert_eq!(serde_json::to_string(&stats).unwrap(), r#"{"time":"2026-11-20T09:08:09Z"}"#);
        assert_eq!(serde_json::to_string(&CpuStats::default()).unwrap(), r#"{"time":null}"#);
        let back: CpuStats = serde_json::from_str(r#"{"time":null}"#).unwrap();
        assert!(!back.time.is_set());
    }

    #[test]
    fn whole_floats_have_no_fraction_as_go_prints_them() {
        let psi = PsiData { total: 1, avg10: 0.0, avg60: 1.5, avg300: 100.0 };
        assert_eq!(serde_json::to_string(&psi).unwrap(), r#"{"total":1,"avg10":0,"avg60":1.5,"avg300":100}"#);
    }

    #[test]
    fn the_default_interface_stands_in_line_with_the_time() {
        let one = InterfaceStats { name: "eth0".into(), rx_bytes: Some(1), ..InterfaceStats::default() };
        let net = NetworkStats { time: Timestamp::ZERO, default_interface: one.clone(), interfaces: vec![one] };
        let text = r#"{"time":null,"name":"eth0","rxBytes":1,"interfaces":[{"name":"eth0","rxBytes":1}]}"#;
        assert_eq!(serde_json::to_string(&net).unwrap(), text);
        assert_eq!(serde_json::from_str::<NetworkStats>(text).unwrap(), net);
    }

    #[test]
    fn lists_that_a_reader_counts_on_are_there_when_empty() {
        let text = serde_json::to_string(&Summary::default()).unwrap();
        assert_eq!(text, r#"{"node":{"nodeName":"","startTime":null},"pods":[]}"#);
    }
}
