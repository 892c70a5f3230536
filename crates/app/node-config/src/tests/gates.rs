use super::*;
use crate::feature_gates::{FeatureGates, find};

#[test]
fn every_gate_of_the_table_is_found_by_its_name() {
    for name in [
        "AllowDNSOnlyNodeCSR",
        "WindowsGracefulNodeShutdown",
        "PodLevelResources",
        "CustomCPUCFSQuotaPeriod",
        "CRIListStreaming",
        "RuntimeClassInImageCriApi",
        "WatchList",
        "APIResponseCompression",
        "WorkloadWithJob",
        "InformerResourceVersion",
    ] {
        assert_eq!(find(name).map(|g| g.name), Some(name));
    }
    assert_eq!(find("Nope"), None);
}

#[test]
fn gates_have_the_defaults_of_one_36_unless_set() {
    let gates = good("featureGates: {EventedPLEG: true, PodLevelResources: false}").feature_gates;
    assert!(gates.enabled("EventedPLEG"));
    assert!(!gates.enabled("PodLevelResources"));
    assert!(gates.enabled("SidecarContainers"));
    assert!(!gates.enabled("MemoryQoS"));
    assert!(!gates.enabled("Nope"));
    assert_eq!(gates.explicit().len(), 2);
}

#[test]
fn groups_switch_all_gates_of_their_stage_that_are_not_set_by_name() {
    let gates = good("featureGates: {AllAlpha: true, AllBeta: false, MemoryQoS: false, ContainerRestartRules: true}")
        .feature_gates;
    assert!(gates.enabled("EventedPLEG"));
    assert!(!gates.enabled("MemoryQoS"));
    assert!(!gates.enabled("PodLevelResources"));
    assert!(gates.enabled("ContainerRestartRules"));
    assert!(gates.enabled("SidecarContainers"));
}

#[test]
fn a_gate_that_changes_nothing_here_is_answered_honestly() {
    assert_eq!(
        warnings("featureGates: {EventedPLEG: true}"),
        ["featureGates.EventedPLEG: not implemented yet: bosun behaves as with false"]
    );
    assert_eq!(
        warnings("featureGates: {SidecarContainers: true}"),
        ["featureGates.SidecarContainers: this gate needs no setting any more and will be removed"]
    );
    assert_eq!(warnings("featureGates: {APIServingWithRoutine: true}"), Vec::<String>::new());
    assert!(warnings("featureGates: {ContainerRestartRules: true}").is_empty());
    let changed = "featureGates: {GracefulNodeShutdown: false, InPlacePodVerticalScalingInitContainers: false, \
                   LocalStorageCapacityIsolationFSQuotaMonitoring: true}";
    assert_eq!(warnings(changed), Vec::<String>::new());
}

#[test]
fn a_gate_that_needs_another_is_refused_without_it() {
    let refused = read("featureGates: {ClusterTrustBundleProjection: true}").unwrap_err();
    let refused: Vec<String> = refused.iter().map(ToString::to_string).collect();
    let text =
        "ClusterTrustBundleProjection is enabled, but depends on features that are disabled: [ClusterTrustBundle]";
    assert!(refused.len() == 1 && refused[0].contains(text), "{refused:?}");
    let both = "featureGates: {ClusterTrustBundleProjection: true, ClusterTrustBundle: true}";
    assert!(warnings(both).is_empty() && good(both).feature_gates.enabled("ClusterTrustBundleProjection"));
}

#[test]
fn a_locked_a_removed_or_a_misspelled_gate_is_refused() {
    let mut gates = FeatureGates::default();
    let mut refuse = |name: &str, on| gates.set(name, on).unwrap_err().to_string();
    assert_eq!(
        refuse("SidecarContainers", false),
        "featureGates.SidecarContainers: false: cannot set feature gate SidecarContainers to false, feature is locked to true"
    );
    assert!(refuse("SeccompDefault", true).contains("unrecognized feature gate: SeccompDefault"));
    assert!(refuse("MemoryQos1", true).contains("did you mean MemoryQoS?"));
    assert!(refuse("NotAGate", true).contains("unrecognized feature gate: NotAGate"));
    assert!(gates.explicit().is_empty());
}
