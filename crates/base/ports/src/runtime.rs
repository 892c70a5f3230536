//! The container runtime and its image service, as the node asks them (CRI v1; pod-lifecycle 12.7).
//!
//! Requests and answers are the CRI's own messages. Deadlines belong to the implementation (interfaces 7.3):
//! every method but [`ImageService::pull_image`] ends by itself. Dropping the returned future cancels the call.

use std::pin::Pin;

use async_trait::async_trait;
use cri_api::v1;
use futures::Stream;
use model::runtime::EventTier;
use model::{PodUid, Timestamp};

mod error;

pub use crate::grpc::Code as RuntimeCode;
pub use error::RuntimeError;

/// Result of one call.
pub type RuntimeResult<T> = Result<T, RuntimeError>;

/// Sandboxes, containers and the runtime itself.
#[async_trait]
pub trait ContainerRuntime: Send + Sync + 'static {
    /// Name and version: no field of the answer is empty, and `version` is "0.1.0".
    async fn version(&self) -> RuntimeResult<v1::VersionResponse>;
    /// Conditions, handlers, features. Polled every 5 s.
    async fn status(&self, verbose: bool) -> RuntimeResult<v1::StatusResponse>;
    /// The cgroup driver; `Unimplemented` on containerd before 2.0.
    async fn runtime_config(&self) -> RuntimeResult<v1::RuntimeConfigResponse>;
    /// Tells the runtime the pod CIDRs.
    async fn update_runtime_config(&self, request: v1::UpdateRuntimeConfigRequest) -> RuntimeResult<()>;

    /// Creates and starts a sandbox; the id in the answer is never empty.
    async fn run_pod_sandbox(&self, request: v1::RunPodSandboxRequest) -> RuntimeResult<v1::RunPodSandboxResponse>;
    /// Stops a sandbox and what runs in it.
    async fn stop_pod_sandbox(&self, request: v1::StopPodSandboxRequest) -> RuntimeResult<()>;
    /// Removes a sandbox with its containers.
    async fn remove_pod_sandbox(&self, request: v1::RemovePodSandboxRequest) -> RuntimeResult<()>;
    /// One sandbox; `NotFound` when it is gone.
    async fn pod_sandbox_status(
        &self,
        request: v1::PodSandboxStatusRequest,
    ) -> RuntimeResult<v1::PodSandboxStatusResponse>;
    /// Sandboxes that match the filter.
    async fn list_pod_sandbox(&self, request: v1::ListPodSandboxRequest) -> RuntimeResult<v1::ListPodSandboxResponse>;
    /// Pod-level resize; `Unimplemented` also stands for containerd 2.2's Unknown "not implemented".
    async fn update_pod_sandbox_resources(&self, request: v1::UpdatePodSandboxResourcesRequest) -> RuntimeResult<()>;

    /// Creates a container; the id in the answer is never empty.
    async fn create_container(&self, request: v1::CreateContainerRequest)
    -> RuntimeResult<v1::CreateContainerResponse>;
    /// Starts a created container.
    async fn start_container(&self, request: v1::StartContainerRequest) -> RuntimeResult<()>;
    /// Stops a container within `timeout` seconds, then kills it.
    async fn stop_container(&self, request: v1::StopContainerRequest) -> RuntimeResult<()>;
    /// Removes a container, running or not.
    async fn remove_container(&self, request: v1::RemoveContainerRequest) -> RuntimeResult<()>;
    /// Containers that match the filter.
    async fn list_containers(&self, request: v1::ListContainersRequest) -> RuntimeResult<v1::ListContainersResponse>;
    /// One container; `NotFound` when it is gone.
    async fn container_status(&self, request: v1::ContainerStatusRequest)
    -> RuntimeResult<v1::ContainerStatusResponse>;
    /// Changes cgroup values in place.
    async fn update_container_resources(&self, request: v1::UpdateContainerResourcesRequest) -> RuntimeResult<()>;
    /// Reopens the log file after a rotation.
    async fn reopen_container_log(&self, request: v1::ReopenContainerLogRequest) -> RuntimeResult<()>;
    /// Writes a checkpoint archive.
    async fn checkpoint_container(&self, request: v1::CheckpointContainerRequest) -> RuntimeResult<()>;

    /// Runs a command to its end; a non-zero exit code is an `Ok` answer.
    async fn exec_sync(&self, request: v1::ExecSyncRequest) -> RuntimeResult<v1::ExecSyncResponse>;
    /// URL of the runtime's streaming server for a command.
    async fn exec(&self, request: v1::ExecRequest) -> RuntimeResult<v1::ExecResponse>;
    /// URL of the runtime's streaming server for an attach.
    async fn attach(&self, request: v1::AttachRequest) -> RuntimeResult<v1::AttachResponse>;
    /// URL of the runtime's streaming server for port forwarding.
    async fn port_forward(&self, request: v1::PortForwardRequest) -> RuntimeResult<v1::PortForwardResponse>;

    /// Usage of containers that match the filter.
    async fn list_container_stats(
        &self,
        request: v1::ListContainerStatsRequest,
    ) -> RuntimeResult<v1::ListContainerStatsResponse>;
    /// Usage of one pod.
    async fn pod_sandbox_stats(
        &self,
        request: v1::PodSandboxStatsRequest,
    ) -> RuntimeResult<v1::PodSandboxStatsResponse>;
    /// Usage of pods that match the filter.
    async fn list_pod_sandbox_stats(
        &self,
        request: v1::ListPodSandboxStatsRequest,
    ) -> RuntimeResult<v1::ListPodSandboxStatsResponse>;

    /// Subscribes to the best tier of events that the runtime has. Returns as soon as the tier is known; events from
    /// before the subscription are not replayed, so the caller lists once *after* this returns.
    async fn events(&self) -> RuntimeResult<EventStream>;
}

/// Images. May live on another socket than the runtime.
#[async_trait]
pub trait ImageService: Send + Sync + 'static {
    /// Images that match the filter.
    async fn list_images(&self, request: v1::ListImagesRequest) -> RuntimeResult<v1::ListImagesResponse>;
    /// One image; `image` is absent when it is not present, which is no error.
    async fn image_status(&self, request: v1::ImageStatusRequest) -> RuntimeResult<v1::ImageStatusResponse>;
    /// Pulls an image. Has no deadline; cancelled by dropping the future. The reference in the answer is never empty.
    async fn pull_image(&self, request: v1::PullImageRequest) -> RuntimeResult<v1::PullImageResponse>;
    /// Removes an image.
    async fn remove_image(&self, request: v1::RemoveImageRequest) -> RuntimeResult<()>;
    /// File systems that hold images and writable layers.
    async fn image_fs_info(&self) -> RuntimeResult<v1::ImageFsInfoResponse>;
}

/// Both halves in one, as most runtimes serve them.
pub trait Runtime: ContainerRuntime + ImageService {}
impl<T: ContainerRuntime + ImageService> Runtime for T {}

/// A running subscription. The stream ends, or yields an error and ends, when the runtime goes away; for
/// [`EventTier::Relist`] it is empty.
pub struct EventStream {
    /// Which tier serves it.
    pub tier: EventTier,
    /// The events, in the runtime's order per container.
    pub events: Pin<Box<dyn Stream<Item = RuntimeResult<RuntimeEvent>> + Send>>,
}

impl std::fmt::Debug for EventStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EventStream").field("tier", &self.tier).finish_non_exhaustive()
    }
}

/// What happened to a container or sandbox.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord, Hash)]
pub enum RuntimeEventKind {
    /// Exists now.
    Created,
    /// Its process runs.
    Started,
    /// Its process ended.
    Stopped,
    /// Gone from the runtime.
    Deleted,
}

/// One normalised event.
#[derive(Clone, PartialEq, Debug)]
pub struct RuntimeEvent {
    /// What happened.
    pub kind: RuntimeEventKind,
    /// Id of the container **or sandbox**: most runtimes number both out of one set and tell them apart only by look-up.
    pub id: String,
    /// Sandbox of that container (or the sandbox itself), where the event says so.
    pub sandbox: Option<String>,
    /// Pod, where the event says so.
    pub pod: Option<PodUid>,
    /// When, by the runtime's clock; not set when the event does not say.
    pub at: Timestamp,
    /// Whole status of the pod at that time, from [`EventTier::CriStream`] only.
    pub statuses: Option<Box<PodStatuses>>,
}

/// Statuses that an event carries.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct PodStatuses {
    /// The sandbox.
    pub sandbox: v1::PodSandboxStatus,
    /// The containers in that sandbox.
    pub containers: Vec<v1::ContainerStatus>,
}
