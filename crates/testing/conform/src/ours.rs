//! Our own managers, in this process.

use std::path::PathBuf;
use std::sync::Arc;

use contract::{Crew, ImageManager, ProbeManager, StatusManager, VolumeManager};
use fakes::FakePlugin;
use image_pull::gc::Thresholds;
use model::Timestamp;
use net_prober::Prober;
use ports::credential::CredentialPlugin;
use ports::host::{HostFs, Mounter};
use ports::runtime::ImageService;
use pull_credentials::verification::Policy;

use crate::in_process::{Given, InProcess};
use crate::subject::Subject;

/// bosun's ProbeManager, which sends its probes over the real network.
#[must_use]
pub fn probes() -> Arc<dyn Subject<ProbeManager>> {
    let life = |given: &Given| {
        let config = probe_manager::Config::new(Timestamp(given.clock.unix_nanos()));
        let mut deps = probe_manager::Deps::new(Arc::new(Prober::new()));
        deps.journal = Some(given.journal.clone());
        move |crew: Crew<ProbeManager>| probe_manager::ProbeManager::new(crew, deps.clone(), config.clone())
    };
    Arc::new(InProcess::new("built in", life))
}

/// bosun's StatusManager.
#[must_use]
pub fn status() -> Arc<dyn Subject<StatusManager>> {
    let life = |given: &Given| {
        let journal = given.journal.clone();
        move |crew: Crew<StatusManager>| status_manager::StatusManager::new(crew).with_journal(journal.clone())
    };
    Arc::new(InProcess::new("built in", life))
}

/// bosun's ImageManager.
#[must_use]
pub fn images() -> Arc<dyn Subject<ImageManager>> {
    let life = |given: &Given| {
        let outside = &given.outside;
        image_manager(outside.image_service(), outside.files(), Arc::new(FakePlugin::default()), outside.root_dir())
    };
    Arc::new(InProcess::new("built in", life))
}

/// bosun's VolumeManager.
#[must_use]
pub fn volumes() -> Arc<dyn Subject<VolumeManager>> {
    let life = |given: &Given| {
        let files = given.outside.files();
        volume_manager(files.clone(), files, given.outside.root_dir())
    };
    Arc::new(InProcess::new("built in", life))
}

/// Builds bosun's ImageManager, with the settings that a node has by default.
pub fn image_manager(
    images: Arc<dyn ImageService>,
    fs: Arc<dyn HostFs>,
    plugin: Arc<dyn CredentialPlugin>,
    root_dir: PathBuf,
) -> impl Fn(Crew<ImageManager>) -> image_manager::ImageManager + Send + Sync + 'static {
    let deps = Arc::new(image_manager::Deps {
        images,
        slots: image_manager::Slots::new(true, None),
        fs,
        plugin,
        credential_cache: image_manager::CredentialCache::default(),
        pull_records: image_manager::PullRecords::default(),
        ages: image_manager::ImageAges::default(),
    });
    let config = Arc::new(image_manager::Config {
        registry_qps: 5,
        registry_burst: 10,
        working_dir: root_dir.clone(),
        root_dir,
        home: None,
        providers: Vec::new(),
        verification: Some(Policy::default()),
        gc: Thresholds::default(),
    });
    move |crew| image_manager::ImageManager::new(crew, config.clone(), deps.clone())
}

/// Builds bosun's VolumeManager on a node without a cluster: without claims and CSI drivers.
pub fn volume_manager(
    fs: Arc<dyn HostFs>,
    mounts: Arc<dyn Mounter>,
    root_dir: PathBuf,
) -> impl Fn(Crew<VolumeManager>) -> volume_manager::VolumeManager + Send + Sync + 'static {
    let deps = Arc::new(volume_manager::Deps {
        fs,
        mounts,
        quotas: None,
        serial: volume_manager::Serial::default(),
        desired: volume_manager::DesiredVolumes::default(),
        persistent: volume_manager::Volumes::default(),
        user_ids: volume_manager::UserIds::default(),
        api: None,
        csi: None,
    });
    let config = Arc::new(volume_manager::Config {
        root_dir,
        memory_allocatable_bytes: 8 << 30,
        node_name: "n1".to_owned(),
        controller_attach_detach: true,
        ids: volume_manager::IdRules { per_pod: 65_536, max_pods: 110 },
        ..volume_manager::Config::default()
    });
    move |crew| volume_manager::VolumeManager::new(crew, config.clone(), deps.clone())
}
