use serde_json::{Value, json};

use super::*;
use crate::fixture;
use crate::mounts::MountError;
use crate::security::SecurityError;

fn made(fields: Value) -> Result<ContainerConfig, ConfigError> {
    let mut env = Environment::default();
    env.set("A", "one");
    env.set("RAW", vec![0xff]);
    container_config(&ContainerInput {
        mounts: MountInput {
            pod: &fixture::pod(json!({"securityContext": {}})),
            container: &fixture::container(fields),
            node: &fixture::node(),
            env: &env,
            volumes: &BTreeMap::new(),
            sub_paths: &BTreeMap::new(),
            has_pod_ip: true,
            termination_log: None,
            recursive_read_only: false,
            userns: None,
        },
        restart_count: 2,
        hash: 0xab,
        image_ref: "sha256:1",
        image_user: &ImageUser::default(),
        volume_groups: &[],
        target: None,
        raw_volumes: &BTreeMap::new(),
        devices: vec![Device { host_path: "/dev/x".to_owned(), ..Default::default() }],
        cdi_devices: vec!["vendor.com/gpu=0".to_owned()],
        annotations: &BTreeMap::from([("plugin".to_owned(), "1".to_owned())]),
        resources: Some(LinuxContainerResources { cpu_shares: 7, ..Default::default() }),
    })
}

#[test]
fn a_container_is_put_together() {
    let got = made(json!({
        "image": "busybox:1", "command": ["sh", "$(A)"], "args": ["$(NOPE)", "$$(A)"], "workingDir": "/w",
        "stdin": true, "stdinOnce": true, "tty": true,
    }))
    .expect("a config");
    assert_eq!(got.metadata, Some(ContainerMetadata { name: "app".to_owned(), attempt: 2 }));
    let image = got.image.expect("image");
    assert_eq!((image.image.as_str(), image.user_specified_image.as_str()), ("sha256:1", "busybox:1"));
    assert_eq!(
        (got.command, got.args),
        (vec!["sh".to_owned(), "one".to_owned()], vec!["$(NOPE)".to_owned(), "$(A)".to_owned()])
    );
    assert_eq!((got.working_dir.as_str(), got.log_path.as_str()), ("/w", "app/2.log"));
    assert!(got.stdin && got.stdin_once && got.tty);
    let envs: Vec<_> = got.envs.into_iter().map(|e| (e.key, e.value)).collect();
    assert_eq!(envs, [("A".to_owned(), b"one".to_vec()), ("RAW".to_owned(), vec![0xff])], "bytes stay bytes");
    assert_eq!((got.devices[0].host_path.as_str(), got.cdi_devices[0].name.as_str()), ("/dev/x", "vendor.com/gpu=0"));
    assert_eq!((got.annotations["plugin"].as_str(), got.annotations[names::CONTAINER_HASH].as_str()), ("1", "ab"));
    assert_eq!(got.labels.len(), 4);
    assert_eq!(got.linux.expect("linux").resources.map(|r| r.cpu_shares), Some(7));
    assert_eq!(got.stop_signal, 0, "the stop signal of the image");
}

#[test]
fn failures_of_the_parts_stop_it() {
    let mount = made(json!({"volumeMounts": [{"name": "v", "mountPath": "/m"}]}));
    assert!(matches!(mount, Err(ConfigError::Mount(MountError::NoVolume { .. }))), "{mount:?}");
    let root = made(json!({"securityContext": {"runAsNonRoot": true}}));
    assert!(matches!(root, Err(ConfigError::Security(SecurityError::RootImage { .. }))), "{root:?}");
}
