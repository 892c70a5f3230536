//! The actor over a tree of files and a runtime that tells statistics.

mod answers;
mod failures;
mod persistent;
mod sharing;
mod volumes;

use std::sync::Arc;
use std::time::Duration;

use actor::{ActorRef, Kernel};
use cgroup_values::PodTree;
use contract::Wiring;
use contract::cgroup::PodCgroupRow;
use contract::config_sources::Source;
use contract::volume::PodVolumes;
use fakes::FakeRuntime;
use fakes::stats::{Cgroups, StatsTree, container, image_fs};
use model::node::CgroupDriver;
use model::resources::QosClass;
use model::runtime::{ContainerObservation, ContainerState, PodObservation, SandboxObservation};
use model::{PodUid, Timestamp};
use serde_json::{Value, json};

use crate::{Config, Deps, StatsManager};

/// A node without pods, until [`Bed::pod`] puts some there.
struct Bed {
    dir: tempfile::TempDir,
    tree: StatsTree,
    runtime: FakeRuntime,
    deps: Deps,
    config: Config,
    wiring: Wiring,
}

impl Bed {
    fn new(cgroups: Cgroups) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let tree = StatsTree::new(dir.path(), cgroups);
        tree.cgroup("/kubepods", 50, &[]);
        tree.cgroup("/kubepods/burstable", 20, &[]);
        tree.cgroup("/kubepods/besteffort", 10, &[]);
        let runtime = FakeRuntime::default();
        runtime.set_image_fs(image_fs(&dir.path().display().to_string()));
        let wiring = Wiring::default();
        wiring.set(fakes::well());
        let source = tree.source();
        // Half a minute after the files' own times, as if read now.
        source.freeze(Timestamp::from_secs(1_800_000_000));
        let client = runtime.client();
        let deps = Deps { source: Arc::new(source), runtime: client.clone(), images: client, quotas: None, csi: None };
        let config = Config {
            node_name: "n1".into(),
            root_dir: dir.path().join("root"),
            pod_logs_dir: dir.path().join("logs"),
            tree: Some(PodTree::new("/", CgroupDriver::Cgroupfs)),
            kubelet_cgroup: String::new(),
            runtime_cgroup: String::new(),
            system_cgroup: String::new(),
            volume_period: Some(Duration::from_secs(60)),
            volume_health: true,
        };
        std::fs::create_dir_all(&config.root_dir).unwrap();
        Self { dir, tree, runtime, deps, config, wiring }
    }

    fn start(&self, kernel: &Kernel) -> ActorRef<StatsManager> {
        let (config, deps) = (Arc::new(self.config.clone()), Arc::new(self.deps.clone()));
        let new = move |crew| StatsManager::new(crew, config.clone(), deps.clone());
        fakes::start(kernel, &self.wiring, new)
    }

    /// A pod with a sandbox and containers that run, in boards, cgroups, logs and the runtime's statistics.
    fn pod(&self, name: &str, containers: &[&str]) {
        let uid = format!("uid-{name}");
        let path = PodTree::new("/", CgroupDriver::Cgroupfs).pod(QosClass::Burstable, &PodUid::from(uid.as_str()));
        self.tree.cgroup(&path, 9, &[]);
        self.tree.cgroup(&format!("{path}/sandbox-{name}"), 1, &[100]);
        let mut told = Vec::new();
        for (n, c) in (1_u64..).zip(containers) {
            let id = format!("{name}-{c}");
            self.tree.cgroup(&format!("{path}/{id}"), n, &[200 + u32::try_from(n).unwrap()]);
            self.tree.write(&format!("logs/shop_{name}_{uid}/{c}/0.log"), &"x".repeat(10_000));
            told.push(container(&id, &self.dir.path().display().to_string()));
        }
        self.tree.write(&format!("root/pods/{uid}/etc-hosts"), "127.0.0.1 localhost\n");
        self.runtime.set_container_stats(told);
        self.wiring.put(PodUid::from(uid.as_str()), PodCgroupRow { path });
        let running = |c: &&str| observed(&format!("{name}-{c}"), c, ContainerState::Running);
        self.observe(name, containers.iter().map(running).collect());
        self.desire(name, &json!({}));
    }

    fn observe(&self, name: &str, containers: Vec<ContainerObservation>) {
        let uid = PodUid::from(format!("uid-{name}"));
        let mut pod = PodObservation::empty(uid, "shop", name);
        pod.sandboxes.push(SandboxObservation {
            created_at: Timestamp::from_secs(1_700_000_000),
            host_network: Some(false),
            ..SandboxObservation::new(format!("sandbox-{name}"), 0, true)
        });
        pod.containers = containers;
        fakes::observe(&self.wiring, pod);
    }

    /// The pod as its source has it, with this specification.
    fn desire(&self, name: &str, spec: &Value) {
        let uid = format!("uid-{name}");
        let mut spec = spec.clone();
        spec["containers"] = json!([]);
        let pod = fakes::pod(&uid, json!({"metadata": {"name": name, "namespace": "shop"}, "spec": spec}));
        fakes::desire(&self.wiring, pod, Source::Api);
    }

    /// How often the runtime was asked for statistics.
    fn asked(&self) -> usize {
        self.runtime.count("ListContainerStats")
    }

    fn mounted(&self, name: &str, volumes: &[&str]) {
        let row = PodVolumes { present: volumes.iter().map(|v| (*v).to_owned()).collect(), error: None };
        self.wiring.put(PodUid::from(format!("uid-{name}")), row);
    }
}

fn observed(id: &str, name: &str, state: ContainerState) -> ContainerObservation {
    ContainerObservation {
        created_at: Timestamp::from_secs(1_700_000_001),
        started_at: Timestamp::from_secs(1_700_000_002),
        image: "docker.io/library/web:1".into(),
        ..ContainerObservation::new(id, name, "s", state)
    }
}
