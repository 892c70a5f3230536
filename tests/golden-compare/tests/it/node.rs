//! A whole node with the settings of the recorded one, driven through one case: the manifest is put down, and taken away.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use actor::Kernel;
use bosun::{Machine, Node, Ports, Settings};
use cgroup_values::HostFacts;
use config_sources::folder::{Change, Changes, FolderWatch};
use contract::status::StatusEntry;
use fakes::{FakeCgroups, FakeMachine, FakeMounter, FakeNet, MemoryJournal};
use futures::StreamExt;
use futures::channel::mpsc;
use host_linux::{LinuxFs, LinuxStats};
use model::PodUid;
use model::event::EventObject;
use model::quantity::Quantity;
use model::resources::{CPU, EPHEMERAL_STORAGE, MEMORY, ResourceList};
use node_config::NodeConfig;
use ports::host::CgroupFs;

use crate::fake::{calls, runtime};
use crate::script::Script;
use golden_compare::normal::Dirs;
use golden_compare::recording::{Call, Case, NODE};
use model::node::CgroupDriver;

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
    async fn pass(&mut self, node: &Node, time: Duration) {
        let end = tokio::time::Instant::now() + time;
        while tokio::time::Instant::now() < end {
            tokio::time::sleep(LOOK).await;
            for entry in &node.wiring.value::<contract::event::EventView>().get().entries {
                let EventObject::Pod { field_path, .. } = &entry.object else { continue };
                let event = (format!("{}: {}", entry.reason, entry.message), field_path.clone());
                if !self.events.contains(&event) {
                    self.events.push(event);
                }
            }
            // The row goes with the pod.
            self.status = node
                .wiring
                .board::<contract::status::StatusEntry>()
                .snapshot()
                .into_iter()
                .next()
                .or(self.status.take());
        }
    }
}

/// Tells of changes in the folder when the test made one. inotify's own would come at another virtual time in each run.
#[derive(Clone, Default)]
struct Told(Arc<std::sync::Mutex<Vec<mpsc::UnboundedSender<Change>>>>);

impl Told {
    fn tell(&self, change: &Change) {
        self.0.lock().expect("not poisoned").retain(|to| to.unbounded_send(change.clone()).is_ok());
    }
}

impl FolderWatch for Told {
    fn start(&self, _path: &Path) -> std::io::Result<Changes> {
        let (tx, rx) = mpsc::unbounded();
        self.0.lock().expect("not poisoned").push(tx);
        Ok(Box::pin(rx.map(Ok)))
    }
}

fn config(dir: &Path) -> NodeConfig {
    let mut config = NodeConfig::default();
    config.sources.static_pod_path = Some(dir.join("manifests"));
    config.pods.logs_dir = dir.join("log");
    config.pods.max_pods = 300;
    config.cgroups.root = "/gold".to_owned();
    config.cgroups.fail_cgroup_v1 = false;
    config.cgroups.fail_swap_on = false;
    config.dns.cluster_dns = vec!["10.96.0.10".parse().expect("an address")];
    config.dns.cluster_domain = "cluster.local".to_owned();
    config.dns.resolv_conf = Some(dir.join("resolv.conf"));
    config.images.registry_pull_qps = 0;
    // How full the machine's disk is is no matter of a test.
    config.images.gc_high_threshold_percent = 100;
    config.api.event_record_qps = 0;
    config
}

fn settings(dir: &Path) -> Settings {
    Settings {
        node_name: NODE.to_owned(),
        node_ips: vec!["10.90.0.1".parse().expect("an address")],
        root_dir: dir.join("lib"),
        container_logs_dir: dir.join("containers"),
        config: config(dir),
        cgroup_driver: CgroupDriver::Cgroupfs,
        faults: false,
        flags: node_config::Flags::default(),
        certificates: bosun::settings::Certificates::default(),
        providers: Vec::new(),
    }
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
            page_sizes: vec![2 << 20, 1 << 30],
        },
        capacity,
        pid_capacity: 32_768,
        allocatable,
        thermal_throttle_paths: Vec::new(),
        selinux: false,
    }
}

/// Its address.
fn host() -> FakeMachine {
    let host = FakeMachine::default();
    let ip: std::net::IpAddr = "10.90.0.1".parse().expect("an address");
    host.change(|machine| {
        machine.addresses.interfaces = vec![ip];
        machine.addresses.default_route = vec![ip];
    });
    host
}

/// Runs the case and tells what happened.
pub(crate) fn drive(case: &Case, script: &Script) -> Observed {
    // Volumes in memory are told from others by the file system under them: here everything is in memory.
    let dir = tempfile::tempdir_in("/dev/shm").expect("a folder");
    std::fs::create_dir(dir.path().join("manifests")).expect("a folder");
    std::fs::write(dir.path().join("resolv.conf"), "nameserver 10.255.255.53\n").expect("a file");
    actor::testing::run(1, |kernel| drive_in(case, script, dir.path(), kernel))
}

async fn drive_in(case: &Case, script: &Script, dir: &Path, kernel: Kernel) -> Observed {
    let fake = runtime(case, script);
    let client = fake.client();
    let net = Arc::new(FakeNet::default());
    (script.world)(&fake, &net);
    let cgroups = FakeCgroups::default();
    cgroups.create("/gold").expect("a cgroup");
    let told = Told::default();
    let ports = Ports {
        runtime: client.clone(),
        images: client,
        fs: Arc::new(LinuxFs),
        watch: Arc::new(told.clone()),
        compress: Arc::new(fakes::gzip()),
        host: Arc::new(host()),
        mounter: Arc::new(FakeMounter::default()),
        cgroups: Arc::new(cgroups),
        stats: Arc::new(LinuxStats::v2_in(dir)),
        journal: Arc::new(MemoryJournal::default()),
        prober: net.clone(),
        http: net,
        api: None,
        bootstrap_api: None,
        fetch: Arc::new(url_fetch::UrlFetch::new("golden")),
    };
    let builder = Node::builder(settings(dir), machine(), ports);
    let node = builder.start(&kernel);
    tokio::time::sleep(Duration::from_secs(2)).await;
    let manifest = dir.join("manifests").join(format!("{}.yaml", case.name));
    std::fs::write(&manifest, case.static_manifest()).expect("a manifest");
    told.tell(&Change::Everything);
    let mut watch = Watch::default();
    watch.pass(&node, SOON).await;
    (script.soon)(&fake);
    watch.pass(&node, script.looked_at - SOON).await;
    let status = watch.status.clone();
    let events = watch.events.clone();
    watch.pass(&node, script.remove_after - script.looked_at).await;
    std::fs::remove_file(&manifest).expect("the manifest");
    told.tell(&Change::Everything);
    watch.pass(&node, AFTER).await;
    let text = |p: &str| dir.join(p).to_string_lossy().into_owned();
    Observed {
        calls: calls(&fake),
        dirs: Dirs { root: text("lib"), logs: text("log"), ..Dirs::default() },
        status,
        last: watch.status,
        // Events of static pods were recorded before the removal.
        events: if case.is_static() { events } else { watch.events },
    }
}
