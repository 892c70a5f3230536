//! Makes pod workers: one actor per UID, found again as long as it lives.

use std::sync::Arc;

use actor::{ActorRef, Group, Inlet, Kernel, Place, Spec};
use contract::pod_worker::{PodWorkerHandle, StopWorker, WorkerFactory};
use dashmap::DashMap;
use model::PodUid;
use pod_worker::{Config, Deps, PodWorker};

use super::{Handles, Outside};
use crate::settings::{Machine, Settings, limit_rules, node_settings};

/// Messages that may wait at one worker; updates coalesce in it, so few are enough.
const MAILBOX: usize = 32;

/// What workers are made from.
pub(super) struct World<'a> {
    pub(super) settings: &'a Settings,
    pub(super) machine: &'a Machine,
    pub(super) handles: &'a Handles,
    pub(super) outside: &'a Outside,
}

/// The factory that PodManager is given. Asked twice for one UID it answers with the same worker.
pub(super) fn factory(kernel: &Kernel, world: &World<'_>, group: Group, place: Place) -> WorkerFactory {
    let deps = Arc::new(deps(world));
    let kernel = kernel.clone();
    let alive: Arc<DashMap<PodUid, PodWorkerHandle>> = Arc::new(DashMap::with_shard_amount(4));
    Arc::new(move |uid: PodUid| {
        if let Some(handle) = alive.get(&uid) {
            return handle.clone();
        }
        let spec = Spec::new(format!("pod-worker/{uid}")).group(&group).place(place.clone()).mailbox(MAILBOX);
        let (deps, id) = (deps.clone(), uid.clone());
        let worker = kernel.spawn(spec, move |_generation| PodWorker::new(id.clone(), deps.clone()));
        let handle = handle(&worker, uid.clone(), alive.clone());
        alive.insert(uid, handle.clone());
        handle
    })
}

fn handle(worker: &ActorRef<PodWorker>, uid: PodUid, alive: Arc<DashMap<PodUid, PodWorkerHandle>>) -> PodWorkerHandle {
    let handle = PodWorkerHandle {
        update_pod: Inlet::unbound("PodWorker.UpdatePod"),
        grant_start: Inlet::unbound("PodWorker.GrantStart"),
        stop: StopWorker(Arc::new({
            let worker = worker.clone();
            move || {
                alive.remove(&uid);
                worker.stop();
            }
        })),
    };
    handle.update_pod.connect(worker);
    handle.grant_start.connect(worker);
    handle
}

fn deps(world: &World<'_>) -> Deps {
    let World { settings, machine, handles: h, outside } = *world;
    let config = Config {
        node: node_settings(settings, machine),
        facts: machine.facts.clone(),
        rules: limit_rules(&settings.config, machine.facts.cgroup_v2),
        cluster_dns: settings.config.cluster_dns.iter().map(ToString::to_string).collect(),
        resolv_conf: settings.config.resolv_conf.clone(),
        container_logs_dir: settings.container_logs_dir.clone(),
        sync_frequency: settings.config.sync_frequency,
        crash_backoff_max: settings.config.max_container_restart_period,
        dead_per_container: 1,
    };
    Deps {
        config: Arc::new(config),
        workers: h.workers.clone(),
        runtime: h.runtime.clone(),
        images: h.images.clone(),
        volumes: h.volumes.clone(),
        cgroups: h.cgroups.clone(),
        probes: h.probes.clone(),
        status: h.status.clone(),
        objects: h.objects.clone(),
        node: h.node.view.clone(),
        events: h.events.clone(),
        fs: outside.fs.clone(),
        http: outside.http.clone(),
        journal: outside.journal.clone(),
    }
}
