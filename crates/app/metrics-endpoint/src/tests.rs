mod dashboard;
mod encoding;
mod golden;
mod serving;

use std::sync::Arc;

use actor::Kernel;
use contract::Wiring;
use contract::certificates::{CertificateView, KeyPair};
use contract::lookup::PodLookup;
use contract::volume::{VolumeRow, VolumeStage};
use futures::FutureExt;
use model::core::{Pod, PodSpec, Volume};
use model::{PodUid, Timestamp};

use crate::{BuildInfo, ClaimUsage, Deps, FeatureGate, LogUsage, Usage};

/// A node on which every computed family has something to tell.
fn node(kernel: &Kernel) -> Deps {
    let wiring = Wiring::default();
    let uid = PodUid::from("u1");
    let volume = |name: &str| Volume { name: name.into(), empty_dir: Some(Default::default()), ..Volume::default() };
    let spec = PodSpec { volumes: Some(vec![volume("a"), volume("b")]), ..PodSpec::default() };
    let pod = Arc::new(Pod { spec: Some(spec), ..Pod::default() });
    let source = contract::config_sources::Source::Api;
    let row = contract::pod_manager::DesiredPod::admitted(pod, source);
    wiring.put(uid.clone(), row);
    wiring.put(uid.clone(), observed(&uid));
    let not_after = Timestamp(kernel.clock().unix_nanos() + 3_600_000_000_000);
    let pair =
        KeyPair { certificate_pem: String::new(), key_pem: String::new(), not_before: Timestamp::ZERO, not_after };
    let view = CertificateView { client: Some(Arc::new(pair)), ..CertificateView::default() };
    wiring.set(view);
    Deps {
        kernel: kernel.clone(),
        lookup: PodLookup::of(&wiring),
        workers: wiring.board(),
        volumes: Arc::new(|| async { Some(Arc::new(volumes())) }.boxed()),
        plugins: wiring.board(),
        certificates: wiring.value(),
        client_certificate_managed: true,
        serving_certificate_managed: true,
        node_name: "n1".into(),
        feature_gates: [FeatureGate { name: "ImageVolume".into(), stage: "BETA".into(), enabled: true }].into(),
        build: BuildInfo { git_version: "v1.36.2".into(), ..BuildInfo::default() },
        health_checks: Arc::new(|| vec![("ping".into(), true), ("syncloop".into(), false)]),
        elsewhere: None,
        usage: Some(Arc::new(|| async { usage() }.boxed())),
    }
}

/// Two emptyDirs, one of which is there; what nobody knows yet; and one volume for each state of a driver's.
fn volumes() -> Vec<VolumeRow> {
    use VolumeStage::{Leaving, Mounted, Staged, Uncertain, Unreadable, Waiting};
    let of = |kind: &str, driver: &str, stage| VolumeRow {
        pod: Some(PodUid::from("u1")),
        kind: kind.into(),
        driver: driver.into(),
        stage,
        ..VolumeRow::default()
    };
    let own = [("emptyDir", "", Mounted), ("emptyDir", "", Waiting), ("", "", Waiting), ("nfs", "server", Mounted)];
    let of_driver =
        [Mounted, Mounted, Staged, Uncertain, Waiting, Leaving, Unreadable].map(|s| ("csi", "d.example", s));
    let mut rows: Vec<VolumeRow> = own.into_iter().chain(of_driver).map(|(k, d, s)| of(k, d, s)).collect();
    rows.push(VolumeRow { pod: None, ..of("csi", "d.example", Staged) });
    rows
}

fn usage() -> Usage {
    let claim = ClaimUsage {
        namespace: "shop".into(),
        claim: "data".into(),
        capacity_bytes: Some(10),
        available_bytes: Some(6),
        used_bytes: Some(4),
        inodes: Some(3),
        inodes_free: Some(2),
        inodes_used: Some(1),
        abnormal: Some(true),
    };
    let log = LogUsage {
        uid: "u1".into(),
        namespace: "shop".into(),
        pod: "web".into(),
        container: "app".into(),
        used_bytes: 7,
    };
    Usage { claims: vec![claim], logs: vec![log] }
}

fn observed(uid: &PodUid) -> contract::runtime::Observed {
    use model::runtime::{PodObservation, SandboxObservation};
    let mut pod = PodObservation::empty(uid.clone(), "shop", "web");
    pod.sandboxes.push(SandboxObservation::new("s1", 0, true));
    for (name, state) in [
        ("app", model::runtime::ContainerState::Running),
        ("old", model::runtime::ContainerState::Exited),
        ("older", model::runtime::ContainerState::Exited),
    ] {
        pod.containers.push(container(name, state));
    }
    contract::runtime::Observed { pod: Arc::new(pod), observed_at: Timestamp::ZERO }
}

fn container(name: &str, state: model::runtime::ContainerState) -> model::runtime::ContainerObservation {
    model::runtime::ContainerObservation::new(name, name, "s1", state)
}
