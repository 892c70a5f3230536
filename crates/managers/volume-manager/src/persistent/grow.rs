//! Volumes that their controllers made larger: the driver is asked to let what is on them grow, at a mount and while they are in
//! use. Nodes may not watch claims and volumes, so those in use are looked at as often as a kubelet does.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use csi_api::v1::{CapacityRange, NodeExpandVolumeRequest};
use futures::{StreamExt, stream};
use model::core::{PersistentVolume, PersistentVolumeClaim, Pod};
use model::event::{EventObject, EventType, NodeEvent};
use model::quantity::Quantity;
use model::{PodUid, Timestamp, pod};
use ports::api::{ApiExt, Throttle};
use ports::csi::{CsiError, ExpandRefusal};
use serde_json::Value;
use volume_plan::growth::{self, Ask, End, Growth, Refusal, growth};
use volume_plan::names::local_name;
use volume_plan::source::{self, Claim, Csi, Resolved, Source};
use volume_plan::state::Mount;

use super::calls::{self, Ability, Driver};
use super::files::VolumeDir;
use super::place::Place;
use super::resize;
use super::resolve::api;
use crate::deps::Tools;
use crate::layout::PodLayout;
use crate::measure::counted_of;
use crate::placed::Placed;
use crate::registry::Volumes;
use crate::task::TaskContext;

/// Volumes that the API server is asked about at the same moment.
const AT_ONCE: usize = 2;

/// A volume in use that has become larger at the API server than it is here.
#[derive(Clone, Debug)]
pub(crate) struct Outgrown {
    /// Of the volume.
    pub name: String,
    uid: PodUid,
    placed: Placed,
    to: Quantity,
}

/// The driver and the claim of a volume that can grow while it is in use.
fn growing(volume: &Resolved) -> Option<(&Csi, &Claim)> {
    match (&volume.source, &volume.claim) {
        (Source::Csi(csi), Some(claim)) if !volume.read_only => Some((csi, claim)),
        _ => None,
    }
}

/// Looks which volumes in use have outgrown what is here: one call for each.
pub(crate) async fn outgrown(tools: &Tools) -> Vec<Outgrown> {
    let Ok(api) = api(tools) else { return Vec::new() };
    let mut all = BTreeMap::new();
    for (uid, placed) in tools.deps.persistent.all_placed() {
        if let Some((csi, _)) = growing(&placed.of) {
            all.entry(csi.unique_name()).or_insert((uid, placed));
        }
    }
    let looks = all.into_iter().map(|(name, (uid, placed))| async move {
        let here = tools.deps.persistent.growing_size(&name)?;
        let to = match api.get::<PersistentVolume>(None, &placed.of.name).await {
            Ok(found) => source::size(&found),
            Err(e) => {
                tracing::debug!(volume = name, error = %e, "whether a volume grew is looked at later");
                return None;
            }
        };
        (to > here).then_some(Outgrown { name, uid, placed, to })
    });
    stream::iter(looks).buffer_unordered(AT_ONCE).filter_map(async |found| found).collect().await
}

/// Lets a volume in use grow. Answers when to try again; `None`: it has grown, or waits for its controller.
pub(crate) async fn grow(tools: &Tools, task: &TaskContext, of: &Outgrown) -> Option<Duration> {
    let volumes = &tools.deps.persistent;
    let task = &task.in_turn(volumes.turn(&of.name)).await;
    let pod = tools.deps.desired.get(&of.uid)?.pod;
    if volumes.mount(&of.name, &Some(of.uid.clone())) != Mount::Present {
        return None;
    }
    let Source::Csi(csi) = &of.placed.of.source else { return None };
    let layout = PodLayout::new(&tools.config.root_dir, &of.uid).map_err(|e| e.message);
    let place = layout.and_then(|layout| Place::of(&layout, &of.placed.of));
    let at = place.as_ref().map_or(Path::new(""), Place::target);
    let step = Step { tools, task, pod: &pod, volume: &of.placed.of, at: Some(at) };
    let work = async {
        place.as_ref().map_err(Clone::clone)?;
        step.in_use(of.to).await
    };
    let Err(error) = counted_of("volume_fs_resize", (&csi.driver, csi.is_migrated), work).await else { return None };
    let message = format!("NodeExpandVolume.NodeExpandVolume failed for volume {:?} : {error}", of.placed.of.name);
    step.tell_pod(EventType::Warning, "VolumeResizeFailed", &message);
    Some(volumes.growth_failed(&of.name, task.clock.now()))
}

/// A volume of a pod that may have to grow.
pub(crate) struct Step<'a> {
    pub tools: &'a Tools,
    pub task: &'a TaskContext,
    pub pod: &'a Pod,
    pub volume: &'a Resolved,
    /// Where the pod has it, or the disk of a local one is mounted; `None`: there is no file system that would have to grow.
    pub at: Option<&'a Path>,
}

impl Step<'_> {
    fn volumes(&self) -> &Volumes {
        &self.tools.deps.persistent
    }

    /// After a volume was published: what is on it takes the room that its PersistentVolume has.
    ///
    /// # Errors
    /// The pod is not to have it yet.
    pub(crate) async fn at_mount(&self) -> Result<(), String> {
        let (Some(name), Some(known)) = (self.name(), &self.volume.claim) else { return Ok(()) };
        if known.size >= self.volume.size {
            self.volumes().learn_size(&name, known.size);
            return Ok(());
        }
        let claim = self.claim(known).await?;
        let size = growth::size(&claim);
        if size < self.volume.size && self.volume.read_only {
            let message = format!(
                "MountVolume.NodeExpandVolume failed for volume {:?} requested read-only file system",
                self.volume.name
            );
            self.tell(&claim, EventType::Warning, "FileSystemResizeFailed", &message);
        } else if size < self.volume.size {
            self.expand(&name, claim, self.volume.size).await?;
        }
        self.volumes().learn_size(&name, size);
        Ok(())
    }

    async fn in_use(&self, to: Quantity) -> Result<(), String> {
        let Some((csi, known)) = growing(self.volume) else { return Ok(()) };
        let claim = self.claim(known).await?;
        self.expand(&csi.unique_name(), claim, to).await
    }

    /// Name of a volume that can grow here; `None`: it cannot.
    fn name(&self) -> Option<String> {
        match &self.volume.source {
            Source::Csi(csi) => Some(csi.unique_name()),
            Source::Local { .. } => Some(local_name(&self.volume.name)),
            Source::HostPath { .. } | Source::Nfs { .. } | Source::Lun(_) => None,
        }
    }

    async fn claim(&self, of: &Claim) -> Result<PersistentVolumeClaim, String> {
        let found = api(self.tools)?.get(Some(&of.namespace), &of.name).await;
        found.map_err(|e| format!("mountVolume.NodeExpandVolume get PVC failed : {e}"))
    }

    async fn expand(&self, name: &str, claim: PersistentVolumeClaim, to: Quantity) -> Result<(), String> {
        let reached = match growth(&claim, to, self.volumes().growth_has_failed(name)) {
            Growth::Reached(size) => Some(size),
            Growth::NotNow => None,
            Growth::Ask(ask) => self.ask(name, claim, &ask).await?,
        };
        if let Some(size) = reached {
            self.volumes().grew(name, size);
        }
        Ok(())
    }

    /// Asks the driver, or the host's program, and tells the claim. Answers with the size that the volume counts as having, when that changed.
    async fn ask(&self, unique: &str, mut claim: PersistentVolumeClaim, ask: &Ask) -> Result<Option<Quantity>, String> {
        if let Some(patch) = ask.begun(&claim) {
            claim = self.patch(&claim, &patch).await?;
        }
        let (refusal, error) = match self.call(ask.to).await {
            Err(refused) => refused,
            Ok(()) => {
                let (name, node) = (&self.volume.name, &self.tools.config.node_name);
                let message = format!("MountVolume.NodeExpandVolume succeeded for volume {name:?} {node}");
                self.tell(&claim, EventType::Normal, "FileSystemResizeSuccessful", &message);
                if let Some(patch) = ask.finished(&claim) {
                    let done = self.patch(&claim, &patch).await;
                    done.map_err(|e| format!("mountVolume.NodeExpandVolume update pvc status failed: {e}"))?;
                }
                return Ok(Some(ask.to));
            }
        };
        let (name, after) = (unique, ask.after(refusal));
        if let Some(told) = after.told {
            self.volumes().note_growth_failure(name);
            let now = Timestamp(self.task.clock.unix_nanos());
            if let Some(patch) = growth::failed(&claim, told, &error, now)
                && let Err(e) = self.patch(&claim, &patch).await
            {
                tracing::warn!(volume = name, error = e, "the claim is not told that its volume did not grow");
            }
        }
        match after.end {
            End::Reached => Ok(Some(ask.to)),
            End::NotInUse { reached } => {
                tracing::warn!(volume = name, error, "a volume does not grow while it is in use");
                self.volumes().note_stays(name);
                Ok(reached.then_some(ask.to))
            }
            End::Failed => Err(error),
        }
    }

    async fn patch(&self, claim: &PersistentVolumeClaim, patch: &Value) -> Result<PersistentVolumeClaim, String> {
        let name = claim.metadata.name.as_deref().unwrap_or_default();
        let namespace = claim.metadata.namespace.as_deref();
        let done = api(self.tools)?
            .patch_status::<PersistentVolumeClaim, PersistentVolumeClaim>(namespace, name, patch, Throttle::Main)
            .await;
        done.map_err(|e| format!("patchPVCStatus failed to patch PVC {name:?}: {e}"))
    }

    async fn call(&self, to: Quantity) -> Result<(), (Refusal, String)> {
        match &self.volume.source {
            Source::Csi(csi) => self.driver(csi, to).await,
            Source::Local { path, .. } => {
                // A directory and a device have what they have.
                let Some(at) = self.at else { return Ok(()) };
                let mounts = self.tools.deps.mounts.clone();
                let at = (self.tools.config.root_dir.clone(), at.to_owned());
                let grown = resize::whole(mounts, self.task, at, path.clone());
                grown.await.map_err(|e| (Refusal::Other, e))
            }
            Source::HostPath { .. } | Source::Nfs { .. } | Source::Lun(_) => Ok(()),
        }
    }

    async fn driver(&self, csi: &Csi, to: Quantity) -> Result<(), (Refusal, String)> {
        let tools = self.tools;
        if tools.drivers.get(&csi.driver).is_none() {
            return Err((Refusal::Absent, CsiError::NotRegistered(csi.driver.clone()).to_string()));
        }
        let other = |text: String| (Refusal::Other, text);
        let driver = Driver::of(tools, self.task, csi).await.map_err(|e| {
            other(format!("Expander.NodeExpand failed to check if node supports expansion : {}", e.text))
        })?;
        if !driver.can(Ability::ExpandVolume) {
            let text = format!("NodeExpand is not supported by the CSI driver {}", csi.driver);
            return Err((Refusal::Unsupported, text));
        }
        let secrets = calls::secret(tools, csi.expand_secret.as_ref()).await.map_err(|e| {
            let (namespace, name) = csi.expand_secret.clone().unwrap_or_default();
            other(format!("expander.NodeExpand failed to get NodeExpandSecretRef {namespace}/{name}: {}", e.text))
        })?;
        let staged = VolumeDir::staged(&tools.config.root_dir, self.volume, csi).map_err(other)?;
        let request = NodeExpandVolumeRequest {
            volume_id: csi.handle.clone(),
            volume_path: self.at.map(|at| at.to_string_lossy().into_owned()).unwrap_or_default(),
            capacity_range: Some(CapacityRange { required_bytes: to.value(), limit_bytes: 0 }),
            staging_target_path: staged.target.to_string_lossy().into_owned(),
            volume_capability: Some(driver.capability(self.volume, csi, "", None)),
            secrets,
        };
        let part = Some(pod::uid(self.pod));
        driver.expand((&csi.unique_name(), &part), request).await.map_err(|e| match e.expand_refusal() {
            Some(ExpandRefusal::Infeasible) => {
                (Refusal::Infeasible, format!("Expander.NodeExpand failed to expand the volume {e}"))
            }
            Some(ExpandRefusal::InUse) => {
                (Refusal::InUse, format!("Expander.NodeExpand failed to expand the volume : {e}"))
            }
            None => other(format!("Expander.NodeExpand failed to expand the volume : {e}")),
        })
    }

    fn tell_pod(&self, kind: EventType, reason: &'static str, message: &str) {
        let object = EventObject::Pod {
            namespace: pod::namespace(self.pod).to_owned(),
            name: pod::name(self.pod).to_owned(),
            uid: pod::uid(self.pod),
            field_path: String::new(),
        };
        self.tools.crew.emit(NodeEvent { kind, reason: reason.into(), message: message.to_owned(), object });
    }

    /// Tells users of the pod and of the claim.
    fn tell(&self, claim: &PersistentVolumeClaim, kind: EventType, reason: &'static str, message: &str) {
        self.tell_pod(kind, reason, message);
        let of = claim.metadata.clone();
        let object = EventObject::Claim {
            namespace: of.namespace.unwrap_or_default(),
            name: of.name.unwrap_or_default(),
            uid: of.uid.unwrap_or_default(),
            resource_version: of.resource_version.unwrap_or_default(),
        };
        self.tools.crew.emit(NodeEvent { kind, reason: reason.into(), message: message.to_owned(), object });
    }
}
