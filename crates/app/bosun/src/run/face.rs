//! The node's face: its endpoints, and the ports on which they are served.

use std::sync::Arc;

use anyhow::{Context, Result};
use axum::Router;
use contract::lookup::PodLookup;
use node_config::{AuthorizationMode, KUBERNETES_VERSION};
use ports::api::ApiServer;
use ports::runtime::ContainerRuntime;
use server::front::{Authn, Authz, Front, Limits, Listening, ReadOnly, Tls};
use server::healthz::Checks;

use super::logging::SetVerbosity;
use crate::node::Node;
use crate::settings::Settings;

mod usage;

/// What the endpoints are made of, beside the node itself.
pub(super) struct Parts {
    pub(super) settings: Settings,
    pub(super) runtime: Arc<dyn ContainerRuntime>,
    pub(super) api: Option<Arc<dyn ApiServer>>,
    pub(super) checks: Checks,
    /// The merged configuration document.
    pub(super) document: serde_json::Map<String, serde_json::Value>,
    pub(super) set_verbosity: SetVerbosity,
}

/// The endpoints and the ports that are open for them.
pub(super) struct Face {
    /// All endpoints, open to whoever reaches them.
    pub(super) endpoints: Router,
    harmless: Router,
    /// exec, attach and port-forward that are open.
    pub(super) streams: streaming::Streams,
    secure: Option<Listening>,
    read_only: Option<Listening>,
}

impl Face {
    /// Opens the ports; nothing is answered yet.
    ///
    /// # Errors
    /// A port is taken, or its settings cannot work. Both end the daemon, as they end a kubelet.
    pub(super) async fn open(parts: &Parts, node: &Node) -> Result<Self> {
        let config = &parts.settings.config;
        let numbers = numbers(parts, node);
        let told = about(parts, node);
        let streams = streaming::Streams::default();
        let mut endpoints = numbers.clone().merge(endpoints::router(told.clone()));
        if config.server.enable_debugging_handlers {
            endpoints = endpoints.merge(logs(parts, node)).merge(streaming::router(streaming::Deps {
                lookup: lookup(node),
                runtime: parts.runtime.clone(),
                settings: streaming::Settings {
                    idle_timeout: config.server.streaming_connection_idle_timeout,
                    websockets: config.feature_gates.enabled("ExtendWebSocketsToKubelet"),
                    ..streaming::Settings::default()
                },
                streams: streams.clone(),
            }));
        }
        let secure = match config.server.enable_server {
            true => Some(server::front::open(front(parts, node)).await.context(HELP)?),
            false => None,
        };
        let read_only = match config.server.read_only_port.filter(|_| config.server.enable_server) {
            Some(port) => {
                let settings = ReadOnly { address: config.address, port, limits: Limits::default() };
                Some(server::front::open_read_only(settings).await?)
            }
            None => None,
        };
        let harmless = numbers.merge(endpoints::read_only_router(told));
        Ok(Self { endpoints, harmless, streams, secure, read_only })
    }

    /// Serves on the open ports until the daemon ends.
    pub(super) fn serve(self, stop: &tokio::sync::watch::Receiver<bool>) -> Vec<tokio::task::JoinHandle<()>> {
        let ports = [(self.secure, self.endpoints), (self.read_only, self.harmless)];
        let open = ports.into_iter().filter_map(|(listening, router)| Some((listening?, router)));
        open.map(|(listening, router)| {
            let mut stop = stop.clone();
            tokio::spawn(listening.serve(router, async move { drop(stop.wait_for(|ended| *ended).await) }))
        })
        .collect()
    }
}

/// What to do when the server's settings cannot work.
const HELP: &str = "the server on --port cannot start (a node without an API server needs authentication.webhook.enabled: \
                    false and authorization.mode: AlwaysAllow, or enableServer: false)";

fn front(parts: &Parts, node: &Node) -> Front {
    let config = &parts.settings.config;
    let server = &config.server;
    Front {
        address: config.address,
        port: config.port,
        node_name: parts.settings.node_name.clone(),
        tls: Tls {
            min_version: config.tls_min_version.name().to_owned(),
            cipher_suites: config.tls_cipher_suites.clone(),
            curves: config.tls_curve_preferences.clone(),
        },
        certificates: node.handles.certificates.view.clone(),
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
    }
}

fn lookup(node: &Node) -> PodLookup {
    let handles = &node.handles;
    PodLookup {
        pods: handles.pods.view.clone(),
        status: handles.status.view.clone(),
        runtime: handles.runtime.view.clone(),
    }
}

/// Health, metrics and statistics: also on the read-only port.
fn numbers(parts: &Parts, node: &Node) -> Router {
    let stats = stats_endpoint::Deps { stats: node.handles.stats.clone() };
    let routes = server::healthz::router(parts.checks.clone());
    routes.merge(stats_endpoint::router(stats)).merge(metrics_endpoint::router(metrics(parts, node)))
}

fn metrics(parts: &Parts, node: &Node) -> metrics_endpoint::Deps {
    let (handles, config) = (&node.handles, &parts.settings.config);
    let gates = node_config::feature_gates::all().map(|gate| metrics_endpoint::FeatureGate {
        name: gate.name.to_owned(),
        stage: gate.stage.label().to_owned(),
        enabled: config.feature_gates.enabled(gate.name),
    });
    let checks = parts.checks.clone();
    metrics_endpoint::Deps {
        kernel: node.kernel(),
        lookup: lookup(node),
        workers: handles.workers.clone(),
        volumes: handles.volumes.view.clone(),
        certificates: handles.certificates.view.clone(),
        client_certificate_managed: config.rotate_certificates && parts.api.is_some(),
        serving_certificate_managed: config.server_tls_bootstrap && parts.api.is_some(),
        node_name: parts.settings.node_name.clone(),
        feature_gates: gates.collect(),
        build: build(),
        health_checks: Arc::new(move || {
            checks.each().map(|(name, result)| (name.to_owned(), result.is_ok())).collect()
        }),
        usage: Some(usage::source(handles.stats.clone())),
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
fn logs(parts: &Parts, node: &Node) -> Router {
    let split_streams = parts.settings.config.feature_gates.enabled("PodLogsQuerySplitStreams");
    container_logs::router(container_logs::Deps {
        lookup: lookup(node),
        runtime: parts.runtime.clone(),
        watch: log_files::FolderWatch::new(),
        settings: container_logs::Settings { split_streams },
    })
}

/// What the node tells about itself.
fn about(parts: &Parts, node: &Node) -> endpoints::Deps {
    let (config, server) = (&parts.settings.config, &parts.settings.config.server);
    let driver = match parts.settings.cgroup_driver {
        cgroup_values::CgroupDriver::Systemd => node_config::CgroupDriver::Systemd,
        cgroup_values::CgroupDriver::Cgroupfs => node_config::CgroupDriver::Cgroupfs,
    };
    let configz = node_config::configz(&parts.document, config, Some(driver));
    endpoints::Deps {
        lookup: lookup(node),
        runtime: parts.runtime.clone(),
        kernel: node.kernel(),
        configz: Arc::new(move || configz.clone()),
        flagz: node_config::flagz(&parts.settings.flags),
        set_verbosity: parts.set_verbosity.clone(),
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
            pod_logs_dir: config.pod_logs_dir.clone(),
            version: KUBERNETES_VERSION.trim_start_matches('v').to_owned(),
            ..endpoints::Settings::default()
        },
    }
}
