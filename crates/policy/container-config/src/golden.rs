//! Each recorded RunPodSandbox and CreateContainer of a real kubelet, made again from the pod and compared field by field.

mod recording;

use std::collections::BTreeMap;
use std::net::IpAddr;

use cri_api::v1::{ContainerConfig, CreateContainerRequest, PodSandboxConfig, RunPodSandboxRequest};
use model::core::{ConfigMap, Pod, Secret, Service, Volume};
use model::k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use model::pod;

use crate::names::{CONTAINER_HASH, TERMINATION_MESSAGE_PATH};
use crate::{
    ContainerInput, DnsInput, DnsSource, EnvInput, ImageUser, MountInput, NodeSettings, ObjectMap, ResolvConf,
    SandboxInput, VolumeSource, container_config, dns_config, environment, sandbox_config, sub_paths,
};
use recording::{Case, cases, differences};

fn node(pod: &Pod) -> NodeSettings {
    let status = pod.status.as_ref().expect("recorded pods have a status");
    NodeSettings {
        root_dir: "/var/lib/kubelet".to_owned(),
        pod_logs_dir: "/var/log/pods".to_owned(),
        cluster_domain: "cluster.local".to_owned(),
        seccomp_default: false,
        selinux: false,
        thermal_throttle_paths: Vec::new(),
        host_ips: status.host_ip.iter().map(|ip| ip.parse().expect("recorded address")).collect(),
        allocatable: BTreeMap::from([("cpu".to_owned(), Quantity("4".to_owned()))]),
    }
}

fn pod_ips(pod: &Pod) -> Vec<IpAddr> {
    let ips = pod.status.iter().flat_map(|s| s.pod_ips.iter().flatten());
    ips.map(|ip| ip.ip.parse().expect("recorded address")).collect()
}

/// Sandbox of the case, with what the host decides taken from the recording.
fn sandbox(case: &Case, recorded: &PodSandboxConfig) -> PodSandboxConfig {
    let host = ResolvConf::parse("nameserver 10.255.255.53\n").expect("valid file");
    let (dns, warnings) = dns_config(&DnsInput {
        pod: &case.pod,
        cluster_domain: "cluster.local",
        cluster_dns: &["10.96.0.10".to_owned()],
        source: &DnsSource::File(host),
    });
    assert_eq!(warnings, [], "{}: DNS", case.name);
    let linux = recorded.linux.as_ref().expect("linux");
    sandbox_config(&SandboxInput {
        pod: &case.pod,
        node: &node(&case.pod),
        attempt: recorded.metadata.as_ref().expect("metadata").attempt,
        dns,
        cgroup_parent: linux.cgroup_parent.clone(),
        resources: linux.resources.clone(),
        overhead: None,
        userns: None,
        volume_groups: &[],
    })
    .expect("a sandbox config")
}

fn volume(pod: &Pod, volume: &Volume) -> VolumeSource {
    let dir = |plugin: &str| {
        let uid = pod.metadata.uid.as_deref().expect("uid");
        format!("/var/lib/kubelet/pods/{uid}/volumes/kubernetes.io~{plugin}/{}", volume.name)
    };
    let (host_path, read_only) = match volume {
        Volume { host_path: Some(h), .. } => (h.path.clone(), false),
        Volume { empty_dir: Some(_), .. } => (dir("empty-dir"), false),
        Volume { config_map: Some(_), .. } => (dir("configmap"), true),
        Volume { secret: Some(_), .. } => (dir("secret"), true),
        Volume { downward_api: Some(_), .. } => (dir("downward-api"), true),
        Volume { projected: Some(_), .. } => (dir("projected"), true),
        other => panic!("volume {other:?} of a recorded pod"),
    };
    VolumeSource::Path { host_path, read_only, selinux_relabel: true }
}

/// Users of the images of the recording.
fn image_user(image: &str) -> ImageUser {
    let uid = image.contains("/pause:").then_some(65535);
    ImageUser { uid, username: String::new() }
}

fn container(case: &Case, recorded: &ContainerConfig) -> ContainerConfig {
    let pod = &case.pod;
    let metadata = recorded.metadata.as_ref().expect("metadata");
    let (_, spec) = pod::find_container(pod, &metadata.name).expect("a recorded container is in its pod");
    let env = environment(&EnvInput {
        pod,
        container: &spec,
        node: &node(pod),
        services: Some(&case.services),
        objects: &case.objects,
        pod_ips: &pod_ips(pod),
    })
    .expect("an environment");
    let uid = pod.metadata.uid.as_deref().expect("uid");
    let prepared = |s: &crate::mounts::SubPath| {
        let dir = format!("/var/lib/kubelet/pods/{uid}/volume-subpaths/{}/{}/{}", s.volume, spec.name, s.index);
        (s.index, dir)
    };
    let volumes = pod.spec.iter().flat_map(|s| s.volumes.iter().flatten());
    let log_path = &recorded.annotations[TERMINATION_MESSAGE_PATH];
    let log_file = &recorded.mounts.iter().find(|m| m.container_path == *log_path).expect("log mount").host_path;
    assert!(log_file.starts_with(&format!("{}/", crate::mounts::container_dir("/var/lib/kubelet", pod, &spec.name))));
    container_config(&ContainerInput {
        mounts: MountInput {
            pod,
            container: &spec,
            node: &node(pod),
            env: &env,
            volumes: &volumes.map(|v| (v.name.clone(), volume(pod, v))).collect(),
            sub_paths: &sub_paths(&spec, &env).expect("sub-paths").iter().map(prepared).collect(),
            has_pod_ip: !pod_ips(pod).is_empty(),
            termination_log: Some(log_file),
            recursive_read_only: false,
            userns: None,
        },
        restart_count: metadata.attempt,
        hash: u64::from_str_radix(&recorded.annotations[CONTAINER_HASH], 16).expect("hex"),
        image_ref: &recorded.image.as_ref().expect("image").image,
        image_user: &image_user(spec.image.as_deref().unwrap_or_default()),
        volume_groups: &[],
        target: None,
        raw_volumes: &BTreeMap::new(),
        devices: Vec::new(),
        cdi_devices: Vec::new(),
        annotations: &BTreeMap::new(),
        resources: recorded.linux.as_ref().expect("linux").resources.clone(),
    })
    .expect("a container config")
}

/// Objects of the test bed that pods saw: the two services, and the ConfigMap and Secret of two cases.
fn objects() -> (Vec<Service>, ObjectMap) {
    let services = serde_json::json!([
        {"metadata": {"name": "kubernetes", "namespace": "default"},
         "spec": {"clusterIP": "10.96.0.1", "ports": [{"name": "https", "port": 443, "protocol": "TCP"}]}},
        {"metadata": {"name": "web", "namespace": "gold"},
         "spec": {"clusterIP": "10.96.40.133", "ports": [
            {"name": "http", "port": 80, "protocol": "TCP"}, {"name": "https", "port": 443, "protocol": "TCP"}]}},
    ]);
    let map: ConfigMap = serde_json::from_value(serde_json::json!(
        {"data": {"a": "1", "b.txt": "two\n", "bad-key": "x"}, "binaryData": {"bin": "AAEC"}}
    ))
    .expect("a ConfigMap");
    let secret: Secret =
        serde_json::from_value(serde_json::json!({"data": {"user": "dQ==", "pass": "cA=="}})).expect("a Secret");
    let map = ObjectMap {
        config_maps: BTreeMap::from([("cm".to_owned(), Ok(map))]),
        secrets: BTreeMap::from([("sec".to_owned(), Ok(secret))]),
        ..Default::default()
    };
    (serde_json::from_value(services).expect("services"), map)
}

fn sort_env(config: &mut ContainerConfig) {
    config.envs.sort_by(|a, b| a.key.cmp(&b.key));
}

#[test]
fn sandboxes_equal_the_recorded_ones() {
    let mut seen = 0;
    let mut wrong = Vec::new();
    for case in cases(&objects()) {
        for request in case.requests::<RunPodSandboxRequest>("RunPodSandbox", "runtime.v1.RunPodSandboxRequest") {
            let recorded = request.config.expect("config");
            let ours = sandbox(&case, &recorded);
            wrong.extend(differences(&case.name, "runtime.v1.PodSandboxConfig", &recorded, &ours));
            seen += 1;
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    assert_eq!(seen, 39, "sandboxes in tests/golden");
}

#[test]
fn containers_equal_the_recorded_ones() {
    let mut seen = 0;
    let mut wrong = Vec::new();
    for case in cases(&objects()) {
        for request in case.requests::<CreateContainerRequest>("CreateContainer", "runtime.v1.CreateContainerRequest") {
            let mut recorded = request.config.expect("config");
            let mut ours = container(&case, &recorded);
            sort_env(&mut recorded);
            sort_env(&mut ours);
            wrong.extend(differences(&case.name, "runtime.v1.ContainerConfig", &recorded, &ours));
            let recorded = request.sandbox_config.expect("sandbox config");
            let ours = sandbox(&case, &recorded);
            wrong.extend(differences(&case.name, "runtime.v1.PodSandboxConfig", &recorded, &ours));
            seen += 1;
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    assert!(seen > 50, "only {seen} containers in tests/golden");
}
