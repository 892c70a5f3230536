//! The world outside as it is: the runtime, the host, and the ports to both.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use actor::Kernel;
use anyhow::Result;
use cri_client::{CriClient, Deadlines, Endpoint, Options};
use host_linux::{LinuxCgroups, LinuxFs, LinuxInfo, LinuxMounts, LinuxQuotas, SystemdCgroups, SystemdLogind};
use model::node::CgroupDriver;
use ports::host::{CgroupFs, HostInfo, Links};
use ports::journal::Journal;
use tokio::runtime::Handle;

use super::cluster;
use crate::node::Ports;
use crate::settings::{Machine, Settings};

/// How long the runtime may take to answer at start-up before the process gives up (and systemd starts it again).
const RUNTIME_PATIENCE: Duration = Duration::from_secs(60);

/// A client of the configured runtime, or of bosun's own at its socket; nothing is asked yet.
pub(super) fn connect(config: &node_config::Runtime, own: Option<&Path>) -> Result<CriClient> {
    let own = own.map(|socket| format!("unix://{}", socket.display()));
    let runtime = Endpoint::parse(own.as_deref().unwrap_or(&config.container_runtime_endpoint))?;
    let images = Endpoint::parse(own.as_deref().unwrap_or(&config.image_service_endpoint))?;
    let images = (images.path() != runtime.path()).then_some(images);
    let deadlines = Deadlines::new(config.runtime_request_timeout);
    Ok(CriClient::new(&Options { runtime, images, deadlines, seed: fastrand::u64(..) }))
}

/// The first words with the runtime; a runtime that is still starting is waited for.
pub(super) async fn handshake(client: &CriClient) -> Result<cri_client::Handshake> {
    let until = tokio::time::Instant::now() + RUNTIME_PATIENCE;
    loop {
        match client.handshake().await {
            Ok(h) => return Ok(h),
            Err(e) if tokio::time::Instant::now() < until => {
                tracing::warn!(error = actor::chain(&e), "the runtime does not answer yet, trying again");
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            Err(e) => return Err(e.into()),
        }
    }
}

/// The cgroup tree of this machine, and what counts over it.
#[derive(Clone)]
pub(super) struct Counters {
    pub(super) cgroups: Arc<dyn CgroupFs>,
    stats: host_linux::LinuxStats,
    alarm: host_linux::KernelMemoryAlarm,
}

impl Counters {
    /// The runtime's own driver wins over the configured one.
    pub(super) fn new(
        cgroups: LinuxCgroups,
        of_runtime: Option<CgroupDriver>,
        settings: &mut Settings,
        apart: &Handle,
    ) -> Self {
        let (stats, alarm) = (host_linux::LinuxStats::new(&cgroups), host_linux::KernelMemoryAlarm::new(&cgroups));
        settings.cgroup_driver = of_runtime.unwrap_or(settings.cgroup_driver);
        let cgroups: Arc<dyn CgroupFs> = match settings.cgroup_driver {
            CgroupDriver::Systemd => Arc::new(SystemdCgroups::new(cgroups, apart.clone())),
            CgroupDriver::Cgroupfs => Arc::new(cgroups),
        };
        Counters { cgroups, stats, alarm }
    }
}

/// Reads the host.
pub(super) fn machine(settings: &Settings, info: &LinuxInfo, counters: &Counters) -> Result<Machine> {
    let mut machine = Machine::read(settings, info, &*counters.cgroups, &LinuxFs)?;
    machine.memory_may_swap =
        info.swap_total_bytes()? > 0 && !host_linux::mounts::keeps_memory_off_swap(&settings.root_dir);
    Ok(machine)
}

/// All ports but those to the API server.
pub(super) fn ports_to(
    kernel: &Kernel,
    runtime: CriClient,
    counters: Counters,
    journal: Arc<dyn Journal>,
    apart: &Handle,
) -> Ports {
    let prober = Arc::new(net_prober::Prober::new());
    let plugins = Arc::new(csi_client::CsiClient::new());
    let Counters { cgroups, stats, alarm } = counters;
    Ports {
        runtime: Arc::new(runtime.clone()),
        images: Arc::new(runtime),
        fs: Arc::new(LinuxFs),
        watch: Arc::new(config_sources::folder::InotifyWatch),
        compress: Arc::new(log_files::Gzip::new(|log| host_linux::open_regular(log, Links::Refuse))),
        kernel_log: Arc::new(host_linux::KernelMessages),
        memory_alarm: Arc::new(alarm),
        logind: Arc::new(SystemdLogind::new(apart.clone())),
        host: Arc::new(LinuxInfo::new()),
        mounter: Arc::new(LinuxMounts),
        quotas: Arc::new(LinuxQuotas::new("/etc")),
        cgroups,
        stats: Arc::new(stats),
        journal,
        prober: prober.clone(),
        http: prober,
        fetch: Arc::new(url_fetch::UrlFetch::new(cluster::user_agent(), kernel.effects("http-source"))),
        plugins: plugins.clone(),
        csi: plugins,
        api: None,
        bootstrap_api: None,
    }
}
