//! One volume that one pod is to have.

use std::path::Path;
use std::sync::Arc;

use model::core::Pod;
use model::event::{EventObject, EventType, NodeEvent};
use model::pod;

use crate::deps::Tools;
use crate::desired::MountRequest;
use crate::device_map::DeviceMap;
use crate::failed::Failed;
use crate::progress::Progress;
use crate::task::{TaskContext, cancelled};

/// One volume for one pod.
#[derive(Clone, Copy)]
pub(crate) struct Job<'a> {
    pub tools: &'a Tools,
    pub pod: &'a Arc<Pod>,
    pub request: &'a MountRequest,
    pub task: &'a TaskContext,
    /// Name in the pod.
    pub volume: &'a str,
}

impl Job<'_> {
    pub(crate) fn failed(&self, step: &'static str, name: &str, error: impl Into<String>) -> Failed {
        Failed::at(step, self.volume, name, error.into())
    }

    /// From now on the pod has a wish for the volume (`name`), which its end takes back. `of`: name of the PersistentVolume.
    ///
    /// # Errors
    /// The pod took back its wish for all of its volumes.
    pub(crate) fn want(&self, name: &str, of: &str, is_attachable: bool) -> Result<(), Failed> {
        let (volumes, of_pod) = (&self.tools.deps.persistent, (&pod::uid(self.pod), self.volume));
        let wanted = volumes.want(name, of_pod, is_attachable, || self.request.is_live());
        wanted.then_some(()).ok_or_else(|| self.failed("SetUp", of, cancelled().message))
    }

    /// Tells that a raw volume is mapped, as a kubelet does: once by the directory of all pods that have it, once by the pod's own.
    pub(crate) fn tell_mapped(&self, name: &str, map: &DeviceMap) {
        for (what, dir) in ["globalMapPath", "volumeMapPath"].into_iter().zip(map.dirs()) {
            let dir = dir.to_string_lossy();
            let message = format!("MapVolume.MapPodDevice succeeded for volume {name:?} {what} {dir:?}");
            self.tell(EventType::Normal, "SuccessfulMountVolume", message);
        }
    }

    /// Carries out `work`, which may give what is at `dir` to the pod's group, and tells of that while it takes long.
    pub(crate) async fn tell_progress<T>(&self, progress: &Progress, dir: &Path, work: impl Future<Output = T>) -> T {
        let (dir, uid) = (dir.to_string_lossy(), pod::uid(self.pod));
        let dir = dir.find(uid.as_str()).map_or(&*dir, |at| &dir[at..]);
        let tell = |message: String| {
            tracing::warn!(message);
            self.tell(EventType::Warning, "VolumePermissionChangeInProgress", message);
        };
        progress.told(&self.task.clock, dir, tell, work).await
    }

    /// Tells users of the pod.
    pub(crate) fn tell(&self, kind: EventType, reason: &'static str, message: String) {
        let object = EventObject::Pod {
            namespace: pod::namespace(self.pod).to_owned(),
            name: pod::name(self.pod).to_owned(),
            uid: pod::uid(self.pod),
            field_path: String::new(),
        };
        self.tools.crew.emit(NodeEvent { kind, reason: reason.into(), message, object });
    }
}
