//! Records that are written, and records that somebody spoiled.

use super::*;

fn options(dir: &Path) -> Options {
    Options {
        root: dir.join("lib"),
        run: dir.join("run"),
        listen: dir.join("cri.sock"),
        oci_runtime: "/none".into(),
        oci_runtime_only: false,
        handlers: Default::default(),
        supervisor: "/none".into(),
        cdi_spec_dirs: Vec::new(),
        snapshotter: Default::default(),
        systemd_cgroup: false,
    }
}

fn sandbox(id: &str) -> SandboxRecord {
    SandboxRecord {
        id: id.into(),
        stage: PodStage::Ready,
        created_at: 1,
        runtime_handler: String::new(),
        network: PodNetwork::default(),
        network_removed: false,
        config: v1::PodSandboxConfig::default(),
    }
}

fn container(pod: &str, id: &str, values: &[&[u8]]) -> ContainerRecord {
    let variable = |value: &&[u8]| v1::KeyValue { key: "K".into(), value: value.to_vec() };
    ContainerRecord {
        id: id.into(),
        pod: pod.into(),
        created_at: 1,
        started_at: 0,
        pid: 0,
        exit: None,
        reason: String::new(),
        message: String::new(),
        image_id: String::new(),
        image_ref: String::new(),
        stop_signal: 15,
        user: User::default(),
        log_path: String::new(),
        config: v1::ContainerConfig { envs: values.iter().map(variable).collect(), ..Default::default() },
    }
}

#[test]
fn a_large_environment_is_written_as_text_and_read_again() {
    let dir = tempfile::tempdir().expect("folder");
    let options = options(dir.path());
    let long = vec![b'x'; 4 << 20];
    let record = container("p", "c", &[&long, b"", &[0xff, 0, 1], "gr\u{fc}n".as_bytes()]);
    let folder = options.containers_root("p").join("c");
    fs::create_dir_all(&folder).expect("folder");
    record.write(&options).expect("written");
    let length = fs::metadata(folder.join(CONTAINER)).expect("file").len();
    assert!(length < (4 << 20) + 10_000, "{length}");
    assert_eq!(read::<ContainerRecord>(&folder.join(CONTAINER)).expect("read"), Some(record));
}

#[test]
fn a_spoiled_record_concerns_nobody_else() {
    let dir = tempfile::tempdir().expect("folder");
    let options = options(dir.path());
    for (pod, containers) in [("good", ["a", "b", "c"].as_slice()), ("bad", &["d"]), ("none", &[]), ("other", &[])] {
        fs::create_dir_all(options.containers_root(pod)).expect("folder");
        sandbox(pod).write(&options).expect("written");
        for id in containers {
            fs::create_dir_all(options.containers_root(pod).join(id)).expect("folder");
            container(pod, id, &[b"v"]).write(&options).expect("written");
        }
    }
    fs::write(options.pod_root("bad").join(SANDBOX), "{").expect("spoiled");
    fs::remove_file(options.pod_root("none").join(SANDBOX)).expect("removed");
    fs::copy(options.pod_root("good").join(SANDBOX), options.pod_root("other").join(SANDBOX)).expect("copied");
    fs::write(options.containers_root("good").join("b").join(CONTAINER), [0; 10]).expect("spoiled");
    fs::remove_file(options.containers_root("good").join("c").join(CONTAINER)).expect("removed");
    fs::write(options.root.join("pods/file"), "").expect("a file");
    let found = read_all(&options).expect("found");
    assert_eq!(found.sandboxes, [sandbox("good")]);
    assert_eq!(found.containers, [container("good", "a", &[b"v"])]);
    let broken: Vec<_> = found.broken.iter().map(|b| (b.pod.as_str(), b.container.as_deref())).collect();
    assert_eq!(
        broken,
        [("bad", None), ("file", None), ("good", Some("b")), ("good", Some("c")), ("none", None), ("other", None)]
    );
    assert!(found.broken.iter().all(|b| !b.why.is_empty()));
}
