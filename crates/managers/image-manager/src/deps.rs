//! What ImageManager is made with, and what each piece of its work holds.

use std::path::PathBuf;
use std::sync::Arc;

use actor::{Class, Clock, Effects};
use contract::Crew;
use image_pull::gc::Thresholds;
use model::Timestamp;
use ports::credential::CredentialPlugin;
use ports::host::HostFs;
use ports::runtime::ImageService;
use pull_credentials::provider_config::Provider;
use pull_credentials::verification::Policy;

use crate::ages::ImageAges;
use crate::credential_cache::CredentialCache;
use crate::pull_records::{LockedRecords, PullRecords};
use crate::slots::Slots;

/// Settings.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// `registryPullQPS`; not positive: no limit.
    pub registry_qps: i32,
    /// `registryBurst`.
    pub registry_burst: i32,
    /// Root directory of the node: pull records, first place of credential files.
    pub root_dir: PathBuf,
    /// Working directory of this process, second place of credential files.
    pub working_dir: PathBuf,
    /// Home directory, third place of credential files.
    pub home: Option<PathBuf>,
    /// Credential provider plugins, in the order of their configuration.
    pub providers: Vec<Provider>,
    /// `imagePullCredentialsVerificationPolicy`; `None`: the gate `KubeletEnsureSecretPulledImages` is off.
    pub verification: Option<Policy>,
    /// When images are removed.
    pub gc: Thresholds,
}

/// What ImageManager works with.
#[derive(Clone)]
pub struct Deps {
    /// Where images are.
    pub images: Arc<dyn ImageService>,
    /// Pull slots, made once for the life of the process: pulls go on when another one has the place.
    pub slots: Slots,
    /// Files: pull records, credentials of the node.
    pub fs: Arc<dyn HostFs>,
    /// Runs plugins.
    pub plugin: Arc<dyn CredentialPlugin>,
    /// What credential plugins and files answered, made once for the life of the process.
    pub credential_cache: CredentialCache,
    /// Order among those who work on pull records, made once for the life of the process.
    pub pull_records: PullRecords,
    /// How old images are, made once for the life of the process.
    pub ages: ImageAges,
}

impl std::fmt::Debug for Deps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("image_manager::Deps")
    }
}

/// What a piece of work holds while the actor goes on.
#[derive(Clone)]
pub(crate) struct Tools {
    pub crew: Crew<contract::ImageManager>,
    pub deps: Arc<Deps>,
    pub config: Arc<Config>,
    pub clock: Clock,
    pub effects: Effects,
}

impl Tools {
    /// For records: what time it is.
    pub(crate) fn now(&self) -> Timestamp {
        Timestamp(self.clock.unix_nanos())
    }

    /// For ages: time that nobody sets.
    pub(crate) fn steady(&self) -> Timestamp {
        self.deps.ages.now(&self.clock)
    }

    /// Works on the pull records, in turn with others.
    pub(crate) async fn records<R: Send + 'static>(
        &self,
        work: impl FnOnce(&mut LockedRecords<'_>) -> R + Send + 'static,
    ) -> R {
        let (deps, config) = (self.deps.clone(), self.config.clone());
        let locked = move || work(&mut deps.pull_records.lock(&*deps.fs, &config.root_dir));
        self.effects.blocking(Class::HostFiles, locked).await
    }
}
