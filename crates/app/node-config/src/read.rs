//! The fields that bosun uses, with their rules (interfaces 1.3).

mod cluster;
mod logging;
mod memory;
mod rules;
mod runtime;
mod server;
mod shutdown;
mod storage;
mod tracing;

pub(crate) use storage::default_thresholds;

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use model::node::{CgroupDriver, SwapBehavior};
use serde_json::{Map, Value};

use crate::config::{ContainerLogs, Dns, Enforce, Images, NodeConfig, PodSources, Pods};
use crate::error::{ConfigError, Warning};
use crate::fields::UNUSED;
use crate::findings::Findings;
use crate::reader::{Reader, set};

const RESERVABLE: &[&str] = &["cpu", "memory", "ephemeral-storage", "pid"];
const ENFORCEABLE: &[(&str, Enforce)] = &[
    ("pods", Enforce::Pods),
    ("system-reserved", Enforce::SystemReserved),
    ("kube-reserved", Enforce::KubeReserved),
    ("system-reserved-compressible", Enforce::SystemReservedCompressible),
    ("kube-reserved-compressible", Enforce::KubeReservedCompressible),
];

/// Fills a configuration from the fields of a document.
pub(crate) fn read(fields: Map<String, Value>, warnings: Vec<Warning>) -> Result<(NodeConfig, Vec<Warning>), Findings> {
    let mut findings = Findings { errors: Vec::new(), warnings };
    let mut config = NodeConfig::default();
    rules::across_raw_fields(&fields, &mut findings);
    let raw = fields.clone();
    let mut r = Reader::new("", fields, &mut findings);
    gates(&mut r, &mut config);
    rules::unused::check(&raw, r.findings);
    sources(&mut r, &mut config.sources);
    pod_logs(&mut r, &mut config.pods);
    runtime::runtime(&mut r, &mut config.runtime);
    cgroups(&mut r, &mut config);
    processes(&mut r, &mut config);
    memory::qos(&mut r, &mut config);
    memory::reserved(&mut r, &mut config);
    network(&mut r, &mut config.dns);
    images(&mut r, &mut config.images);
    pods(&mut r, &mut config);
    container_logs(&mut r, &mut config.container_logs);
    cluster::api(&mut r, &mut config.api);
    cluster::node(&mut r, &mut config.node);
    server::serving(&mut r, &mut config);
    volumes(&mut r, &mut config.pods);
    storage::eviction(&mut r, &mut config);
    storage::images(&mut r, &mut config);
    shutdown::shutdown(&mut r, &mut config);
    daemon(&mut r, &mut config);
    logging::logging(&mut r, &mut config);
    tracing::tracing(&mut r, &mut config);
    r.finish(UNUSED);
    rules::without_effect(&config, &mut findings);
    if findings.errors.is_empty() { Ok((config, findings.warnings)) } else { Err(findings) }
}

fn gates(r: &mut Reader<'_>, c: &mut NodeConfig) {
    for (name, value) in &r.object("featureGates").unwrap_or_default() {
        let Some(on) = r.findings.bool(&format!("featureGates.{name}"), value) else { continue };
        match c.feature_gates.set(name, on) {
            Ok(warning) => r.findings.warnings.extend(warning),
            Err(error) => r.findings.error(error),
        }
    }
    c.feature_gates.unfounded().for_each(|error| r.findings.error(error));
}

fn sources(r: &mut Reader<'_>, s: &mut PodSources) {
    s.static_pod_path = r.some_text("staticPodPath").map(PathBuf::from);
    set(&mut s.file_check_frequency, r.some_duration("fileCheckFrequency"));
    url(r, s);
    set(&mut s.http_check_frequency, r.some_duration("httpCheckFrequency"));
}

/// How pods are looked after, and where their logs are.
fn pod_logs(r: &mut Reader<'_>, p: &mut Pods) {
    set(&mut p.sync_frequency, r.some_duration("syncFrequency"));
    if let Some(dir) = r.some_text("podLogsDir") {
        let path = PathBuf::from(&dir);
        if !dir.is_ascii() {
            let error = ConfigError::new("podLogsDir", "must be ASCII: runtimes cut log paths by bytes");
            r.findings.error(error.value(&Value::from(dir)));
        } else if !rules::is_clean(&path) {
            let error = ConfigError::new("podLogsDir", "must be a path without '.', '..' and doubled slashes");
            r.findings.error(error.value(&Value::from(dir)));
        } else {
            p.logs_dir = path;
        }
    }
}

fn url(r: &mut Reader<'_>, s: &mut PodSources) {
    s.static_pod_url = r.some_text("staticPodURL");
    if let Some(url) = &s.static_pod_url
        && !["http://", "https://"].iter().any(|start| url.len() > start.len() && url.starts_with(start))
    {
        let error = ConfigError::new("staticPodURL", "is no URL").value(&Value::from(url.as_str()));
        r.findings.error(error.allowed("http://host/path or https://host/path"));
    }
    for (name, values) in &r.object("staticPodURLHeader").unwrap_or_default() {
        for value in r.findings.text_list(&format!("staticPodURLHeader.{name}"), values).unwrap_or_default() {
            s.static_pod_url_headers.push((name.clone(), value));
        }
    }
}

fn cgroups(r: &mut Reader<'_>, c: &mut NodeConfig) {
    match r.word("cgroupDriver", &["cgroupfs", "systemd"]).as_deref() {
        Some("systemd") => c.cgroups.driver = CgroupDriver::Systemd,
        Some(_) => c.cgroups.driver = CgroupDriver::Cgroupfs,
        None => {}
    }
    set(&mut c.cgroups.root, r.some_text("cgroupRoot"));
    if !c.cgroups.root.is_empty() && !c.cgroups.root.starts_with('/') {
        let error = ConfigError::new("cgroupRoot", "must be an absolute path in the cgroup tree");
        r.findings.error(error.value(&Value::from(c.cgroups.root.as_str())));
    }
    set(&mut c.cgroups.own, r.some_text("kubeletCgroups"));
    set(&mut c.cgroups.system, system_cgroup(r));
    set(&mut c.cgroups.per_qos, r.bool("cgroupsPerQOS"));
    set(&mut c.allocatable.system_reserved, r.amounts("systemReserved", RESERVABLE));
    set(&mut c.allocatable.kube_reserved, r.amounts("kubeReserved", RESERVABLE));
    set(&mut c.allocatable.system_reserved_cgroup, r.some_text("systemReservedCgroup"));
    set(&mut c.allocatable.kube_reserved_cgroup, r.some_text("kubeReservedCgroup"));
    reserved_cpus(r, c);
    let given = enforce(r);
    if let Some(list) = &given {
        c.allocatable.enforce.clone_from(list);
    }
    rules::enforcement(c, given.is_some(), r.findings);
}

/// The root itself is refused: processes would be moved out of it and back. The first slash may be missing, as for a kubelet.
fn system_cgroup(r: &mut Reader<'_>) -> Option<String> {
    const NAME: &str = "systemCgroups";
    let text = r.some_text(NAME)?;
    let parts: Vec<&str> = text.split('/').filter(|part| !part.is_empty()).collect();
    let wrong = if parts.is_empty() {
        "cannot be the root of the tree"
    } else if parts.iter().any(|part| [".", ".."].contains(part)) {
        "must be a path without '.' and '..'"
    } else {
        return Some(format!("/{}", parts.join("/")));
    };
    r.findings.error(ConfigError::new(NAME, wrong).value(&Value::from(text)).allowed("a cgroup such as /system"));
    None
}

/// CPUs that are named take the place of the amounts that are reserved (interfaces 1.1 step 8).
fn reserved_cpus(r: &mut Reader<'_>, c: &mut NodeConfig) {
    const NAME: &str = "reservedSystemCPUs";
    let Some(text) = r.some_text(NAME) else { return };
    let Some(count) = rules::cpus(&text) else {
        let error = ConfigError::new(NAME, "is no set of CPUs").value(&Value::from(text));
        r.findings.error(error.allowed("numbers and ranges, as in 0-1,4"));
        return;
    };
    r.findings
        .warn(NAME, "as many CPUs are set aside; not implemented yet: containers are not kept off these very ones");
    c.allocatable.kube_reserved.remove("cpu");
    c.allocatable.system_reserved.insert("cpu".to_owned(), model::quantity::Quantity::from_units(count));
}

/// `none` stands alone and means the empty list.
fn enforce(r: &mut Reader<'_>) -> Option<Vec<Enforce>> {
    const NAME: &str = "enforceNodeAllocatable";
    let words = r.text_list(NAME)?;
    let mut list = Vec::new();
    for (i, word) in words.iter().enumerate() {
        let at = format!("{NAME}[{i}]");
        let value = Value::from(word.as_str());
        match ENFORCEABLE.iter().find(|(name, _)| name == word) {
            Some((_, enforce)) if list.contains(enforce) => {
                r.findings.error(ConfigError::new(at, "is listed twice").value(&value));
            }
            Some((_, enforce)) => list.push(*enforce),
            None if word == "none" && words.len() == 1 => {}
            None if word == "none" => {
                r.findings.error(ConfigError::new(at, "must stand alone").value(&value));
            }
            None => {
                let names: Vec<&str> = ENFORCEABLE.iter().map(|(n, _)| *n).chain(["none"]).collect();
                r.findings.error(ConfigError::new(at, "is not known").value(&value).allowed(names.join(", ")));
            }
        }
    }
    Some(list)
}

fn processes(r: &mut Reader<'_>, c: &mut NodeConfig) {
    set(&mut c.limits.cpu_cfs_quota, r.bool("cpuCFSQuota"));
    let (low, high) = (Duration::from_millis(1), Duration::from_secs(1));
    set(&mut c.limits.cpu_cfs_quota_period, r.duration_within("cpuCFSQuotaPeriod", low, high));
    // 0 and any negative number mean "no limit".
    if let Some(limit) = r.int("podPidsLimit", i64::MIN, i64::MAX) {
        c.limits.pod_pids_limit = u64::try_from(limit).ok().filter(|n| *n > 0);
    }
    c.limits.single_process_oom_kill = r.bool("singleProcessOOMKill");
    set(&mut c.cgroups.fail_swap_on, r.bool("failSwapOn"));
    set(&mut c.cgroups.fail_cgroup_v1, r.bool("failCgroupV1"));
    set(&mut c.host.protect_kernel_defaults, r.bool("protectKernelDefaults"));
    set(&mut c.host.iptables_util_chains, r.bool("makeIPTablesUtilChains"));
    if let Some(fields) = r.object("memorySwap") {
        let mut inner = Reader::new("memorySwap", fields, r.findings);
        if inner.word("swapBehavior", &["NoSwap", "LimitedSwap"]).as_deref() == Some("LimitedSwap") {
            c.limits.swap_behavior = SwapBehavior::LimitedSwap;
        }
        inner.finish(&[]);
    }
    if c.limits.swap_behavior == SwapBehavior::LimitedSwap && c.cgroups.fail_swap_on {
        r.findings.warn("memorySwap.swapBehavior", "has no effect while failSwapOn is true");
    }
}

fn network(r: &mut Reader<'_>, c: &mut Dns) {
    for (i, server) in r.text_list("clusterDNS").unwrap_or_default().iter().enumerate() {
        match server.parse::<IpAddr>() {
            Ok(ip) => c.cluster_dns.push(ip),
            Err(_) => {
                let found = Value::from(server.as_str());
                r.findings.warn(format!("clusterDNS[{i}]"), format!("{found} is not an IP address, skipped"));
            }
        }
    }
    set(&mut c.cluster_domain, r.some_text("clusterDomain"));
    match r.text("resolvConf") {
        Some(path) if path.is_empty() => c.resolv_conf = None,
        Some(path) => c.resolv_conf = Some(PathBuf::from(path)),
        None => {}
    }
}

fn images(r: &mut Reader<'_>, c: &mut Images) {
    let serialize = r.bool("serializeImagePulls");
    c.max_parallel_pulls = r.count("maxParallelImagePulls", 1);
    let parallel = c.max_parallel_pulls.is_some_and(|n| n > 1);
    c.serialize_pulls = serialize.unwrap_or(!parallel);
    if parallel && c.serialize_pulls {
        let error =
            ConfigError::new("maxParallelImagePulls", "cannot be more than 1 while serializeImagePulls is true");
        r.findings.error(error.value(&Value::from(c.max_parallel_pulls)).allowed("1, or serializeImagePulls: false"));
    }
    set(&mut c.registry_pull_qps, r.count("registryPullQPS", 0));
    set(&mut c.registry_burst, r.count("registryBurst", 0).filter(|n| *n > 0));
}

fn pods(r: &mut Reader<'_>, c: &mut NodeConfig) {
    set(&mut c.pods.max_pods, r.count("maxPods", 0).filter(|n| *n > 0));
    set(&mut c.pods.pods_per_core, r.count("podsPerCore", 0));
    set(&mut c.pods.seccomp_default, r.bool("seccompDefault"));
    if let Some(fields) = r.object("crashLoopBackOff") {
        let mut inner = Reader::new("crashLoopBackOff", fields, r.findings);
        let (low, high) = (Duration::from_secs(1), Duration::from_secs(300));
        if inner.has("maxContainerRestartPeriod") && !c.feature_gates.enabled("KubeletCrashLoopBackOffMax") {
            let reason = "needs the feature gate KubeletCrashLoopBackOffMax, which is switched off";
            inner.findings.error(ConfigError::new("crashLoopBackOff.maxContainerRestartPeriod", reason));
        }
        set(&mut c.pods.max_container_restart_period, inner.duration_within("maxContainerRestartPeriod", low, high));
        inner.finish(&[]);
    }
    if let Some(patterns) = r.text_list("allowedUnsafeSysctls") {
        for (i, pattern) in patterns.iter().enumerate() {
            if !rules::is_sysctl_pattern(pattern) {
                let error = ConfigError::new(format!("allowedUnsafeSysctls[{i}]"), "is not a sysctl pattern");
                let error = error.value(&Value::from(pattern.as_str()));
                r.findings.error(error.allowed("a name such as kernel.msgmax, or a prefix such as net.core.*"));
            }
        }
        c.pods.allowed_unsafe_sysctls = patterns;
    }
    if let Some(fields) = r.object("userNamespaces") {
        let mut inner = Reader::new("userNamespaces", fields, r.findings);
        const BLOCK: i64 = 65536;
        if let Some(ids) = inner.int("idsPerPod", BLOCK, u32::MAX.into()) {
            if ids % BLOCK != 0 {
                let error = ConfigError::new("userNamespaces.idsPerPod", "is not a multiple of 65536");
                inner.findings.error(error.value(&Value::from(ids)).allowed("a multiple of 65536"));
            }
            set(&mut c.pods.user_namespace_ids_per_pod, u32::try_from(ids).ok());
        }
        inner.finish(&[]);
    }
}

/// Negative: volumes are not measured. 0 is as good as absent.
fn volumes(r: &mut Reader<'_>, c: &mut Pods) {
    const NAME: &str = "volumeStatsAggPeriod";
    let Some(value) = r.raw(NAME) else { return };
    if let Some(text) = value.as_str().and_then(|t| t.strip_prefix('-')) {
        if r.findings.duration(NAME, &Value::from(text)).is_some_and(|d| !d.is_zero()) {
            c.volume_stats_agg_period = None;
        }
    } else if let Some(period) = r.findings.duration(NAME, &value).filter(|d| !d.is_zero()) {
        c.volume_stats_agg_period = Some(period);
    }
}

fn container_logs(r: &mut Reader<'_>, c: &mut ContainerLogs) {
    if let Some(size) = r.quantity("containerLogMaxSize") {
        // A negative size switches rotation off.
        c.max_size = u64::try_from(size.value()).ok();
        if size.is_zero() {
            let error = ConfigError::new("containerLogMaxSize", "would rotate without end");
            r.findings.error(error.value(&Value::from(0)).allowed("a size such as 10Mi, or -1 to switch rotation off"));
        }
    }
    set(&mut c.max_files, r.count("containerLogMaxFiles", 2));
    set(&mut c.max_workers, r.count("containerLogMaxWorkers", 1));
    let least = Duration::from_secs(3);
    let interval = r.duration_within("containerLogMonitorInterval", least, Duration::MAX);
    set(&mut c.monitor_interval, interval);
}

fn daemon(r: &mut Reader<'_>, c: &mut NodeConfig) {
    if let Some(adj) = r.int("oomScoreAdj", -1000, 1000) {
        c.cgroups.oom_score_adj = i32::try_from(adj).unwrap_or(c.cgroups.oom_score_adj);
    }
    if r.bool("runOnce") == Some(true) {
        let error = ConfigError::new("runOnce", "was removed: use restartPolicy Never for pods that run once");
        r.findings.error(error.value(&Value::Bool(true)).allowed("false"));
    }
}
