//! The API server, and the Node object there.

use std::time::Duration;

use model::core::Taint;

/// How changes of configMaps and secrets are noticed (`configMapAndSecretChangeDetectionStrategy`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChangeDetection {
    /// Ask the API server at each sync of a pod.
    Get,
    /// As `Get`, with answers kept for a while.
    Cache,
    /// A watch per object that pods refer to.
    Watch,
}

/// Requests to the API server: how many, with which credentials, and what is followed there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ApiAccess {
    /// `kubeAPIQPS`: requests per second to the API server (events and heartbeats apart), at least 1: a 0 in the file means 5
    /// and is replaced here.
    pub kube_api_qps: u32,
    /// `kubeAPIBurst`: burst of requests to the API server; 0 in the file is kept.
    pub kube_api_burst: u32,
    /// `contentType`: media type of requests to the API server.
    pub content_type: String,
    /// `eventRecordQPS`: events per second; 0: no limit.
    pub event_record_qps: u32,
    /// `eventBurst`: burst of events.
    pub event_burst: u32,
    /// `configMapAndSecretChangeDetectionStrategy`.
    pub change_detection: ChangeDetection,
    /// `rotateCertificates`: a new client certificate is asked for before the old one ends.
    pub rotate_certificates: bool,
}

impl Default for ApiAccess {
    fn default() -> Self {
        Self {
            kube_api_qps: 50,
            kube_api_burst: 100,
            content_type: "application/vnd.kubernetes.protobuf".to_owned(),
            event_record_qps: 50,
            event_burst: 100,
            change_detection: ChangeDetection::Watch,
            rotate_certificates: false,
        }
    }
}

/// The Node object: what it is made with, and how often its status is told.
#[derive(Clone, PartialEq, Debug)]
pub struct NodeObject {
    /// `registerNode`: make the Node object at the API server.
    pub register: bool,
    /// `registerWithTaints`: taints of the Node object when it is made, `timeAdded` unset.
    pub register_with_taints: Vec<Taint>,
    /// `providerID`: `spec.providerID` of the Node object when it is made; `None`: not set.
    pub provider_id: Option<String>,
    /// `nodeStatusUpdateFrequency`: how often the node's status is worked out; a change is written at once.
    pub status_update_frequency: Duration,
    /// `nodeStatusReportFrequency`: how often a status is written that did not change. Follows
    /// `nodeStatusUpdateFrequency` where only that is set.
    pub status_report_frequency: Duration,
    /// `nodeLeaseDurationSeconds`: life of the node's Lease; it is renewed after a quarter of it.
    pub lease_duration: Duration,
    /// `nodeStatusMaxImages`: images listed in the node's status; `None` (-1): all.
    pub status_max_images: Option<u32>,
    /// `podCIDR`: addresses of pods in standalone mode; `None`: the API server's or the CNI's.
    pub pod_cidr: Option<String>,
    /// `enableControllerAttachDetach`: the node carries `volumes.kubernetes.io/controller-managed-attach-detach`.
    pub enable_controller_attach_detach: bool,
    /// `localStorageCapacityIsolation`: the node reports ephemeral storage.
    pub local_storage_capacity_isolation: bool,
}

impl Default for NodeObject {
    fn default() -> Self {
        Self {
            register: true,
            register_with_taints: Vec::new(),
            provider_id: None,
            status_update_frequency: Duration::from_secs(10),
            status_report_frequency: Duration::from_secs(300),
            lease_duration: Duration::from_secs(40),
            status_max_images: Some(50),
            pod_cidr: None,
            enable_controller_attach_detach: true,
            local_storage_capacity_isolation: true,
        }
    }
}
