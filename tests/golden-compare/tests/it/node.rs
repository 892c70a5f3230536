//! A whole node with the settings of the recorded one, driven through one case: the manifest is put down, and taken away.

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use actor::Kernel;
use bosun::{Machine, Settings};
use cgroup_values::HostFacts;
use contract::status::StatusEntry;
use model::PodUid;
use model::event::EventObject;
use model::quantity::Quantity;
use model::resources::{CPU, EPHEMERAL_STORAGE, MEMORY, ResourceList};
use sim::{SimNode, World};

use crate::fake::{calls, runtime};
use crate::script::Script;
use golden_compare::normal::Dirs;
use golden_compare::recording::{Call, Case, NODE};

const ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 90, 0, 1));
const CGROUP_ROOT: &str = "/gold";

/// How long a node is watched after the manifest went: grace, then housekeeping.
const AFTER: Duration = Duration::from_secs(25);

/// Between two looks at the boards.
const LOOK: Duration = Duration::from_millis(2);

/// When [`Script::soon`] happens: all containers have started.
const SOON: Duration = Duration::from_millis(500);

/// What the node did.
pub(crate) struct Observed {
    pub(crate) calls: Vec<Call>,
    pub(crate) dirs: Dirs,
    /// Status when the recording took it.
    pub(crate) status: Option<(PodUid, Arc<StatusEntry>)>,
    /// The last status that there was.
    pub(crate) last: Option<(PodUid, Arc<StatusEntry>)>,
    /// Reasons and messages of the pod's events with the container that they are about, each once, by their first occurrence.
    pub(crate) events: Vec<(String, String)>,
}

/// Looks at the node's boards again and again.
#[derive(Default)]
struct Watch {
    events: Vec<(String, String)>,
    status: Option<(PodUid, Arc<StatusEntry>)>,
}

impl Watch {
    /// Lets time pass.
    async fn pass(&mut self, node: &SimNode, time: Duration) {
        let end = tokio::time::Instant::now() + time;
        while tokio::time::Instant::now() < end {
            tokio::time::sleep(LOOK).await;
            for entry in &node.wiring().value::<contract::event::EventView>().get().entries {
                let EventObject::Pod { field_path, .. } = &entry.object else { continue };
                let event = (format!("{}: {}", entry.reason, entry.message), field_path.clone());
                if !self.events.contains(&event) {
                    self.events.push(event);
                }
            }
            // The row goes with the pod.
            self.status = node
                .wiring()
                .board::<contract::status::StatusEntry>()
                .snapshot()
                .into_iter()
                .next()
                .or(self.status.take());
        }
    }
}

/// The settings of the recorded node.
fn set(settings: &mut Settings) {
    settings.node_name = NODE.to_owned();
    settings.node_ips = vec![ADDRESS];
    settings.faults = false;
    let config = &mut settings.config;
    config.cgroups.root = CGROUP_ROOT.to_owned();
    config.dns.cluster_dns = vec!["10.96.0.10".parse().expect("an address")];
    config.dns.cluster_domain = "cluster.local".to_owned();
    config.images.registry_pull_qps = 0;
    config.api.event_record_qps = 0;
    config.pods.max_pods = 300;
    config.cgroups.fail_cgroup_v1 = false;
    config.cgroups.fail_swap_on = false;
}

/// The recorded machine: its Node object and its cgroups say this.
fn machine() -> Machine {
    const MEMORY_BYTES: i64 = 24_684_092 << 10;
    let capacity = ResourceList::from([
        (CPU.to_owned(), Quantity::from_units(2)),
        (MEMORY.to_owned(), Quantity::from_bytes(MEMORY_BYTES)),
        (EPHEMERAL_STORAGE.to_owned(), Quantity::from_bytes(264_212_084 << 10)),
        ("pods".to_owned(), Quantity::from_units(300)),
        ("hugepages-2Mi".to_owned(), Quantity::from_bytes(0)),
        ("hugepages-1Gi".to_owned(), Quantity::from_bytes(0)),
    ]);
    let mut allocatable = capacity.clone();
    allocatable.insert(MEMORY.to_owned(), Quantity::from_bytes(24_581_692 << 10));
    allocatable.insert(EPHEMERAL_STORAGE.to_owned(), Quantity::from_bytes(267_847_642_337));
    Machine {
        facts: HostFacts {
            memory_capacity_bytes: MEMORY_BYTES,
            swap_total_bytes: 0,
            swap_controller: true,
            cgroup_v2: false,
            memory_allocatable_bytes: MEMORY_BYTES,
            page_bytes: 4096,
            page_sizes: vec![2 << 20, 1 << 30],
        },
        capacity,
        pid_capacity: 32_768,
        allocatable,
        thermal_throttle_paths: Vec::new(),
        selinux: None,
        memory_may_swap: false,
    }
}

/// The world of the recorded node, with the runtime of the case.
fn world(case: &Case, script: &Script) -> World {
    let mut world = World::with_runtime(runtime(case, script));
    set(&mut world.settings);
    world.machine = machine();
    world.host.change(|machine| {
        machine.addresses.interfaces = vec![ADDRESS];
        machine.addresses.default_route = vec![ADDRESS];
    });
    world.cgroups.put(CGROUP_ROOT);
    let resolv_conf = world.settings.config.dns.resolv_conf.clone().expect("a world has one");
    world.write(&resolv_conf, "nameserver 10.255.255.53\n");
    (script.world)(&world.runtime, &world.net);
    world
}

/// Runs the case and tells what happened.
pub(crate) fn drive(case: &Case, script: &Script) -> Observed {
    actor::testing::run(1, |kernel| drive_in(case, script, kernel))
}

async fn drive_in(case: &Case, script: &Script, kernel: Kernel) -> Observed {
    let mut node = SimNode::down(world(case, script), &kernel);
    node.boot();
    tokio::time::sleep(Duration::from_secs(2)).await;
    let manifest = format!("{}.yaml", case.name);
    node.put(&manifest, &case.static_manifest());
    let mut watch = Watch::default();
    watch.pass(&node, SOON).await;
    (script.soon)(&node.world.runtime);
    watch.pass(&node, script.looked_at - SOON).await;
    let status = watch.status.clone();
    let events = watch.events.clone();
    watch.pass(&node, script.remove_after - script.looked_at).await;
    node.remove(&manifest);
    watch.pass(&node, AFTER).await;
    let text = |p: &Path| p.to_string_lossy().into_owned();
    let settings = &node.world.settings;
    let (root, logs) = (text(&settings.root_dir), text(&settings.config.pods.logs_dir));
    Observed {
        calls: calls(&node.world.runtime),
        dirs: Dirs { root, logs, ..Dirs::default() },
        status,
        last: watch.status,
        // Events of static pods were recorded before the removal.
        events: if case.is_static() { events } else { watch.events },
    }
}
