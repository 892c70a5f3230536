//! A cgroup tree in memory, with switches for what a kernel may do to us.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Condvar, Mutex};

use actor::{Actor, Ctx, Handler, Kernel, Spec, supervised};
use cgroup_values::tree::Reservations;
use cgroup_values::{HostFacts, LimitRules, PodTree};
use contract::Wiring;
use contract::cgroup::PodCgroupRow;
use contract::config_sources::Source;
use contract::event::RecordEvent;
use contract::pod_manager::DesiredPod;
use model::core::Pod;
use model::node::CgroupDriver;
use model::resources::{CgroupValues, ResourceList};
use ports::host::{CgroupFs, CgroupVersion, HostError, HostResult};
use serde_json::json;

use crate::{CgroupManager, Config, Deps, Serial};

/// A pod with one container that requests so much cpu; empty: nothing.
pub(super) fn pod(uid: &str, cpu: &str) -> Pod {
    let requests = if cpu.is_empty() { json!({}) } else { json!({"cpu": cpu}) };
    serde_json::from_value(json!({
        "metadata": {"name": uid, "namespace": "default", "uid": uid},
        "spec": {"containers": [{"name": "c", "resources": {"requests": requests}}]},
    }))
    .unwrap()
}

#[derive(Default)]
pub(super) struct FakeTree {
    world: Mutex<World>,
    released: Condvar,
}

#[derive(Default)]
struct World {
    groups: BTreeMap<String, CgroupValues>,
    /// `op path-part` that fail.
    failing: BTreeSet<(&'static str, String)>,
    /// Creation of paths with this in them waits.
    hanging: Option<String>,
    calls: Vec<String>,
    oom: Option<i64>,
    sets: usize,
}

impl FakeTree {
    pub(super) fn with_root() -> Arc<Self> {
        let tree = Self::default();
        tree.world.lock().unwrap().groups.insert("/".into(), CgroupValues::default());
        Arc::new(tree)
    }

    pub(super) fn put(&self, path: &str) {
        self.world.lock().unwrap().groups.insert(path.into(), CgroupValues::default());
    }

    pub(super) fn fail(&self, op: &'static str, part: &str, on: bool) {
        let mut world = self.world.lock().unwrap();
        if on {
            world.failing.insert((op, part.into()))
        } else {
            world.failing.remove(&(op, part.into()))
        };
    }

    pub(super) fn hang(&self, part: Option<&str>) {
        self.world.lock().unwrap().hanging = part.map(str::to_owned);
        self.released.notify_all();
    }

    pub(super) fn values(&self, path: &str) -> Option<CgroupValues> {
        self.world.lock().unwrap().groups.get(path).cloned()
    }

    pub(super) fn shares(&self, path: &str) -> Option<u64> {
        self.values(path)?.cpu_shares
    }

    pub(super) fn calls(&self) -> Vec<String> {
        self.world.lock().unwrap().calls.clone()
    }

    pub(super) fn oom(&self) -> Option<i64> {
        self.world.lock().unwrap().oom
    }

    fn enter(&self, op: &'static str, path: &str) -> HostResult<std::sync::MutexGuard<'_, World>> {
        let mut world = self.world.lock().unwrap();
        world.calls.push(format!("{op} {path}"));
        while op == "create" && world.hanging.as_ref().is_some_and(|h| path.contains(h.as_str())) {
            world = self.released.wait(world).unwrap();
        }
        if world.failing.iter().any(|(o, part)| *o == op && path.contains(part.as_str())) {
            return Err(HostError::new(op, path, io::ErrorKind::PermissionDenied));
        }
        Ok(world)
    }
}

impl CgroupFs for FakeTree {
    fn version(&self) -> CgroupVersion {
        CgroupVersion::V1
    }
    fn missing_controllers(&self) -> Vec<String> {
        if self.enter("controllers", "").is_err() { vec!["memory".into()] } else { vec![] }
    }
    fn has_swap_controller(&self) -> bool {
        false
    }
    fn exists(&self, path: &str) -> HostResult<bool> {
        Ok(self.enter("exists", path)?.groups.contains_key(path))
    }
    fn create(&self, path: &str) -> HostResult<()> {
        let mut world = self.enter("create", path)?;
        world.groups.entry(path.into()).or_default();
        Ok(())
    }
    fn set(&self, path: &str, v: &CgroupValues) -> HostResult<()> {
        let mut world = self.enter("set", path)?;
        world.sets += 1;
        let Some(group) = world.groups.get_mut(path) else {
            return Err(HostError::new("set", path, io::ErrorKind::NotFound));
        };
        group.cpu_shares = v.cpu_shares.or(group.cpu_shares);
        group.memory_limit_bytes = v.memory_limit_bytes.or(group.memory_limit_bytes);
        Ok(())
    }
    fn remove(&self, path: &str) -> HostResult<()> {
        let mut world = self.enter("remove", path)?;
        world.groups.retain(|p, _| p != path && !p.starts_with(&format!("{path}/")));
        Ok(())
    }
    fn children(&self, path: &str) -> HostResult<Vec<String>> {
        let world = self.enter("children", path)?;
        let below =
            |p: &String| p.strip_prefix(path)?.strip_prefix('/').filter(|r| !r.contains('/')).map(str::to_owned);
        Ok(world.groups.keys().filter_map(below).collect())
    }
    fn memory_usage_bytes(&self, _: &str) -> HostResult<u64> {
        Ok(0)
    }
    fn set_own_oom_score_adj(&self, value: i64) -> HostResult<()> {
        self.enter("oom", "")?.oom = Some(value);
        Ok(())
    }
}

/// Writes `type reason: message` of each event down.
struct Recorder(Arc<Mutex<Vec<String>>>);
impl Actor for Recorder {
    type Context = Ctx<Self>;
}
supervised!(Recorder);
impl Handler<RecordEvent> for Recorder {
    type Result = ();
    fn handle(&mut self, m: RecordEvent, _: &mut Ctx<Self>) {
        let e = m.event;
        self.0.lock().unwrap().push(format!("{} {}: {}", e.kind.as_str(), e.reason, e.message));
    }
}

/// The manager under test with everything around it.
pub(super) struct Bench {
    pub(super) wiring: Wiring,
    pub(super) manager: actor::ActorRef<CgroupManager>,
    pub(super) events: Arc<Mutex<Vec<String>>>,
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
        oom_score_adj: Some(-999),
    }
}

impl Bench {
    pub(super) fn start(kernel: &Kernel, tree: &Arc<FakeTree>, config: Config) -> Self {
        let (wiring, log) = (Wiring::default(), Arc::new(Mutex::new(Vec::new())));
        let lines = log.clone();
        let recorder = kernel.spawn(Spec::new("event-recorder"), move |_| Recorder(lines.clone()));
        wiring.connect::<contract::EventRecorder, _>(&recorder);
        let deps = Arc::new(Deps { cgroups: tree.clone(), serial: Serial::default() });
        let (crew, config) = (wiring.crew(), Arc::new(config));
        let new = move |_: u64| CgroupManager::new(crew.succeed(), config.clone(), deps.clone());
        let manager = kernel.spawn(Spec::new("cgroup-manager"), new);
        wiring.connect::<contract::CgroupManager, _>(&manager);
        Self { wiring, manager, events: log }
    }

    pub(super) fn desire(&self, pod: &Arc<Pod>) {
        let row = DesiredPod { pod: pod.clone(), source: Source::File, rejected: None, mirror: None };
        self.wiring.put(model::pod::uid(pod), row);
    }

    pub(super) fn rows(&self) -> Vec<String> {
        self.wiring.board::<PodCgroupRow>().snapshot().values().map(|r| r.path.clone()).collect()
    }
}
