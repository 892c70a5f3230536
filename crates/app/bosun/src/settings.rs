//! From configuration, flags and host facts to what each part is given.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;

use cgroup_manager::ReservedCgroup;
use cgroup_values::memory_qos::keep_reserved;
use cgroup_values::tree::PID;
use cgroup_values::{CgroupName, HostFacts, LimitRules, MemoryQos};
use model::node::CgroupDriver;
use model::quantity::Quantity;
use model::resources::{CPU, EPHEMERAL_STORAGE, HUGEPAGES_PREFIX, MEMORY, ResourceList};
use node_config::{Enforce, Eviction, Flags, NodeAllocatable, NodeConfig, PodLimits, Pods, RemoteManagers};
use ports::host::{CgroupFs, CgroupVersion, HostFs, HostInfo, HostResult};
use pull_credentials::provider_config::Provider;
use volume_manager::{SeLinux, files_context};

/// Everything that does not change while the node runs.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Name of the node (`--hostname-override`, else the host name in lower case).
    pub node_name: String,
    /// Addresses of the node, primary first (`--node-ip`, else found on the host).
    pub node_ips: Vec<IpAddr>,
    /// `--root-dir`.
    pub root_dir: PathBuf,
    /// Folder of the legacy log links.
    pub container_logs_dir: PathBuf,
    /// The configuration: files with flags written over them.
    pub config: NodeConfig,
    /// What only the command line says: kubeconfigs, certificate folder, labels, credential providers.
    pub flags: Flags,
    /// Credential provider plugins, as the files that the flags name have them.
    pub providers: Vec<Provider>,
    /// Managers that run in processes of their own.
    pub managers: RemoteManagers,
    /// Where the certificates of this node come from.
    pub certificates: Certificates,
    /// Driver in force: the runtime's own, else the configured one.
    pub cgroup_driver: CgroupDriver,
    /// Faults may be injected.
    pub faults: bool,
}

/// Where the certificates of this node come from.
#[derive(Clone, Debug, Default)]
pub struct Certificates {
    /// For requests to the API server.
    pub client: certificate_manager::ClientSource,
    /// For the server on `port`.
    pub serving: certificate_manager::ServingSource,
}

/// What was read from the host once.
#[derive(Clone, Debug)]
pub struct Machine {
    /// For resource numbers.
    pub facts: HostFacts,
    /// Whole machine, as its Node object tells it.
    pub capacity: ResourceList,
    /// Most processes that there can be. Pods together are limited to it, but the Node object does not tell it.
    pub pid_capacity: u64,
    /// Left for pods.
    pub allocatable: ResourceList,
    /// Masked in containers.
    pub thermal_throttle_paths: Vec<String>,
    /// What is mounted in memory may be swapped out.
    pub memory_may_swap: bool,
    /// What the policy of SELinux says of containers; `None`: it is off.
    pub selinux: Option<String>,
}

impl Machine {
    /// Reads the host.
    ///
    /// # Errors
    /// `/proc` or the root folder cannot be read.
    pub fn read(settings: &Settings, info: &dyn HostInfo, cgroups: &dyn CgroupFs, fs: &dyn HostFs) -> HostResult<Self> {
        let memory = info.memory_total_bytes()?;
        let pages = info.huge_pages()?;
        let disk = fs.stat_fs(&settings.root_dir)?;
        let mut facts = HostFacts {
            memory_capacity_bytes: signed(memory),
            memory_allocatable_bytes: 0,
            page_bytes: signed(info.page_bytes()),
            swap_total_bytes: signed(info.swap_total_bytes()?),
            swap_controller: cgroups.has_swap_controller(),
            cgroup_v2: cgroups.version() == CgroupVersion::V2,
            page_sizes: pages.keys().copied().collect(),
        };
        let mut capacity: ResourceList = BTreeMap::from([
            (CPU.to_owned(), Quantity::from_units(i64::from(info.cpu_count()))),
            (MEMORY.to_owned(), Quantity::from_bytes(signed(memory))),
            (EPHEMERAL_STORAGE.to_owned(), Quantity::from_bytes(signed(disk.total_bytes))),
            ("pods".to_owned(), Quantity::from_units(i64::from(most_pods(&settings.config.pods, info.cpu_count())))),
        ]);
        for (size, count) in pages {
            let name = format!("{HUGEPAGES_PREFIX}{}", Quantity::from_bytes(signed(size)));
            capacity.insert(name, Quantity::from_bytes(signed(size.saturating_mul(count))));
        }
        let mut reserved = reservations(&settings.config.allocatable);
        facts.memory_allocatable_bytes = cgroup_values::tree::memory_for_pods(&capacity, &reserved);
        reserved.eviction_hard = eviction_reserve(&settings.config.eviction, &capacity);
        let allocatable = cgroup_values::tree::allocatable(&capacity, &reserved);
        let paths = info.thermal_throttle_paths();
        Ok(Self {
            facts,
            capacity,
            pid_capacity: info.pid_capacity()?,
            allocatable,
            thermal_throttle_paths: paths.iter().map(|p| p.to_string_lossy().into_owned()).collect(),
            // Looked at by whoever may mount.
            memory_may_swap: false,
            selinux: info.selinux_contexts()?,
        })
    }

    /// Processors, of the capacity.
    #[must_use]
    pub fn cores(&self) -> u32 {
        let milli = self.capacity.get(model::resources::CPU).map_or(0, |q| q.milli_value());
        u32::try_from(milli / 1000).unwrap_or(0)
    }

    /// What the limits of all pods together are made of: the capacity that the Node tells, and processes.
    #[must_use]
    pub fn cgroup_capacity(&self) -> ResourceList {
        let pids = Quantity::from_units(signed(self.pid_capacity));
        self.capacity.clone().into_iter().chain([(PID.to_owned(), pids)]).collect()
    }
}

fn signed(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// `maxPods`, cut by `podsPerCore`.
fn most_pods(pods: &Pods, cpus: u32) -> u32 {
    match pods.pods_per_core {
        0 => pods.max_pods,
        per_core => pods.max_pods.min(per_core.saturating_mul(cpus)),
    }
}

/// What hard eviction keeps free of memory and disk: pods cannot be promised it (node allocatable).
#[must_use]
pub fn eviction_reserve(eviction: &Eviction, capacity: &ResourceList) -> ResourceList {
    let of = |signal: &str, resource: &str| {
        let all = capacity.get(resource)?.value();
        Some((resource.to_owned(), Quantity::from_bytes(eviction.hard.get(signal)?.amount(all))))
    };
    [of("memory.available", MEMORY), of("nodefs.available", EPHEMERAL_STORAGE)].into_iter().flatten().collect()
}

/// Which dead containers are kept (`--maximum-dead-containers` and its like).
#[must_use]
pub fn container_gc(flags: &Flags) -> pod_manager::GcPolicy {
    let limit = |most: Option<u32>| most.map_or(-1, |n| i32::try_from(n).unwrap_or(i32::MAX));
    pod_manager::GcPolicy {
        min_age_ns: i64::try_from(flags.minimum_container_ttl.as_nanos()).unwrap_or(i64::MAX),
        max_per_container: limit(flags.maximum_dead_containers_per_container),
        max_containers: limit(flags.maximum_dead_containers),
    }
}

/// What is set aside before pods get anything; see also [`eviction_reserve`].
#[must_use]
pub fn reservations(allocatable: &NodeAllocatable) -> cgroup_values::tree::Reservations {
    cgroup_values::tree::Reservations {
        system: allocatable.system_reserved.clone(),
        kube: allocatable.kube_reserved.clone(),
        eviction_hard: ResourceList::new(),
    }
}

/// Cgroups of the operator's that are limited to what is set aside for those in them (`enforceNodeAllocatable`).
#[must_use]
pub fn reserved_cgroups(config: &NodeConfig, driver: CgroupDriver) -> Vec<ReservedCgroup> {
    let allocatable = &config.allocatable;
    let kept = |values| if config.limits.memory_qos.is_some() { keep_reserved(values) } else { values };
    let (system, kube) = (&allocatable.system_reserved, &allocatable.kube_reserved);
    let (of_system, of_kube) = (&allocatable.system_reserved_cgroup, &allocatable.kube_reserved_cgroup);
    let all = [
        (Enforce::SystemReserved, "System Reserved", of_system, system, false),
        (Enforce::KubeReserved, "Kube Reserved", of_kube, kube, false),
        (Enforce::SystemReservedCompressible, "System Reserved Compressible", of_system, system, true),
        (Enforce::KubeReservedCompressible, "Kube Reserved Compressible", of_kube, kube, true),
    ];
    let wanted = all.into_iter().filter(|(enforce, ..)| allocatable.enforce.contains(enforce));
    wanted
        .map(|(_, what, name, reserved, compressible)| ReservedCgroup {
            what,
            name: name.clone(),
            path: CgroupName::from_config(name, driver).path(driver),
            values: kept(cgroup_values::tree::reserved_values(reserved, compressible)),
        })
        .collect()
}

/// The operator's rules for resource numbers.
#[must_use]
pub fn limit_rules(limits: &PodLimits, v2: bool) -> LimitRules {
    LimitRules {
        cpu_quota: limits.cpu_cfs_quota,
        cpu_period_us: u64::try_from(limits.cpu_cfs_quota_period.as_micros()).unwrap_or(100_000),
        pod_pids_max: limits.pod_pids_limit.map(signed),
        single_process_oom_kill: limits.single_process_oom_kill.unwrap_or(!v2),
        swap: limits.swap_behavior,
        memory_qos: limits
            .memory_qos
            .filter(|_| v2)
            .map(|qos| MemoryQos { throttling_factor: qos.throttling_factor, tiered: qos.tiered_reservation }),
        qos_reserved_memory: limits.qos_reserved_memory,
    }
}

/// What generated configurations need to know of the node.
#[must_use]
pub fn node_settings(settings: &Settings, machine: &Machine) -> container_config::NodeSettings {
    let text = |p: &std::path::Path| p.to_string_lossy().into_owned();
    container_config::NodeSettings {
        root_dir: text(&settings.root_dir),
        pod_logs_dir: text(&settings.config.pods.logs_dir),
        cluster_domain: settings.config.dns.cluster_domain.clone(),
        seccomp_default: settings.config.pods.seccomp_default,
        selinux: machine.selinux.is_some(),
        thermal_throttle_paths: machine.thermal_throttle_paths.clone(),
        host_ips: settings.node_ips.clone(),
        allocatable: machine.allocatable.iter().map(|(k, q)| (k.clone(), q.to_api())).collect(),
    }
}

/// SELinux as far as volumes are mounted with its contexts; `None`: none is.
#[must_use]
pub fn selinux(settings: &Settings, machine: &Machine) -> Option<SeLinux> {
    let files = files_context(machine.selinux.as_deref()?)?;
    Some(SeLinux { files, every_mode: settings.config.feature_gates.enabled("SELinuxMount") })
}

/// Labels that a kubelet gives its node; selectors of static pods are checked against them.
#[must_use]
pub fn node_labels(settings: &Settings) -> BTreeMap<String, String> {
    BTreeMap::from([
        ("kubernetes.io/hostname".to_owned(), settings.node_name.clone()),
        ("kubernetes.io/os".to_owned(), "linux".to_owned()),
        ("kubernetes.io/arch".to_owned(), model::node::go_architecture(std::env::consts::ARCH).to_owned()),
    ])
}
