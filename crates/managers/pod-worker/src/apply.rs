//! Applying a plan: kill what must go, then the sandbox, then the containers (pod-lifecycle 4.6).

use std::collections::BTreeMap;
use std::sync::Arc;

use contract::image::EnsureImage;
use contract::runtime::RunPodSandbox;
use contract::volume::MountedVolumes;
use cri_api::v1::{ImageSpec, PodSandboxConfig};
use model::core::{PodStatus, Secret};
use model::event::EventType;
use model::history::What;
use model::runtime::{ContainerObservation, ContainerState, PodObservation};
use model::{ContainerId, SandboxId};
use pod_plan::{ContainerKill, ContainerReset, CreateSandbox, KillReason, PodPlan};

use crate::config::PodVolumes;
use crate::job::{Failure, Job, Retry};
use crate::kill::Victim;
use crate::start::StartContext;
use crate::status::pod_ips;

impl Job {
    /// Applies a plan, in the order of its fields. Answers whether anything was done.
    pub(crate) async fn apply(
        &mut self,
        plan: &PodPlan,
        observed: Arc<PodObservation>,
        status: &PodStatus,
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
        let creates = plan.create_sandbox.is_some() && !self.stop_asked();
        let built = self.sandbox_config(plan.sandbox.attempt, creates, cgroup_parent, &groups).await;
        let Some((sandbox, sandbox_config)) = self.sandbox(plan, built, status).await? else {
            return Ok(true);
        };
        if plan.starts().next().is_none() {
            self.resize(&plan.resize, &sandbox).await?;
            return Ok(true);
        }
        let (fresh, pod_ips) = if plan.create_sandbox.is_some() {
            let fresh = self.observe(false).await;
            let fresh = fresh.map_err(|e| Failure::new(format!("Unable to get pod sandbox status: {e}")))?;
            let status = self.generate(&fresh, false);
            (fresh, pod_ips(&status))
        } else {
            (observed, pod_ips(status))
        };
        let pull_secrets = self.pull_secrets().await;
        let images = self.image_volumes(&sandbox_config, &pull_secrets).await;
        let volumes = PodVolumes { mounted, images };
        let context = StartContext { sandbox, sandbox_config, pod_ips, volumes, pull_secrets, observed: fresh };
        self.start_all(plan, &context).await?;
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
        let config = Arc::new(built.map_err(|e| self.not_even_asked(&e))?);
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

    /// What the runtime would be asked for cannot be made.
    fn not_even_asked(&self, e: &str) -> Failure {
        self.chronicle.failed(What::Sandbox, "", e, self.now());
        self.sandbox_failed(e)
    }

    async fn run_sandbox(
        &mut self,
        create: &CreateSandbox,
        config: Arc<PodSandboxConfig>,
        status: &PodStatus,
    ) -> Result<SandboxId, Failure> {
        self.check_stop()?;
        self.check_claims()?;
        let runtime_handler = self.runtime_handler().await.map_err(|e| self.not_even_asked(&e.to_string()))?;
        tracing::debug!(uid = %self.uid, attempt = create.attempt, "creating the sandbox");
        self.effects.hit("before RunPodSandbox").await;
        let ask = RunPodSandbox { uid: self.uid.clone(), config, runtime_handler };
        let ran = self.during(What::Sandbox, "", self.call(ask)).await;
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
            let resolved = match self.during(What::Pull, &volume.name, self.call(ask)).await {
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

    /// Ephemeral, init, regular: in this order, each list in spec order. What starts needs room in the pod's cgroup: that comes first.
    async fn start_all(&mut self, plan: &PodPlan, context: &StartContext) -> Result<(), Failure> {
        let mut failures: Vec<Failure> = Vec::new();
        failures.extend(self.resize(&plan.resize, &context.sandbox).await.err());
        for start in &plan.ephemeral {
            self.check_stop()?;
            failures.extend(self.start(start, context).await.err());
        }
        for start in &plan.init {
            self.check_stop()?;
            let sidecar = start.kind == model::pod::ContainerKind::Sidecar;
            if let Err(e) = self.start(start, context).await {
                failures.push(e);
                if !sidecar {
                    return merge(failures);
                }
            }
        }
        for start in &plan.regular {
            self.check_stop()?;
            failures.extend(self.start(start, context).await.err());
        }
        merge(failures)
    }

    /// Keeps the newest dead instances of each container and removes older ones (pod-lifecycle 10.2).
    pub(crate) async fn remove_superseded(&self, observed: &PodObservation) {
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
