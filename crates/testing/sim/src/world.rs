//! What outlives the daemon.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use actor::Kernel;
use bosun::{Machine, Outside, Settings};
use cgroup_values::{CgroupDriver, NodeFacts};
use cri_client::{Connector, CriClient, Deadlines};
use fakes::runtime::Features;
use fakes::{FakeCgroups, FakeMachine, FakeMounter, FakeNet, FakeRuntime, MemoryJournal};
use host_linux::{LinuxFs, LinuxStats};
use model::Timestamp;
use model::quantity::Quantity;
use model::resources::{CPU, EPHEMERAL_STORAGE, MEMORY, ResourceList};
use node_config::NodeConfig;
use tempfile::TempDir;

use crate::watch::SimWatch;

/// Name of the node; static pods carry it behind their names.
pub const NODE_NAME: &str = "sim";

/// Runtime, journal, host and manifest folder. Tests change settings before the daemon starts.
pub struct World {
    /// Everything on disk lies in here.
    pub dir: TempDir,
    /// The container runtime.
    pub runtime: FakeRuntime,
    /// The journal.
    pub journal: Arc<MemoryJournal>,
    /// Cgroups.
    pub cgroups: Arc<FakeCgroups>,
    /// Mounts.
    pub mounter: Arc<FakeMounter>,
    /// What the Node object says of the machine.
    pub host: Arc<FakeMachine>,
    /// The network that probes and hooks see.
    pub net: Arc<FakeNet>,
    /// Watch of the manifest folder.
    pub watch: Arc<SimWatch>,
    /// Settings of the next daemon.
    pub settings: Settings,
    /// The machine that it finds.
    pub machine: Machine,
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "World({})", self.dir.path().display())
    }
}

impl World {
    /// A machine with 4 cores and 8 GiB, containerd 1.6, no pods. The clocks of kernel and runtime agree.
    ///
    /// # Panics
    /// The temporary folder cannot be made.
    #[must_use]
    pub fn new(kernel: &Kernel) -> Self {
        let now = Timestamp(kernel.clock().unix_nanos());
        Self::with_runtime(FakeRuntime::at(Features::containerd_1_6(), now))
    }

    /// As [`World::new`], around a runtime of the caller's.
    ///
    /// # Panics
    /// The temporary folder cannot be made.
    #[must_use]
    pub fn with_runtime(runtime: FakeRuntime) -> Self {
        let dir = tempfile::Builder::new().prefix("bosun-sim").tempdir().expect("a temporary folder can be made");
        let at = |name: &str| dir.path().join(name);
        for folder in ["manifests", "root/pods", "logs/pods", "logs/containers"] {
            std::fs::create_dir_all(at(folder)).expect("a folder in the temporary folder can be made");
        }
        std::fs::write(at("resolv.conf"), "nameserver 192.0.2.53\n").expect("the temporary folder is writable");
        let config = NodeConfig {
            static_pod_path: Some(at("manifests")),
            pod_logs_dir: at("logs/pods"),
            resolv_conf: Some(at("resolv.conf")),
            // How full the machine's disk is is no matter of a test.
            image_gc_high_threshold_percent: 100,
            ..NodeConfig::default()
        };
        let settings = Settings {
            node_name: NODE_NAME.to_owned(),
            node_ips: vec![IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1))],
            root_dir: at("root"),
            container_logs_dir: at("logs/containers"),
            config,
            cgroup_driver: CgroupDriver::Cgroupfs,
            faults: true,
            flags: node_config::Flags::default(),
            certificates: bosun::settings::Certificates::default(),
            providers: Vec::new(),
        };
        Self {
            runtime,
            journal: Arc::default(),
            cgroups: Arc::default(),
            mounter: Arc::default(),
            host: Arc::default(),
            net: Arc::default(),
            watch: Arc::default(),
            settings,
            machine: machine(),
            dir,
        }
    }

    /// Folder of the manifests.
    #[must_use]
    pub fn manifests(&self) -> PathBuf {
        self.dir.path().join("manifests")
    }

    pub(crate) fn outside(&self, connector: Connector) -> Outside {
        let client =
            Arc::new(CriClient::with_connector("fake", connector, Deadlines::new(Duration::from_secs(120)), 1));
        Outside {
            runtime: client.clone(),
            images: client,
            fs: Arc::new(LinuxFs),
            host: self.host.clone(),
            mounter: self.mounter.clone(),
            cgroups: self.cgroups.clone(),
            stats: Arc::new(LinuxStats::v2_in(self.dir.path())),
            journal: self.journal.clone(),
            prober: self.net.clone(),
            http: self.net.clone(),
            api: None,
            bootstrap_api: None,
            fetch: Arc::new(url_fetch::UrlFetch::new("sim")),
        }
    }
}

fn machine() -> Machine {
    let memory = 8_i64 << 30;
    let capacity: ResourceList = BTreeMap::from([
        (CPU.to_owned(), Quantity::from_units(4)),
        (MEMORY.to_owned(), Quantity::from_bytes(memory)),
        (EPHEMERAL_STORAGE.to_owned(), Quantity::from_bytes(100 << 30)),
        ("pods".to_owned(), Quantity::from_units(110)),
    ]);
    Machine {
        facts: NodeFacts {
            memory_capacity_bytes: memory,
            swap_total_bytes: 0,
            swap_controller: false,
            cgroup_v2: false,
            page_sizes: Vec::new(),
        },
        allocatable: capacity.clone(),
        capacity,
        pid_capacity: 32_768,
        thermal_throttle_paths: Vec::new(),
        selinux: false,
    }
}
