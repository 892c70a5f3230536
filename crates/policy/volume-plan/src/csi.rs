//! What a CSI driver is told (node-and-resources 6.13).

use std::collections::BTreeMap;
use std::time::Duration;

use csi_api::TOKENS;
use csi_api::v1::volume_capability::access_mode::Mode;
use model::core::Pod;
use model::k8s_openapi::api::storage::v1::CSIDriver;
use model::pod;

use crate::source::{Csi, Resolved};

/// The API server takes no shorter period.
const SHORTEST_PERIOD: Duration = Duration::from_secs(10);

/// The mode that the driver is told: that of the first access mode. `tells_writers`: it has `SINGLE_NODE_MULTI_WRITER`.
#[must_use]
pub fn access_mode(access_modes: &[String], tells_writers: bool) -> Mode {
    match (access_modes.first().map(String::as_str), tells_writers) {
        (Some("ReadOnlyMany"), _) => Mode::MultiNodeReaderOnly,
        (Some("ReadWriteMany"), _) => Mode::MultiNodeMultiWriter,
        (Some("ReadWriteOncePod"), true) => Mode::SingleNodeSingleWriter,
        (_, true) => Mode::SingleNodeMultiWriter,
        (_, false) => Mode::SingleNodeWriter,
    }
}

/// Whether one pod at a time may have the volume: that is the only mode it has.
#[must_use]
pub fn is_for_one_pod(volume: &Resolved) -> bool {
    volume.access_modes == ["ReadWriteOncePod"]
}

/// What the CSIDriver object says of a driver. Without one, the API's defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriverRules {
    /// Volumes must be attached by a controller first.
    pub attach_required: bool,
    /// The driver is told of the pod.
    pub pod_info: bool,
    /// `fsGroupPolicy`.
    pub group_policy: GroupPolicy,
    /// Volumes are published anew with each step of their pod.
    pub republish: bool,
    /// (audience, seconds) of tokens that the driver is given.
    pub tokens: Vec<(String, Option<i64>)>,
    /// Volumes can be mounted with an SELinux context (`seLinuxMount`).
    pub selinux_mount: bool,
    /// They stand among the secrets, not in the volume's context.
    pub tokens_in_secrets: bool,
    /// It may have volumes that outlive pods.
    pub is_persistent: bool,
    /// It may have volumes that stand in pods.
    pub is_ephemeral: bool,
    /// As [`update_period`] says.
    pub update_period: Option<Duration>,
}

/// `fsGroupPolicy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupPolicy {
    /// Never.
    None,
    /// Always.
    File,
    /// With a file system type, when one node alone writes.
    ReadWriteOnceWithFsType,
}

/// The rules of a driver.
#[must_use]
pub fn driver_rules(found: Option<&CSIDriver>) -> DriverRules {
    let Some(spec) = found.map(|d| &d.spec) else {
        return DriverRules {
            attach_required: true,
            pod_info: false,
            group_policy: GroupPolicy::ReadWriteOnceWithFsType,
            republish: false,
            tokens: Vec::new(),
            selinux_mount: false,
            tokens_in_secrets: false,
            is_persistent: true,
            is_ephemeral: false,
            update_period: None,
        };
    };
    let modes = spec.volume_lifecycle_modes.as_deref().unwrap_or_default();
    let has = |mode: &str| modes.iter().any(|m| m == mode);
    DriverRules {
        attach_required: spec.attach_required.unwrap_or(true),
        pod_info: spec.pod_info_on_mount.unwrap_or(false),
        group_policy: match spec.fs_group_policy.as_deref() {
            Some("None") => GroupPolicy::None,
            Some("File") => GroupPolicy::File,
            _ => GroupPolicy::ReadWriteOnceWithFsType,
        },
        republish: spec.requires_republish.unwrap_or(false),
        tokens: spec.token_requests.iter().flatten().map(|t| (t.audience.clone(), t.expiration_seconds)).collect(),
        selinux_mount: spec.se_linux_mount.unwrap_or(false),
        tokens_in_secrets: spec.service_account_token_in_secrets.unwrap_or(false),
        is_persistent: modes.is_empty() || has("Persistent"),
        is_ephemeral: has("Ephemeral"),
        update_period: found.and_then(update_period),
    }
}

/// How often the driver is asked again how many volumes this node may have (`nodeAllocatableUpdatePeriodSeconds`); `None`: never.
#[must_use]
pub fn update_period(of: &CSIDriver) -> Option<Duration> {
    let seconds = u64::try_from(of.spec.node_allocatable_update_period_seconds?).ok().filter(|s| *s > 0)?;
    Some(Duration::from_secs(seconds).max(SHORTEST_PERIOD))
}

/// Whether the driver may have a volume of this kind.
///
/// # Errors
/// It may not.
pub fn check_lifecycle(csi: &Csi, rules: &DriverRules) -> Result<(), String> {
    let (mode, fine) =
        if csi.is_inline { ("Ephemeral", rules.is_ephemeral) } else { ("Persistent", rules.is_persistent) };
    if fine { Ok(()) } else { Err(format!("volume mode {mode:?} not supported by driver {}", csi.driver)) }
}

/// Whether the node gives the volume to the pod's group. A driver with `VOLUME_MOUNT_GROUP` is told of the group instead.
#[must_use]
pub fn gives_to_group(volume: &Resolved, csi: &Csi, policy: GroupPolicy) -> bool {
    match policy {
        _ if volume.read_only => false,
        GroupPolicy::None => false,
        GroupPolicy::File => true,
        GroupPolicy::ReadWriteOnceWithFsType => {
            let once = |m: &String| m == "ReadWriteOnce" || m == "ReadWriteOncePod";
            !csi.fs_type.is_empty() && (csi.is_inline || volume.access_modes.iter().any(once))
        }
    }
}

/// `volume_context` of NodePublishVolume. `tokens`: those that stand in it, as JSON.
#[must_use]
pub fn publish_context(csi: &Csi, rules: &DriverRules, of: &Pod, tokens: Option<String>) -> BTreeMap<String, String> {
    let mut context = csi.attributes.clone();
    if rules.pod_info {
        let account = of.spec.as_ref().and_then(|s| s.service_account_name.clone()).unwrap_or_default();
        let facts = [
            ("pod.name", pod::name(of).to_owned()),
            ("pod.namespace", pod::namespace(of).to_owned()),
            ("pod.uid", pod::uid(of).to_string()),
            ("serviceAccount.name", account),
            ("ephemeral", csi.is_inline.to_string()),
        ];
        context.extend(facts.map(|(key, value)| (format!("csi.storage.k8s.io/{key}"), value)));
    }
    if let Some(tokens) = tokens {
        context.insert(TOKENS.to_owned(), tokens);
    }
    context
}
