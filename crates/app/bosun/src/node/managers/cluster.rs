//! Managers that only a node of a cluster has work for.

use std::sync::Arc;

use contract::{ApiSource, CertificateManager, NodeLease, NodeManager, ObjectStore, StatusSyncer};
use model::node::go_architecture;
use node_config::feature_gates::FeatureGates;
use node_config::{ChangeDetection, KUBERNETES_VERSION};
use node_status::Plan;

use crate::node::Setup;

pub(in crate::node) fn object_store(setup: &Setup<'_, ObjectStore>) {
    let strategy = match setup.settings.config.api.change_detection {
        ChangeDetection::Get => object_store::Strategy::Get,
        ChangeDetection::Cache => object_store::Strategy::Cache,
        ChangeDetection::Watch => object_store::Strategy::Watch,
    };
    let gates = &setup.settings.config.feature_gates;
    let config = Arc::new(object_store::Config {
        strategy,
        trust_bundles: gates.enabled("ClusterTrustBundleProjection"),
        pod_certificates: gates.enabled("PodCertificateRequest"),
        node_name: setup.settings.node_name.clone(),
        ..object_store::Config::default()
    });
    let deps = Arc::new(object_store::Deps { api: setup.ports.api.clone(), cache: object_cache(setup) });
    setup.spawn(move |crew| object_store::ObjectStore::new(crew, config.clone(), deps.clone()));
}

/// Objects outlive the daemon where that is allowed and there is a server to keep them from.
fn object_cache(setup: &Setup<'_, ObjectStore>) -> object_store::ObjectCache {
    if !setup.settings.flags.object_cache || setup.ports.api.is_none() {
        return object_store::ObjectCache::default();
    }
    let key = setup.settings.root_dir.join("bosun/objects.key");
    let (journal, fs) = (setup.ports.journal.clone(), setup.ports.fs.clone());
    object_store::ObjectCache::persistent(object_store::SealedCache::new(
        journal,
        fs,
        setup.kernel.effects("object-store"),
        key,
    ))
}

pub(in crate::node) fn certificate_manager(setup: &Setup<'_, CertificateManager>) {
    let nothing: Arc<dyn ports::api::ApiServer> = Arc::new(api_client::LateApi::new("standalone: no kubeconfig"));
    let config = Arc::new(certificate_manager::Config {
        cert_dir: setup.settings.flags.cert_dir.clone(),
        node_name: setup.settings.node_name.clone(),
        client: setup.settings.certificates.client.clone(),
        serving: setup.settings.certificates.serving.clone(),
    });
    let deps = certificate_manager::Deps {
        api: setup.ports.api.clone().unwrap_or(nothing),
        bootstrap_api: setup.ports.bootstrap_api.clone(),
        fs: setup.ports.fs.clone(),
    };
    setup.spawn(move |crew| certificate_manager::CertificateManager::new(&crew, config.clone(), deps.clone()));
}

/// The actor that tells the API server what the status board says.
pub(in crate::node) fn status_syncer(setup: &Setup<'_, StatusSyncer>) {
    let Some(api) = setup.ports.api.clone() else { return };
    let deps = status_manager::SyncerDeps { api, journal: setup.ports.journal.clone() };
    let config = status_manager::SyncerConfig::default();
    setup.spawn(move |crew| status_manager::StatusSyncer::new(crew, config.clone(), deps.clone()));
}

/// The source of the API server.
pub(in crate::node) fn api_source(setup: &Setup<'_, ApiSource>) {
    let Some(api) = setup.ports.api.clone() else { return };
    let config = Arc::new(config_sources::api::Config {
        node_name: setup.settings.node_name.clone(),
        store: setup.settings.flags.pod_store,
        wait: setup.settings.flags.pod_store_wait,
        boot: boot(setup),
    });
    let deps = config_sources::api::Deps { api, journal: setup.ports.journal.clone() };
    setup.spawn(move |crew| config_sources::api::ApiSource::new(crew, config.clone(), deps.clone()));
}

fn boot(setup: &Setup<'_, ApiSource>) -> config_sources::api::Policy {
    use config_sources::api::AfterBoot;
    let flags = &setup.settings.flags;
    let boot_id = setup.ports.host.identity().boot_id;
    let after_boot = match flags.pod_store_after_boot {
        node_config::AfterBoot::Safe => AfterBoot::Safe,
        node_config::AfterBoot::All => AfterBoot::All,
        node_config::AfterBoot::None => AfterBoot::None,
    };
    config_sources::api::Policy { after_boot, max_age: flags.pod_store_max_age, boot_id }
}

pub(in crate::node) fn node_manager(setup: &Setup<'_, NodeManager>) {
    let config = &setup.settings.config;
    let manager = Arc::new(node_manager::Config {
        plan: plan(setup),
        pod_cidr: config.node.pod_cidr.clone().unwrap_or_default(),
        register: config.node.register,
        capacity: setup.machine.capacity.clone(),
        allocatable: setup.machine.allocatable.clone(),
        swap_bytes: u64::try_from(setup.machine.facts.swap_total_bytes).unwrap_or(0),
        update_every: config.node.status_update_frequency,
        report_every: config.node.status_report_frequency,
        lease_duration: config.node.lease_duration,
    });
    let deps = Arc::new(node_manager::Deps {
        api: setup.ports.api.clone(),
        host: setup.ports.host.clone(),
        images: setup.ports.images.clone(),
    });
    setup.spawn(move |crew| node_manager::NodeManager::new(crew, manager.clone(), deps.clone()));
}

pub(in crate::node) fn node_lease(setup: &Setup<'_, NodeLease>) {
    let Some(api) = setup.ports.api.clone() else { return };
    let (node, duration) = (setup.settings.node_name.clone(), setup.settings.config.node.lease_duration);
    let config = Arc::new(node_manager::LeaseConfig { node, duration });
    let deps = Arc::new(node_manager::LeaseDeps { api });
    setup.spawn(move |crew| node_manager::NodeLease::new(&crew, config.clone(), deps.clone()));
}

fn plan(setup: &Setup<'_, NodeManager>) -> Plan {
    let (config, flags) = (&setup.settings.config, &setup.settings.flags);
    let max_pods = setup.machine.capacity.get("pods").map_or(0, |q| q.value());
    Plan {
        name: setup.settings.node_name.clone(),
        hostname: setup.settings.node_name.clone(),
        labels: flags.node_labels.clone(),
        taints: config.node.register_with_taints.clone(),
        unschedulable: false,
        provider_id: config.node.provider_id.clone(),
        external_cloud: flags.external_cloud_provider,
        node_ips: flags.node_ips.clone(),
        controller_attach_detach: config.node.enable_controller_attach_detach,
        local_storage: config.node.local_storage_capacity_isolation,
        max_images: config.node.status_max_images.and_then(|n| usize::try_from(n).ok()),
        max_pods,
        port: i32::from(config.server.port),
        version: KUBERNETES_VERSION.to_owned(),
        arch: go_architecture(std::env::consts::ARCH).to_owned(),
        declared_features: declared(&config.feature_gates),
    }
}

/// What schedulers may count on, with the gate NodeDeclaredFeatures. Only what is built here is declared.
fn declared(gates: &FeatureGates) -> Option<Vec<String>> {
    const BUILT: [&str; 4] = [
        "ExtendWebSocketsToKubelet",
        "InPlacePodLevelResourcesVerticalScaling",
        "InPlacePodVerticalScalingInitContainers",
        "RestartAllContainersOnContainerExits",
    ];
    let on = |gate: &&str| gates.enabled(gate);
    gates
        .enabled("NodeDeclaredFeatures")
        .then(|| BUILT.iter().filter(|gate| on(gate)).map(|gate| (*gate).to_owned()).collect())
}
