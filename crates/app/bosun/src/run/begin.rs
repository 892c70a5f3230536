//! What every long-lived process of this program begins with: its configuration is read whole, and it logs.

use anyhow::{Result, anyhow, bail};
use host_linux::LinuxInfo;
use node_config::{Configured, Flags, NodeConfig, RemoteManagers};
use ports::host::HostInfo;
use serde_json::{Map, Value};

use super::{address, logging};
use crate::settings::{Certificates, Settings};

/// What flags and files say.
pub(super) struct Begun {
    pub(super) settings: Settings,
    /// The configuration as it was read, for `/configz`.
    pub(super) document: Map<String, Value>,
    pub(super) set_verbosity: logging::SetVerbosity,
}

/// Reads everything that `flags` name. `command` is what a person has called.
///
/// # Errors
/// All that is wrong with it.
pub(super) fn begin(flags: &Flags, command: &str) -> Result<Begun> {
    for notice in &flags.notices {
        eprintln!("{notice}");
    }
    let Configured { config, warnings, document, managers, .. } = node_config::configure(flags)
        .map_err(|e| anyhow!("invalid configuration, {} mistake(s):\n{e}", e.errors.len()))?;
    let providers = crate::providers::load(flags).map_err(|errors| {
        let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
        anyhow!("invalid credential providers, {} mistake(s):\n{}", lines.len(), lines.join("\n"))
    })?;
    let filter = flags.log.clone().or_else(|| std::env::var("BOSUN_LOG").ok().filter(|f| !f.is_empty()));
    let set_verbosity = logging::start(filter.as_deref(), &config.logging)?;
    for (name, value) in flags.given.iter().filter(|_| config.logging.verbosity > 0) {
        tracing::info!("FLAG: --{name}={value:?}");
    }
    for w in warnings {
        tracing::warn!(at = w.origin, "{w}");
    }
    if !host_linux::is_root() {
        bail!("{command} must be root: it makes cgroups and mounts (try: sudo {command} ...)");
    }
    let settings = Settings { providers, managers, ..settings(flags, config)? };
    match host_linux::raise_open_files() {
        Ok(most) => tracing::debug!(most, "files that may be open"),
        Err(error) => tracing::warn!(%error, "the limit of open files stays as it is"),
    }
    Ok(Begun { settings, document, set_verbosity })
}

fn settings(flags: &Flags, config: NodeConfig) -> Result<Settings> {
    let node_name = flags.hostname_override.clone().unwrap_or_else(|| LinuxInfo::new().hostname());
    let node_name = node_name.trim().to_lowercase();
    if node_name.is_empty() {
        bail!("the host has no name; give one with --hostname-override");
    }
    let given: Vec<_> = flags.node_ips.iter().copied().filter(|ip| !ip.is_unspecified()).collect();
    let v6_first = flags.node_ips.iter().any(|ip| ip.is_ipv6() && ip.is_unspecified());
    let node_ips = if given.is_empty() { address::of_this_host(v6_first) } else { given };
    let cgroup_driver = config.cgroups.driver;
    Ok(Settings {
        node_name,
        node_ips,
        root_dir: flags.root_dir.clone(),
        container_logs_dir: flags.container_logs_dir.clone(),
        config,
        cgroup_driver,
        faults: flags.enable_faults,
        flags: flags.clone(),
        certificates: Certificates::default(),
        providers: Vec::new(),
        managers: RemoteManagers::default(),
    })
}
