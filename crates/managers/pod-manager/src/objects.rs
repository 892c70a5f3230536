//! Objects of pods are followed from before their workers start until these are finished.

use std::sync::Arc;

use actor::Ctx;
use contract::objects::{HoldObjects, ReleaseObjects};
use contract::pod_worker::WorkerPhase;
use model::PodUid;
use model::core::Pod;

use crate::actor::PodManager;

impl PodManager {
    /// Has the pod's objects read while its worker makes cgroup and folders. A word that gets lost costs a moment: the worker
    /// says it again.
    pub(crate) fn hold_objects(&mut self, pod: &Arc<Pod>) {
        if self.tools.deps.api.is_none() || model::pod::is_static(pod) {
            return;
        }
        self.held.insert(model::pod::uid(pod));
        if let Err(error) = self.tools.crew.tell(HoldObjects { pod: pod.clone() }) {
            tracing::debug!(uid = %model::pod::uid(pod), %error, "objects are not followed yet, the worker will ask");
        }
    }

    /// Lets go what pods held that are through.
    pub(crate) fn release_objects(&mut self, ctx: &mut Ctx<Self>) {
        let through = |uid: &PodUid| match self.tools.workers.get(uid) {
            Some(worker) => worker.phase == WorkerPhase::Finished,
            None => self.pod(uid).is_none() && !self.driven.contains(uid),
        };
        let through: Vec<PodUid> = self.held.iter().filter(|uid| through(uid)).cloned().collect();
        for uid in through {
            self.held.remove(&uid);
            let (crew, message) = (self.tools.crew.clone(), ReleaseObjects { uid: uid.clone() });
            ctx.run(async move { crew.ask(message).await }, move |act, answer, _ctx| {
                if answer.is_err() {
                    // Next round; unless the UID has begun another life.
                    act.held.insert(uid);
                }
            });
        }
    }
}
