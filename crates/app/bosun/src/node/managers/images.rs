//! ImageManager: pulls, credentials, records, room.

use std::sync::Arc;

use contract::{Crew, ImageManager};
use image_pull::gc::Thresholds;
use node_config::{NodeConfig, PullVerification};
use pull_credentials::verification::Policy;

use super::kept::Kept;
use crate::node::{Ports, Setup};
use crate::settings::Settings;

pub(in crate::node) fn image_manager(setup: &Setup<'_, ImageManager>) {
    setup.spawn(makes_image_manager(setup.settings, setup.kept, setup.ports));
}

/// What builds it, here or in a process of its own.
pub(in crate::node) fn makes_image_manager(
    settings: &Settings,
    Kept { images: lasting, .. }: &Kept,
    ports: &Ports,
) -> impl FnMut(Crew<ImageManager>) -> image_manager::ImageManager + Send + use<> {
    let (config, flags) = (&settings.config, &settings.flags);
    let programs = flags.image_credential_provider_bin_dir.clone().unwrap_or_default();
    let deps = Arc::new(image_manager::Deps {
        images: ports.images.clone(),
        slots: lasting.slots.clone(),
        fs: ports.fs.clone(),
        plugin: Arc::new(credential_exec::ExecPlugins::new(programs)),
        credential_cache: lasting.credential_cache.clone(),
        pull_records: lasting.pull_records.clone(),
        ages: lasting.ages.clone(),
    });
    let limit = |n: u32| i32::try_from(n).unwrap_or(i32::MAX);
    let config = Arc::new(image_manager::Config {
        registry_qps: limit(config.images.registry_pull_qps),
        registry_burst: limit(config.images.registry_burst),
        root_dir: settings.root_dir.clone(),
        working_dir: std::env::current_dir().unwrap_or_default(),
        home: std::env::var_os("HOME").filter(|h| !h.is_empty()).map(Into::into),
        providers: settings.providers.clone(),
        verification: verification(config),
        gc: Thresholds {
            high_percent: config.images.gc_high_threshold_percent,
            low_percent: config.images.gc_low_threshold_percent,
            min_age: config.images.minimum_gc_age,
            max_age: config.images.maximum_gc_age.unwrap_or_default(),
        },
    });
    move |crew| image_manager::ImageManager::new(crew, config.clone(), deps.clone())
}

fn verification(config: &NodeConfig) -> Option<Policy> {
    let word = match config.images.pull_verification {
        PullVerification::NeverVerify => "NeverVerify",
        PullVerification::NeverVerifyPreloadedImages => "NeverVerifyPreloadedImages",
        PullVerification::NeverVerifyAllowlistedImages => "NeverVerifyAllowlistedImages",
        PullVerification::AlwaysVerify => "AlwaysVerify",
    };
    let on = config.feature_gates.enabled("KubeletEnsureSecretPulledImages");
    // The reader of the configuration has looked at the patterns; one that it let pass opens nothing.
    let repository = |image: &str| image_pull::reference::repository(image).map_err(|e| e.to_string());
    on.then(|| {
        Policy::parse(word, &config.images.pull_verification_allowlist, repository).unwrap_or(Policy::AlwaysVerify)
    })
}
