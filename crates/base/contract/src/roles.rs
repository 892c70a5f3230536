//! Who may say what to whom: the declarations of all roles, bottom up (whoever is asked comes before the asker).

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use model::core::{ConfigMap, Secret, Service};
use model::history::PodHistory;
use model::object::ObjectRef;
use model::runtime::PodObservation;
use model::stats::Summary;
use model::userns::UserNamespace;
use model::{ContainerId, PodUid, SandboxId};

use crate::certificates::CertificateView;
use crate::cgroup::{
    CgroupError, EnsurePodCgroup, PodCgroup, PodCgroupRow, PodCgroupUse, ReadPodCgroup, RemovePodCgroup,
    ResizePodCgroup, ThrottlePodCgroup,
};
use crate::config_sources::ApiSourceView;
use crate::config_sources::folder::FolderManifests;
use crate::config_sources::http::UrlManifests;
use crate::declaration::{Declaration, Memory};
use crate::event::{EventView, RecordEvent};
use crate::eviction::{NodePressure, PressureView};
use crate::image::{EnsureImage, EnsuredImage, ImageFailure, ImageView, RemoveUnusedImages};
use crate::node::{ClearCsiNodeId, LeaseState, NodeError, NodeView, SetCsiNodeId};
use crate::objects::{
    FetchConfigMap, FetchPodCertificate, FetchRuntimeClass, FetchSecret, FetchServiceAccount, FetchServices,
    FetchToken, FetchTrustAnchors, HoldObjects, ObjectError, ObjectVersion, PodCertificate, ReleaseObjects,
    ServiceAccountFacts, Token,
};
use crate::plugin::{CsiDriver, PluginSocket, RefreshCsiDriver, RefreshError};
use crate::pod_manager::{ChangePods, ChangesTaken, DesiredPod, KillPod, RemoveDeadContainers, SetPods};
use crate::pod_worker::{GrantStart, RetireWorker, UpdatePod, WorkerState};
use crate::probe::{PodProbes, RetainProbes, StartProbes, StopProbes};
use crate::role::Role;
use crate::runtime::{
    CallError, CreateContainer, ExecOutcome, ExecSync, ObservePod, Observed, Relist, RemoveContainer, RemovePodSandbox,
    RunPodSandbox, RuntimeInfo, SetPodNetworks, StartContainer, StopContainer, StopPodSandbox,
    UpdateContainerResources, UpdatePodSandboxResources,
};
use crate::shutdown::Shutdown;
use crate::stats::{Cadvisor, Resource, StatsError, Summarise};
use crate::status::{RetainPodStatuses, SetPodStatus, StatusEntry, TerminatePod};
use crate::volume::{
    AssignUserNamespace, ExpectVolumes, ListVolumes, MakePodDirs, MountVolumes, MountedVolumes, PodVolumes,
    PrepareSubPath, ReleaseUserNamespace, RemovePodDir, UnmountVolumes, VolumeError, VolumeRow, VolumesInUse,
};

/// Longest that a call on the way to a running container may queue and run.
const START: Duration = Duration::from_secs(15 * 60);
/// Longest that a stop or remove may queue and run, beyond its grace.
const STOP: Duration = Duration::from_secs(5 * 60);
/// Longest that an observation may take.
const OBSERVE: Duration = Duration::from_secs(3 * 60);
/// Longest that statistics may take: Prometheus waits 10 s, the API server's proxy longer.
const STATISTICS: Duration = Duration::from_secs(30);
/// An exec without a time limit is bounded all the same.
const EXEC_WITHOUT_LIMIT: Duration = Duration::from_secs(24 * 3600);

role! {
    /// Recent events, counted and filtered; their way to the API server.
    EventRecorder in event_recorder, actor "event-recorder";
    answers { RecordEvent => (), within Duration::from_secs(30), GiveUp; }
    posts { value EventView = EventView::default(); }
    asks {}
    reads { DesiredPod }
}

role! {
    /// ConfigMaps, secrets, tokens, services and classes that pods of this node use.
    ObjectStore in object_store, actor "object-store";
    answers {
        HoldObjects for pod => (), within Duration::from_secs(30), Repeat, remembered |_| Memory::Kept;
        ReleaseObjects for uid => (), within Duration::from_secs(30), Repeat, remembered |_| Memory::Ended;
        FetchConfigMap => Result<Arc<ConfigMap>, ObjectError>, within Duration::from_secs(10), Repeat;
        FetchSecret => Result<Arc<Secret>, ObjectError>, within Duration::from_secs(10), Repeat, kept secret;
        FetchToken for pod => Result<Token, ObjectError>, within Duration::from_secs(40), Repeat, kept secret;
        FetchPodCertificate for pod => Result<PodCertificate, ObjectError>, within Duration::from_secs(30), Repeat, kept secret;
        FetchTrustAnchors => Result<Arc<str>, ObjectError>, within Duration::from_secs(30), Repeat;
        FetchServices => Result<Arc<Vec<Arc<Service>>>, ObjectError>, within Duration::from_secs(30), Repeat;
        FetchServiceAccount => Result<ServiceAccountFacts, ObjectError>, within Duration::from_secs(40), Repeat;
        FetchRuntimeClass => Result<String, ObjectError>, within Duration::from_secs(30), Repeat;
    }
    posts { table ObjectRef => ObjectVersion; }
    asks { RecordEvent }
    reads { NodeView }
    keeps { "object/" }
}

role! {
    /// The client and the serving certificate of the node.
    CertificateManager in certificate_manager, actor "certificate-manager";
    answers {}
    posts { value CertificateView = CertificateView::default(); }
    asks {}
    reads { NodeView }
}

role! {
    /// Calls to the runtime, with their limits and deadlines; the view of what it has.
    RuntimeClient in runtime_client, actor "runtime-client";
    answers {
        RunPodSandbox for uid => Result<SandboxId, CallError>, within START, LookFirst;
        StopPodSandbox for uid => Result<(), CallError>, within STOP, Repeat;
        RemovePodSandbox for uid => Result<(), CallError>, within STOP, Repeat;
        CreateContainer for uid => Result<ContainerId, CallError>, within START, LookFirst, kept secret;
        StartContainer for uid => Result<(), CallError>, within START, LookFirst;
        StopContainer for uid => Result<(), CallError>, within STOP, Repeat,
            plus |m| Duration::from_secs(u64::try_from(m.grace_s).unwrap_or(0));
        RemoveContainer for uid => Result<(), CallError>, within STOP, Repeat;
        UpdateContainerResources for uid => Result<(), CallError>, within STOP, Repeat;
        UpdatePodSandboxResources for uid => Result<(), CallError>, within STOP, Repeat;
        ExecSync for uid => Result<ExecOutcome, CallError>, within STOP, GiveUp,
            plus |m| if m.timeout.is_zero() { EXEC_WITHOUT_LIMIT } else { m.timeout };
        ObservePod for uid => Result<Arc<PodObservation>, CallError>, within OBSERVE, Repeat;
        Relist => Result<(), CallError>, within OBSERVE, Repeat;
        SetPodNetworks => Result<(), CallError>, within OBSERVE, Repeat;
    }
    posts {
        table PodUid => Observed;
        value RuntimeInfo = RuntimeInfo::unknown();
    }
    asks {}
    reads {}
}

role! {
    /// The node's lease, renewed in time whatever else the node is busy with.
    NodeLease in node_lease, actor "node-lease";
    answers {}
    posts { value LeaseState = LeaseState::default(); }
    asks {}
    reads { NodeView }
}

role! {
    /// The Node object: what the machine has, how it is, whether it may take pods.
    NodeManager in node_manager, actor "node-manager";
    answers {
        SetCsiNodeId => Result<(), NodeError>, within Duration::from_secs(60), Repeat;
        ClearCsiNodeId => Result<(), NodeError>, within Duration::from_secs(60), Repeat;
    }
    posts { value NodeView = NodeView::default(); }
    asks { SetPodNetworks, RecordEvent }
    reads { RuntimeInfo, LeaseState, VolumesInUse, NodePressure, Shutdown }
}

role! {
    /// The version of each pod's status.
    StatusManager in status_manager, actor "status-manager";
    answers {
        SetPodStatus for pod => (), within Duration::from_secs(30), Repeat;
        TerminatePod for pod => (), within Duration::from_secs(30), Repeat;
        RetainPodStatuses => (), within Duration::from_secs(30), Repeat;
    }
    posts { table PodUid => StatusEntry; }
    asks {}
    reads {}
    keeps { "status/" }
}

role! {
    /// What the API server has of each pod's status; patches it, and deletes pods that are done.
    StatusSyncer in status_syncer, actor "status-syncer";
    answers {}
    posts {}
    asks {}
    reads { StatusEntry, DesiredPod, WorkerState }
}

role! {
    /// The QoS tree and the cgroups of pods.
    CgroupManager in cgroup_manager, actor "cgroup-manager";
    answers {
        EnsurePodCgroup for pod => Result<PodCgroup, CgroupError>, within Duration::from_secs(120), Repeat;
        RemovePodCgroup for uid => Result<(), CgroupError>, within Duration::from_secs(120), Repeat;
        ThrottlePodCgroup for uid => Result<(), CgroupError>, within Duration::from_secs(120), Repeat;
        ReadPodCgroup for pod => Result<PodCgroupUse, CgroupError>, within Duration::from_secs(120), Repeat;
        ResizePodCgroup for pod => Result<(), CgroupError>, within Duration::from_secs(120), Repeat;
    }
    posts { table PodUid => PodCgroupRow; }
    asks { RecordEvent }
    reads { DesiredPod }
}

role! {
    /// Plugins that register themselves, CSI drivers among them, and what the API server is told of these.
    PluginManager in plugin_manager, actor "plugin-manager";
    answers { RefreshCsiDriver => Result<(), RefreshError>, within Duration::from_secs(150), Repeat; }
    posts {
        table String => CsiDriver;
        table String => PluginSocket;
    }
    asks { SetCsiNodeId, ClearCsiNodeId }
    reads { NodeView }
}

role! {
    /// Volumes that are wanted and volumes that are there; folders of pods.
    VolumeManager in volume_manager, actor "volume-manager";
    answers {
        MakePodDirs for uid => Result<(), VolumeError>, within Duration::from_secs(120), Repeat;
        AssignUserNamespace for uid => Result<UserNamespace, VolumeError>, within Duration::from_secs(120), Repeat;
        ExpectVolumes for pod => (), within Duration::from_secs(10), GiveUp;
        MountVolumes for pod => Result<Arc<MountedVolumes>, VolumeError>, within Duration::from_secs(150), Repeat,
            remembered |_| Memory::Kept;
        PrepareSubPath for uid => Result<PathBuf, VolumeError>, within Duration::from_secs(120), Repeat;
        UnmountVolumes for uid => Result<(), VolumeError>, within Duration::from_secs(150), Repeat,
            remembered |_| Memory::Ended;
        ReleaseUserNamespace for uid => Result<(), VolumeError>, within Duration::from_secs(120), Repeat;
        RemovePodDir for uid => Result<(), VolumeError>, within Duration::from_secs(120), Repeat,
            remembered |_| Memory::Ended;
        ListVolumes => Arc<Vec<VolumeRow>>, within Duration::from_secs(10), Repeat;
    }
    posts {
        table PodUid => PodVolumes;
        value VolumesInUse = VolumesInUse::default();
    }
    asks {
        FetchConfigMap, FetchSecret, FetchToken, FetchPodCertificate, FetchTrustAnchors, RefreshCsiDriver, RecordEvent,
    }
    reads { ObjectVersion, NodeView, CsiDriver }
}

role! {
    /// Pulls, their order and back-off, credentials, pull records, image garbage.
    ImageManager in image_manager, actor "image-manager";
    answers {
        EnsureImage for pod => Result<EnsuredImage, ImageFailure>, within Duration::from_secs(24 * 3600), Repeat, kept secret;
        RemoveUnusedImages => Result<u64, ImageFailure>, within Duration::from_secs(600), Repeat;
    }
    posts { value ImageView = ImageView::default(); }
    asks { FetchServiceAccount, FetchToken, RecordEvent }
    reads { Observed }
}

role! {
    /// Schedules of liveness, readiness and startup probes, and what their outcomes add up to.
    ProbeManager in probe_manager, actor "probe-manager";
    answers {
        StartProbes for pod => (), within Duration::from_secs(30), Repeat, remembered |_| Memory::Kept;
        StopProbes for uid => (), within Duration::from_secs(30), Repeat,
            remembered |m| if m.keep_readiness { Memory::Kept } else { Memory::Ended };
        RetainProbes => (), within Duration::from_secs(30), Repeat, remembered |m| Memory::Only(&m.known);
    }
    posts { table PodUid => PodProbes; }
    asks { ExecSync, RecordEvent }
    reads { StatusEntry }
    keeps { "probe/" }
}

role! {
    /// Readings gathered when somebody asks, samples that rates are made of, what volumes took.
    StatsManager in stats_manager, actor "stats-manager";
    answers {
        Summarise => Result<Arc<Summary>, StatsError>, within STATISTICS, Repeat;
        Resource => Arc<str>, within STATISTICS, Repeat;
        Cadvisor => Result<Arc<str>, StatsError>, within STATISTICS, Repeat;
    }
    posts {}
    asks { ListVolumes, RecordEvent }
    reads { Observed, RuntimeInfo, DesiredPod, PodCgroupRow, PodVolumes, CsiDriver }
}

role! {
    /// Rotation of container logs.
    LogManager in log_manager, actor "log-manager";
    answers {}
    posts {}
    asks {}
    reads { Observed }
}

role! {
    /// Tells when the machine itself ran out of memory.
    OomWatcher in oom_watcher, actor "oom-watcher";
    answers {}
    posts {}
    asks { RecordEvent }
    reads {}
    keeps { "oom/" }
}

role! {
    /// One actor per pod UID: where the pod is in its life, and what brings it on.
    PodWorker in pod_worker, actor "pod-worker";
    answers {
        UpdatePod for uid => (), within Duration::from_secs(30), Repeat;
        GrantStart for uid => (), within Duration::from_secs(30), Repeat;
        RetireWorker for uid => (), within Duration::from_secs(30), Repeat;
    }
    posts {
        table PodUid => WorkerState;
        table PodUid => PodHistory;
    }
    asks {
        RunPodSandbox, StopPodSandbox, CreateContainer, StartContainer, StopContainer, RemoveContainer,
        UpdateContainerResources, UpdatePodSandboxResources, ReadPodCgroup, ResizePodCgroup,
        ExecSync, ObservePod, EnsureImage, MakePodDirs, AssignUserNamespace, MountVolumes, PrepareSubPath,
        UnmountVolumes, ReleaseUserNamespace, EnsurePodCgroup, RemovePodCgroup, StartProbes, StopProbes, SetPodStatus, TerminatePod, HoldObjects, FetchConfigMap, FetchSecret,
        FetchServices, FetchRuntimeClass, RecordEvent,
    }
    reads { Observed, RuntimeInfo, PodProbes, StatusEntry, NodeView, PodCgroupRow }
    keeps { "worker/", "history/" }
}

role! {
    /// The pods that should be here, by UID: admission, mirror pods, one worker per pod, housekeeping.
    PodManager in pod_manager, actor "pod-manager" as intake;
    answers {
        SetPods => (), within Duration::from_secs(5), Repeat;
        ChangePods => ChangesTaken, within Duration::from_secs(5), Repeat;
        KillPod for uid => bool, within Duration::from_secs(30), Repeat;
        RemoveDeadContainers => (), within Duration::from_secs(600), Repeat;
    }
    posts { table PodUid => DesiredPod; }
    asks {
        UpdatePod, GrantStart, RetireWorker, Relist, StopContainer, RemoveContainer, StopPodSandbox, RemovePodSandbox,
        SetPodStatus, RetainPodStatuses, RetainProbes, RemovePodDir, ExpectVolumes, RemovePodCgroup, ThrottlePodCgroup,
        HoldObjects, ReleaseObjects, RecordEvent,
    }
    reads { WorkerState, Observed, RuntimeInfo, PodVolumes, PodCgroupRow, StatusEntry, NodeView, NodePressure }
}

role! {
    /// Which resources of the node run short, and which pods go because of it.
    EvictionManager in eviction_manager, actor "eviction-manager";
    answers {}
    posts {
        value NodePressure = NodePressure::default();
        value PressureView = PressureView::default();
    }
    asks { Summarise, KillPod, RemoveDeadContainers, RemoveUnusedImages, RecordEvent }
    reads { DesiredPod, WorkerState }
}

role! {
    /// Ends pods in their order before the machine goes down.
    ShutdownManager in shutdown_manager, actor "shutdown-manager";
    answers {}
    posts { value Shutdown = Shutdown::default(); }
    asks { KillPod, RecordEvent }
    reads { DesiredPod, WorkerState }
}

role! {
    /// Pods that the API server assigns to this node, and the store of them for when it is away.
    ApiSource in api_source, actor "api-source" as intake;
    answers {}
    posts { value ApiSourceView = ApiSourceView::default(); }
    asks { SetPods, ChangePods }
    reads { NodeView }
    keeps { "api-pods/", "api-server/" }
}

role! {
    /// Pods of a URL.
    HttpSource in http_source, actor "http-source" as intake;
    answers {}
    posts { value UrlManifests = UrlManifests::default(); }
    asks { SetPods }
    reads {}
}

role! {
    /// Pods of a folder or file of manifests.
    FolderSource in folder_source, actor "folder-source" as intake;
    answers {}
    posts { value FolderManifests = FolderManifests::default(); }
    asks { SetPods, RecordEvent }
    reads {}
}

role! {
    /// The node's ports and the local socket.
    Server in server;
    answers {}
    posts {}
    asks { Summarise, Resource, Cadvisor, ListVolumes }
    reads {
        DesiredPod, WorkerState, StatusEntry, Observed, RuntimeInfo, FolderManifests, UrlManifests, ApiSourceView, EventView,
        NodeView, CertificateView, CsiDriver, PluginSocket, PressureView, PodHistory, PodProbes, ImageView,
    }
}

role! {
    /// Tells of each pod that work for it was set aside, as it crashed an actor again.
    Supervisor in supervisor;
    answers {}
    posts {}
    asks { RecordEvent }
    reads { DesiredPod }
}

macro_rules! declarations {
    ($($other_field:ident: $other:ident),*; $($field:ident: $role:ident),* $(,)?) => {
        /// What is declared of each role, bottom up.
        pub const DECLARATIONS: &[Declaration] =
            &[$(<$role as Role>::DECLARATION,)* $(<$other as Role>::DECLARATION),*];
    };
}
for_each_role!(declarations);
