//! SyncPod: bring the pod to what is wanted (pod-lifecycle 3.1, 4.6).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use contract::cgroup::{EnsurePodCgroup, PodCgroupRow};
use contract::image::EnsureImage;
use contract::probe::{PodProbes, StartProbes};
use contract::runtime::{RunPodSandbox, RuntimeInfo};
use contract::status::StatusEntry;
use contract::volume::{MakePodDirs, MountVolumes, MountedVolumes};
use cri_api::v1::{ImageSpec, PodSandboxConfig};
use model::core::{PodStatus, Secret};
use model::event::EventType;
use model::runtime::{ContainerObservation, ContainerState, PodObservation};
use model::{ContainerId, SandboxId};
use pod_plan::{ContainerKill, ContainerReset, CreateSandbox, Gates, KillReason, PlanInput, PodPlan, ProbeResults};

use crate::config::PodVolumes;
use crate::job::{Failure, Job, Retry};
use crate::kill::Victim;
use crate::measure;
use crate::start::Site;
use crate::status::{pod_ips, probe_results};

/// How a good sync ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Synced {
    /// The pod is as wanted, as far as it can be now.
    Settled,
    /// Something was done: look again soon.
    Acted,
    /// The pod has run to its end.
    Terminal,
}

impl Job {
    /// One sync. When it changed why containers wait, that is shown at once and not only by the next one.
    pub(crate) async fn sync(&mut self) -> Result<Synced, Failure> {
        let before = self.memo.reasons.clone();
        let outcome = self.sync_once().await;
        if self.memo.reasons != before && !self.stop_asked() {
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
        // Marks of containers that are gone serve nobody.
        self.memo.record.failed_starts.retain(|id| observed.containers.iter().any(|c| c.id.as_str() == id));
        measure::ends(&self.pod, &observed, &mut self.memo.alive);
        if self.memo.record.started_ns == 0 {
            self.memo.record.started_ns = self.now().0;
        }
        let status = self.generate(&observed, false);
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
            return Ok(Synced::Terminal);
        }
        self.check_network()?;
        self.check_stop()?;
        let cgroup_parent = self.ensure_cgroup(&observed, &status).await?;
        self.hold_objects().await;
        let mounted = self.prepare_volumes().await?;
        let probes = StartProbes { pod: self.pod.clone() };
        self.ask(probes).await.map_err(|e| Failure::new(format!("probe manager: {e}")))?;
        self.check_stop()?;
        self.memo.note_ends(&observed, self.clock.now());
        let plan = self.plan(&observed, pod_status::restarting_all(&status));
        self.effects.hit("planned").await;
        let outcome = self.carry_out(&plan, observed.clone(), status, &cgroup_parent, mounted).await;
        self.remove_superseded(&observed).await;
        if outcome? {
            return Ok(Synced::Acted);
        }
        if !self.memo.saved {
            // The start time outlives the daemon; kept here, where nothing waits for it.
            self.save_record().await;
        }
        Ok(Synced::Settled)
    }

    fn check_stop(&self) -> Result<(), Failure> {
        if self.stop_asked() {
            return Err(Failure { message: "the pod is being stopped".to_owned(), retry: Retry::Now });
        }
        Ok(())
    }

    /// A pod that was promised devices does not start without them.
    fn check_claims(&self) -> Result<(), Failure> {
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
        let message = format!("network is not ready: {why}");
        self.event(EventType::Warning, "NetworkNotReady", message.clone());
        Err(Failure { message, retry: Retry::Network })
    }

    /// LIFE-OF-A-POD 6/12: the pod's cgroup. A pod that runs without one (per-pod cgroups newly enabled) is restarted
    /// inside it.
    async fn ensure_cgroup(&self, observed: &PodObservation, status: &PodStatus) -> Result<String, Failure> {
        let present = self.crew.board::<PodCgroupRow>().get(&self.uid).is_some();
        let running =
            status.container_statuses.iter().flatten().any(|c| c.state.as_ref().is_some_and(|s| s.running.is_some()));
        self.effects.hit("before EnsurePodCgroup").await;
        let cgroup = self.call(EnsurePodCgroup { pod: self.pod.clone() }).await.map_err(|e| {
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

    /// LIFE-OF-A-POD 7/12: directories and volumes.
    async fn prepare_volumes(&self) -> Result<Arc<MountedVolumes>, Failure> {
        self.call(MakePodDirs { uid: self.uid.clone() }).await.map_err(|e| {
            let message = format!("error making pod data directories: {e}");
            self.event(EventType::Warning, "Failed", message.clone());
            Failure::new(message)
        })?;
        self.effects.hit("before MountVolumes").await;
        let mut signal = self.signal.clone();
        let asked = self.call(MountVolumes { pod: self.pod.clone() });
        let answer = tokio::select! {
            biased;
            answer = asked => answer,
            _ = signal.wait_for(|s| s.stop) => {
                return Err(Failure { message: "stopped while waiting for volumes".to_owned(), retry: Retry::Now });
            }
        };
        answer.map_err(|e| {
            let message = format!("Unable to attach or mount volumes: {e}");
            if !e.late {
                self.event(EventType::Warning, "FailedMount", message.clone());
            }
            Failure::new(message)
        })
    }

    /// LIFE-OF-A-POD 8/12: what to start and what to stop.
    fn plan(&self, observed: &PodObservation, restarting_all: bool) -> PodPlan {
        let row = self.crew.board::<PodProbes>().get(&self.uid);
        let probes = row.map_or_else(ProbeResults::default, |r| probe_results(&r));
        let active = observed.sandbox().filter(|s| s.ready).map(|s| &s.id);
        let resumable: BTreeSet<ContainerId> = observed
            .containers
            .iter()
            .filter(|c| c.state == ContainerState::Created && Some(&c.sandbox) == active)
            .filter(|c| !self.memo.record.start_failed(&c.id))
            .map(|c| c.id.clone())
            .collect();
        pod_plan::plan(&PlanInput {
            pod: &self.pod,
            observed,
            probes: &probes,
            backoff: &self.memo.record.backoff,
            ended_for: &self.memo.ended_for(self.clock.now()),
            resumable: &resumable,
            resize_restart: &BTreeSet::new(),
            now: self.now(),
            restarting_all,
            gates: Gates { restart_all_containers: self.deps.config.restart_all_containers },
        })
    }

    /// Carries a plan out, in the order of its fields. Answers whether anything was done.
    async fn carry_out(
        &mut self,
        plan: &PodPlan,
        observed: Arc<PodObservation>,
        status: PodStatus,
        cgroup_parent: &str,
        mounted: Arc<MountedVolumes>,
    ) -> Result<bool, Failure> {
        if plan.is_quiet() && plan.starts().next().is_none() {
            return Ok(false);
        }
        for line in plan.explain() {
            tracing::info!(uid = %self.uid, pod = model::pod::name(&self.pod), "{line}");
        }
        self.kill_planned(plan, &observed).await?;
        let groups = mounted.supplemental_groups.clone();
        let built = self.sandbox_config(plan.sandbox.attempt, cgroup_parent, &groups).await;
        let Some((sandbox, sandbox_config)) = self.sandbox(plan, built, &status).await? else {
            return Ok(true);
        };
        if plan.starts().next().is_none() {
            return Ok(true);
        }
        let fresh = if plan.create_sandbox.is_some() {
            self.observe(false).await.map_err(|e| Failure::new(format!("Unable to get pod sandbox status: {e}")))?
        } else {
            observed
        };
        let pod_ips = pod_ips(&self.generate(&fresh, false));
        let pull_secrets = self.pull_secrets().await;
        let images = self.image_volumes(&sandbox_config, &pull_secrets).await;
        let volumes = PodVolumes { mounted, images };
        let site = Site { sandbox, sandbox_config, pod_ips, volumes, pull_secrets, observed: fresh };
        self.start_all(plan, &site).await?;
        Ok(true)
    }

    /// LIFE-OF-A-POD 9/12: what must go before anything starts.
    async fn kill_planned(&mut self, plan: &PodPlan, observed: &PodObservation) -> Result<(), Failure> {
        if let Some(kill) = &plan.kill_pod {
            if plan.create_sandbox.as_ref().is_some_and(|c| c.replaces.is_some()) {
                let text = "Pod sandbox changed, it will be killed and re-created.";
                self.event(EventType::Normal, "SandboxChanged", text);
            }
            if kill.anything_alive || !kill.sandboxes.is_empty() {
                self.kill_pod(observed, None).await?;
            }
        }
        for id in &plan.purge_init {
            self.remove_planned(observed, id, true).await?;
        }
        for kill in &plan.kill {
            self.kill_single(kill).await?;
        }
        for reset in &plan.reset {
            if reset.kill_first {
                self.kill_for_reset(reset).await?;
            }
            self.remove_planned(observed, &reset.id, false).await?;
        }
        for id in &plan.prune_init {
            self.remove_planned(observed, id, true).await?;
        }
        Ok(())
    }

    async fn kill_single(&self, kill: &ContainerKill) -> Result<(), Failure> {
        let Some((kind, container)) = model::pod::find_container(&self.pod, &kill.name) else { return Ok(()) };
        let victim = Victim {
            id: kill.id.clone(),
            kind,
            container,
            message: kill.message.clone(),
            reason: kill.reason,
            grace_override: None,
        };
        let stopped = self.kill_container(&victim, None).await;
        stopped.map_err(|e| Failure::new(crate::kill::container_failed(&kill.name, &e)))
    }

    /// Neither hook nor order counts when all containers are started anew.
    async fn kill_for_reset(&self, reset: &ContainerReset) -> Result<(), Failure> {
        let Some((kind, container)) = model::pod::find_container(&self.pod, &reset.name) else { return Ok(()) };
        let victim = Victim {
            id: reset.id.clone(),
            kind,
            container,
            message: "killing".to_owned(),
            reason: KillReason::RestartAll,
            grace_override: Some(0),
        };
        let stopped = self.kill_container(&victim, None).await;
        stopped.map_err(|e| Failure::new(crate::kill::container_failed(&reset.name, &e)))
    }

    async fn remove_planned(&self, observed: &PodObservation, id: &ContainerId, logs: bool) -> Result<(), Failure> {
        let log = observed.containers.iter().find(|c| c.id == *id).filter(|_| logs);
        let path = log.map(|c| c.log_path.as_str()).unwrap_or_default();
        self.remove_instance(id, path).await.map_err(|e| Failure::new(format!("container {id} is not removed: {e}")))
    }

    /// LIFE-OF-A-POD 10/12: the sandbox to start containers in. `None`: the pod shall have none any more.
    async fn sandbox(
        &mut self,
        plan: &PodPlan,
        built: Result<PodSandboxConfig, String>,
        status: &PodStatus,
    ) -> Result<Option<(SandboxId, Arc<PodSandboxConfig>)>, Failure> {
        let existing = plan.sandbox.id.clone().filter(|_| plan.kill_pod.is_none());
        let creates = plan.create_sandbox.as_ref();
        if creates.is_none() && existing.is_none() {
            return Ok(None);
        }
        let config = Arc::new(built.map_err(|e| self.sandbox_failed(&e))?);
        match (creates, existing) {
            (Some(create), _) => {
                let id = self.run_sandbox(create, config.clone(), status).await?;
                Ok(Some((id, config)))
            }
            (None, Some(id)) => Ok(Some((id, config))),
            (None, None) => Ok(None),
        }
    }

    fn sandbox_failed(&self, e: &str) -> Failure {
        if !self.stop_asked() {
            self.event(EventType::Warning, "FailedCreatePodSandBox", format!("Failed to create pod sandbox: {e}"));
        }
        Failure::new(format!("failed to \"CreatePodSandbox\": {e}"))
    }

    async fn run_sandbox(
        &mut self,
        create: &CreateSandbox,
        config: Arc<PodSandboxConfig>,
        status: &PodStatus,
    ) -> Result<SandboxId, Failure> {
        self.check_stop()?;
        self.check_claims()?;
        let dir = self.pod_log_dir();
        self.on_host(move |fs| fs.create_dir(&dir, 0o755)).await.map_err(|e| self.sandbox_failed(&e))?;
        let runtime_handler = self.runtime_handler().await.map_err(|e| self.sandbox_failed(&e.to_string()))?;
        tracing::debug!(uid = %self.uid, attempt = create.attempt, "creating the sandbox");
        self.effects.hit("before RunPodSandbox").await;
        let ask = RunPodSandbox { uid: self.uid.clone(), config, runtime_handler };
        let ran = self.call(ask).await;
        self.effects.hit("after RunPodSandbox").await;
        let id = ran.map_err(|e| {
            if self.got_lost(&e) {
                return Failure { message: e.to_string(), retry: Retry::Now };
            }
            self.sandbox_failed(&e.go_text())
        })?;
        let ready = pod_status::patch::sandbox_ready(status, self.now());
        self.publish(ready).await?;
        Ok(id)
    }

    /// Image volumes are pulled like images of containers; a failure waits with the containers that mount it.
    async fn image_volumes(
        &self,
        sandbox_config: &Arc<PodSandboxConfig>,
        pull_secrets: &Arc<[Arc<Secret>]>,
    ) -> BTreeMap<String, Result<ImageSpec, (String, String)>> {
        let mut out = BTreeMap::new();
        for volume in self.pod.spec.iter().flat_map(|s| s.volumes.iter().flatten()) {
            let Some(image) = &volume.image else { continue };
            let reference = image.reference.clone().unwrap_or_default();
            let ask = EnsureImage {
                pod: self.pod.clone(),
                field_path: String::new(),
                image: reference.clone(),
                pull_policy: image.pull_policy.clone().unwrap_or_else(|| "IfNotPresent".to_owned()),
                sandbox_config: sandbox_config.clone(),
                runtime_handler: String::new(),
                pull_secrets: pull_secrets.clone(),
            };
            metrics::images::VOLUMES_REQUESTED.inc();
            let resolved = match self.call(ask).await {
                Ok(ensured) => {
                    Ok(ImageSpec { image: ensured.image_ref, user_specified_image: reference, ..ImageSpec::default() })
                }
                Err(e) => Err((e.reason, e.message)),
            };
            let counted =
                if resolved.is_ok() { &metrics::images::VOLUMES_MOUNTED } else { &metrics::images::VOLUME_ERRORS };
            counted.inc();
            out.insert(volume.name.clone(), resolved);
        }
        out
    }

    /// Ephemeral, init, regular: in this order, each list in spec order.
    async fn start_all(&mut self, plan: &PodPlan, site: &Site) -> Result<(), Failure> {
        let mut failures: Vec<Failure> = Vec::new();
        for start in &plan.ephemeral {
            self.check_stop()?;
            failures.extend(self.start(start, site).await.err());
        }
        for start in &plan.init {
            self.check_stop()?;
            let sidecar = start.kind == model::pod::ContainerKind::Sidecar;
            if let Err(e) = self.start(start, site).await {
                failures.push(e);
                if !sidecar {
                    return merge(failures);
                }
            }
        }
        for start in &plan.regular {
            self.check_stop()?;
            failures.extend(self.start(start, site).await.err());
        }
        merge(failures)
    }

    /// Keeps the newest dead instances of each container and removes older ones (pod-lifecycle 10.2).
    async fn remove_superseded(&self, observed: &PodObservation) {
        for c in superseded(observed, self.deps.config.dead_per_container) {
            if let Err(e) = self.remove_instance(&c.id, &c.log_path).await {
                tracing::warn!(uid = %self.uid, container = %c.id, error = e, "dead container is not removed");
            }
        }
    }
}

/// Exited instances beyond the newest `keep` of each name, where a newer one has exited.
fn superseded(observed: &PodObservation, keep: usize) -> Vec<&ContainerObservation> {
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    let mut out = Vec::new();
    for c in observed.containers.iter().filter(|c| c.state == ContainerState::Exited) {
        let n = seen.entry(&c.name).or_default();
        *n += 1;
        if *n > keep.max(1) {
            out.push(c);
        }
    }
    out
}

/// One failure out of many: all texts, the earliest retry that is known.
fn merge(failures: Vec<Failure>) -> Result<(), Failure> {
    let mut failures = failures.into_iter();
    let Some(mut first) = failures.next() else { return Ok(()) };
    for f in failures {
        first.message = format!("{}, {}", first.message, f.message);
        first.retry = earlier(first.retry, f.retry);
    }
    Err(first)
}

fn earlier(a: Retry, b: Retry) -> Retry {
    match (a, b) {
        (Retry::Now, _) | (_, Retry::Now) => Retry::Now,
        (Retry::Network, _) | (_, Retry::Network) => Retry::Network,
        (Retry::At(a), Retry::At(b)) => Retry::At(a.min(b)),
        (Retry::At(t), Retry::Later) | (Retry::Later, Retry::At(t)) => Retry::At(t),
        (Retry::Later, Retry::Later) => Retry::Later,
    }
}
