//! What outlives the daemon.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use actor::Kernel;
use bosun::{Machine, Ports, Settings};
use cgroup_values::HostFacts;
use cri_client::{Connector, CriClient, Deadlines};
use fakes::runtime::Features;
use fakes::{
    FakeApi, FakeCgroups, FakeKernelLog, FakeLogind, FakeMachine, FakeMemoryAlarm, FakeNet, FakePlugins, FakeRuntime,
    FakeWatch, FakeWeb, MemFs, MemoryJournal,
};
use model::Timestamp;
use model::node::CgroupDriver;
use model::quantity::Quantity;
use model::resources::{CPU, EPHEMERAL_STORAGE, MEMORY, ResourceList};
use node_config::NodeConfig;
use ports::api::ApiServer;
use ports::host::HostFs;

use crate::leash::{LeashedApi, Rope};

/// Name of the node; static pods carry it behind their names.
pub const NODE_NAME: &str = "sim";

/// Where the node's folders are on the disk.
pub const DISK: &str = "/sim";
/// Where a node of a cluster finds static pods beside its folder.
pub const POD_URL: &str = "http://pods.example/sim";

/// Runtime, journal, disk, network, API server. Tests change settings before the daemon starts.
pub struct World {
    /// The disk, and what is mounted on it.
    pub files: MemFs,
    /// The container runtime.
    pub runtime: FakeRuntime,
    /// The journal.
    pub journal: Arc<MemoryJournal>,
    /// Cgroups.
    pub cgroups: Arc<FakeCgroups>,
    /// What the Node object says of the machine.
    pub host: Arc<FakeMachine>,
    /// The network that probes and hooks see.
    pub net: Arc<FakeNet>,
    /// Plugins and CSI drivers.
    pub plugins: Arc<FakePlugins>,
    /// What is at URLs.
    pub web: Arc<FakeWeb>,
    /// The API server; `None`: standalone.
    pub api: Option<FakeApi>,
    /// Watch of the manifest folder.
    pub watch: Arc<FakeWatch>,
    /// What the kernel says.
    pub kernel_log: Arc<FakeKernelLog>,
    /// What the kernel says of memory.
    pub memory_alarm: Arc<FakeMemoryAlarm>,
    /// Who shuts the machine down.
    pub logind: FakeLogind,
    /// Settings of the next daemon.
    pub settings: Settings,
    /// The machine that it finds.
    pub machine: Machine,
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "World({:?})", self.runtime)
    }
}

impl World {
    /// A machine with 4 cores and 8 GiB, containerd 1.6, no pods. The clocks of kernel and runtime agree.
    #[must_use]
    pub fn new(kernel: &Kernel) -> Self {
        let now = Timestamp(kernel.clock().unix_nanos());
        Self::with_runtime(FakeRuntime::at(Features::containerd_1_6(), now))
    }

    /// As [`World::new`], as a node of a cluster, with a document of pods at [`POD_URL`]. The cluster has the objects that
    /// every cluster has.
    #[must_use]
    pub fn in_cluster(kernel: &Kernel) -> Self {
        Self::new(kernel).joined()
    }

    /// Makes it a node of a cluster, see [`World::in_cluster`].
    ///
    /// # Panics
    /// The runtime's clock is beyond all calendars.
    #[must_use]
    pub fn joined(mut self) -> Self {
        let now = i128::from(self.runtime.now().0);
        let api = FakeApi::at(jiff::Timestamp::from_nanosecond(now).expect("a time of this age"));
        let root = serde_json::json!({ "metadata": { "name": "kube-root-ca.crt", "namespace": "default" }, "data": { "ca.crt": "a certificate" } });
        api.put(&serde_json::from_value::<model::core::ConfigMap>(root).expect("a config map"));
        let account = serde_json::json!({ "metadata": { "name": "default", "namespace": "default" } });
        api.put(&serde_json::from_value::<model::core::ServiceAccount>(account).expect("a service account"));
        self.api = Some(api);
        self.settings.config.sources.static_pod_url = Some(POD_URL.to_owned());
        self
    }

    /// As [`World::new`], around a runtime of the caller's.
    ///
    /// # Panics
    /// The disk in memory takes no folder.
    #[must_use]
    pub fn with_runtime(runtime: FakeRuntime) -> Self {
        let at = |name: &str| Path::new(DISK).join(name);
        let files = MemFs::default();
        for folder in ["manifests", "root/pods", "root/bosun", "logs/pods", "logs/containers"] {
            files.create_dir(&at(folder), 0o755).expect("an empty disk takes a folder");
        }
        for folder in ["/tmp", "/etc"] {
            files.create_dir(Path::new(folder), 0o755).expect("an empty disk takes a folder");
        }
        let hosts = Path::new("/etc/hosts");
        files.write_file(hosts, b"127.0.0.1 localhost\n", 0o644).expect("an empty disk takes a file");
        let resolv_conf = at("resolv.conf");
        files.write_file(&resolv_conf, b"nameserver 192.0.2.53\n", 0o644).expect("an empty disk takes a file");
        runtime.write_files_to(&files);
        let mut config = NodeConfig::default();
        config.sources.static_pod_path = Some(at("manifests"));
        config.pods.logs_dir = at("logs/pods");
        config.dns.resolv_conf = Some(at("resolv.conf"));
        // How full the machine's disk is is no matter of a test.
        config.images.gc_high_threshold_percent = 100;
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
            managers: node_config::RemoteManagers::default(),
        };
        Self {
            runtime,
            journal: Arc::default(),
            cgroups: Arc::default(),
            host: Arc::default(),
            net: Arc::default(),
            plugins: Arc::new(FakePlugins::on(&files)),
            web: Arc::default(),
            api: None,
            watch: Arc::new(FakeWatch::new(&files)),
            kernel_log: Arc::default(),
            memory_alarm: Arc::default(),
            logind: FakeLogind::default(),
            settings,
            machine: machine(),
            files,
        }
    }

    /// Folder of the manifests.
    #[must_use]
    pub fn manifests(&self) -> PathBuf {
        Path::new(DISK).join("manifests")
    }

    /// A file of the disk is there.
    #[must_use]
    pub fn has(&self, path: &Path) -> bool {
        self.files.stat_link(path).ok().flatten().is_some()
    }

    /// Writes a file, and the folders that it needs; it stays when the power fails.
    ///
    /// # Panics
    /// The disk does not take it.
    pub fn write(&self, path: &Path, text: &str) {
        let folder = path.parent().expect("a file has a folder");
        self.files.create_dir(folder, 0o755).expect("the disk takes a folder");
        self.files.write_file_synced(path, text.as_bytes(), 0o644).expect("the disk takes a file");
    }

    pub(crate) fn ports(&self, connector: Connector, rope: Rope) -> Ports {
        let client =
            Arc::new(CriClient::with_connector("fake", connector, Deadlines::new(Duration::from_secs(120)), 1));
        Ports {
            runtime: client.clone(),
            images: client,
            fs: Arc::new(self.files.clone()),
            watch: self.watch.clone(),
            compress: Arc::new(self.files.clone()),
            kernel_log: self.kernel_log.clone(),
            memory_alarm: self.memory_alarm.clone(),
            logind: Arc::new(self.logind.clone()),
            host: self.host.clone(),
            mounter: Arc::new(self.files.clone()),
            quotas: Arc::new(fakes::FakeQuotas::default()),
            cgroups: self.cgroups.clone(),
            stats: Arc::new(self.files.clone()),
            journal: self.journal.clone(),
            prober: self.net.clone(),
            http: self.net.clone(),
            api: self.api.clone().map(|api| Arc::new(LeashedApi::new(api, rope)) as Arc<dyn ApiServer>),
            bootstrap_api: None,
            plugins: self.plugins.clone(),
            csi: self.plugins.clone(),
            fetch: self.web.clone(),
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
        facts: HostFacts { memory_capacity_bytes: memory, ..HostFacts::default() },
        allocatable: capacity.clone(),
        capacity,
        pid_capacity: 32_768,
        thermal_throttle_paths: Vec::new(),
        memory_may_swap: false,
        selinux: None,
    }
}
