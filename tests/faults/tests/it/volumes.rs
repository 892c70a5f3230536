//! Volumes.

use std::path::Path;

use fakes::runtime::Mutation;
use ports::host::HostFs;
use serde_json::json;
use sim::{DISK, LIMIT, SimNode, World};
use tokio::time::sleep;

use crate::{drivers, pod, run, secs};

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
  - {name: share, flexVolume: {driver: example.com/x}}
  containers:
  - {name: app, image: 'app:1', volumeMounts: [{name: share, mountPath: /share}]}";
        node.put("web.yaml", &pod("web", spec));
        node.until("FailedMount is told", secs(300), |n| n.has_event("web", "FailedMount")).await;
        assert_eq!(node.phase("web"), "Pending");
        assert_eq!(node.state("web", "app"), "waiting:ContainerCreating");
        let events = node.events("web");
        assert!(events.iter().any(|e| e.contains("share") && e.contains("flexVolume")), "{events:?}");
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

/// A node of a cluster with a driver and a claim.
pub(crate) async fn with_driver(kernel: &actor::Kernel) -> SimNode {
    kernel.faults().enable();
    let mut world = World::in_cluster(kernel);
    // A source that never delivers would keep what is left of pods.
    world.settings.config.sources.static_pod_url = None;
    let mut node = SimNode::down(world, kernel);
    node.boot();
    node.world.runtime.add_images(&["app:1"]);
    drivers::announce(node.api());
    drivers::claim(node.api(), "data");
    drivers::comes(&node, drivers::DRIVER);
    let mounts = json!([{ "name": "disk", "mountPath": "/disk" }]);
    let containers = json!([{ "name": "app", "image": "app:1", "volumeMounts": mounts }]);
    node.bind("web", json!({ "volumes": [drivers::volume("data")], "containers": containers }));
    node.until("the Node tells of the wish", LIMIT, |n| !drivers::in_use(n).is_empty()).await;
    node
}

/// The daemon dies at each point of a driver's volume, and while it waits for the attach: the next one ends what was begun.
#[test]
fn a_daemon_that_dies_over_a_volume_of_a_driver_is_followed_by_one_that_ends_it() {
    let points = ["stage", "publish", "expand", "unpublish", "unstage"];
    let points = points.iter().flat_map(|p| ["before", "after"].map(|side| format!("{side} {p}")));
    for point in points.map(Some).chain([None]) {
        sim::log_to_stderr();
        actor::testing::run(1, |kernel| async move {
            let mut node = with_driver(&kernel).await;
            let claims = ["data".to_owned()];
            if let Some(point) = &point {
                node.fault(&format!("volume-manager: stall(1h)@={point}#1"));
                drivers::attach(&node, &claims, &[]);
            }
            let struck = |_: &SimNode| !kernel.faults().log().is_empty();
            let is_end = point.as_ref().is_some_and(|p| p.contains("un"));
            if is_end {
                node.until("web is ready", LIMIT, |n| n.is_ready("web")).await;
                node.delete("web");
            }
            match &point {
                Some(_) => node.until("the point is passed", LIMIT, struck).await,
                None => sleep(secs(30)).await,
            }
            node.restart().await;
            kernel.faults().clear();
            if point.is_none() {
                drivers::attach(&node, &claims, &[]);
            }
            if !is_end {
                node.until("web is ready", secs(300), |n| n.is_ready("web")).await;
                drivers::volumes_are(&node, &claims).unwrap_or_else(|e| panic!("{point:?}: {e}"));
                node.delete("web");
            }
            node.until("web is gone", secs(300), |n| n.is_gone("web")).await;
            let clean = |n: &SimNode| drivers::volumes_are(n, &[]).is_ok();
            if !node.holds_within(secs(300), clean).await {
                panic!("{point:?}: {:?}", drivers::volumes_are(&node, &[]));
            }
        });
    }
}
