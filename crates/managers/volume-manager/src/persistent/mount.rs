//! One try to get one volume of a driver to one pod: attached, staged, published, given to its group.

use std::collections::BTreeMap;
use std::sync::Arc;

use actor::Class;
use contract::volume::MountedVolume;
use csi_api::v1::{NodeStageVolumeRequest, VolumeCapability};
use metrics::Stopwatch;
use model::{PodUid, pod};
use volume_plan::attach::{Attachment, by_node};
use volume_plan::claim::Mode;
use volume_plan::csi::{DriverRules, check_lifecycle};
use volume_plan::data;
use volume_plan::source::{Csi, Resolved};
use volume_plan::state::Mount;

use super::calls::{self, Ability, CallFailed, Driver};
use super::files::VolumeDir;
use super::grow::Step;
use super::job::Job;
use super::one_pod::only_pod;
use super::place::Place;
use super::selinux;
use super::steps::{Steps, words};
use crate::failed::{ATTACH, Failed, GROW};
use crate::layout::PodLayout;
use crate::measure::{self, counted_of};
use crate::placed::Placed;
use crate::registry::{Part, Volumes};
use crate::spec;
use crate::task::cancelled;

mod publish;

/// A volume of a driver, with all that a try needs to know of it.
struct Try<'a> {
    job: &'a Job<'a>,
    volume: &'a Resolved,
    csi: &'a Csi,
    name: String,
    uid: PodUid,
    rules: DriverRules,
    /// What the controller that attached it tells the driver.
    attached: BTreeMap<String, String>,
    /// The SELinux context that it is mounted with; empty: none.
    context: String,
}

/// Gets the volume to the pod, as far as it can be now.
pub(crate) async fn mount(job: &Job<'_>, volume: &Resolved, csi: &Csi) -> Result<Placed, Failed> {
    let rules = calls::rules(job.tools, &csi.driver).await;
    let (name, uid) = (csi.unique_name(), pod::uid(job.pod));
    let volumes = &job.tools.deps.persistent;
    let rules = match rules {
        Ok(rules) => rules,
        // What is in place stays so while nobody can be asked.
        Err(e) => return volumes.placed(&uid, job.volume).ok_or_else(|| job.failed("SetUp", &volume.name, e)),
    };
    check_lifecycle(csi, &rules).map_err(|e| job.failed("SetUp", &volume.name, e))?;
    if !job.request.is_live() {
        return Err(job.failed("SetUp", &volume.name, cancelled().message));
    }
    let attaches = rules.attach_required && !csi.is_inline;
    let context = selinux::wanted(job, volume, &format!("kubernetes.io/csi/{}", csi.driver), rules.selinux_mount)?;
    job.want(&name, &volume.name, attaches)?;
    job.tools.post_in_use();
    let is_there = volumes.mount(&name, &Some(uid.clone())) == Mount::Present;
    let attached = if attaches && (!is_there || rules.republish) {
        match attached(job, volume, csi, &name).await {
            Ok(attached) => attached,
            Err(failed) => return volumes.placed(&uid, job.volume).ok_or(failed),
        }
    } else {
        BTreeMap::new()
    };
    Try { job, volume, csi, name, uid, rules, attached, context }.run().await
}

/// Whether the volume is attached here, and what its driver is told of that.
async fn attached(job: &Job<'_>, volume: &Resolved, csi: &Csi, name: &str) -> Result<BTreeMap<String, String>, Failed> {
    if !job.tools.config.controller_attach_detach {
        // A kubelet's own words: it does not attach volumes of drivers either.
        let why = "attaching volumes from the kubelet is not supported";
        return Err(job.failed(ATTACH, &volume.name, why));
    }
    let waits = |why: String| Failed::unattached(job.volume, why);
    let watch = Stopwatch::start();
    by_node(job.tools.node.get().node.as_deref(), name).map_err(waits)?;
    if job.tools.deps.persistent.is_newly_attached(name) {
        measure::attached((&csi.driver, csi.is_migrated), &watch);
    }
    match calls::attachment(job.tools, csi).await {
        Ok(Attachment::Done(told)) => Ok(told),
        Ok(Attachment::Waits(why)) => Err(waits(why)),
        Ok(Attachment::Failed(why) | Attachment::Exhausted(why)) | Err(why) => {
            Err(job.failed("WaitForAttach", &volume.name, why))
        }
    }
}

impl Try<'_> {
    fn volumes(&self) -> &Volumes {
        &self.job.tools.deps.persistent
    }

    async fn run(self) -> Result<Placed, Failed> {
        let layout = PodLayout::new(&self.job.tools.config.root_dir, &self.uid);
        let layout = layout.map_err(|e| self.job.failed("SetUp", &self.volume.name, e.message))?;
        let there = Place::of(&layout, self.volume);
        let there = there.map_err(|e| self.job.failed("SetUp", &self.volume.name, e))?;
        let task = self.job.task.in_turn(self.volumes().turn(&self.name)).await;
        let job = Job { task: &task, ..*self.job };
        Try { job: &job, ..self }.in_turn(there).await
    }

    /// In the volume's turn.
    async fn in_turn(mut self, there: Place) -> Result<Placed, Failed> {
        let (task, part) = (self.job.task, Some(self.uid.clone()));
        if !self.job.request.is_live() {
            return Err(self.job.failed("SetUp", &self.volume.name, cancelled().message));
        }
        self.context = selinux::agreed(self.job, self.volume, (&self.name, self.csi), &self.context).await?;
        let placed = self.placed(&there);
        let before = self.volumes().mount(&self.name, &part);
        if before == Mount::Present && !self.rules.republish {
            return Ok(placed);
        }
        if let Some(wait) = self.volumes().wait(&self.name, &part, task.clock.now()) {
            // What is there stays in use while a new word to the driver waits.
            return if before == Mount::Present { Ok(placed) } else { Err(Failed::backing_off(self.job.volume, wait)) };
        }
        match counted_of(
            words(self.volume.mode, self.csi.is_inline).operation,
            (&self.csi.driver, self.csi.is_migrated),
            self.steps(&there, &part),
        )
        .await
        {
            Ok(()) => {
                self.volumes().succeeded(&self.name, &part);
                Ok(placed)
            }
            Err((step, error)) => {
                let wait = self.volumes().failed(&self.name, &part, task.clock.now(), &error);
                if before == Mount::Present {
                    tracing::warn!(volume = self.name, error, "the driver could not be told of the volume anew");
                    return Ok(placed);
                }
                Err(self.job.failed(step, &self.volume.name, error).again_in(wait))
            }
        }
    }

    fn placed(&self, there: &Place) -> Placed {
        let read_only = self.volume.read_only;
        Placed {
            mounted: MountedVolume {
                host_path: there.host_path().to_owned(),
                read_only,
                selinux_relabel: self.context.is_empty() && !read_only,
            },
            bound: there.bound().map(ToOwned::to_owned),
            group: self.volume.group,
            republish: self.rules.republish,
            of: Arc::new(self.volume.clone()),
        }
    }

    async fn steps(&self, there: &Place, part: &Part) -> Result<(), (&'static str, String)> {
        let Steps { first, stage, find, .. } = words(self.volume.mode, self.csi.is_inline);
        only_pod(self.job, self.volume).await.map_err(|e| (first, e))?;
        let driver = Driver::of(self.job.tools, self.job.task, self.csi).await;
        let driver = driver.map_err(|e| (find.0, format!("kubernetes.io/csi: {}: {}", find.1, e.text)))?;
        // What the driver is told when it publishes is asked for while it stages. What it may publish is not written down before:
        // a pod whose volume is being staged has nothing yet, and may go.
        let (staged, told) = futures::join!(self.stage(&driver), self.told());
        self.publish(&driver, (there, part), staged.map_err(|e| (stage, e))?, told).await?;
        let Job { tools, task, pod, .. } = *self.job;
        let step = Step { tools, task, pod, volume: self.volume, at: Some(there.target()) };
        step.at_mount().await.map_err(|e| (GROW, e))?;
        // Not before: what was not let grow is not to be used.
        self.volumes().note(&self.name, part, Mount::Present);
        Ok(())
    }

    async fn blocking<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        self.job.task.blocking(Class::UserPaths, work).await
    }

    fn capability(&self, driver: &Driver<'_>) -> VolumeCapability {
        driver.capability(self.volume, self.csi, &self.context, self.told_group(driver))
    }

    /// The pod's group, where the driver itself gives volumes to groups.
    fn told_group(&self, driver: &Driver<'_>) -> Option<u32> {
        spec::fs_group(self.job.pod).filter(|_| driver.can(Ability::VolumeMountGroup))
    }

    /// Writes down what is to be done, and counts it as perhaps done from now on.
    async fn intend(&self, place: &Place, part: &Part, content: Vec<u8>) -> Result<(), String> {
        let (deps, at) = (self.job.tools.deps.clone(), place.clone());
        let request = self.job.request.clone();
        let work = move || {
            let found = at.intend(&deps, &content)?;
            if request.is_live() {
                return Ok(found);
            }
            // Who took the wish back may have looked before there was anything.
            if found { Err(cancelled().message) } else { at.remove(&deps).and(Err(cancelled().message)) }
        };
        let places = (&self.volumes().places(), &place.target().to_owned());
        let found = self.job.task.serially(places, Class::UserPaths, work).await?;
        self.volumes().intend(&self.name, part, found);
        Ok(())
    }

    /// Brings what is intended to the disk while the driver works. A loss of power in these milliseconds takes with it what the driver
    /// made in the kernel; a volume counts as present when both are done.
    async fn written_during(
        &self,
        place: &Place,
        call: impl Future<Output = Result<(), CallFailed>>,
    ) -> Result<(), CallFailed> {
        let (deps, at) = (self.job.tools.deps.clone(), place.clone());
        let (written, called) = futures::join!(self.blocking(move || at.sync(&deps)), call);
        called.and(written.map_err(CallFailed::uncertain))
    }

    /// What follows from a failed call: what the driver refused is taken back, what may be under way is not forgotten.
    async fn settle(&self, place: &Place, part: &Part, before: Mount, error: &CallFailed) {
        let mut after = self.volumes().after_failure(&self.name, part, before, error.class);
        if after == Mount::Absent {
            let (deps, at) = (self.job.tools.deps.clone(), place.clone());
            if let Err(e) = self.blocking(move || at.remove(&deps)).await {
                tracing::warn!(volume = self.name, error = e, "what the driver refused cannot be cleared away");
                after = Mount::Uncertain;
            }
        }
        self.volumes().note(&self.name, part, after);
    }

    /// Stages the volume for all pods. Answers where, when the driver stages at all.
    async fn stage(&self, driver: &Driver<'_>) -> Result<Option<String>, String> {
        if self.csi.is_inline {
            return Ok(None);
        }
        let part = None;
        let config = &self.job.tools.config;
        let dir = VolumeDir::staged(&config.root_dir, self.volume, self.csi)?;
        let content = match self.volume.mode {
            Mode::Filesystem => data::of_stage(self.csi, &self.context),
            Mode::Block => data::of_device(self.volume, self.csi, &config.node_name),
        };
        let stages = driver.can(Ability::StageUnstageVolume);
        let path = dir.target.to_string_lossy().into_owned();
        // A raw volume is published with the path in any case.
        let told = (stages || self.volume.mode == Mode::Block).then(|| path.clone());
        let (place, before) = (Place::Files(dir), self.volumes().mount(&self.name, &part));
        if before == Mount::Present {
            return Ok(told);
        }
        // Nobody else is told of it.
        let secret = self.csi.stage_secret.as_ref().filter(|_| stages);
        let secrets = calls::secret(self.job.tools, secret).await.map_err(|e| e.text)?;
        self.intend(&place, &part, content).await?;
        let call = async {
            if !stages {
                return Ok(());
            }
            let request = NodeStageVolumeRequest {
                volume_id: self.csi.handle.clone(),
                publish_context: self.attached.clone(),
                staging_target_path: path,
                volume_capability: Some(self.capability(driver)),
                secrets,
                volume_context: self.csi.attributes.clone(),
            };
            driver.stage((&self.name, &part), request).await
        };
        if let Err(e) = self.written_during(&place, call).await {
            self.settle(&place, &part, before, &e).await;
            return Err(e.text);
        }
        self.volumes().note(&self.name, &part, Mount::Present);
        Ok(told)
    }
}
