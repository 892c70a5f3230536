//! Flags that no field of the configuration stands for.

use std::path::{Component, PathBuf};
use std::time::Duration;

use super::given::{AfterBoot, Flags, Override};
use super::values;
use crate::error::{ConfigError, Warning};
use crate::labels;
use model::go_duration;

/// Which one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Own {
    Config,
    ConfigDir,
    Kubeconfig,
    BootstrapKubeconfig,
    CertDir,
    RootDir,
    HostnameOverride,
    NodeIp,
    NodeLabels,
    CloudProvider,
    ProviderConfig,
    ProviderBinDir,
    RuntimeCgroups,
    SeccompDefault,
    LockFile,
    ExitOnContention,
    MinimumTtl,
    DeadPerContainer,
    Dead,
    Socket,
    ContainerLogsDir,
    EnableFaults,
    SysctlDir,
    PodStore,
    PodStoreWait,
    PodStoreAfterBoot,
    PodStoreMaxAge,
    ObjectCache,
    EvictionEarlyLooks,
    BosunConfig,
    Manager,
    Log,
}

fn path(text: &str) -> Option<PathBuf> {
    (!text.is_empty()).then(|| PathBuf::from(text))
}

fn limit(text: &str) -> Result<Option<u32>, String> {
    let number = values::int(text)?;
    i32::try_from(number).map_err(|_| "is out of range".to_owned())?;
    Ok(u32::try_from(number).ok())
}

pub(super) fn set(flags: &mut Flags, which: Own, text: &str) -> Result<(), String> {
    match which {
        Own::Config => flags.config = path(text),
        Own::ConfigDir => flags.config_dir = path(text),
        Own::Kubeconfig => flags.kubeconfig = path(text),
        Own::BootstrapKubeconfig => flags.bootstrap_kubeconfig = path(text),
        Own::CertDir => flags.cert_dir = PathBuf::from(text),
        Own::RootDir => flags.root_dir = PathBuf::from(text),
        Own::HostnameOverride => flags.hostname_override = Some(text.trim().to_lowercase()).filter(|n| !n.is_empty()),
        Own::NodeIp => node_ip(flags, text),
        Own::NodeLabels => {
            for (key, value) in values::each_pair(text, '=')? {
                flags.node_labels.insert(key.to_owned(), value.to_owned());
            }
        }
        Own::CloudProvider => match text {
            "" => flags.external_cloud_provider = false,
            "external" => flags.external_cloud_provider = true,
            _ => {
                return Err("cloud providers are no part of a node any more (allowed: external, or nothing)".to_owned());
            }
        },
        Own::ProviderConfig => flags.image_credential_provider_config = path(text),
        Own::ProviderBinDir => flags.image_credential_provider_bin_dir = path(text),
        Own::RuntimeCgroups => flags.runtime_cgroups = Some(text.to_owned()).filter(|t| !t.is_empty()),
        // Written over the file only when it says yes: either of the two is enough.
        Own::SeccompDefault if values::bool(text)? => {
            flags.overrides.push(Override { flag: "seccomp-default", field: "seccompDefault", value: true.into() })
        }
        Own::SeccompDefault => flags.overrides.retain(|o| o.flag != "seccomp-default"),
        Own::LockFile => flags.lock_file = path(text),
        Own::ExitOnContention => flags.exit_on_lock_contention = values::bool(text)?,
        Own::MinimumTtl => {
            let negative = text.starts_with('-');
            let ttl = go_duration::parse(text.strip_prefix('-').unwrap_or(text)).map_err(|e| e.to_string())?;
            flags.minimum_container_ttl = if negative { Duration::ZERO } else { ttl };
        }
        Own::DeadPerContainer => flags.maximum_dead_containers_per_container = limit(text)?,
        Own::Dead => flags.maximum_dead_containers = limit(text)?,
        Own::Socket => flags.socket = PathBuf::from(text),
        Own::ContainerLogsDir => flags.container_logs_dir = PathBuf::from(text),
        Own::EnableFaults => flags.enable_faults = values::bool(text)?,
        Own::PodStore => flags.pod_store = values::bool(text)?,
        Own::PodStoreWait => flags.pod_store_wait = go_duration::parse(text).map_err(|e| e.to_string())?,
        Own::PodStoreAfterBoot => {
            flags.pod_store_after_boot = match text {
                "safe" => AfterBoot::Safe,
                "all" => AfterBoot::All,
                "none" => AfterBoot::None,
                _ => return Err("unknown (allowed: safe, all, none)".to_owned()),
            }
        }
        Own::SysctlDir => flags.sysctl_dir = PathBuf::from(text),
        Own::PodStoreMaxAge => flags.pod_store_max_age = go_duration::parse(text).map_err(|e| e.to_string())?,
        Own::ObjectCache => flags.object_cache = values::bool(text)?,
        Own::EvictionEarlyLooks => flags.eviction_early_looks = values::bool(text)?,
        Own::BosunConfig => flags.bosun_config = path(text),
        Own::Manager => flags.managers.push(text.to_owned()),
        Own::Log => flags.log = Some(text.to_owned()),
    }
    Ok(())
}

/// What happens instead of what a flag asks for.
pub(super) fn without_effect(which: Own) -> Option<&'static str> {
    match which {
        Own::RuntimeCgroups => Some("no figures of the runtime's own cgroup are kept"),
        Own::ExitOnContention => Some("the lock is held until the daemon ends"),
        _ => None,
    }
}

/// Items that are no address are skipped, as a kubelet does.
fn node_ip(flags: &mut Flags, text: &str) {
    flags.node_ips.clear();
    for word in text.split(',').map(str::trim).filter(|w| !w.is_empty()) {
        match word.parse() {
            Ok(ip) => flags.node_ips.push(ip),
            Err(_) => {
                flags.warnings.push(Warning::of_flag("node-ip", format!("{word:?} is not an IP address, skipped")))
            }
        }
    }
}

/// Values that are well-formed and not allowed.
pub(crate) fn check(flags: &Flags) -> Vec<ConfigError> {
    let mut errors = Vec::new();
    let mut refuse = |flag: &str, value: String, reason: &str, allowed: &str| {
        let error = ConfigError::new("", reason).value(&value.into()).at(format!("--{flag}"));
        errors.push(if allowed.is_empty() { error } else { error.allowed(allowed) });
    };
    labels_of_node(flags, &mut refuse);
    addresses(flags, &mut refuse);
    for (flag, dir) in [("root-dir", &flags.root_dir), ("cert-dir", &flags.cert_dir)] {
        let clean: PathBuf = dir.components().collect();
        let up = dir.components().any(|c| matches!(c, Component::ParentDir | Component::CurDir));
        if up || dir.as_os_str().is_empty() || clean.as_os_str() != dir.as_os_str() {
            let text = dir.display().to_string();
            refuse(flag, text, "must be a path without '.', '..', doubled slashes and a slash at the end", "");
        }
    }
    let pair = (&flags.image_credential_provider_config, &flags.image_credential_provider_bin_dir);
    if let (Some(config), None) = pair {
        let text = config.display().to_string();
        refuse("image-credential-provider-config", text, "needs --image-credential-provider-bin-dir", "both or none");
    }
    if let (None, Some(dir)) = pair {
        let text = dir.display().to_string();
        refuse("image-credential-provider-bin-dir", text, "needs --image-credential-provider-config", "both or none");
    }
    if flags.exit_on_lock_contention && flags.lock_file.is_none() {
        refuse("exit-on-lock-contention", "true".to_owned(), "needs --lock-file", "");
    }
    if let Some(name) = &flags.hostname_override
        && !labels::is_domain(name)
    {
        refuse(
            "hostname-override",
            name.clone(),
            "is no name of a node",
            "a DNS name in lower case, as in node-1.example",
        );
    }
    errors
}

type Refuse<'r> = dyn FnMut(&str, String, &str, &str) + 'r;

fn labels_of_node(flags: &Flags, refuse: &mut Refuse<'_>) {
    let foreign: Vec<&str> = flags.node_labels.keys().map(String::as_str).filter(|k| !labels::is_own(k)).collect();
    if !foreign.is_empty() {
        let reason = format!("unknown 'kubernetes.io' or 'k8s.io' labels specified with --node-labels: {foreign:?}");
        let allowed = "kubelet.kubernetes.io/*, node.kubernetes.io/*, topology.kubernetes.io/zone and region, \
                       and all domains but these two; the API server refuses others of a node";
        refuse("node-labels", foreign.join(","), &reason, allowed);
    }
    for (key, value) in &flags.node_labels {
        if let Err(reason) = labels::check_key(key) {
            refuse("node-labels", format!("{key}={value}"), &format!("the key {reason}"), "");
        } else if let Err(reason) = labels::check_value(value) {
            refuse("node-labels", format!("{key}={value}"), &format!("the value {reason}"), "");
        }
    }
}

fn addresses(flags: &Flags, refuse: &mut Refuse<'_>) {
    let ips = &flags.node_ips;
    let text = ips.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    match ips.as_slice() {
        [] | [_] => {}
        [a, b] if a.is_ipv4() == b.is_ipv4() => {
            refuse("node-ip", text.clone(), "names two addresses of one family", "one address, or one of each family");
        }
        [_, _] => {}
        _ => refuse("node-ip", text.clone(), "names more than two addresses", "one address, or one of each family"),
    }
    for ip in ips {
        if ip.is_unspecified() && ips.len() > 1 {
            refuse("node-ip", text.clone(), "names 0.0.0.0 or :: beside another address", "one of them alone");
        }
        if ip.is_loopback() || ip.is_multicast() {
            refuse("node-ip", ip.to_string(), "is a loopback or multicast address", "an address of this host");
        }
    }
}
