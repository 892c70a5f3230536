//! SyncPod: make the pod run as its specification says (pod-lifecycle 3.1, 4.6).

use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::Arc;

use contract::cgroup::{EnsurePodCgroup, PodCgroupRow};
use contract::probe::{PodProbes, StartProbes};
use contract::runtime::RuntimeInfo;
use contract::status::StatusEntry;
use contract::volume::{ATTACH_LIMIT, MakePodDirs, MountVolumes, MountedVolumes};
use futures::future::{Either, select};
use metrics::pods;
use model::ContainerId;
use model::core::PodStatus;
use model::event::EventType;
use model::history::What;
use model::runtime::{ContainerState, PodObservation};
use pod_plan::{Gates, PlanInput, PodPlan, ProbeResults};

use crate::job::{Failure, Job, Retry};
use crate::measure;
use crate::memo::{Over, Prepared};
use crate::status::probe_results;

/// How a good sync ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Synced {
    /// The pod runs as it should, as far as it can now.
    Settled,
    /// Something was done: another sync follows at once.
    Acted,
    /// The pod has run to its end.
    Terminal,
}

/// The pod cannot have what it needs on this node; why.
struct Refused(String);

/// Volumes are not there: what follows for the step, and what is told of it.
struct Unmounted {
    failure: Failure,
    event: Option<(&'static str, String)>,
}

impl std::fmt::Display for Unmounted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.failure.message)
    }
}

/// Volumes that are there, or that cannot be.
type Volumes = Result<Arc<MountedVolumes>, Refused>;

impl Job {
    /// One sync. When it changed why containers wait, or a resize does, that is shown at once and not only by the next one.
    pub(crate) async fn sync(&mut self) -> Result<Synced, Failure> {
        let before = (self.memo.reasons.clone(), self.resize_error());
        let outcome = self.sync_once().await;
        if outcome.is_err() {
            self.memo.prepared = None;
        }
        if before != (self.memo.reasons.clone(), self.resize_error()) && !self.stop_asked() {
            let observed = self.observe(false).await.map_err(|e| Failure::new(e.to_string()))?;
            self.publish(self.generate(&observed, false)).await?;
        }
        outcome
    }

    async fn sync_once(&mut self) -> Result<Synced, Failure> {
        self.effects.hit("before sync").await;
        let observed = self.observe(false).await.map_err(|e| {
            let message = format!("error determining status: {}", e.go_text());
            self.event(EventType::Warning, "FailedSync", message.clone());
            Failure::new(message)
        })?;
        if self.was_over(&observed).await? {
            return Ok(Synced::Terminal);
        }
        // Marks of containers that are gone are of no use.
        self.memo.record.failed_starts.retain(|id| observed.containers.iter().any(|c| c.id.as_str() == id));
        self.note_exits(&observed);
        measure::ends(&self.pod, &observed, &mut self.memo.alive);
        if self.memo.record.started_ns == 0 {
            self.memo.record.started_ns = self.now().0;
        }
        self.note_resize(&observed).await;
        let status = Arc::new(self.generate(&observed, false));
        self.keep_counts(&status).await;
        let terminal = model::pod::is_terminal_phase(status.phase.as_deref());
        if terminal && status.reason.as_deref() == Some(pod_status::reasons::DEADLINE_EXCEEDED) {
            self.event(
                EventType::Normal,
                pod_status::reasons::DEADLINE_EXCEEDED,
                pod_status::reasons::DEADLINE_MESSAGE,
            );
        }
        let start = measure::Start { pulls: self.memo.pulls, observed: &observed };
        let before = self.crew.board::<StatusEntry>().get(&self.uid).map(|row| row.status.clone());
        measure::status(&self.pod, before.as_deref(), &status, self.now(), &start);
        self.publish(status.clone()).await?;
        if terminal {
            self.remember_end(&status).await;
            return Ok(Synced::Terminal);
        }
        self.check_network()?;
        self.check_stop()?;
        self.hold_objects();
        let (cgroup_parent, mounted) = match self.prepare(&observed, &status).await? {
            Ok(prepared) => prepared,
            Err(refused) => return self.refuse(&refused).await,
        };
        let probes = StartProbes { pod: self.pod.clone() };
        self.ask(probes).await.map_err(|e| Failure::new(format!("probe manager: {e}")))?;
        self.check_stop()?;
        self.memo.note_ends(&observed, self.clock.now());
        let plan = self.plan(&observed, pod_status::restarting_all(&status));
        self.note_plan(&plan);
        self.effects.hit("planned").await;
        let outcome = self.apply(&plan, observed.clone(), &status, &cgroup_parent, mounted).await;
        self.remove_superseded(&observed).await;
        if outcome? {
            return Ok(Synced::Acted);
        }
        if !self.memo.saved {
            // The start time outlives the daemon.
            self.save_record_soon();
        }
        Ok(Synced::Settled)
    }

    /// Whether an earlier daemon saw the end of the pod, which is told again: what the runtime has left of it may not tell.
    async fn was_over(&mut self, observed: &PodObservation) -> Result<bool, Failure> {
        let Some(over) = &self.memo.record.over else { return Ok(false) };
        match over.status_of(&self.pod).filter(|_| !observed.any_running()).cloned() {
            Some(status) => self.publish(status).await.map(|()| true),
            None => {
                // It is another pod, or runs again.
                self.memo.record.over = None;
                self.save_record().await;
                Ok(false)
            }
        }
    }

    /// The end of a static pod is on disk before anything is cleared away.
    pub(crate) async fn remember_end(&mut self, status: &PodStatus) {
        if let Some(over) = Over::of(&self.pod, status) {
            self.memo.record.over = Some(Box::new(over));
            self.save_record().await;
        }
    }

    /// What is told of a static pod is on disk first: after a reboot neither the runtime nor the names of logs may tell how often its
    /// init containers began.
    async fn keep_counts(&mut self, status: &PodStatus) {
        if !model::pod::is_static(&self.pod) {
            return;
        }
        let counts = pod_status::patch::counts(status);
        if counts != self.memo.record.counts {
            self.memo.record.counts = counts;
            self.save_record().await;
        }
    }

    pub(crate) fn check_stop(&self) -> Result<(), Failure> {
        if self.stop_asked() {
            return Err(Failure { message: "the pod is being stopped".to_owned(), retry: Retry::Now });
        }
        Ok(())
    }

    /// A pod that was promised devices does not start without them.
    pub(crate) fn check_claims(&self) -> Result<(), Failure> {
        let Some(claim) = container_config::claims::pod_claims(&self.pod).first().copied() else { return Ok(()) };
        let message = format!("Failed to prepare dynamic resources: {}", crate::config::no_driver(claim));
        self.event(EventType::Warning, "FailedPrepareDynamicResources", message.clone());
        Err(Failure::new(message))
    }

    fn check_network(&self) -> Result<(), Failure> {
        let info = self.crew.value::<RuntimeInfo>().get();
        let Err(why) = &info.network else { return Ok(()) };
        if model::pod::is_host_network(&self.pod) {
            return Ok(());
        }
        self.chronicle.failed(What::Network, "", why, self.now());
        let message = format!("network is not ready: {why}");
        self.event(EventType::Warning, "NetworkNotReady", message.clone());
        Err(Failure { message, retry: Retry::Network })
    }

    /// The pod's cgroup, objects, folders and volumes.
    async fn prepare(
        &mut self,
        observed: &PodObservation,
        status: &PodStatus,
    ) -> Result<Result<(String, Arc<MountedVolumes>), Refused>, Failure> {
        let has_cgroup = self.crew.board::<PodCgroupRow>().get(&self.uid).is_some();
        let prepared = self.memo.prepared.as_ref().filter(|_| has_cgroup);
        if let Some(p) = prepared.filter(|p| p.serves(&self.pod, self.clock.now())) {
            return Ok(Ok((p.cgroup_parent.clone(), p.mounted.clone())));
        }
        let now = self.clock.now();
        let last = self.memo.prepared.as_ref().filter(|p| p.volumes_serve(&self.pod, now));
        let (mounted_at, last) = last.map_or((now, None), |p| (p.mounted_at, Some(p.mounted.clone())));
        let (cgroup_parent, volumes) = self.cgroup_and_volumes(observed, status, last).await?;
        let mounted = match volumes {
            Ok(mounted) => mounted,
            Err(refused) => return Ok(Err(refused)),
        };
        self.memo.prepared = Some(Prepared {
            at: self.clock.now(),
            mounted_at,
            pod: self.pod.clone(),
            cgroup_parent: cgroup_parent.clone(),
            mounted: mounted.clone(),
        });
        Ok(Ok((cgroup_parent, mounted)))
    }

    /// Neither needs the other. Without the cgroup nobody waits for the volumes, and what is told is why there is none. `last`: volumes
    /// that serve still.
    async fn cgroup_and_volumes(
        &self,
        observed: &PodObservation,
        status: &PodStatus,
        last: Option<Arc<MountedVolumes>>,
    ) -> Result<(String, Volumes), Failure> {
        let volumes = async { Ok(self.during(What::Volumes, "", self.prepare_volumes(last)).await) };
        let (cgroup_parent, volumes) = futures::future::try_join(self.ensure_cgroup(observed, status), volumes).await?;
        let volumes = volumes.map_err(|Unmounted { failure, event }| {
            if let Some((reason, message)) = event {
                self.event(EventType::Warning, reason, message);
            }
            failure
        })?;
        Ok((cgroup_parent, volumes))
    }

    /// LIFE-OF-A-POD 6/12: the pod's cgroup. A pod that runs without one (per-pod cgroups newly enabled) is restarted
    /// inside it.
    async fn ensure_cgroup(&self, observed: &PodObservation, status: &PodStatus) -> Result<String, Failure> {
        let present = self.crew.board::<PodCgroupRow>().get(&self.uid).is_some();
        let running =
            status.container_statuses.iter().flatten().any(|c| c.state.as_ref().is_some_and(|s| s.running.is_some()));
        self.effects.hit("before EnsurePodCgroup").await;
        let asked = self.call(EnsurePodCgroup { pod: self.pod.clone() });
        let cgroup = self.during(What::Cgroup, "", asked).await.map_err(|e| {
            let message = format!("unable to ensure pod container exists: {e}");
            self.event(EventType::Warning, "FailedCreatePodContainer", message.clone());
            Failure::new(message)
        })?;
        if !present && !cgroup.existed && running {
            tracing::info!(uid = %self.uid, "pod ran without its cgroup, its containers are started again inside it");
            self.kill_pod(observed, None).await?;
        }
        Ok(cgroup.parent)
    }

    /// LIFE-OF-A-POD 7/12: directories and volumes. What volumes are made of is fetched while the directories are made. Without these
    /// nobody waits for volumes; whatever becomes of volumes, nobody goes on while these are being made.
    async fn prepare_volumes(&self, last: Option<Arc<MountedVolumes>>) -> Result<Volumes, Unmounted> {
        if let Some(last) = last {
            self.make_dirs().await?;
            return Ok(Ok(last));
        }
        let (dirs, volumes) = (pin!(self.make_dirs()), pin!(self.mount_volumes()));
        match select(dirs, volumes).await {
            Either::Left((made, volumes)) => {
                made?;
                volumes.await
            }
            Either::Right((mounted, dirs)) => {
                dirs.await?;
                mounted
            }
        }
    }

    async fn make_dirs(&self) -> Result<(), Unmounted> {
        self.call(MakePodDirs { uid: self.uid.clone() }).await.map_err(|e| {
            let message = format!("error making pod data directories: {e}");
            Unmounted { failure: Failure::new(message.clone()), event: Some(("Failed", message)) }
        })
    }

    async fn mount_volumes(&self) -> Result<Volumes, Unmounted> {
        self.effects.hit("before MountVolumes").await;
        let mut signal = self.signal.clone();
        let asked = self.call(MountVolumes { pod: self.pod.clone() });
        let answer = tokio::select! {
            biased;
            answer = asked => answer,
            _ = signal.wait_for(|s| s.stop) => {
                let failure = Failure { message: "stopped while waiting for volumes".to_owned(), retry: Retry::Now };
                return Err(Unmounted { failure, event: None });
            }
        };
        let answer = match answer {
            Err(e) if e.refused => return Ok(Err(Refused(e.message))),
            other => other.map(Ok),
        };
        answer.map_err(|e| {
            let message = format!("Unable to attach or mount volumes: {e}");
            let event = (!e.late).then(|| ("FailedMount", message.clone()));
            Unmounted { failure: Failure::new(message), event }
        })
    }

    /// The pod cannot have its volumes on this node: it ends here, and its owner makes another one elsewhere.
    async fn refuse(&self, Refused(message): &Refused) -> Result<Synced, Failure> {
        self.event(EventType::Warning, ATTACH_LIMIT, message.as_str());
        pods::ADMISSION_REJECTIONS.with_label_values(&[pods::rejection_reason(ATTACH_LIMIT)]).inc();
        self.publish(pod_status::patch::rejected(&self.pod, ATTACH_LIMIT, message)).await?;
        Ok(Synced::Terminal)
    }

    /// LIFE-OF-A-POD 8/12: what to start and what to stop.
    fn plan(&self, observed: &PodObservation, restarting_all: bool) -> PodPlan {
        let row = self.crew.board::<PodProbes>().get(&self.uid);
        let probes = row.map_or_else(ProbeResults::default, |r| probe_results(&r));
        let active = observed.sandbox().filter(|s| s.ready).map(|s| &s.id);
        let created =
            observed.containers.iter().filter(|c| c.state == ContainerState::Created && Some(&c.sandbox) == active);
        let ids = created.map(|c| c.id.clone());
        let (failed_starts, resumable): (BTreeSet<ContainerId>, BTreeSet<ContainerId>) =
            ids.partition(|id| self.memo.record.start_failed(id));
        pod_plan::plan(&PlanInput {
            pod: &self.pod,
            observed,
            probes: &probes,
            backoff: &self.memo.record.backoff,
            ended_for: &self.memo.ended_for(self.clock.now()),
            resumable: &resumable,
            failed_starts: &failed_starts,
            actuated: &self.memo.record.actuated.iter().map(|(name, a)| (name.clone(), a.amounts)).collect(),
            pod_resized: self.memo.record.cgroup_behind,
            now: self.now(),
            restarting_all,
            gates: Gates {
                restart_all_containers: self.deps.config.restart_all_containers,
                resizable: self.deps.config.resizable,
            },
        })
    }
}
