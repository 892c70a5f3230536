//! Starting one container: image, create, start, postStart hook (pod-lifecycle 5.1).

use std::net::IpAddr;
use std::sync::Arc;

use contract::image::{EnsureImage, EnsuredImage};
use contract::runtime::{CallErrorKind, CreateContainer, StartContainer};
use cri_api::v1::PodSandboxConfig;
use metrics::pods;
use model::core::{Container, Secret};
use model::event::EventType;
use model::history::What;
use model::pod::ContainerKind;
use model::runtime::PodObservation;
use model::{ContainerId, SandboxId};
use pod_plan::backoff::After;
use pod_plan::{ContainerStart, How, KillReason};
use pod_status::WaitingReason;

use crate::config::{NewContainer, PodVolumes};
use crate::job::{Failure, Job, Retry, image_of};
use crate::kill::Victim;
use crate::measure::container_type;

/// What all containers that this sync starts have in common.
pub(crate) struct StartContext {
    pub(crate) sandbox: SandboxId,
    pub(crate) sandbox_config: Arc<PodSandboxConfig>,
    pub(crate) pod_ips: Vec<IpAddr>,
    pub(crate) volumes: PodVolumes,
    pub(crate) pull_secrets: Arc<[Arc<Secret>]>,
    pub(crate) observed: Arc<PodObservation>,
}

/// Why a container is not started: what its waiting state shows.
#[derive(Debug)]
pub(crate) struct NotStarted {
    pub(crate) reason: WaitingReason,
    pub(crate) retry: Retry,
}

impl std::fmt::Display for NotStarted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.reason.reason, self.reason.message)
    }
}

impl NotStarted {
    fn new(reason: &str, message: impl Into<String>) -> Self {
        Self { reason: WaitingReason { reason: reason.to_owned(), message: message.into() }, retry: Retry::Later }
    }

    /// Nothing is wrong with the container: the next step is due at once.
    fn again(reason: &str, message: impl Into<String>) -> Self {
        Self { retry: Retry::Now, ..Self::new(reason, message) }
    }
}

impl Job {
    /// Starts one container of the plan and keeps the reason when it does not come up.
    pub(crate) async fn start(&mut self, start: &ContainerStart, context: &StartContext) -> Result<(), Failure> {
        if let Some(hold) = start.hold.filter(|h| h.after == After::FailedStart) {
            // What is told stays as it is: why the start failed.
            let message = format!("the start of {:?} failed, and is not tried again yet", start.name);
            return Err(Failure { message, retry: Retry::At(hold.until) });
        }
        let outcome = self.try_start(start, context).await;
        let kind = container_type(start.kind);
        if start.hold.is_none() {
            pods::CONTAINERS_STARTED.with_label_values(&[kind]).inc();
        }
        match outcome {
            Ok(()) => {
                self.memo.reasons.remove(&start.name);
                Ok(())
            }
            Err(not) => {
                let message = format!(
                    "failed to \"StartContainer\" for {:?} with {}: {:?}",
                    start.name, not.reason.reason, not.reason.message
                );
                if start.hold.is_none() && not.retry != Retry::Now {
                    pods::CONTAINER_START_ERRORS.with_label_values(&[kind, &*not.reason.reason]).inc();
                }
                if not.retry != Retry::Now {
                    self.memo.reasons.insert(start.name.clone(), not.reason);
                }
                Err(Failure { message, retry: not.retry })
            }
        }
    }

    async fn try_start(&mut self, start: &ContainerStart, context: &StartContext) -> Result<(), NotStarted> {
        let Some((kind, container)) = model::pod::find_container(&self.pod, &start.name) else {
            return Err(NotStarted::new("CreateContainerConfigError", "container is not in the specification"));
        };
        if let Some(hold) = start.hold {
            let text = pod_plan::backoff::event_message(&self.pod, &start.name);
            self.container_event(EventType::Warning, "BackOff", text, (kind, &start.name));
            let message = pod_plan::backoff::waiting_message(&self.pod, &start.name, hold.delay);
            let mut not = NotStarted::new("CrashLoopBackOff", message);
            not.retry = Retry::At(hold.until);
            return Err(not);
        }
        self.raise_backoff(start, &container).await;
        let (id, restart_count) = match &start.how {
            How::Resume { id, attempt } => (id.clone(), *attempt),
            How::Create { attempt } => self.create(kind, &container, *attempt, context).await?,
        };
        self.run(kind, &container, &id).await?;
        self.link_log(&container, &id, restart_count).await;
        self.post_start(kind, &container, &id).await
    }

    /// The back-off grows before the start that it is about, also if the daemon dies in between.
    async fn raise_backoff(&mut self, start: &ContainerStart, container: &Container) {
        let Some(crashed_at) = start.crashed_at else { return };
        let key = pod_plan::backoff::crash_key(&self.pod, container);
        let now = self.now();
        self.memo.record.backoff.next(&key, crashed_at, now);
        self.memo.record.backoff.gc(now);
        self.save_record().await;
    }

    /// LIFE-OF-A-POD 11/12: image, configuration, create; then start and hook.
    async fn create(
        &mut self,
        kind: ContainerKind,
        container: &Container,
        attempt: Option<u32>,
        context: &StartContext,
    ) -> Result<(ContainerId, u32), NotStarted> {
        let began = self.clock.now();
        let ensured = self.during(What::Pull, &container.name, self.ensure_image(kind, container, context)).await;
        self.memo.pulls += self.clock.now().saturating_duration_since(began);
        let image = ensured?;
        self.check_image_volumes(container, context)?;
        let target = ephemeral_target(&self.pod, kind, &container.name);
        let new = NewContainer {
            container,
            attempt,
            image: &image,
            pod_ips: &context.pod_ips,
            volumes: &context.volumes,
            userns: container_config::user_namespace(&context.sandbox_config),
            observed: &context.observed,
            target: target.as_deref(),
        };
        let (config, restart_count) = self.container_config(&new).await.map_err(|e| {
            self.failed(kind, container, format!("Error: {e}"));
            self.chronicle.failed(What::Create, &container.name, &e, self.now());
            NotStarted::new("CreateContainerConfigError", e)
        })?;
        self.effects.hit("before CreateContainer").await;
        let ask = CreateContainer {
            uid: self.uid.clone(),
            sandbox: context.sandbox.clone(),
            config: Arc::new(config),
            sandbox_config: context.sandbox_config.clone(),
        };
        let created = self.during(What::Create, &container.name, self.call(ask)).await;
        self.effects.hit("after CreateContainer").await;
        let id = created.map_err(|e| {
            if self.got_lost(&e) {
                return NotStarted::again("CreateContainerError", e.to_string());
            }
            self.failed(kind, container, format!("Error: {e}"));
            NotStarted::new("CreateContainerError", e.to_string())
        })?;
        // It has all that is granted.
        self.memo.record.actuated.remove(&container.name);
        self.container_event(EventType::Normal, "Created", "Container created", (kind, &container.name));
        Ok((id, restart_count))
    }

    async fn ensure_image(
        &self,
        kind: ContainerKind,
        container: &Container,
        context: &StartContext,
    ) -> Result<EnsuredImage, NotStarted> {
        let ask = EnsureImage {
            pod: self.pod.clone(),
            field_path: format!("{}{{{}}}", kind.field_path(), container.name),
            image: image_of(container).to_owned(),
            pull_policy: container.image_pull_policy.clone().unwrap_or_else(|| "IfNotPresent".to_owned()),
            sandbox_config: context.sandbox_config.clone(),
            runtime_handler: String::new(),
            pull_secrets: context.pull_secrets.clone(),
        };
        let mut signal = self.signal.clone();
        let asked = self.call(ask);
        let answer = tokio::select! {
            biased;
            answer = asked => answer,
            // The pull goes on for others; this pod is being stopped and need not wait for it.
            _ = signal.wait_for(|s| s.stop) => {
                let mut not = NotStarted::new("ContainerCreating", "");
                not.retry = Retry::Now;
                return Err(not);
            }
        };
        answer.map_err(|failure| {
            self.failed(kind, container, format!("Error: {}", failure.reason));
            NotStarted::new(&failure.reason, failure.message)
        })
    }

    fn check_image_volumes(&self, container: &Container, context: &StartContext) -> Result<(), NotStarted> {
        for mount in container.volume_mounts.iter().flatten() {
            if let Some(Err((reason, message))) = context.volumes.images.get(&mount.name) {
                return Err(NotStarted::new(reason, message.clone()));
            }
        }
        Ok(())
    }

    fn failed(&self, kind: ContainerKind, container: &Container, message: String) {
        self.container_event(EventType::Warning, "Failed", message, (kind, &container.name));
    }

    async fn run(&mut self, kind: ContainerKind, container: &Container, id: &ContainerId) -> Result<(), NotStarted> {
        self.effects.hit("before StartContainer").await;
        let ask = StartContainer { uid: self.uid.clone(), container: id.clone() };
        let started = self.during(What::Start, &container.name, self.call(ask)).await;
        self.effects.hit("after StartContainer").await;
        if let Err(e) = started {
            if self.got_lost(&e) {
                return Err(NotStarted::again("RunContainerError", e.to_string()));
            }
            // Where the call itself got lost, nobody knows: the next observation shows whether it runs or is still to be started.
            if !matches!(e.kind, CallErrorKind::Lost | CallErrorKind::Unavailable) {
                self.memo.record.failed_starts.insert(id.to_string());
                self.save_record().await;
            }
            self.failed(kind, container, format!("Error: {e}"));
            return Err(NotStarted::new("RunContainerError", e.to_string()));
        }
        self.memo.alive.insert(id.clone());
        self.container_event(EventType::Normal, "Started", "Container started", (kind, &container.name));
        Ok(())
    }

    /// The link that log collectors follow; a log file that the runtime has not made yet gets none.
    async fn link_log(&self, container: &Container, id: &ContainerId, restart_count: u32) {
        let log = self.pod_log_dir().join(pod_plan::logs::log_path(&container.name, restart_count));
        let link_dir = self.deps.config.container_logs_dir.clone();
        let link = link_dir.join(pod_plan::logs::symlink_name(&self.pod, &container.name, id.as_str()));
        let linked = self
            .on_host(move |fs| {
                if fs.stat(&log)?.is_none() {
                    return Ok(());
                }
                fs.create_dir(&link_dir, 0o755)?;
                match fs.symlink(&log, &link) {
                    Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
                    other => other,
                }
            })
            .await;
        if let Err(e) = linked {
            tracing::warn!(uid = %self.uid, container = container.name, error = e, "log is not linked");
        }
    }

    async fn post_start(
        &mut self,
        kind: ContainerKind,
        container: &Container,
        id: &ContainerId,
    ) -> Result<(), NotStarted> {
        let Some(handler) = container.lifecycle.as_ref().and_then(|l| l.post_start.clone()) else { return Ok(()) };
        self.effects.hit("before postStart").await;
        let hook = self.during(What::PostStart, &container.name, self.run_hook(&handler, container, id));
        let Err(e) = hook.await else { return Ok(()) };
        tracing::warn!(uid = %self.uid, container = container.name, error = e, "postStart hook failed");
        let about = (kind, container.name.as_str());
        self.container_event(EventType::Warning, "FailedPostStartHook", "PostStartHook failed", about);
        let victim = Victim {
            id: id.clone(),
            kind,
            container: container.clone(),
            message: "FailedPostStartHook".to_owned(),
            reason: KillReason::PostStartHook,
            grace_override: None,
        };
        if let Err(e) = self.kill_container(&victim, None).await {
            tracing::warn!(uid = %self.uid, container = container.name, error = %e, "not stopped after its hook failed");
        }
        Err(NotStarted::new("PostStartHookError", e))
    }

    /// Removes an instance and its logs.
    pub(crate) async fn remove_instance(&self, id: &ContainerId, log_path: &str) -> Result<(), String> {
        if !log_path.is_empty() {
            let log = std::path::PathBuf::from(log_path);
            let removed = self.on_host(move |fs| ports::host::remove_log_files(fs, &log)).await;
            if let Err(e) = removed {
                tracing::warn!(uid = %self.uid, container = %id, error = e, "log files are not removed");
            }
        }
        let ask = contract::runtime::RemoveContainer { uid: self.uid.clone(), container: id.clone() };
        self.call(ask).await.map_err(|e| e.to_string())
    }
}

fn ephemeral_target(pod: &model::core::Pod, kind: ContainerKind, name: &str) -> Option<String> {
    if kind != ContainerKind::Ephemeral {
        return None;
    }
    model::pod::ephemeral_containers(pod).find(|(c, _)| c.name == name).and_then(|(_, target)| target)
}
