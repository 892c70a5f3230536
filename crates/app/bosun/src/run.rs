//! `bosun run`: from flags to a running node, and back out.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use actor::{Arbiters, Kernel, KernelConfig, Place, Watchdog, run_system};
use anyhow::{Context, Result, bail};
use cri_client::{CriClient, Deadlines, Endpoint, Options};
use host_linux::{LinuxCgroups, LinuxFs, LinuxInfo, LinuxMounts, SystemdCgroups};
use journal::RedbJournal;
use node_config::NodeConfig;
use ports::host::{CgroupFs, CgroupVersion, HostInfo};
use tokio::signal::unix::{SignalKind, signal};

use crate::cli::RunArgs;
use crate::node::{Builder, Node, Outside};
use crate::settings::{Machine, Settings};

mod address;
mod logging;

/// Threads of the pool: connections and effects run there, actors on threads of their own.
const POOL_THREADS: usize = 2;
/// How long the runtime may take to answer at start-up before the daemon gives up (and systemd starts it again).
const RUNTIME_PATIENCE: Duration = Duration::from_secs(60);
/// An actor thread that is blocked this long is beyond repair inside this process.
const BLOCKED_LIMIT: Duration = Duration::from_secs(30);

/// Runs the node until it is told to stop.
pub(crate) fn run(args: &RunArgs, customise: impl FnOnce(Builder) -> Builder) -> Result<ExitCode> {
    let config = load(args)?;
    logging::start(&args.log, config.log_format)?;
    let settings = settings(args, config)?;
    run_system(POOL_THREADS, |arbiters| serve(args.clone(), settings, arbiters, customise))?
}

fn load(args: &RunArgs) -> Result<NodeConfig> {
    let mut config = match &args.config {
        None => NodeConfig::default(),
        Some(file) => {
            let (config, warnings) = node_config::load(file).map_err(|e| anyhow::anyhow!("{e}"))?;
            for w in warnings {
                eprintln!("bosun: warning: {}: {w}", file.display());
            }
            config
        }
    };
    if let Some(path) = &args.pod_manifest_path {
        config.static_pod_path = Some(path.clone());
    }
    if let Some(endpoint) = &args.container_runtime_endpoint {
        if config.image_service_endpoint == config.container_runtime_endpoint {
            config.image_service_endpoint.clone_from(endpoint);
        }
        config.container_runtime_endpoint.clone_from(endpoint);
    }
    Ok(config)
}

fn settings(args: &RunArgs, config: NodeConfig) -> Result<Settings> {
    if !host_linux::is_root() {
        bail!("bosun run must be root: it makes cgroups and mounts (try: sudo bosun run ...)");
    }
    let node_name = args.hostname_override.clone().unwrap_or_else(|| LinuxInfo::new().hostname());
    let node_name = node_name.trim().to_lowercase();
    if node_name.is_empty() {
        bail!("the host has no name; give one with --hostname-override");
    }
    let node_ips = if args.node_ip.is_empty() { address::of_this_host() } else { args.node_ip.clone() };
    let cgroup_driver = match config.cgroup_driver {
        node_config::CgroupDriver::Systemd => cgroup_values::CgroupDriver::Systemd,
        node_config::CgroupDriver::Cgroupfs => cgroup_values::CgroupDriver::Cgroupfs,
    };
    Ok(Settings {
        node_name,
        node_ips,
        root_dir: args.root_dir.clone(),
        container_logs_dir: args.container_logs_dir.clone(),
        config,
        cgroup_driver,
        faults: args.enable_faults,
    })
}

/// Refusals of the host that a kubelet makes too, before anything is touched.
fn check_host(settings: &Settings, cgroups: &dyn CgroupFs, info: &dyn HostInfo) -> Result<()> {
    let config = &settings.config;
    if config.fail_cgroup_v1 && cgroups.version() == CgroupVersion::V1 {
        bail!(
            "this host runs cgroup v1 and failCgroupV1 is true (the default): set failCgroupV1: false to run all the same"
        );
    }
    if config.fail_swap_on && info.swap_total_bytes()? > 0 {
        bail!("swap is on and failSwapOn is true (the default): turn swap off (swapoff -a) or set failSwapOn: false");
    }
    let missing = cgroups.missing_controllers();
    if config.cgroups_per_qos && !missing.is_empty() {
        bail!("cgroup controllers are not mounted: {}", missing.join(", "));
    }
    Ok(())
}

fn make_dirs(settings: &Settings) -> Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    let make = |path: &std::path::Path, mode: u32| {
        let made = std::fs::DirBuilder::new().recursive(true).mode(mode).create(path);
        made.with_context(|| format!("{} cannot be made", path.display()))
    };
    make(&settings.root_dir, 0o750)?;
    make(&settings.root_dir.join("pods"), 0o750)?;
    make(&settings.root_dir.join("bosun"), 0o700)?;
    make(&settings.config.pod_logs_dir, 0o750)?;
    make(&settings.container_logs_dir, 0o755)
}

fn connect(config: &NodeConfig) -> Result<CriClient> {
    let runtime = Endpoint::parse(&config.container_runtime_endpoint)?;
    let images = Endpoint::parse(&config.image_service_endpoint)?;
    let images = (images.path() != runtime.path()).then_some(images);
    let deadlines = Deadlines::new(config.runtime_request_timeout);
    Ok(CriClient::new(&Options { runtime, images, deadlines, seed: fastrand::u64(..) }))
}

/// The first words with the runtime; a runtime that is still starting is waited for.
async fn handshake(client: &CriClient) -> Result<cri_client::Handshake> {
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

fn kernel() -> Kernel {
    Kernel::new(KernelConfig {
        seed: fastrand::u64(..),
        on_fatal: Some(Arc::new(|last: &str| {
            tracing::error!(last, "the restart budget of the root group is used up, leaving the rest to systemd");
            std::process::exit(2);
        })),
        watchdog: Some(Watchdog {
            limit: BLOCKED_LIMIT,
            on_blocked: Arc::new(|blocked| {
                tracing::error!(?blocked, "a thread of actors is blocked for good, leaving the rest to systemd");
                std::process::exit(3);
            }),
        }),
        ..KernelConfig::default()
    })
}

async fn serve(
    args: RunArgs,
    mut settings: Settings,
    arbiters: Arbiters,
    customise: impl FnOnce(Builder) -> Builder,
) -> Result<ExitCode> {
    let (fs, info) = (Arc::new(LinuxFs), Arc::new(LinuxInfo::new()));
    let cgroups = LinuxCgroups::detect()?;
    check_host(&settings, &cgroups, &*info)?;
    make_dirs(&settings)?;
    let journal = RedbJournal::open(&settings.root_dir.join("bosun/journal.redb"))?;
    let client = connect(&settings.config)?;
    let words = handshake(&client).await?;
    match words.cgroup_driver {
        Some(cri_client::CgroupDriver::Systemd) => settings.cgroup_driver = cgroup_values::CgroupDriver::Systemd,
        Some(cri_client::CgroupDriver::Cgroupfs) => settings.cgroup_driver = cgroup_values::CgroupDriver::Cgroupfs,
        None => {}
    }
    let cgroups: Arc<dyn CgroupFs> = match settings.cgroup_driver {
        cgroup_values::CgroupDriver::Systemd => Arc::new(SystemdCgroups::new(cgroups)),
        cgroup_values::CgroupDriver::Cgroupfs => Arc::new(cgroups),
    };
    let machine = Machine::read(&settings, &*info, &*cgroups, &*fs)?;
    let listener = server::local::bind(&args.socket).with_context(|| format!("{}", args.socket.display()))?;
    let prober = Arc::new(net_prober::Prober::new());
    let outside = Outside {
        runtime: Arc::new(client.clone()),
        images: Arc::new(client),
        fs,
        mounter: Arc::new(LinuxMounts),
        cgroups,
        journal: Arc::new(journal),
        prober: prober.clone(),
        http: prober,
        api: None,
    };
    let kernel = kernel();
    if settings.faults {
        kernel.faults().enable();
    }
    let workers: Place = arbiters.start();
    let builder = Node::builder(settings.clone(), machine, outside).worker_place(workers);
    let node = customise(builder).start(&kernel);
    tracing::info!(
        node = settings.node_name,
        runtime = words.runtime_name,
        version = words.runtime_version,
        manifests = settings.config.static_pod_path.as_ref().map(|p| p.display().to_string()),
        "node is up"
    );
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let views = node.views(settings.faults);
    let server = tokio::spawn(server::local::serve(listener, views, async { drop(stopped.await) }));
    notify(&kernel);
    let why = asked_to_stop().await?;
    tracing::info!(signal = why, "stopping; pods go on running");
    let _told = sd_notify::notify(&[sd_notify::NotifyState::Stopping]);
    node.stop().await;
    drop(stop);
    if tokio::time::timeout(Duration::from_secs(2), server).await.is_err() {
        tracing::warn!("a client of the local socket did not let go");
    }
    let _gone = std::fs::remove_file(&args.socket);
    Ok(ExitCode::SUCCESS)
}

/// Ready now, and alive as long as the root group is healthy.
fn notify(kernel: &Kernel) {
    let _told = sd_notify::notify(&[sd_notify::NotifyState::Ready]);
    let Some(period) = sd_notify::watchdog_enabled() else { return };
    let kernel = kernel.clone();
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(period / 3).await;
            if kernel.is_healthy() {
                let _told = sd_notify::notify(&[sd_notify::NotifyState::Watchdog]);
            }
        }
    });
}

async fn asked_to_stop() -> Result<&'static str> {
    let mut term = signal(SignalKind::terminate())?;
    let mut int = signal(SignalKind::interrupt())?;
    Ok(tokio::select! {
        _ = term.recv() => "SIGTERM",
        _ = int.recv() => "SIGINT",
    })
}
