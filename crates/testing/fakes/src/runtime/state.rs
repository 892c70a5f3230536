//! Sandboxes and containers of the fake runtime, and what may happen to them in which order.

use std::collections::BTreeMap;
use std::time::Duration;

use cri_api::v1;
use ports::runtime::RuntimeEventKind;
use tonic::Status;

use super::happening::Cause;
use super::images::Images;

/// What is wrong with events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EventTrouble {
    /// Nothing.
    #[default]
    None,
    /// They are lost.
    Lost,
    /// Each comes twice.
    Twice,
    /// Each comes so much later.
    Late(Duration),
    /// Every other one comes so much later, after those that tell of later changes.
    Reordered(Duration),
}

/// Exit code of a killed process.
pub(super) const KILLED: i32 = 137;

/// A change that events tell of.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub(super) kind: RuntimeEventKind,
    pub(super) id: String,
    pub(super) at: i64,
    pub(super) exit_code: i32,
    pub(super) cri: v1::ContainerEventResponse,
}

/// One sandbox.
#[derive(Clone, Debug, PartialEq)]
pub struct FakeSandbox {
    /// Id.
    pub id: String,
    /// As it was asked for.
    pub config: v1::PodSandboxConfig,
    /// Handler that it was asked for with.
    pub runtime_handler: String,
    /// READY.
    pub ready: bool,
    /// Nanoseconds.
    pub created_at: i64,
    /// Empty on the host's network, and once stopped.
    pub ip: String,
}

/// One container.
#[derive(Clone, Debug, PartialEq)]
pub struct FakeContainer {
    /// Id.
    pub id: String,
    /// Its sandbox.
    pub sandbox: String,
    /// As it was asked for.
    pub config: v1::ContainerConfig,
    /// Log file.
    pub log_path: String,
    /// State.
    pub state: v1::ContainerState,
    /// Nanoseconds.
    pub created_at: i64,
    /// Nanoseconds; 0 until started.
    pub started_at: i64,
    /// Nanoseconds; 0 until ended.
    pub finished_at: i64,
    /// Once ended.
    pub exit_code: i32,
    /// Once ended.
    pub reason: String,
    /// Once ended.
    pub message: String,
    /// Name of its image.
    pub image: String,
    /// Repo digest of its image.
    pub image_ref: String,
    /// Resources in force.
    pub resources: Option<v1::LinuxContainerResources>,
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) sandboxes: BTreeMap<String, FakeSandbox>,
    pub(super) containers: BTreeMap<String, FakeContainer>,
    pub(super) images: Images,
    made: u64,
    told: u64,
    last_time: i64,
}

impl State {
    /// Time as given, but never the same twice: real clocks do not stand still.
    pub(super) fn tick(&mut self, now: i64) -> i64 {
        self.last_time = now.max(self.last_time + 1);
        self.last_time
    }

    /// True every second time.
    pub(super) fn every_other(&mut self) -> bool {
        self.told += 1;
        self.told.is_multiple_of(2)
    }

    pub(super) fn clock_was_set(&mut self, nanos: i64) {
        self.last_time = self.last_time.saturating_add(nanos);
    }

    fn id(&mut self, kind: char) -> String {
        self.made += 1;
        format!("{kind}{:063x}", self.made)
    }

    pub(super) fn run_sandbox(&mut self, r: v1::RunPodSandboxRequest, now: i64) -> Result<FakeSandbox, Status> {
        let config = r.config.ok_or_else(|| Status::invalid_argument("sandbox config is missing"))?;
        let meta = config.metadata.clone().unwrap_or_default();
        if let Some(other) = self.sandboxes.values().find(|s| s.config.metadata.as_ref() == Some(&meta)) {
            let name = format!("{}_{}_{}_{}", meta.name, meta.namespace, meta.uid, meta.attempt);
            return Err(Status::unknown(format!(
                "failed to reserve sandbox name {name:?}: name {name:?} is reserved for {:?}",
                other.id
            )));
        }
        let id = self.id('5');
        let ip = if host_network(&config) {
            String::new()
        } else {
            format!("10.88.{}.{}", self.made / 250, self.made % 250 + 2)
        };
        let sandbox = FakeSandbox {
            id: id.clone(),
            config,
            runtime_handler: r.runtime_handler,
            ready: true,
            created_at: self.tick(now),
            ip,
        };
        self.sandboxes.insert(id, sandbox.clone());
        Ok(sandbox)
    }

    pub(super) fn sandbox(&self, id: &str) -> Result<&FakeSandbox, Status> {
        self.sandboxes
            .get(id)
            .ok_or_else(|| Status::not_found(format!("an error occurred when try to find sandbox {id:?}: not found")))
    }

    pub(super) fn container(&self, id: &str) -> Result<&FakeContainer, Status> {
        self.containers
            .get(id)
            .ok_or_else(|| Status::not_found(format!("an error occurred when try to find container {id:?}: not found")))
    }

    pub(super) fn container_mut(&mut self, id: &str) -> Result<&mut FakeContainer, Status> {
        self.container(id)?;
        Ok(self.containers.get_mut(id).expect("looked up above"))
    }

    pub(super) fn create_container(
        &mut self,
        r: v1::CreateContainerRequest,
        now: i64,
    ) -> Result<FakeContainer, Status> {
        let config = r.config.ok_or_else(|| Status::invalid_argument("container config is missing"))?;
        let sandbox = self.sandbox(&r.pod_sandbox_id)?;
        if !sandbox.ready {
            return Err(Status::unknown("failed to get sandbox container task: no running task found: task not found"));
        }
        let log_path = match (sandbox.config.log_directory.as_str(), config.log_path.as_str()) {
            ("", _) | (_, "") => String::new(),
            (dir, path) => format!("{}/{path}", dir.trim_end_matches('/')),
        };
        let wanted = config.image.as_ref().map(|i| i.image.clone()).unwrap_or_default();
        let (image, image_ref) = self
            .images
            .find(&wanted)
            .map(|i| (i.name.clone(), i.digest.clone()))
            .ok_or_else(|| Status::not_found(format!("failed to resolve image {wanted:?}: not found")))?;
        let meta = config.metadata.clone().unwrap_or_default();
        let twin = |c: &&FakeContainer| c.sandbox == r.pod_sandbox_id && c.config.metadata.as_ref() == Some(&meta);
        if let Some(other) = self.containers.values().find(twin) {
            let name = format!("{}_{}_{}", meta.name, r.pod_sandbox_id, meta.attempt);
            return Err(Status::unknown(format!(
                "failed to reserve container name {name:?}: name {name:?} is reserved for {:?}",
                other.id
            )));
        }
        let id = self.id('c');
        let container = FakeContainer {
            id: id.clone(),
            sandbox: r.pod_sandbox_id,
            log_path,
            state: v1::ContainerState::ContainerCreated,
            created_at: self.tick(now),
            started_at: 0,
            finished_at: 0,
            exit_code: 0,
            reason: String::new(),
            message: String::new(),
            image,
            image_ref,
            resources: config.linux.as_ref().and_then(|l| l.resources.clone()),
            config,
        };
        self.containers.insert(id, container.clone());
        Ok(container)
    }

    pub(super) fn start(&mut self, id: &str, now: i64) -> Result<FakeContainer, Status> {
        let now = self.tick(now);
        let c = self.container_mut(id)?;
        if c.state != v1::ContainerState::ContainerCreated {
            let text = format!(
                "failed to set starting state for container {id:?}: container is in {} state",
                c.state.as_str_name()
            );
            return Err(Status::unknown(text));
        }
        c.state = v1::ContainerState::ContainerRunning;
        c.started_at = now;
        Ok(c.clone())
    }

    /// Ends a container that runs, or that could not be started; `None` when it does neither.
    pub(super) fn exit(&mut self, id: &str, end: End, now: i64) -> Option<FakeContainer> {
        let now = self.tick(now);
        let c = self.containers.get_mut(id)?;
        let may_end = match end.reason {
            "StartError" => c.state == v1::ContainerState::ContainerCreated,
            _ => c.state == v1::ContainerState::ContainerRunning,
        };
        if !may_end {
            return None;
        }
        c.state = v1::ContainerState::ContainerExited;
        c.finished_at = now;
        c.exit_code = end.code;
        c.reason = end.reason.to_owned();
        c.message = end.message;
        Some(c.clone())
    }

    pub(super) fn of_sandbox(&self, sandbox: &str) -> Vec<FakeContainer> {
        self.containers.values().filter(|c| c.sandbox == sandbox).cloned().collect()
    }

    /// `namespace/pod[/container]` of an id, or the id.
    pub(super) fn subject(&self, id: &str) -> String {
        if let Some(s) = self.sandboxes.get(id) {
            return pod_of(&s.config);
        }
        let Some(c) = self.containers.get(id) else { return id.to_owned() };
        let pod = self.sandboxes.get(&c.sandbox).map_or_else(|| c.sandbox.clone(), |s| pod_of(&s.config));
        format!("{pod}/{}", c.name())
    }
}

/// How a container ended.
#[derive(Clone, Debug)]
pub(super) struct End {
    pub(super) code: i32,
    pub(super) reason: &'static str,
    pub(super) message: String,
    pub(super) cause: Cause,
}

impl End {
    pub(super) fn code(code: i32) -> Self {
        let reason = if code == 0 { "Completed" } else { "Error" };
        Self { code, reason, message: String::new(), cause: Cause::Itself }
    }

    pub(super) fn killed(cause: Cause) -> Self {
        Self { cause, ..Self::code(KILLED) }
    }
}

impl FakeContainer {
    /// Container name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.config.metadata.as_ref().map_or("", |m| m.name.as_str())
    }

    /// Attempt.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.config.metadata.as_ref().map_or(0, |m| m.attempt)
    }

    /// Whether it runs.
    #[must_use]
    pub fn running(&self) -> bool {
        self.state == v1::ContainerState::ContainerRunning
    }

    pub(super) fn to_list(&self) -> v1::Container {
        v1::Container {
            id: self.id.clone(),
            pod_sandbox_id: self.sandbox.clone(),
            metadata: self.config.metadata.clone(),
            image: self.config.image.clone(),
            image_ref: self.image_ref.clone(),
            state: self.state.into(),
            created_at: self.created_at,
            labels: self.config.labels.clone(),
            annotations: self.config.annotations.clone(),
            image_id: String::new(),
        }
    }

    pub(super) fn to_status(&self, with_resources: bool) -> v1::ContainerStatus {
        v1::ContainerStatus {
            id: self.id.clone(),
            metadata: self.config.metadata.clone(),
            state: self.state.into(),
            created_at: self.created_at,
            started_at: self.started_at,
            finished_at: self.finished_at,
            exit_code: self.exit_code,
            image: Some(v1::ImageSpec { image: self.image.clone(), ..Default::default() }),
            image_ref: self.image_ref.clone(),
            reason: self.reason.clone(),
            message: self.message.clone(),
            labels: self.config.labels.clone(),
            annotations: self.config.annotations.clone(),
            mounts: self.config.mounts.clone(),
            log_path: self.log_path.clone(),
            resources: with_resources.then(|| v1::ContainerResources { linux: self.resources.clone() }),
            ..Default::default()
        }
    }
}

impl FakeSandbox {
    pub(super) fn to_list(&self) -> v1::PodSandbox {
        v1::PodSandbox {
            id: self.id.clone(),
            metadata: self.config.metadata.clone(),
            state: self.state().into(),
            created_at: self.created_at,
            labels: self.config.labels.clone(),
            annotations: self.config.annotations.clone(),
            runtime_handler: self.runtime_handler.clone(),
        }
    }

    pub(super) fn to_status(&self) -> v1::PodSandboxStatus {
        let security = self.config.linux.as_ref().and_then(|l| l.security_context.as_ref());
        v1::PodSandboxStatus {
            id: self.id.clone(),
            metadata: self.config.metadata.clone(),
            state: self.state().into(),
            created_at: self.created_at,
            network: Some(v1::PodSandboxNetworkStatus { ip: self.ip.clone(), additional_ips: Vec::new() }),
            linux: Some(v1::LinuxPodSandboxStatus {
                namespaces: Some(v1::Namespace { options: security.and_then(|s| s.namespace_options.clone()) }),
            }),
            labels: self.config.labels.clone(),
            annotations: self.config.annotations.clone(),
            runtime_handler: self.runtime_handler.clone(),
        }
    }

    pub(super) fn state(&self) -> v1::PodSandboxState {
        if self.ready { v1::PodSandboxState::SandboxReady } else { v1::PodSandboxState::SandboxNotready }
    }

    /// Pod name.
    #[must_use]
    pub fn pod(&self) -> &str {
        self.config.metadata.as_ref().map_or("", |m| m.name.as_str())
    }

    /// Pod UID.
    #[must_use]
    pub fn uid(&self) -> &str {
        self.config.metadata.as_ref().map_or("", |m| m.uid.as_str())
    }
}

pub(super) fn pod_of(config: &v1::PodSandboxConfig) -> String {
    let meta = config.metadata.as_ref();
    meta.map_or_else(String::new, |m| format!("{}/{}", m.namespace, m.name))
}

pub(super) fn host_network(config: &v1::PodSandboxConfig) -> bool {
    let options =
        config.linux.as_ref().and_then(|l| l.security_context.as_ref()).and_then(|s| s.namespace_options.as_ref());
    options.is_some_and(|o| o.network == i32::from(v1::NamespaceMode::Node))
}
