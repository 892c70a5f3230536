//! Cgroups.

use crate::buckets;
use crate::family::{histograms, int_gauge};

families! { MAIN;
    /// Seconds of a change to a cgroup. Label: operation_type (create, update, destroy).
    MANAGER_DURATION: HistogramVec = histograms(
        "kubelet_cgroup_manager_duration_seconds", "Time that a change to a cgroup took.", &["operation_type"],
        buckets::DEFAULT);
    /// Hierarchy in use: 1 or 2.
    VERSION: IntGauge = int_gauge("kubelet_cgroup_version", "Version of the cgroup hierarchy in use.");
}
