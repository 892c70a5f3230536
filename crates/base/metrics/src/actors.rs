//! Our own: where the time of a pod's start goes. What the kernel counts of actors is read off it at the scrape.

use crate::buckets;
use crate::family::histograms;

families! { MAIN;
    /// Seconds of a part of a pod's start. Label: phase, see [`Phase`].
    START_PHASE: HistogramVec = histograms(
        "bosun_pod_start_phase_seconds", "Time of each part of a pod's start.", &["phase"], buckets::PHASE);
}

/// Parts of a pod's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// From a source's telling to its worker.
    Source,
    /// Admission.
    Admit,
    /// Volumes.
    Volumes,
    /// Sandbox and network.
    Sandbox,
    /// A pull.
    Pull,
    /// CreateContainer.
    Create,
    /// StartContainer.
    Start,
    /// From running containers to a status that says so.
    Status,
}

impl Phase {
    /// All, in the order of a start.
    pub const ALL: [Self; 8] =
        [Self::Source, Self::Admit, Self::Volumes, Self::Sandbox, Self::Pull, Self::Create, Self::Start, Self::Status];

    /// Value of the label.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Source => "source",
            Self::Admit => "admit",
            Self::Volumes => "volumes",
            Self::Sandbox => "sandbox",
            Self::Pull => "pull",
            Self::Create => "create",
            Self::Start => "start",
            Self::Status => "status",
        }
    }

    /// Adds one observation.
    pub fn took(self, time: std::time::Duration) {
        START_PHASE.with_label_values(&[self.label()]).observe(time.as_secs_f64());
    }
}
