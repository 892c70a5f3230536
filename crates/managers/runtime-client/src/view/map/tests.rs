use cri_api::v1;
use model::Timestamp;
use model::runtime::{ContainerState, RuntimeResources};

use super::{container, sandbox, state};

#[test]
fn states_follow_the_book_and_unknown_numbers_are_unknown() {
    let rows = [
        (0, ContainerState::Created),
        (1, ContainerState::Running),
        (2, ContainerState::Exited),
        (3, ContainerState::Unknown),
        (99, ContainerState::Unknown),
    ];
    for (number, want) in rows {
        assert_eq!(state(number), want, "{number}");
    }
}

#[test]
fn a_container_status_becomes_an_observation() {
    let pairs = |l: &[(&str, &str)]| l.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    let status = v1::ContainerStatus {
        id: "c1".to_owned(),
        metadata: Some(v1::ContainerMetadata { name: "meta".to_owned(), attempt: 4 }),
        state: 2,
        created_at: 1,
        started_at: 2,
        finished_at: 3,
        exit_code: 9,
        image: Some(v1::ImageSpec { image: "app:1".to_owned(), ..Default::default() }),
        image_ref: "app@sha256:0".to_owned(),
        reason: "Error".to_owned(),
        message: "raw".to_owned(),
        labels: pairs(&[("io.kubernetes.container.name", "app")]),
        annotations: pairs(&[
            ("io.kubernetes.container.hash", "8e45cbd0"),
            ("io.kubernetes.container.restartCount", "7"),
        ]),
        mounts: vec![v1::Mount { container_path: "/a".into(), host_path: "/b".into(), ..Default::default() }],
        log_path: "/log".to_owned(),
        resources: Some(v1::ContainerResources {
            linux: Some(v1::LinuxContainerResources { cpu_shares: 2, cpu_period: 3, ..Default::default() }),
        }),
        user: Some(v1::ContainerUser {
            linux: Some(v1::LinuxContainerUser { uid: 1, gid: 2, supplemental_groups: vec![3] }),
        }),
        ..Default::default()
    };
    let c = container(status, "s1".into(), "said".to_owned());
    assert_eq!((c.id.as_str(), c.name.as_str(), c.sandbox.as_str()), ("c1", "app", "s1"));
    assert_eq!((c.created_at, c.started_at, c.finished_at), (Timestamp(1), Timestamp(2), Timestamp(3)));
    assert_eq!((c.state, c.exit_code, c.reason.as_str()), (ContainerState::Exited, 9, "Error"));
    assert_eq!((c.image.as_str(), c.image_ref.as_str(), c.message.as_str()), ("app:1", "app@sha256:0", "said"));
    assert_eq!((c.restart_count, c.hash), (7, Some(0x8e45_cbd0)));
    assert_eq!(c.mounts[0].host_path, "/b");
    let resources = RuntimeResources { cpu_shares: 2, cpu_period_us: 3, ..Default::default() };
    assert_eq!((c.resources, c.user), (Some(resources), Some((1, 2, vec![3]))));
}

#[test]
fn what_annotations_do_not_tell_comes_from_the_metadata() {
    let status = v1::ContainerStatus {
        metadata: Some(v1::ContainerMetadata { name: "meta".to_owned(), attempt: 4 }),
        annotations: [("io.kubernetes.container.hash".to_owned(), "xyz".to_owned())].into(),
        ..Default::default()
    };
    let c = container(status, "s1".into(), String::new());
    assert_eq!((c.name.as_str(), c.restart_count, c.hash), ("meta", 4, None));
}

#[test]
fn a_sandbox_tells_its_network_only_when_the_runtime_does() {
    let options = |network: v1::NamespaceMode| {
        let options = Some(v1::NamespaceOption { network: network.into(), ..Default::default() });
        Some(v1::LinuxPodSandboxStatus { namespaces: Some(v1::Namespace { options }) })
    };
    let bare = v1::PodSandboxStatus { state: 1, ..Default::default() };
    let s = sandbox(bare.clone());
    assert_eq!((s.ready, s.host_network, s.ips), (false, None, None));
    let network = v1::PodSandboxNetworkStatus {
        ip: "10.0.0.1".to_owned(),
        additional_ips: vec![v1::PodIp { ip: "fd00::1".to_owned() }],
    };
    let full = v1::PodSandboxStatus {
        state: 0,
        network: Some(network),
        linux: options(v1::NamespaceMode::Node),
        ..bare.clone()
    };
    let s = sandbox(full);
    assert_eq!((s.ready, s.host_network), (true, Some(true)));
    assert_eq!(s.ips, Some(vec!["10.0.0.1".to_owned(), "fd00::1".to_owned()]));
    let pod = v1::PodSandboxStatus { linux: options(v1::NamespaceMode::Pod), ..bare };
    assert_eq!(sandbox(pod).host_network, Some(false));
}
