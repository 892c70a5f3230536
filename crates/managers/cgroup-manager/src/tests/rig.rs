//! The manager on a cgroup tree in memory.

use std::sync::Arc;

use actor::{ActorRef, Kernel};
use cgroup_values::tree::Reservations;
use cgroup_values::{HostFacts, LimitRules, PodTree};
use contract::Wiring;
use contract::cgroup::PodCgroupRow;
use contract::config_sources::Source;
use fakes::{Events, FakeCgroups};
use model::core::Pod;
use model::node::CgroupDriver;
use model::resources::ResourceList;
use ports::host::CgroupVersion;
use serde_json::json;

use crate::{CgroupManager, Config, Deps, Serial};

/// A pod with one container that requests so much cpu; empty: nothing.
pub(super) fn pod(uid: &str, cpu: &str) -> Pod {
    let requests = if cpu.is_empty() { json!({}) } else { json!({"cpu": cpu}) };
    fakes::pod(uid, json!({"spec": {"containers": [{"name": "c", "resources": {"requests": requests}}]}}))
}

/// Of v2, of which there is nothing to warn.
pub(super) fn tree() -> Arc<FakeCgroups> {
    let tree: Arc<FakeCgroups> = Arc::default();
    tree.set_version(CgroupVersion::V2);
    tree
}

pub(super) fn shares(tree: &FakeCgroups, path: &str) -> Option<u64> {
    tree.values(path)?.cpu_shares
}

pub(super) fn config() -> Config {
    let capacity = [("cpu", "4"), ("memory", "8Gi")];
    Config {
        enabled: true,
        tree: PodTree::new("/", CgroupDriver::Cgroupfs),
        rules: LimitRules::standard(),
        facts: HostFacts { memory_capacity_bytes: 8 << 30, ..HostFacts::default() },
        capacity: capacity.iter().map(|(k, v)| ((*k).to_owned(), v.parse().unwrap())).collect(),
        reserved: Reservations {
            system: ResourceList::from([("memory".to_owned(), "1Gi".parse().unwrap())]),
            ..Reservations::default()
        },
        enforce_pods: true,
        reserved_cgroups: Vec::new(),
        own_cgroup: None,
        system_cgroup: None,
        memory_may_swap: false,
        oom_score_adj: Some(-999),
    }
}

/// The manager with everything around it.
pub(super) struct Bench {
    pub(super) wiring: Wiring,
    pub(super) manager: ActorRef<CgroupManager>,
    pub(super) events: Events,
}

impl Bench {
    pub(super) fn start(kernel: &Kernel, tree: &Arc<FakeCgroups>, config: Config) -> Self {
        let wiring = Wiring::default();
        let deps = Arc::new(Deps { cgroups: tree.clone(), serial: Serial::default() });
        let (events, config) = (Events::on(&wiring), Arc::new(config));
        let new = move |crew| CgroupManager::new(crew, config.clone(), deps.clone());
        let manager = fakes::start(kernel, &wiring, new);
        Self { wiring, manager, events }
    }

    pub(super) fn desire(&self, pod: &Arc<Pod>) {
        fakes::desire(&self.wiring, pod.clone(), Source::File);
    }

    pub(super) fn rows(&self) -> Vec<String> {
        self.wiring.board::<PodCgroupRow>().snapshot().values().map(|r| r.path.clone()).collect()
    }
}

/// Runs a test around a manager and its cgroups.
pub(super) fn with_bench(test: impl AsyncFnOnce(Bench, Arc<FakeCgroups>)) {
    actor::testing::run(1, async |kernel| {
        let tree = tree();
        test(Bench::start(&kernel, &tree, config()), tree).await;
    });
}
