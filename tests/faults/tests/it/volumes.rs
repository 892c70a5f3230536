//! Volumes.

use std::path::Path;

use fakes::runtime::Mutation;
use ports::host::HostFs;
use sim::{DISK, LIMIT};
use tokio::time::sleep;

use crate::{pod, run, secs};

#[test]
fn empty_dir_and_host_path_are_mounted() {
    run(async |node| {
        let host = Path::new(DISK).join("data");
        let spec = format!(
            "
  volumes:
  - {{name: scratch, emptyDir: {{}}}}
  - {{name: data, hostPath: {{path: {}, type: DirectoryOrCreate}}}}
  containers:
  - name: app
    image: app:1
    volumeMounts:
    - {{name: scratch, mountPath: /scratch}}
    - {{name: data, mountPath: /data, readOnly: true}}",
            host.display()
        );
        node.put("web.yaml", &pod("web", &spec));
        node.until("web is ready", LIMIT, |n| n.is_ready("web")).await;
        let is_dir = |path: &Path| node.world.files.list_dir(path).is_ok();
        assert!(is_dir(&host));
        let create = node.world.runtime.mutations().into_iter().find_map(|m| match m {
            Mutation::CreateContainer(r) => r.config,
            _ => None,
        });
        let mounts = create.unwrap().mounts;
        let at = |path: &str| mounts.iter().find(|m| m.container_path == path).unwrap();
        assert!(is_dir(Path::new(&at("/scratch").host_path)));
        assert_eq!(at("/data").host_path, host.display().to_string());
        assert!(at("/data").readonly && !at("/scratch").readonly);
    });
}

#[test]
fn a_kind_of_volume_that_this_node_lacks_is_told_and_nothing_starts() {
    run(async |node| {
        let spec = "
  volumes:
  - {name: share, nfs: {server: nfs.example, path: /}}
  containers:
  - {name: app, image: 'app:1', volumeMounts: [{name: share, mountPath: /share}]}";
        node.put("web.yaml", &pod("web", spec));
        node.until("FailedMount is told", secs(300), |n| n.has_event("web", "FailedMount")).await;
        assert_eq!(node.phase("web"), "Pending");
        assert_eq!(node.state("web", "app"), "waiting:ContainerCreating");
        let events = node.events("web");
        assert!(events.iter().any(|e| e.contains("share") && e.contains("nfs")), "{events:?}");
        sleep(secs(300)).await;
        assert!(node.count("RunPodSandbox").is_empty());
        node.remove("web.yaml");
        node.until("web is gone", LIMIT, |n| n.is_gone("web")).await;
    });
}

#[test]
fn a_host_path_of_the_wrong_type_holds_up_only_its_pod_until_it_is_right() {
    run(async |node| {
        let path = Path::new(DISK).join("dir");
        let spec = format!(
            "
  volumes:
  - {{name: data, hostPath: {{path: {}, type: Directory}}}}
  containers:
  - {{name: app, image: 'app:1', volumeMounts: [{{name: data, mountPath: /data}}]}}",
            path.display()
        );
        node.put("web.yaml", &pod("web", &spec));
        node.put("other.yaml", &crate::simple("other", ""));
        node.until("other is ready", LIMIT, |n| n.is_ready("other")).await;
        node.until("FailedMount is told", secs(300), |n| n.has_event("web", "FailedMount")).await;
        node.world.files.create_dir(&path, 0o755).unwrap();
        node.until("web is ready", secs(200), |n| n.is_ready("web")).await;
    });
}

#[test]
fn a_pod_that_waits_for_its_volumes_is_removed_at_once() {
    run(async |node| {
        let spec = "
  volumes:
  - {name: data, hostPath: {path: /bosun-sim-nowhere, type: Directory}}
  containers:
  - {name: app, image: 'app:1', volumeMounts: [{name: data, mountPath: /data}]}";
        node.put("web.yaml", &pod("web", spec));
        node.until("it waits", secs(10), |n| n.phase("web") == "Pending").await;
        sleep(secs(5)).await;
        node.remove("web.yaml");
        node.until("web is gone", secs(10), |n| n.is_gone("web")).await;
    });
}
