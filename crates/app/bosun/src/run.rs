//! `bosun run`: from flags to a running node, and back out.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use actor::{Class, Kernel, KernelConfig, Unhealthy, Watchdog, run_system};
use anyhow::{Context, Result, bail};
use cri_client::{CriClient, Deadlines, Endpoint, Options};
use host_linux::{LinuxCgroups, LinuxFs, LinuxInfo, LinuxMounts, LinuxQuotas, SystemdCgroups, SystemdLogind};
use journal::RedbJournal;
use model::node::CgroupDriver;
use node_config::{Configured, Flags, NodeConfig, RemoteManagers};
use ports::host::{CgroupFs, HostInfo, Links};
use ports::iptables::Family;
use server::healthz::Checks;
use server::listener::Accepting;
use server::local::Views;

use crate::node::{Builder, Node, Ports};
use crate::settings::{Certificates, Machine, Settings};

use serving::Apart;

mod address;
mod cluster;
mod host;
mod http;
mod iptables;
mod logging;
mod serving;
mod systemd;
mod traces;
mod tunables;

/// How long the runtime may take to answer at start-up before the daemon gives up (and systemd starts it again).
const RUNTIME_PATIENCE: Duration = Duration::from_secs(60);
/// How long the end waits for its own log line.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// For the last writes of actors that have stopped.
const LAST_WRITES: Duration = Duration::from_secs(2);
/// An actor thread that is blocked this long is beyond repair inside this process.
const BLOCKED_LIMIT: Duration = Duration::from_secs(30);

/// Runs the node until it is told to stop.
pub(crate) fn run(flags: Flags, customise: impl FnOnce(Builder) -> Builder) -> Result<ExitCode> {
    for notice in &flags.notices {
        eprintln!("{notice}");
    }
    let Configured { config, warnings, document, managers, .. } = node_config::configure(&flags)
        .map_err(|e| anyhow::anyhow!("invalid configuration, {} mistake(s):\n{e}", e.errors.len()))?;
    let providers = crate::providers::load(&flags).map_err(|errors| {
        let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
        anyhow::anyhow!("invalid credential providers, {} mistake(s):\n{}", lines.len(), lines.join("\n"))
    })?;
    let watchdog = systemd::watchdog()?;
    let filter = flags.log.clone().or_else(|| std::env::var("BOSUN_LOG").ok().filter(|f| !f.is_empty()));
    let set_verbosity = logging::start(filter.as_deref(), &config.logging)?;
    for (name, value) in flags.given.iter().filter(|_| config.logging.verbosity > 0) {
        tracing::info!("FLAG: --{name}={value:?}");
    }
    for w in warnings {
        tracing::warn!(at = w.origin, "{w}");
    }
    let _lock = flags.lock_file.as_deref().map(host::lock).transpose()?;
    let settings = Settings { providers, managers, ..settings(&flags, config)? };
    match host_linux::raise_open_files() {
        Ok(most) => tracing::debug!(most, "files that may be open"),
        Err(error) => tracing::warn!(%error, "the limit of open files stays as it is"),
    }
    let apart = Apart::start()?;
    let start = Start { settings, document, set_verbosity, watchdog, apart: apart.handle() };
    let ended = run_system(|| serve(start, customise));
    apart.end();
    logging::flush();
    ended?
}

fn settings(flags: &Flags, config: NodeConfig) -> Result<Settings> {
    if !host_linux::is_root() {
        bail!("bosun run must be root: it makes cgroups and mounts (try: sudo bosun run ...)");
    }
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

fn connect(config: &node_config::Runtime) -> Result<CriClient> {
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
            leave(2, format!("the kernel gave up (last: {last}), leaving the rest to systemd"));
        })),
        watchdog: Some(Watchdog {
            limit: BLOCKED_LIMIT,
            on_blocked: Arc::new(|blocked| {
                leave(3, format!("a thread of actors is blocked for good ({blocked:?}), leaving the rest to systemd"));
            }),
        }),
        ..KernelConfig::default()
    })
}

/// Ends the process soon, whatever else hangs in it: the last words have a while, on a thread of their own.
fn leave(code: i32, why: String) {
    let (gone, said) = std::sync::mpsc::channel::<()>();
    let words = std::thread::Builder::new().name("last-words".to_owned()).spawn(move || {
        let _until_the_end = gone;
        tracing::error!("{why}");
        logging::flush();
    });
    if words.is_ok() {
        let _in_time = said.recv_timeout(LAST_WORDS);
    }
    std::process::exit(code);
}

/// What `/healthz` of the server and the service watchdog look at: nothing of the runtime and the API server, both of which may be late.
fn checks(kernel: &Kernel, accepting: &Accepting) -> Checks {
    // Each failure is told by the check that it belongs to, with its own words.
    let of = |blocking: bool| {
        let kernel = kernel.clone();
        move || match kernel.health() {
            Err(why) if blocking == matches!(why, Unhealthy::StandsStill { .. }) => Err(why.to_string()),
            _ => Ok(()),
        }
    };
    let accepting = accepting.clone();
    // Whoever logs never waits for whoever reads the log.
    let checks = Checks::default().with("log", || Ok(())).with("syncloop", of(false)).with("blocking", of(true));
    checks.with("server", move || accepting.check())
}

/// What the node starts with.
struct Start {
    settings: Settings,
    document: serde_json::Map<String, serde_json::Value>,
    set_verbosity: logging::SetVerbosity,
    watchdog: Option<Duration>,
    /// Where callers are served and health is told, whatever the actors are at.
    apart: tokio::runtime::Handle,
}

async fn serve(start: Start, customise: impl FnOnce(Builder) -> Builder) -> Result<ExitCode> {
    let Start { mut settings, document, set_verbosity, watchdog, apart } = start;
    let mut signals = systemd::Signals::listen()?;
    let link = cluster::link(&settings.flags, &settings.config)?;
    settings.certificates = Certificates {
        client: link.as_ref().map(|l| l.client.clone()).unwrap_or_default(),
        serving: cluster::serving(&settings.config.server.tls, &settings.node_name, link.is_some()),
    };
    let info = LinuxInfo::new();
    let cgroups = LinuxCgroups::detect()?;
    host::check(&settings.config, &cgroups, || info.swap_total_bytes())?;
    let kernel = kernel();
    traces::start(settings.config.tracing.as_ref(), &settings.node_name, kernel.clock().clone(), &apart);
    let accepting = Accepting::default();
    let checks = checks(&kernel, &accepting);
    show_health(&settings.config.healthz, &checks, &apart);
    host::make_dirs(&settings)?;
    let journal = open_journal(&settings.root_dir, &kernel)?;
    let client = connect(&settings.config.runtime)?;
    let words = tokio::select! {
        words = handshake(&client) => words?,
        why = signals.next() => {
            tracing::info!(signal = why, "stopping before the runtime has answered");
            return Ok(ExitCode::SUCCESS);
        }
    };
    let (stats, alarm) = (host_linux::LinuxStats::new(&cgroups), host_linux::KernelMemoryAlarm::new(&cgroups));
    let cgroups = with_driver(cgroups, words.cgroup_driver, &mut settings, &apart);
    host::check_reserved(&settings.config, settings.cgroup_driver, &*cgroups)?;
    host::warn_of_memory_qos(&settings, &*cgroups, &info);
    let mut machine = Machine::read(&settings, &info, &*cgroups, &LinuxFs)?;
    machine.memory_may_swap =
        info.swap_total_bytes()? > 0 && !host_linux::mounts::keeps_memory_off_swap(&settings.root_dir);
    let forgiving =
        settings.config.feature_gates.enabled("KubeletInUserNamespace") && host_linux::sysctl::in_user_namespace();
    tunables::settle(&settings.flags.sysctl_dir, settings.config.host.protect_kernel_defaults, forgiving)?;
    let socket = settings.flags.socket.clone();
    let listener = serving::on(&apart, async { server::local::listen(&socket, accepting.clone()) }).await;
    let listener = listener.with_context(|| format!("{}", socket.display()))?;
    let ports = ports_to(&kernel, link.as_ref(), client, (cgroups, stats, alarm), journal.clone(), &apart);
    if settings.faults {
        kernel.faults().enable();
    }
    let builder = customise(Node::builder(settings.clone(), machine, ports.clone()));
    let (builder, places) = builder.places(&settings.managers, kernel.clock());
    let crew = builder.wiring().crew();
    let (runtime, api, known) = (ports.runtime, ports.api, checks.clone());
    let parts = http::Parts { settings, kernel, crew, runtime, api, checks: known, accepting, document, set_verbosity };
    // Before any pod is touched: a port that is taken ends the daemon.
    let servers = serving::on(&apart, http::Servers::open(&parts)).await?;
    let node = builder.start(&parts.kernel);
    if parts.settings.config.host.iptables_util_chains {
        for family in [Family::V4, Family::V6] {
            tokio::spawn(iptables::keep(host_linux::IptablesProgram, family));
        }
    }
    log_start(&parts.settings, &words);
    let views = Views { managers: Some(Arc::new(places)), ..node.views(parts.settings.faults) };
    let serving = servers.serve(listener, views, &apart);
    systemd::ready(checks, watchdog, &apart);
    let code = until_the_end(&node, link, &mut signals).await;
    signals.stopping();
    node.stop().await;
    serving.end().await;
    finish_writes(&parts.kernel, journal);
    let _gone = std::fs::remove_file(&socket);
    Ok(code)
}

/// Over the cgroup tree of this machine.
type Counters = (Arc<dyn CgroupFs>, host_linux::LinuxStats, host_linux::KernelMemoryAlarm);

/// The world as it is.
fn ports_to(
    kernel: &Kernel,
    cluster: Option<&cluster::Link>,
    runtime: CriClient,
    (cgroups, stats, alarm): Counters,
    journal: Arc<RedbJournal>,
    apart: &tokio::runtime::Handle,
) -> Ports {
    let prober = Arc::new(net_prober::Prober::new());
    let plugins = Arc::new(csi_client::CsiClient::new());
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
        api: cluster.map(|l| l.api.clone()),
        bootstrap_api: cluster.and_then(|l| l.bootstrap.clone()),
    }
}

/// The journal; lines that are written behind come to disk on the threads that the kernel has for it.
fn open_journal(root_dir: &Path, kernel: &Kernel) -> Result<Arc<RedbJournal>> {
    let journal = Arc::new(RedbJournal::open(&root_dir.join("bosun/journal.redb"))?);
    let (effects, here) = (kernel.effects("journal"), tokio::runtime::Handle::current());
    let of = Arc::downgrade(&journal);
    journal.flush_by(move |after| {
        let (effects, of) = (effects.clone(), of.clone());
        here.spawn(async move {
            tokio::time::sleep(after).await;
            if let Some(journal) = of.upgrade() {
                effects.start(Class::Journal, move || journal.flush());
            }
        });
    });
    Ok(journal)
}

/// What stopped actors began to write is written.
fn finish_writes(kernel: &Kernel, journal: Arc<RedbJournal>) {
    kernel.effects("journal").start(Class::Journal, move || journal.flush());
    if !kernel.settle_blocking(LAST_WRITES) {
        tracing::warn!("the journal or the host's files hang; going all the same");
    }
}

fn log_start(settings: &Settings, words: &cri_client::Handshake) {
    let manifests = settings.config.sources.static_pod_path.as_ref().map(|p| p.display().to_string());
    let (runtime, version) = (&words.runtime_name, &words.runtime_version);
    tracing::info!(node = settings.node_name, runtime, version, manifests, "node is up");
}

fn show_health(config: &node_config::Healthz, checks: &Checks, apart: &tokio::runtime::Handle) {
    if let Some(port) = config.port {
        let address = (config.bind_address, port).into();
        apart.spawn(server::healthz::serve(address, checks.clone()));
    }
}

/// The runtime's own driver wins over the configured one.
fn with_driver(
    cgroups: LinuxCgroups,
    of_runtime: Option<CgroupDriver>,
    settings: &mut Settings,
    apart: &tokio::runtime::Handle,
) -> Arc<dyn CgroupFs> {
    settings.cgroup_driver = of_runtime.unwrap_or(settings.cgroup_driver);
    match settings.cgroup_driver {
        CgroupDriver::Systemd => Arc::new(SystemdCgroups::new(cgroups, apart.clone())),
        CgroupDriver::Cgroupfs => Arc::new(cgroups),
    }
}

/// Waits for a signal, or for credentials that can only be had by a new start.
async fn until_the_end(node: &Node, link: Option<cluster::Link>, signals: &mut systemd::Signals) -> ExitCode {
    let certificates = node.wiring().value();
    let spent = async {
        match link {
            Some(link) => link.keep_credentials(certificates).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        why = signals.next() => {
            tracing::info!(signal = why, "stopping; pods go on running");
            ExitCode::SUCCESS
        }
        (why, code) = spent => {
            tracing::error!(why, "stopping, to be started anew; pods go on running");
            code
        }
    }
}
