//! Publishing a volume to a pod, and what is done before and after it.

use std::collections::BTreeMap;

use actor::chain;
use csi_api::TOKENS;
use csi_api::v1::NodePublishVolumeRequest;
use volume_plan::claim::Mode;
use volume_plan::csi::{GroupPolicy as DriverGroups, gives_to_group, publish_context};
use volume_plan::data;
use volume_plan::state::Mount;

use super::super::calls::{self, Ability, CallFailed, Driver};
use super::super::place::Place;
use super::super::steps::words;
use super::Try;
use crate::ownership::{GroupPolicy, give_volume};
use crate::progress::Progress;
use crate::registry::Part;
use crate::spec;
use crate::task::cancelled;

/// Secrets, and tokens that do not stand among them.
type Told = (BTreeMap<String, String>, Option<String>);

impl Try<'_> {
    /// What the driver is told when it publishes the volume: secrets, and tokens that do not stand among them.
    pub(super) async fn told(&self) -> Result<Told, CallFailed> {
        let tools = self.job.tools;
        let tokens = async {
            match self.volume.mode {
                Mode::Filesystem => calls::tokens(tools, self.job.pod, &self.rules).await,
                // As in a kubelet.
                Mode::Block => Ok(None),
            }
        };
        let secret = calls::secret(tools, self.csi.publish_secret.as_ref());
        let (mut secrets, mut tokens) = futures::try_join!(secret, tokens)?;
        if self.rules.tokens_in_secrets {
            secrets.extend(tokens.take().map(|t| (TOKENS.to_owned(), t)));
        }
        Ok((secrets, tokens))
    }

    pub(super) async fn publish(
        &self,
        driver: &Driver<'_>,
        (place, part): (&Place, &Part),
        staging: Option<String>,
        told: Result<Told, CallFailed>,
    ) -> Result<(), (&'static str, String)> {
        let (words, before) = (words(self.volume.mode, self.csi.is_inline), self.volumes().mount(&self.name, part));
        let (secrets, tokens) = told.map_err(|e| (words.publish, e.text))?;
        let request = NodePublishVolumeRequest {
            volume_id: self.csi.handle.clone(),
            publish_context: self.attached.clone(),
            staging_target_path: staging.unwrap_or_default(),
            target_path: place.target().to_string_lossy().into_owned(),
            volume_capability: Some(self.capability(driver)),
            readonly: self.volume.read_only,
            secrets,
            volume_context: publish_context(self.csi, &self.rules, self.job.pod, tokens),
        };
        let content = data::of_publish(self.volume, self.csi, &self.job.tools.config.node_name, &self.context);
        self.intend(place, part, content).await.map_err(|e| (words.publish, e))?;
        let done = match self.written_during(place, driver.publish((&self.name, part), request)).await {
            Ok(()) if before == Mount::Present => Ok(()),
            Ok(()) => self.make_usable(driver, place).await.map_err(|e| (words.usable, e)),
            Err(e) => Err((words.publish, e)),
        };
        if let Err((step, e)) = done {
            self.settle(place, part, before, &e).await;
            return Err((step, e.text));
        }
        Ok(())
    }

    /// What is left to do after a driver published a volume: one with a file system is given to the pod's group, a raw one is
    /// bound, and held open.
    async fn make_usable(&self, driver: &Driver<'_>, place: &Place) -> Result<(), CallFailed> {
        if self.volume.mode == Mode::Filesystem {
            return self.give_to_group(driver, place).await;
        }
        let (deps, at) = (self.job.tools.deps.clone(), place.clone());
        self.blocking(move || at.map(&deps)).await.map_err(CallFailed::uncertain)?;
        if let Place::Device(_, map) = place {
            self.job.tell_mapped(&self.volume.name, map);
        }
        Ok(())
    }

    /// Gives the volume to the pod's group, unless the driver does that, or nobody shall.
    async fn give_to_group(&self, driver: &Driver<'_>, place: &Place) -> Result<(), CallFailed> {
        let Some(gid) = spec::fs_group(self.job.pod) else { return Ok(()) };
        let policy: DriverGroups = self.rules.group_policy;
        if driver.can(Ability::VolumeMountGroup) || !gives_to_group(self.volume, self.csi, policy) {
            return Ok(());
        }
        let (fs, at, policy) =
            (self.job.tools.deps.fs.clone(), place.target().to_owned(), GroupPolicy::of(self.job.pod));
        let (request, progress) = (self.job.request.clone(), Progress::default());
        let walk = progress.clone();
        let work = self.blocking(move || give_volume(&*fs, &at, gid, policy, &|| request.is_live(), &walk));
        match self.job.tell_progress(&progress, place.target(), work).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(CallFailed::uncertain(cancelled().message)),
            Err(e) => {
                let text = format!("applyFSGroup failed for vol {}: {}", self.csi.handle, chain(&e));
                Err(CallFailed::uncertain(text))
            }
        }
    }
}
