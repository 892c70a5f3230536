//! Feature gates of a kubelet 1.36 (interfaces 10.5).

mod gate;
mod table;

use std::collections::BTreeMap;

use serde_json::Value;

use crate::error::{ConfigError, Warning};
use crate::nearest::nearest;

pub use gate::{Gate, Stage};

/// Gates whose value changes what bosun does; all others are accepted and have no effect yet. `cargo xtask tidy` holds it against
/// the code.
const HONOURED: &[&str] = &[
    "CSIVolumeHealth",
    "ClusterTrustBundle",
    "ClusterTrustBundleProjection",
    "ComponentFlagz",
    "ComponentStatusz",
    "ContainerCheckpoint",
    "ExtendWebSocketsToKubelet",
    "GracefulNodeShutdown",
    "GracefulNodeShutdownBasedOnPodPriority",
    "InPlacePodLevelResourcesVerticalScaling",
    "InPlacePodVerticalScalingInitContainers",
    "KubeletCrashLoopBackOffMax",
    "KubeletEnsureSecretPulledImages",
    "KubeletFineGrainedAuthz",
    "KubeletInUserNamespace",
    "LocalStorageCapacityIsolationFSQuotaMonitoring",
    "LoggingAlphaOptions",
    "MemoryQoS",
    "NodeDeclaredFeatures",
    "NodeLogQuery",
    "PodCertificateRequest",
    "PodLogsQuerySplitStreams",
    "QOSReserved",
    "RestartAllContainersOnContainerExits",
    "RotateKubeletServerCertificate",
    "SELinuxMount",
];
/// Gates that need another one: of those that change what bosun does.
const NEEDS: &[(&str, &str)] = &[("ClusterTrustBundleProjection", "ClusterTrustBundle")];
/// Groups of gates.
const GROUPS: &[&str] = &["AllAlpha", "AllBeta"];

/// The gates that a configuration sets, over the defaults.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FeatureGates {
    set: BTreeMap<String, bool>,
}

impl FeatureGates {
    /// Whether a gate is on. A gate that 1.36 does not know is off.
    #[must_use]
    pub fn enabled(&self, name: &str) -> bool {
        if let Some(on) = self.set.get(name) {
            return *on;
        }
        let Some(gate) = find(name) else { return false };
        let group = match gate.stage {
            Stage::Alpha => self.set.get("AllAlpha"),
            Stage::Beta => self.set.get("AllBeta"),
            Stage::Ga | Stage::Deprecated => None,
        };
        match group {
            Some(on) if !gate.locked => *on,
            _ => gate.default,
        }
    }

    /// What was set explicitly.
    #[must_use]
    pub fn explicit(&self) -> &BTreeMap<String, bool> {
        &self.set
    }

    /// Sets one gate.
    ///
    /// # Errors
    /// The gate is locked to its other value, or its name is that of a removed gate or a misspelled one.
    pub fn set(&mut self, name: &str, on: bool) -> Result<Option<Warning>, ConfigError> {
        let path = format!("featureGates.{name}");
        let warn = |reason: String| Ok(Some(Warning::new(path.clone(), reason)));
        let result = match find(name) {
            None if GROUPS.contains(&name) => Ok(None),
            None => return Err(unknown(name, &path)),
            Some(gate) if gate.locked && gate.default != on => {
                let reason = format!("cannot set feature gate {name} to {on}, feature is locked to {}", gate.default);
                return Err(ConfigError::new(path, reason).value(&Value::Bool(on)));
            }
            Some(gate)
                if gate.default != on && !HONOURED.contains(&name) && table::OTHERS.iter().all(|g| g.name != name) =>
            {
                warn(format!("not implemented yet: bosun behaves as with {}", gate.default))
            }
            Some(gate) if matches!(gate.stage, Stage::Ga | Stage::Deprecated) => {
                warn("this gate needs no setting any more and will be removed".to_owned())
            }
            Some(_) => Ok(None),
        };
        self.set.insert(name.to_owned(), on);
        result
    }

    /// Gates that are on without one that they need.
    pub(crate) fn unfounded(&self) -> impl Iterator<Item = ConfigError> {
        NEEDS.iter().filter(|(gate, needed)| self.enabled(gate) && !self.enabled(needed)).map(|(gate, needed)| {
            let reason = format!("{gate} is enabled, but depends on features that are disabled: [{needed}]");
            ConfigError::new(format!("featureGates.{gate}"), reason)
        })
    }
}

/// All gates of a node, by name.
pub fn all() -> impl Iterator<Item = &'static Gate> {
    table::GATES.iter()
}

/// The gate of that name, of a node or of another component.
#[must_use]
pub fn find(name: &str) -> Option<&'static Gate> {
    [table::GATES, table::OTHERS]
        .iter()
        .find_map(|gates| gates.binary_search_by(|g| g.name.cmp(name)).ok().and_then(|i| gates.get(i)))
}

fn unknown(name: &str, path: &str) -> ConfigError {
    if table::REMOVED.contains(&name) {
        return ConfigError::new(path, format!("unrecognized feature gate: {name} (it was removed before 1.36)"));
    }
    let error = ConfigError::new(path, format!("unrecognized feature gate: {name}"));
    let known = table::GATES.iter().chain(table::OTHERS).map(|g| g.name).chain(GROUPS.iter().copied());
    match nearest(name, known) {
        Some(near) => error.allowed(format!("did you mean {near}?")),
        None => error.allowed("the gates of Kubernetes 1.36"),
    }
}
