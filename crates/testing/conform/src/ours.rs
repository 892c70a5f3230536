//! Our own managers, in this process.

use std::sync::Arc;

use contract::{Crew, ImageManager, ProbeManager, StatusManager, VolumeManager};
use fakes::FakePlugin;
use image_pull::gc::Thresholds;
use model::Timestamp;
use net_prober::Prober;
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

/// bosun's ImageManager, with the settings that a node has by default.
#[must_use]
pub fn images() -> Arc<dyn Subject<ImageManager>> {
    let life = |given: &Given| {
        let deps = Arc::new(image_manager::Deps {
            images: given.outside.image_service(),
            slots: image_manager::Slots::new(true, None),
            fs: given.outside.files(),
            plugin: Arc::new(FakePlugin::default()),
            credential_cache: image_manager::CredentialCache::default(),
            pull_records: image_manager::PullRecords::default(),
            ages: image_manager::ImageAges::default(),
        });
        let config = Arc::new(image_manager::Config {
            registry_qps: 5,
            registry_burst: 10,
            root_dir: given.outside.root_dir(),
            working_dir: "/".into(),
            home: None,
            providers: Vec::new(),
            verification: Some(Policy::default()),
            gc: Thresholds::default(),
        });
        move |crew: Crew<ImageManager>| image_manager::ImageManager::new(crew, config.clone(), deps.clone())
    };
    Arc::new(InProcess::new("built in", life))
}

/// bosun's VolumeManager on a node without a cluster: without claims and CSI drivers.
#[must_use]
pub fn volumes() -> Arc<dyn Subject<VolumeManager>> {
    let life = |given: &Given| {
        let deps = Arc::new(volume_manager::Deps {
            fs: given.outside.files(),
            mounts: given.outside.files(),
            quotas: None,
            serial: volume_manager::Serial::default(),
            desired: volume_manager::DesiredVolumes::default(),
            persistent: volume_manager::Volumes::default(),
            user_ids: volume_manager::UserIds::default(),
            api: None,
            csi: None,
        });
        let config = Arc::new(volume_manager::Config {
            root_dir: given.outside.root_dir(),
            memory_allocatable_bytes: 8 << 30,
            node_name: "n1".to_owned(),
            controller_attach_detach: true,
            ids: volume_manager::IdRules { per_pod: 65_536, max_pods: 110 },
            ..volume_manager::Config::default()
        });
        move |crew: Crew<VolumeManager>| volume_manager::VolumeManager::new(crew, config.clone(), deps.clone())
    };
    Arc::new(InProcess::new("built in", life))
}
