//! A node with pods whose counters are files, and the real StatsManager over it. The benchmark uses it as well.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use actor::Kernel;
use axum::body::Body;
use axum::http::Request;
use cgroup_values::PodTree;
use contract::Wiring;
use contract::cgroup::PodCgroupRow;
use contract::config_sources::Source;
use contract::volume::PodVolumes;
use fakes::stats::{Cgroups, StatsTree, container, image_fs};
use fakes::{FakeRuntime, LinuxStats};
use http_body_util::BodyExt;
use model::node::CgroupDriver;
use model::resources::QosClass;
use model::runtime::{ContainerObservation, ContainerState, PodObservation, SandboxObservation};
use model::{PodUid, Timestamp};
use serde_json::json;
use stats_manager::{Config, Deps, StatsManager};
use tower::ServiceExt;

/// The node, and the folder that it lies in.
pub(crate) struct Scene {
    _dir: tempfile::TempDir,
    app: axum::Router,
    source: LinuxStats,
    now: Cell<Timestamp>,
}

impl Scene {
    /// Pods with one container (even ones) or two, each with a log and an emptyDir.
    pub(crate) fn new(kernel: &Kernel, cgroups: Cgroups, pods: u32) -> Self {
        // Thousands of files: in memory, where the kernel's own ones are as well.
        let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a folder");
        let tree = StatsTree::new(dir.path(), cgroups);
        let (runtime, here) = (FakeRuntime::default(), dir.path().display().to_string());
        runtime.set_image_fs(image_fs(&here));
        let wiring = Wiring::default();
        wiring.set(fakes::well());
        let (source, now) = (tree.source(), Timestamp::from_secs(1_800_000_000));
        source.freeze(now);
        let client = runtime.client();
        let deps =
            Deps { source: Arc::new(source.clone()), runtime: client.clone(), images: client, quotas: None, csi: None };
        let names = PodTree::new("/", CgroupDriver::Cgroupfs);
        for path in [names.kubepods(), names.tier(QosClass::Burstable), names.tier(QosClass::BestEffort)] {
            tree.cgroup(&path, 50, &[]);
        }
        let mut stats = Vec::new();
        for n in 0..pods {
            stats.extend(one_pod(&tree, &wiring, &names, n));
        }
        runtime.set_container_stats(stats.iter().map(|id| container(id, &here)).collect());
        let config = Arc::new(Config {
            node_name: "node".into(),
            root_dir: dir.path().join("root"),
            pod_logs_dir: dir.path().join("logs"),
            tree: Some(names),
            kubelet_cgroup: String::new(),
            runtime_cgroup: String::new(),
            system_cgroup: String::new(),
            volume_period: Some(Duration::from_secs(3600)),
            volume_health: false,
        });
        let deps = Arc::new(deps);
        let served = crate::Deps { crew: wiring.crew(), effects: kernel.effects("stats-endpoint") };
        fakes::start(kernel, &wiring, move |crew| StatsManager::new(crew, config.clone(), deps.clone()));
        Self { _dir: dir, app: crate::router(served), source, now: Cell::new(now) }
    }

    /// Lets time pass, for actors and for readings.
    pub(crate) async fn pass(&self, time: Duration) {
        self.now.set(self.now.get().plus(time));
        self.source.freeze(self.now.get());
        tokio::time::sleep(time).await;
    }

    /// Body of a GET.
    pub(crate) async fn get(&self, path: &str) -> String {
        let request = Request::get(path).body(Body::empty()).expect("a request");
        let Ok(answer) = self.app.clone().oneshot(request).await;
        let body = answer.into_body().collect().await.expect("a whole body").to_bytes();
        String::from_utf8(body.to_vec()).expect("text")
    }
}

fn one_pod(tree: &StatsTree, wiring: &Wiring, names: &PodTree, n: u32) -> Vec<String> {
    let (name, uid) = (format!("pod-{n}"), PodUid::from(format!("6a519828-1739-4299-9dcc-ad1c{n:08}")));
    let path = names.pod(QosClass::Burstable, &uid);
    tree.cgroup(&path, 9, &[]);
    let sandbox = format!("{n:060}aaaa");
    tree.cgroup(&format!("{path}/{sandbox}"), 1, &[10_000 + 3 * n]);
    let mut pod = PodObservation::empty(uid.clone(), "shop", &name);
    pod.sandboxes.push(SandboxObservation {
        created_at: Timestamp::from_secs(1_700_000_000),
        host_network: Some(false),
        ..SandboxObservation::new(sandbox, 0, true)
    });
    for c in 0..=(n % 2) {
        let id = format!("{n:060}{c:04}");
        tree.cgroup(&format!("{path}/{id}"), 2, &[10_001 + 3 * n + c]);
        tree.write(&format!("logs/shop_{name}_{uid}/c{c}/0.log"), "a line\n");
        pod.containers.push(running(&id, &format!("c{c}")));
    }
    let ids = pod.containers.iter().map(|c| c.id.to_string()).collect();
    tree.write(&format!("root/pods/{uid}/etc-hosts"), "127.0.0.1 localhost\n");
    tree.write(&format!("root/pods/{uid}/volumes/kubernetes.io~empty-dir/scratch/file"), "x");
    let spec = json!({"containers": [], "volumes": [{"name": "scratch", "emptyDir": {}}]});
    let pod_json = json!({"metadata": {"name": name, "namespace": "shop"}, "spec": spec});
    fakes::desire(wiring, fakes::pod(uid.as_str(), pod_json), Source::Api);
    wiring.put(uid.clone(), PodCgroupRow { path });
    wiring.put(uid.clone(), PodVolumes { present: vec!["scratch".into()], error: None });
    fakes::observe(wiring, pod);
    ids
}

fn running(id: &str, name: &str) -> ContainerObservation {
    ContainerObservation {
        created_at: Timestamp::from_secs(1_700_000_001),
        started_at: Timestamp::from_secs(1_700_000_002),
        image: "docker.io/library/web:1".into(),
        ..ContainerObservation::new(id, name, "s", ContainerState::Running)
    }
}
