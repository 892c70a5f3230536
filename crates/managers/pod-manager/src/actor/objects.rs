//! Objects of pods are followed from before their workers start until these are finished.

use std::sync::Arc;

use actor::Ctx;
use contract::objects::{HoldObjects, ReleaseObjects};
use contract::pod_worker::WorkerPhase;
use contract::volume::ExpectVolumes;
use model::PodUid;
use model::core::Pod;

use super::PodManager;
use crate::housekeeping::Scope;

impl PodManager {
    /// Has the pod's objects read while its worker makes cgroup and folders. A message that gets lost costs a moment: the
    /// worker sends it in each step, and is alone in that with later versions of the pod.
    pub(super) fn hold_objects(&mut self, pod: &Arc<Pod>) {
        if self.tools.deps.api.is_none() || model::pod::is_static(pod) {
            return;
        }
        self.objects_held.insert(model::pod::uid(pod));
        if let Err(error) = self.tools.crew.tell(HoldObjects { pod: pod.clone() }) {
            tracing::debug!(uid = %model::pod::uid(pod), %error, "objects are not followed yet, the worker will ask");
        }
    }

    /// Has the claims of a pod looked up while its worker makes cgroup and folders. One that is ending needs none.
    pub(super) fn expect_volumes(&self, pod: &Arc<Pod>) {
        let is_ending = model::pod::is_terminal(pod) || pod.metadata.deletion_timestamp.is_some();
        let mut volumes = pod.spec.iter().flat_map(|s| s.volumes.iter().flatten());
        let has_claims = volumes.any(|v| v.persistent_volume_claim.is_some() || v.ephemeral.is_some());
        if self.tools.deps.api.is_none() || is_ending || !has_claims {
            return;
        }
        if let Err(error) = self.tools.crew.tell(ExpectVolumes { pod: pod.clone() }) {
            tracing::debug!(uid = %model::pod::uid(pod), %error, "claims are looked up when the worker asks for them");
        }
    }

    /// Releases the objects of pods that are finished.
    pub(super) fn release_objects(&mut self, scope: &Scope, ctx: &mut Ctx<Self>) {
        let is_finished = |uid: &PodUid| match self.workers.row(uid) {
            Some(worker) => worker.phase == WorkerPhase::Finished,
            None => self.desired.pod(uid).is_none() && !self.workers.made().contains(uid),
        };
        let held = &self.objects_held;
        let finished: Vec<PodUid> = match scope {
            Scope::All => held.iter().filter(|uid| is_finished(uid)).cloned().collect(),
            Scope::Of(uids) => uids.intersection(held).filter(|uid| is_finished(uid)).cloned().collect(),
        };
        for uid in finished {
            self.objects_held.remove(&uid);
            let (crew, message) = (self.tools.crew.clone(), ReleaseObjects { uid: uid.clone() });
            ctx.run(async move { crew.ask(message).await }, move |act, answer, _ctx| {
                if answer.is_err() {
                    // Next round; unless the UID has begun another life.
                    act.housekeeping.attention.keep_open(uid.clone());
                    act.objects_held.insert(uid);
                }
            });
        }
    }
}
