//! `bosun run`: from flags to a running node, and back out.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use actor::{Class, Kernel, KernelConfig, Unhealthy, Watchdog, run_system};
use anyhow::{Context, Result};
use host_linux::{LinuxCgroups, LinuxInfo};
use journal::RedbJournal;
use node_config::Flags;
use ports::host::HostInfo;
use ports::iptables::Family;
use server::healthz::Checks;
use server::listener::Accepting;
use server::local::Views;

use crate::node::{Builder, Node, Ports};
use crate::own_runtime::OwnRuntime;
use crate::own_runtime::embedded::Embedded;
use crate::settings::{Certificates, Settings};

use begin::{Begun, begin};
use outside::{Counters, connect, handshake, machine, ports_to};
use serving::Apart;

mod address;
mod begin;
mod cluster;
pub(crate) mod elsewhere;
mod host;
mod http;
mod iptables;
mod logging;
mod outside;
mod serving;
mod systemd;
mod traces;
mod tunables;

/// How long the end waits for its own log line.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// For the last writes of actors that have stopped.
const LAST_WRITES: Duration = Duration::from_secs(2);
/// An actor thread that is blocked this long is beyond repair inside this process.
const BLOCKED_LIMIT: Duration = Duration::from_secs(30);

/// Runs the node until it is told to stop.
pub(crate) fn run(flags: &Flags, customise: impl FnOnce(Builder) -> Builder) -> Result<ExitCode> {
    let Begun { settings, document, set_verbosity } = begin(flags, "bosun run")?;
    let watchdog = systemd::watchdog()?;
    let _lock = flags.lock_file.as_deref().map(host::lock).transpose()?;
    let own = OwnRuntime::of_daemon(&settings.config)?;
    let own = own.map(|own| Embedded::start(own, |why| leave(4, why + ", leaving the rest to systemd"))).transpose()?;
    let apart = Apart::start()?;
    let socket = own.as_ref().map(|own| own.socket().to_owned());
    let start = Start { settings, document, set_verbosity, watchdog, own_runtime: socket, apart: apart.handle() };
    let ended = run_system(|| serve(start, customise));
    apart.end();
    if let Some(own) = own {
        own.end();
    }
    logging::flush();
    ended?
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
    /// Where the runtime within this process is served.
    own_runtime: Option<PathBuf>,
    /// Where callers are served and health is told, whatever the actors are at.
    apart: tokio::runtime::Handle,
}

async fn serve(start: Start, customise: impl FnOnce(Builder) -> Builder) -> Result<ExitCode> {
    let Start { mut settings, document, set_verbosity, watchdog, own_runtime, apart } = start;
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
    let client = connect(&settings.config.runtime, own_runtime.as_deref())?;
    let words = tokio::select! {
        words = handshake(&client) => words?,
        why = signals.next() => {
            tracing::info!(signal = why, "stopping before the runtime has answered");
            return Ok(ExitCode::SUCCESS);
        }
    };
    let counters = Counters::new(cgroups, words.cgroup_driver, &mut settings, &apart);
    host::check_reserved(&settings.config, settings.cgroup_driver, &*counters.cgroups)?;
    host::warn_of_memory_qos(&settings, &*counters.cgroups, &info);
    let machine = machine(&settings, &info, &counters)?;
    let forgiving =
        settings.config.feature_gates.enabled("KubeletInUserNamespace") && host_linux::sysctl::in_user_namespace();
    tunables::settle(&settings.flags.sysctl_dir, settings.config.host.protect_kernel_defaults, forgiving)?;
    let socket = settings.flags.socket.clone();
    let listener = serving::on(&apart, async { server::local::listen(&socket, accepting.clone()) }).await;
    let listener = listener.with_context(|| format!("{}", socket.display()))?;
    let (api, bootstrap_api) = link.as_ref().map(|l| (l.api.clone(), l.bootstrap.clone())).unzip();
    let ports = ports_to(&kernel, client, counters, journal.clone(), &apart);
    let ports = Ports { api, bootstrap_api: bootstrap_api.flatten(), ..ports };
    if settings.faults {
        kernel.faults().enable();
    }
    let builder = customise(Node::builder(settings.clone(), machine, ports.clone()));
    let (builder, places) = builder.places(&settings.managers, kernel.clock());
    let crew = builder.wiring().crew();
    let (runtime, api, known, counted) = (ports.runtime, ports.api, checks.clone(), places.counted());
    let told = http::Told { document, set_verbosity, counted };
    let parts = http::Parts { settings, kernel, crew, runtime, api, checks: known, accepting, told };
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
