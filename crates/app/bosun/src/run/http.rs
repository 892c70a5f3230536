//! The node's HTTP servers: its endpoints, and the ports on which they are served.

use std::sync::Arc;
use std::time::Duration;

use actor::Kernel;
use anyhow::Result;
use axum::Router;
use contract::lookup::PodLookup;
use contract::{Crew, Server};
use node_config::{AuthorizationMode, KUBERNETES_VERSION};
use ports::api::ApiServer;
use ports::runtime::ContainerRuntime;
use server::front::{Authn, Authz, Front, Limits, Listening, ReadOnly, ServeError, Tls};
use server::healthz::Checks;
use server::listener::{Accepting, Listener};
use server::local::Views;
use streaming::Streams;
use tokio::net::UnixListener;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::logging::SetVerbosity;
use crate::settings::Settings;

mod usage;

/// What the endpoints are made of, beside the node itself.
pub(super) struct Parts {
    pub(super) settings: Settings,
    pub(super) kernel: Kernel,
    pub(super) crew: Crew<Server>,
    pub(super) runtime: Arc<dyn ContainerRuntime>,
    pub(super) api: Option<Arc<dyn ApiServer>>,
    pub(super) checks: Checks,
    /// Where it shows that a port takes nobody.
    pub(super) accepting: Accepting,
    pub(super) told: Told,
}

/// What the node tells of itself, and takes, that no board has.
pub(super) struct Told {
    /// The merged configuration document.
    pub(super) document: serde_json::Map<String, serde_json::Value>,
    pub(super) set_verbosity: SetVerbosity,
    /// What managers in other processes have counted.
    pub(super) counted: metrics_endpoint::Elsewhere,
}

/// The endpoints, and the ports that are open for them.
pub(super) struct Servers {
    /// For callers of the port.
    offered: Router,
    /// For callers of the local socket: root, whatever the configuration switches off for others.
    local: Router,
    harmless: Router,
    streams: Streams,
    secure: Option<Listening>,
    read_only: Option<Listening>,
}

impl Servers {
    /// Opens the ports; nothing is answered yet.
    ///
    /// # Errors
    /// A port is taken, or its settings cannot work. Both end the daemon, as they end a kubelet.
    pub(super) async fn open(parts: &Parts) -> Result<Self> {
        let config = &parts.settings.config;
        let streams = Streams::default();
        let secure = match config.server.enable_server {
            true => Some(server::front::open(front(parts)).await.map_err(explained)?),
            false => None,
        };
        let read_only = match config.server.read_only_port.filter(|_| config.server.enable_server) {
            Some(port) => {
                let (address, limits) = (config.server.address, Limits::default());
                let settings = ReadOnly { address, port, limits, accepting: parts.accepting.clone() };
                Some(server::front::open_read_only(settings).await?)
            }
            None => None,
        };
        Ok(Self {
            offered: all(parts, &streams, config.server.enable_debugging_handlers),
            local: all(parts, &streams, true),
            harmless: numbers(parts).merge(endpoints::read_only_router(about(parts))),
            streams,
            secure,
            read_only,
        })
    }

    /// Serves on the open ports and the local socket.
    pub(super) fn serve(self, local: Listener<UnixListener>, views: Views, apart: &Handle) -> Serving {
        let (stop, stopped) = watch::channel(false);
        let end = || {
            let mut stopped = stopped.clone();
            async move { drop(stopped.wait_for(|ended| *ended).await) }
        };
        let mut tasks = JoinSet::new();
        tasks.spawn_on(server::local::serve(local, views, self.local, end()), apart);
        for (listening, router) in [(self.secure, self.offered), (self.read_only, self.harmless)] {
            if let Some(listening) = listening {
                tasks.spawn_on(listening.serve(router, end()), apart);
            }
        }
        Serving { tasks, stop, streams: self.streams }
    }
}

/// Ports that are served.
pub(super) struct Serving {
    tasks: JoinSet<()>,
    stop: watch::Sender<bool>,
    streams: Streams,
}

impl Serving {
    /// Takes nobody new and gives those who are there a moment to let go.
    pub(super) async fn end(mut self) {
        let _nobody_left = self.stop.send(true);
        let all_ended = async {
            self.streams.close().await;
            while self.tasks.join_next().await.is_some() {}
        };
        if tokio::time::timeout(PATIENCE, all_ended).await.is_err() {
            tracing::warn!("a client of the node's endpoints did not let go");
        }
    }
}

/// How long clients get to let go when the daemon ends.
const PATIENCE: Duration = Duration::from_secs(3);

/// What to do when nobody could be asked who may do what.
fn explained(error: ServeError) -> anyhow::Error {
    let standalone = matches!(error, ServeError::NoClientForAuthentication | ServeError::NoClientForAuthorization);
    let error = anyhow::Error::new(error);
    if !standalone {
        return error;
    }
    error.context(
        "the server on --port needs an API server to ask (--kubeconfig); without one set enableServer: false, or \
         authentication.webhook.enabled: false and authorization.mode: AlwaysAllow",
    )
}

/// Every endpoint; `debugging`: also those that reach into containers.
fn all(parts: &Parts, streams: &Streams, debugging: bool) -> Router {
    let config = &parts.settings.config;
    let mut told = about(parts);
    told.settings.enable_debugging_handlers = debugging;
    let routes = numbers(parts).merge(endpoints::router(told));
    if !debugging {
        return routes;
    }
    let views = Views::new(&parts.crew, parts.kernel.clone(), parts.settings.node_name.clone());
    let views = Views { cluster: parts.settings.flags.kubeconfig.is_some(), ..views };
    let stands = server::local::stands_router(views);
    routes.merge(logs(parts)).merge(stands).merge(streaming::router(streaming::Deps {
        lookup: PodLookup::new(&parts.crew),
        runtime: parts.runtime.clone(),
        settings: streaming::Settings {
            idle_timeout: config.server.streaming_connection_idle_timeout,
            websockets: config.feature_gates.enabled("ExtendWebSocketsToKubelet"),
            ..streaming::Settings::default()
        },
        streams: streams.clone(),
    }))
}

fn front(parts: &Parts) -> Front {
    let config = &parts.settings.config;
    let server = &config.server;
    Front {
        address: config.server.address,
        port: config.server.port,
        node_name: parts.settings.node_name.clone(),
        tls: Tls {
            min_version: config.server.tls.min_version.name().to_owned(),
            cipher_suites: config.server.tls.cipher_suites.clone(),
            curves: config.server.tls.curve_preferences.clone(),
        },
        certificates: parts.crew.value(),
        authn: Authn {
            client_ca_file: server.authentication.client_ca_file.clone(),
            webhook: server.authentication.webhook,
            cache_ttl: server.authentication.webhook_cache_ttl,
            anonymous: server.authentication.anonymous,
        },
        authz: match server.authorization.mode {
            AuthorizationMode::AlwaysAllow => Authz::AlwaysAllow,
            AuthorizationMode::Webhook => Authz::Webhook {
                allowed_ttl: server.authorization.cache_authorized_ttl,
                denied_ttl: server.authorization.cache_unauthorized_ttl,
            },
        },
        fine_grained: config.feature_gates.enabled("KubeletFineGrainedAuthz"),
        api: parts.api.clone(),
        limits: Limits::default(),
        accepting: parts.accepting.clone(),
    }
}

/// Health, metrics and statistics: also on the read-only port.
fn numbers(parts: &Parts) -> Router {
    let stats = stats_endpoint::Deps { crew: parts.crew.clone(), effects: parts.kernel.effects("stats-endpoint") };
    let routes = server::healthz::router(parts.checks.clone());
    routes.merge(stats_endpoint::router(stats)).merge(metrics_endpoint::router(metrics(parts)))
}

fn metrics(parts: &Parts) -> metrics_endpoint::Deps {
    let (crew, config) = (&parts.crew, &parts.settings.config);
    let gates = node_config::feature_gates::all().map(|gate| metrics_endpoint::FeatureGate {
        name: gate.name.to_owned(),
        stage: gate.stage.label().to_owned(),
        enabled: config.feature_gates.enabled(gate.name),
    });
    let checks = parts.checks.clone();
    metrics_endpoint::Deps {
        kernel: parts.kernel.clone(),
        lookup: PodLookup::new(&parts.crew),
        workers: crew.board(),
        volumes: usage::volumes(crew.clone()),
        plugins: crew.board(),
        certificates: crew.value(),
        client_certificate_managed: config.api.rotate_certificates && parts.api.is_some(),
        serving_certificate_managed: config.server.tls.bootstrap && parts.api.is_some(),
        node_name: parts.settings.node_name.clone(),
        feature_gates: gates.collect(),
        build: build(),
        health_checks: Arc::new(move || {
            checks.each().map(|(name, result)| (name.to_owned(), result.is_ok())).collect()
        }),
        elsewhere: Some(parts.told.counted.clone()),
        usage: Some(usage::source(crew.clone())),
    }
}

fn build() -> metrics_endpoint::BuildInfo {
    let mut parts = KUBERNETES_VERSION.trim_start_matches('v').split('.');
    let mut next = || parts.next().unwrap_or_default().to_owned();
    let (major, minor) = (next(), next());
    let arch = model::node::go_architecture(std::env::consts::ARCH);
    metrics_endpoint::BuildInfo {
        major,
        minor,
        git_version: KUBERNETES_VERSION.to_owned(),
        compiler: "rustc".to_owned(),
        platform: format!("linux/{arch}"),
        ..metrics_endpoint::BuildInfo::default()
    }
}

/// Logs of containers.
fn logs(parts: &Parts) -> Router {
    let split_streams = parts.settings.config.feature_gates.enabled("PodLogsQuerySplitStreams");
    container_logs::router(container_logs::Deps {
        lookup: PodLookup::new(&parts.crew),
        runtime: parts.runtime.clone(),
        effects: parts.kernel.effects("container-logs"),
        clock: parts.kernel.clock().clone(),
        watch: log_files::FolderWatch::new(),
        settings: container_logs::Settings { split_streams },
    })
}

/// What the node tells about itself.
fn about(parts: &Parts) -> endpoints::Deps {
    let (config, server) = (&parts.settings.config, &parts.settings.config.server);
    let configz = node_config::configz(&parts.told.document, config, Some(parts.settings.cgroup_driver));
    endpoints::Deps {
        lookup: PodLookup::new(&parts.crew),
        runtime: parts.runtime.clone(),
        kernel: parts.kernel.clone(),
        effects: parts.kernel.effects("endpoints"),
        configz: Arc::new(move || configz.clone()),
        flagz: node_config::flagz(&parts.settings.flags),
        set_verbosity: parts.told.set_verbosity.clone(),
        settings: endpoints::Settings {
            enable_debugging_handlers: server.enable_debugging_handlers,
            enable_system_log_handler: server.enable_system_log_handler,
            enable_system_log_query: server.enable_system_log_query && config.feature_gates.enabled("NodeLogQuery"),
            enable_profiling_handler: server.enable_profiling_handler,
            enable_debug_flags_handler: server.enable_debug_flags_handler,
            container_checkpoint: config.feature_gates.enabled("ContainerCheckpoint"),
            component_statusz: config.feature_gates.enabled("ComponentStatusz"),
            component_flagz: config.feature_gates.enabled("ComponentFlagz"),
            root_dir: parts.settings.root_dir.clone(),
            pod_logs_dir: config.pods.logs_dir.clone(),
            version: KUBERNETES_VERSION.trim_start_matches('v').to_owned(),
            ..endpoints::Settings::default()
        },
    }
}
