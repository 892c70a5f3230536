//! The container runtime and its images.

use std::path::PathBuf;
use std::time::Duration;

/// Whose pull credentials are checked before an image on disk is used (`imagePullCredentialsVerificationPolicy`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PullVerification {
    /// Nobody's.
    NeverVerify,
    /// All but for images that were there before the node.
    NeverVerifyPreloadedImages,
    /// All but for images of the allowlist.
    NeverVerifyAllowlistedImages,
    /// Everybody's.
    AlwaysVerify,
}

/// What the endpoint of the runtime within the daemon begins with.
pub const EMBEDDED: &str = "embedded://";

/// The runtime within the daemon.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EmbeddedRuntime {
    /// Its file; `None`: everything is where it is by default.
    pub file: Option<PathBuf>,
}

/// The way to the container runtime.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Runtime {
    /// Socket of the container runtime (`unix://`), or [`EMBEDDED`] with the path of its file, if it has one.
    pub container_runtime_endpoint: String,
    /// Socket of the image service; the runtime's unless set.
    pub image_service_endpoint: String,
    /// Deadline of CRI calls that name none of their own.
    pub runtime_request_timeout: Duration,
}

impl Runtime {
    /// The runtime within the daemon, where that is the one.
    #[must_use]
    pub fn embedded(&self) -> Option<EmbeddedRuntime> {
        let file = self.container_runtime_endpoint.strip_prefix(EMBEDDED)?;
        Some(EmbeddedRuntime { file: (!file.is_empty()).then(|| file.into()) })
    }
}

impl Default for Runtime {
    fn default() -> Self {
        const CONTAINERD: &str = "unix:///run/containerd/containerd.sock";
        Self {
            container_runtime_endpoint: CONTAINERD.to_owned(),
            image_service_endpoint: CONTAINERD.to_owned(),
            runtime_request_timeout: Duration::from_secs(120),
        }
    }
}

/// Pulling images, and deleting those that nobody uses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Images {
    /// One image pull at a time.
    pub serialize_pulls: bool,
    /// Most image pulls at a time; `None`: no limit.
    pub max_parallel_pulls: Option<u32>,
    /// Image pulls per second; 0: no limit.
    pub registry_pull_qps: u32,
    /// Burst of image pulls.
    pub registry_burst: u32,
    /// `imageMinimumGCAge`: an image unused for less time is kept.
    pub minimum_gc_age: Duration,
    /// `imageMaximumGCAge`: an image unused for longer is deleted; `None` (0): no such limit.
    pub maximum_gc_age: Option<Duration>,
    /// `imageGCHighThresholdPercent`: disk usage, percent, from which images are deleted. 100 without
    /// `imageMaximumGCAge`: never.
    pub gc_high_threshold_percent: u8,
    /// `imageGCLowThresholdPercent`: disk usage, percent, down to which images are deleted.
    pub gc_low_threshold_percent: u8,
    /// `imagePullCredentialsVerificationPolicy`.
    pub pull_verification: PullVerification,
    /// `preloadedImagesVerificationAllowlist`: images without tag or digest; `/*` at the end stands for all below.
    pub pull_verification_allowlist: Vec<String>,
}

impl Default for Images {
    fn default() -> Self {
        Self {
            serialize_pulls: true,
            max_parallel_pulls: None,
            registry_pull_qps: 5,
            registry_burst: 10,
            minimum_gc_age: Duration::from_secs(120),
            maximum_gc_age: None,
            gc_high_threshold_percent: 85,
            gc_low_threshold_percent: 80,
            pull_verification: PullVerification::NeverVerifyPreloadedImages,
            pull_verification_allowlist: Vec::new(),
        }
    }
}
