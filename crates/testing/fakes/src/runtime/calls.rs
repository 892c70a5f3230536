//! What the fake runtime was asked.

use cri_api::v1;
use model::Timestamp;
use prost::Message;
use tonic::Code;

/// One call, whatever became of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// CRI name.
    pub rpc: &'static str,
    /// `namespace/pod`, `namespace/pod/container`, or the image; the id where nothing better is known.
    pub subject: String,
    /// When it came.
    pub at: Timestamp,
    /// When it was answered; `None` while it runs, and for ever when the caller left.
    pub answered: Option<Timestamp>,
    /// What was answered.
    pub code: Option<Code>,
    /// The request, for calls that change something or open a session.
    pub mutation: Option<Mutation>,
}

macro_rules! mutations {
    ($($(#[$doc:meta])* $name:ident($request:ident)),* $(,)?) => {
        /// A request that changes something or opens a session.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Mutation {
            $($(#[$doc])* $name(Box<v1::$request>)),*
        }

        impl Mutation {
            /// CRI name.
            #[must_use]
            pub fn rpc(&self) -> &'static str {
                match self { $(Self::$name(_) => stringify!($name)),* }
            }

            /// Full name of the request message, for look-ups in `cri_api::FILE_DESCRIPTOR_SET`.
            #[must_use]
            pub fn message_name(&self) -> &'static str {
                match self { $(Self::$name(_) => concat!("runtime.v1.", stringify!($request))),* }
            }

            /// The request, encoded.
            #[must_use]
            pub fn encode(&self) -> Vec<u8> {
                match self { $(Self::$name(r) => r.encode_to_vec()),* }
            }
        }

        $(impl From<v1::$request> for Mutation {
            fn from(r: v1::$request) -> Self {
                Self::$name(Box::new(r))
            }
        })*
    };
}

mutations! {
    /// New sandbox.
    RunPodSandbox(RunPodSandboxRequest),
    /// Stop of a sandbox.
    StopPodSandbox(StopPodSandboxRequest),
    /// Removal of a sandbox.
    RemovePodSandbox(RemovePodSandboxRequest),
    /// Pod-level resize.
    UpdatePodSandboxResources(UpdatePodSandboxResourcesRequest),
    /// New container.
    CreateContainer(CreateContainerRequest),
    /// Start of a container.
    StartContainer(StartContainerRequest),
    /// Stop of a container.
    StopContainer(StopContainerRequest),
    /// Removal of a container.
    RemoveContainer(RemoveContainerRequest),
    /// Change of cgroup values.
    UpdateContainerResources(UpdateContainerResourcesRequest),
    /// Log rotation.
    ReopenContainerLog(ReopenContainerLogRequest),
    /// Checkpoint.
    CheckpointContainer(CheckpointContainerRequest),
    /// Command in a container.
    ExecSync(ExecSyncRequest),
    /// Session of a command.
    Exec(ExecRequest),
    /// Session of a container's own process.
    Attach(AttachRequest),
    /// Session of a pod's ports.
    PortForward(PortForwardRequest),
    /// Pull of an image.
    PullImage(PullImageRequest),
    /// Removal of an image.
    RemoveImage(RemoveImageRequest),
    /// Pod CIDRs.
    UpdateRuntimeConfig(UpdateRuntimeConfigRequest),
}
