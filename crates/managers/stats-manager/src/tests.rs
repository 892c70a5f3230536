//! The actor over a tree of files and a runtime that tells statistics.

mod answers;
mod failures;
mod sharing;
mod volumes;

use std::sync::Arc;
use std::time::Duration;

use actor::{ActorRef, Kernel, Spec};
use cgroup_values::PodTree;
use contract::Wiring;
use contract::cgroup::PodCgroupRow;
use contract::config_sources::Source;
use contract::pod_manager::DesiredPod;
use contract::runtime::{Observed, RuntimeInfo};
use contract::volume::PodVolumes;
use fakes::stats::{Cgroups, StatsRuntime, StatsTree, container, runtime};
use model::core::Pod;
use model::node::CgroupDriver;
use model::resources::QosClass;
use model::runtime::{ContainerObservation, ContainerState, PodObservation, SandboxObservation};
use model::{ContainerId, PodUid, SandboxId, Timestamp};
use serde_json::{Value, json};

use crate::{Config, Deps, StatsManager};

/// A node without pods, until [`Bed::pod`] puts some there.
struct Bed {
    dir: tempfile::TempDir,
    tree: StatsTree,
    runtime: Arc<StatsRuntime>,
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
        let told = runtime();
        told.set_image_fs(&dir.path().display().to_string());
        let wiring = Wiring::default();
        wiring.set(RuntimeInfo { listed: true, ..RuntimeInfo::unknown() });
        let source = tree.source();
        // Half a minute after the files' own times, as if read now.
        source.freeze(Timestamp::from_secs(1_800_000_000));
        let deps = Deps { source: Arc::new(source), runtime: told.clone(), images: told.clone() };
        let config = Config {
            node_name: "n1".into(),
            root_dir: dir.path().join("root"),
            pod_logs_dir: dir.path().join("logs"),
            tree: Some(PodTree::new("/", CgroupDriver::Cgroupfs)),
            kubelet_cgroup: String::new(),
            runtime_cgroup: String::new(),
            system_cgroup: String::new(),
            volume_period: Some(Duration::from_secs(60)),
        };
        std::fs::create_dir_all(&config.root_dir).unwrap();
        Self { dir, tree, runtime: told, deps, config, wiring }
    }

    fn start(&self, kernel: &Kernel) -> ActorRef<StatsManager> {
        let (config, deps) = (Arc::new(self.config.clone()), Arc::new(self.deps.clone()));
        let crew = self.wiring.crew();
        let new = move |_| StatsManager::new(crew.succeed(), config.clone(), deps.clone());
        let actor = kernel.spawn(Spec::new("stats-manager"), new);
        self.wiring.connect::<contract::StatsManager, _>(&actor);
        actor
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
        self.runtime.set_containers(Ok(told));
        self.wiring.put(PodUid::from(uid.as_str()), PodCgroupRow { path });
        let running = |c: &&str| observed(&format!("{name}-{c}"), c, ContainerState::Running);
        self.observe(name, containers.iter().map(running).collect());
        self.desire(name, &json!({}));
    }

    fn observe(&self, name: &str, containers: Vec<ContainerObservation>) {
        let uid = PodUid::from(format!("uid-{name}"));
        let mut pod = PodObservation::empty(uid.clone(), "shop", name);
        pod.sandboxes.push(SandboxObservation {
            id: SandboxId::from(format!("sandbox-{name}")),
            attempt: 0,
            ready: true,
            created_at: Timestamp::from_secs(1_700_000_000),
            host_network: Some(false),
            ips: None,
            runtime_handler: String::new(),
        });
        pod.containers = containers;
        self.wiring.put(uid, Observed { pod: Arc::new(pod), observed_at: Timestamp(1) });
    }

    /// The pod as its source has it, with this specification.
    fn desire(&self, name: &str, spec: &Value) {
        let uid = format!("uid-{name}");
        let mut spec = spec.clone();
        spec["containers"] = json!([]);
        let pod = json!({"metadata": {"name": name, "namespace": "shop", "uid": uid}, "spec": spec});
        let pod: Pod = serde_json::from_value(pod).unwrap();
        let row = DesiredPod { pod: Arc::new(pod), source: Source::Api, rejected: None, mirror: None };
        self.wiring.put(PodUid::from(uid), row);
    }

    fn mounted(&self, name: &str, volumes: &[&str]) {
        let row = PodVolumes { present: volumes.iter().map(|v| (*v).to_owned()).collect(), error: None };
        self.wiring.put(PodUid::from(format!("uid-{name}")), row);
    }
}

fn observed(id: &str, name: &str, state: ContainerState) -> ContainerObservation {
    ContainerObservation {
        id: ContainerId::from(id),
        name: name.into(),
        sandbox: SandboxId::from("s"),
        state,
        created_at: Timestamp::from_secs(1_700_000_001),
        started_at: Timestamp::from_secs(1_700_000_002),
        finished_at: Timestamp::ZERO,
        exit_code: 0,
        image: "docker.io/library/web:1".into(),
        image_ref: String::new(),
        reason: String::new(),
        message: String::new(),
        restart_count: 0,
        hash: None,
        annotations: Arc::default(),
        mounts: Arc::from([]),
        log_path: String::new(),
        resources: None,
        user: None,
    }
}
