//! SyncTerminatingPod, SyncTerminatingRuntimePod, SyncTerminatedPod (pod-lifecycle 3.2 to 3.4).

use std::sync::Arc;

use contract::cgroup::RemovePodCgroup;
use contract::pod_worker::KillRequest;
use contract::probe::StopProbes;
use contract::runtime::StopContainer;
use contract::status::TerminatePod;
use contract::volume::{ReleaseUserNamespace, UnmountVolumes};
use futures::future::join_all;
use model::core::{Pod, PodStatus};
use model::event::EventType;
use model::history::What;
use model::runtime::{ContainerState, PodObservation};
use model::userns::has_own_users;
use pod_plan::grace::stop_seconds;
use pod_status::patch::Disruption;

use crate::job::{Failure, Job};

impl Job {
    /// Stops the pod's containers and fixes its final status.
    pub(crate) async fn terminate(&mut self, grace_s: i64, kill: &KillRequest) -> Result<(), Failure> {
        self.stage.set("the runtime to tell what runs");
        self.effects.hit("before terminate").await;
        // Nothing is started any more, so nothing waits: the status tells how containers really ended.
        self.memo.reasons.clear();
        let observed = self.observe(false).await.map_err(|e| {
            let message = format!("error determining status: {}", e.go_text());
            self.event(EventType::Warning, "FailedSync", message.clone());
            Failure::new(message)
        })?;
        let status = self.ended(self.generate(&observed, false), kill);
        self.stage.set("its status to be taken");
        self.publish(status).await?;
        self.stage.set("its probes to stop");
        self.stop_probes(true).await?;
        self.stage.set("its containers and sandboxes to stop");
        self.during(What::Stop, "", self.kill_pod(&observed, Some(grace_s))).await.inspect_err(|e| {
            self.event(EventType::Warning, "FailedKillPod", format!("error killing pod: {}", e.message));
        })?;
        self.stage.set("its probes to stop");
        self.stop_probes(false).await?;
        self.stage.set("the runtime to tell how containers ended");
        // What was alive has been stopped by calls, and their answers brought a look at all of the pod.
        let force = !observed.is_alive();
        let after = self.observe(force).await.map_err(|e| Failure::new(format!("error reading final status: {e}")))?;
        self.note_exits(&after);
        crate::measure::ends(&self.pod, &after, &mut self.memo.alive);
        if after.any_running() {
            return Err(Failure::new("detected running containers after a successful KillPod, CRI violation"));
        }
        let status = self.ended(self.generate(&with_ips(&after, &observed), true), kill);
        self.stage.set("its status to be taken");
        self.publish(status).await?;
        self.effects.hit("after terminate").await;
        Ok(())
    }

    fn ended(&self, mut status: PodStatus, kill: &KillRequest) -> PodStatus {
        // How one ended that had ended before it was to go stays so.
        let reason = kill.reason.as_ref().filter(|_| !model::pod::is_terminal(&self.pod));
        let Some((reason, message)) = reason else { return status };
        let why = match reason.as_str() {
            "Evicted" if kill.own_fault => Some(Disruption::OverLocalStorage(message.clone())),
            "Evicted" => Some(Disruption::Evicted(message.clone())),
            "Preempting" => Some(Disruption::Preempted),
            "Terminated" => Some(Disruption::NodeShutdown),
            _ => None,
        };
        match why {
            Some(why) => pod_status::patch::disrupt(&mut status, &why, self.now()),
            None => {
                status.phase = Some("Failed".to_owned());
                status.reason = Some(reason.clone());
                status.message = Some(message.clone());
            }
        }
        status
    }

    async fn stop_probes(&self, keep_readiness: bool) -> Result<(), Failure> {
        let stop = StopProbes { uid: self.uid.clone(), keep_readiness };
        self.ask(stop).await.map_err(|e| Failure::new(format!("probe manager: {e}")))
    }

    /// Stops a pod that only the runtime knows: no hooks, no status.
    pub(crate) async fn terminate_orphan(&mut self, grace_s: i64) -> Result<(), Failure> {
        self.stage.set("the runtime to tell what runs");
        let observed = self.observe(false).await.map_err(|e| Failure::new(e.to_string()))?;
        self.stage.set("its containers and sandboxes to stop");
        let this = &*self;
        let stops = observed.containers.iter().filter(|c| c.state == ContainerState::Running).map(|c| {
            let ask = StopContainer { uid: this.uid.clone(), container: c.id.clone(), grace_s: stop_seconds(grace_s) };
            this.call(ask)
        });
        let failures: Vec<String> =
            join_all(stops).await.into_iter().filter_map(Result::err).map(|e| e.to_string()).collect();
        if !failures.is_empty() {
            return Err(Failure::new(format!("error killing pod: {}", failures.join(", "))));
        }
        self.stop_sandboxes(observed.sandboxes.iter().map(|s| s.id.clone()).collect()).await?;
        self.forget_record();
        Ok(())
    }

    /// Containers are gone: volumes, cgroup, last word on the status.
    pub(crate) async fn clean_up(&mut self, kill: &KillRequest) -> Result<(), Failure> {
        self.stage.set("the runtime to tell how containers ended");
        self.effects.hit("before clean up").await;
        let observed = self.observe(false).await.map_err(|e| Failure::new(e.to_string()))?;
        let status = Arc::new(self.ended(self.generate(&observed, true), kill));
        self.stage.set("its status to be taken");
        self.publish(status.clone()).await?;
        self.during(What::CleanUp, "", self.give_back()).await?;
        if kill.evicted {
            // Their layers and logs may be what the node is short of.
            for c in &observed.containers {
                if let Err(e) = self.remove_instance(&c.id, &c.log_path).await {
                    tracing::warn!(uid = %self.uid, container = %c.id, error = e, "a container of an evicted pod is not removed");
                }
            }
        }
        // It had ended before whoever stopped it then.
        let stays_over = self.memo.record.over.is_some() && !kill.deleted;
        if stays_over {
            self.remember_end(&status).await;
            self.chronicle.forget(&*self.deps.journal);
        }
        self.stage.set("its last status to be taken");
        let last = TerminatePod { pod: self.pod.clone() };
        self.ask(last).await.map_err(|e| Failure::new(format!("status manager: {e}")))?;
        if !stays_over {
            self.forget_record();
        }
        self.effects.hit("after clean up").await;
        Ok(())
    }

    /// Volumes, cgroup, users.
    async fn give_back(&self) -> Result<(), Failure> {
        self.stage.set("its volumes to be unmounted");
        let unmount = UnmountVolumes { uid: self.uid.clone() };
        self.call(unmount).await.map_err(|e| Failure::new(e.to_string()))?;
        self.stage.set("its cgroup to be removed");
        let remove = RemovePodCgroup { uid: self.uid.clone() };
        self.call(remove).await.map_err(|e| Failure::new(e.to_string()))?;
        if has_own_users(&self.pod) {
            self.stage.set("its users to be taken back");
            let release = ReleaseUserNamespace { uid: self.uid.clone() };
            self.call(release).await.map_err(|e| Failure::new(e.to_string()))?;
        }
        Ok(())
    }
}

/// Addresses outlive the sandbox: the last known ones stay in the final status.
fn with_ips(after: &PodObservation, before: &PodObservation) -> PodObservation {
    let mut out = after.clone();
    if out.ips.is_empty() {
        out.ips.clone_from(&before.ips);
    }
    out
}

/// What stands in for the specification of a pod that only the runtime knows.
pub(crate) fn synthetic_pod(observed: Option<&PodObservation>, uid: &model::PodUid) -> Pod {
    let mut pod = Pod::default();
    pod.metadata.uid = Some(uid.to_string());
    if let Some(o) = observed {
        pod.metadata.name = Some(o.name.clone());
        pod.metadata.namespace = Some(o.namespace.clone());
    }
    pod
}
