//! What calls do to the state, when, and who hears of it.

use std::future::{Future, pending};
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use cri_api::v1;
use model::Timestamp;
use ports::runtime::RuntimeEventKind;
use tokio::time::sleep;
use tonic::{Code, Response, Status};

use super::fault::{self, FaultKind};
use super::happening::{Cause, What};
use super::state::{End, FakeContainer, KILLED, host_network};
use super::{Call, EventTrouble, ExecCall, ExecReply, Inner, Mutation, OnTerm, Program, lock};

impl Inner {
    pub(super) fn now(&self) -> i64 {
        let passed = i64::try_from(self.start.elapsed().as_nanos()).unwrap_or(i64::MAX);
        self.epoch.load(Ordering::Relaxed).saturating_add(passed)
    }

    /// Runs one call: notes it, lets a fault have its way, else takes effect.
    pub(super) async fn call<T: Send + 'static>(
        self: &Arc<Self>,
        rpc: &'static str,
        subject: String,
        mutation: Option<Mutation>,
        effect: impl Future<Output = Result<T, Status>> + Send + 'static,
    ) -> Result<Response<T>, Status> {
        let fault = lock(&self.faults).strike(rpc, &subject);
        let index = {
            let mut calls = lock(&self.calls);
            let at = Timestamp(self.now());
            calls.push(Call { rpc, subject, at, answered: None, code: None, mutation });
            calls.len() - 1
        };
        let result = match fault {
            None => effect.await,
            Some(FaultKind::Error(code, text)) => Err(fault::status(code, text)),
            Some(FaultKind::ErrorAfter(code, text)) => effect.await.and(Err(fault::status(code, text))),
            Some(FaultKind::Hang) => pending().await,
            Some(FaultKind::Hold) => {
                self.released.notified().await;
                effect.await
            }
            Some(FaultKind::Delay(by)) => {
                sleep(by).await;
                effect.await
            }
            Some(FaultKind::Late(by)) => {
                let task = tokio::spawn(async move {
                    sleep(by).await;
                    effect.await
                });
                task.await.unwrap_or_else(|e| Err(Status::internal(e.to_string())))
            }
            Some(FaultKind::Disconnect) => {
                self.cut_connections();
                pending().await
            }
        };
        // The log may have been emptied meanwhile.
        if let Some(call) = lock(&self.calls).get_mut(index).filter(|c| c.rpc == rpc) {
            call.answered = Some(Timestamp(self.now()));
            call.code = Some(result.as_ref().err().map_or(Code::Ok, Status::code));
        }
        result.map(Response::new)
    }

    pub(super) fn run_sandbox(&self, r: v1::RunPodSandboxRequest) -> Result<v1::RunPodSandboxResponse, Status> {
        let on_host = r.config.as_ref().is_some_and(host_network);
        if !on_host && !lock(&self.script).network_ready {
            return Err(Status::unknown("failed to setup network for sandbox: cni plugin not initialized"));
        }
        let sandbox = lock(&self.state).run_sandbox(r, self.now())?;
        self.happened_to_sandbox(&sandbox, What::Made);
        self.emit(RuntimeEventKind::Created, &sandbox.id, 0);
        self.emit(RuntimeEventKind::Started, &sandbox.id, 0);
        Ok(v1::RunPodSandboxResponse { pod_sandbox_id: sandbox.id })
    }

    pub(super) fn stop_sandbox(self: &Arc<Self>, id: &str) -> Result<v1::StopPodSandboxResponse, Status> {
        let containers = {
            let state = lock(&self.state);
            state.sandbox(id)?;
            state.of_sandbox(id)
        };
        for c in containers.iter().filter(|c| c.running()) {
            self.finish(&c.id, End::killed(Cause::WithSandbox));
        }
        self.sandbox_down(id, Cause::Term);
        Ok(v1::StopPodSandboxResponse {})
    }

    pub(super) fn sandbox_down(&self, id: &str, cause: Cause) {
        let (was_ready, sandbox) = {
            let mut state = lock(&self.state);
            let Some(sandbox) = state.sandboxes.get_mut(id) else { return };
            sandbox.ip.clear();
            (std::mem::replace(&mut sandbox.ready, false), sandbox.clone())
        };
        if was_ready {
            self.happened_to_sandbox(&sandbox, What::Ended(0, cause));
            self.emit(RuntimeEventKind::Stopped, id, 0);
        }
    }

    pub(super) fn remove_sandbox(self: &Arc<Self>, id: &str) -> Result<v1::RemovePodSandboxResponse, Status> {
        let containers = {
            let state = lock(&self.state);
            match state.sandboxes.get(id) {
                None => return Ok(v1::RemovePodSandboxResponse {}),
                Some(s) if s.ready => {
                    return Err(Status::unknown(format!("sandbox container {id:?} is not fully stopped")));
                }
                Some(_) => state.of_sandbox(id),
            }
        };
        for c in containers {
            self.remove_container(&c.id);
        }
        self.emit(RuntimeEventKind::Deleted, id, 0);
        let gone = lock(&self.state).sandboxes.remove(id);
        gone.iter().for_each(|sandbox| self.happened_to_sandbox(sandbox, What::Removed));
        Ok(v1::RemovePodSandboxResponse {})
    }

    pub(super) fn create_container(
        &self,
        r: v1::CreateContainerRequest,
    ) -> Result<v1::CreateContainerResponse, Status> {
        let container = lock(&self.state).create_container(r, self.now())?;
        self.happened_to_container(&container, What::Made);
        self.emit(RuntimeEventKind::Created, &container.id, 0);
        Ok(v1::CreateContainerResponse { container_id: container.id })
    }

    pub(super) fn start_container(self: &Arc<Self>, id: &str) -> Result<v1::StartContainerResponse, Status> {
        let program = self.program_of(&lock(&self.state).container(id)?.clone());
        if let Some(text) = program.refuse_start {
            return Err(Status::unknown(text));
        }
        if let Some(text) = program.fail_start {
            let text = format!("failed to create containerd task: {text}");
            let end = End { code: 128, reason: "StartError", message: text.clone(), cause: Cause::NoStart };
            self.finish(id, end);
            return Err(Status::unknown(text));
        }
        let container = lock(&self.state).start(id, self.now())?;
        self.happened_to_container(&container, What::Started);
        self.write_log(&container, &program.output, container.started_at);
        self.emit(RuntimeEventKind::Started, id, 0);
        if let Some((after, code)) = program.exit {
            let (inner, id) = (Arc::clone(self), id.to_owned());
            tokio::spawn(async move {
                sleep(after).await;
                inner.finish(&id, End::code(code));
            });
        }
        Ok(v1::StartContainerResponse {})
    }

    pub(super) async fn stop_container(
        self: &Arc<Self>,
        id: &str,
        grace: i64,
    ) -> Result<v1::StopContainerResponse, Status> {
        let container = lock(&self.state).container(id)?.clone();
        if !container.running() {
            return Ok(v1::StopContainerResponse {});
        }
        self.happened_to_container(&container, What::StopAsked(grace));
        let grace = Duration::from_secs(u64::try_from(grace).unwrap_or(0));
        let (wait, code, cause) = match self.program_of(&container).on_term {
            OnTerm::Exit(after, code) if !grace.is_zero() && after <= grace => (after, code, Cause::Term),
            _ => (grace, KILLED, Cause::Kill),
        };
        sleep(wait).await;
        self.finish(id, End { cause, ..End::code(code) });
        Ok(v1::StopContainerResponse {})
    }

    /// Forced, and no error when there is none.
    pub(super) fn remove_container(self: &Arc<Self>, id: &str) -> v1::RemoveContainerResponse {
        self.finish(id, End::killed(Cause::Removal));
        if lock(&self.state).containers.contains_key(id) {
            self.emit(RuntimeEventKind::Deleted, id, 0);
            let gone = lock(&self.state).containers.remove(id);
            gone.iter().for_each(|container| self.happened_to_container(container, What::Removed));
        }
        v1::RemoveContainerResponse {}
    }

    pub(super) async fn exec(&self, r: v1::ExecSyncRequest) -> Result<v1::ExecSyncResponse, Status> {
        let (state, call) = {
            let state = lock(&self.state);
            let c = state.container(&r.container_id)?;
            let pod = state.sandboxes.get(&c.sandbox).map(|s| s.pod().to_owned()).unwrap_or_default();
            (c.state, ExecCall { pod, container: c.name().to_owned(), command: r.cmd })
        };
        if state != v1::ContainerState::ContainerRunning {
            let text = format!("failed to exec in container: container is in {} state", state.as_str_name());
            return Err(Status::unknown(text));
        }
        let handler = Arc::clone(&lock(&self.script).exec);
        let ExecReply { exit_code, stdout, stderr, takes } = handler(&call);
        let limit = Duration::from_secs(u64::try_from(r.timeout).unwrap_or(0));
        if !limit.is_zero() && takes > limit {
            sleep(limit).await;
            let text = format!("failed to exec in container: timeout {limit:?} exceeded: context deadline exceeded");
            return Err(Status::deadline_exceeded(text));
        }
        sleep(takes).await;
        Ok(v1::ExecSyncResponse { stdout, stderr, exit_code })
    }

    /// Ends a container if it runs (or, with `StartError`, was created), and tells.
    pub(super) fn finish(self: &Arc<Self>, id: &str, end: End) -> bool {
        let lag = lock(&self.script).exit_lag;
        if lag.is_zero() || end.reason == "StartError" {
            return self.finish_now(id, end, true);
        }
        if !lock(&self.state).containers.get(id).is_some_and(FakeContainer::running) {
            return false;
        }
        self.emit(RuntimeEventKind::Stopped, id, end.code);
        let (inner, id) = (Arc::clone(self), id.to_owned());
        tokio::spawn(async move {
            sleep(lag).await;
            inner.finish_now(&id, end, false);
        });
        true
    }

    fn finish_now(&self, id: &str, end: End, tell: bool) -> bool {
        let tells = end.reason != "StartError";
        let (code, cause) = (end.code, end.cause);
        let container = lock(&self.state).exit(id, end, self.now());
        let Some(container) = container else { return false };
        self.happened_to_container(&container, What::Ended(code, cause));
        if let Some(text) = self.program_of(&container).message {
            self.write_message(&container, &text);
        }
        if tell && tells {
            self.emit(RuntimeEventKind::Stopped, id, code);
        }
        true
    }

    /// The machine starts anew: nothing runs any more, and nobody is told.
    pub(super) fn reboot(&self) {
        let (sandboxes, containers) = {
            let state = lock(&self.state);
            let ids = |keys: Vec<&String>| keys.into_iter().cloned().collect::<Vec<_>>();
            (ids(state.sandboxes.keys().collect()), ids(state.containers.keys().collect()))
        };
        // As containerd finds tasks of which it knows no end.
        let end = End { code: 255, reason: "Unknown", message: String::new(), cause: Cause::Lost };
        for id in containers {
            self.finish_now(&id, end.clone(), false);
        }
        let before = std::mem::replace(&mut lock(&self.script).events, EventTrouble::Lost);
        for id in sandboxes {
            self.sandbox_down(&id, Cause::Lost);
        }
        lock(&self.script).events = before;
    }

    /// A container vanishes, process and all, and nobody is told.
    pub(super) fn lose(&self, id: &str) -> bool {
        let end = End { code: KILLED, reason: "Error", message: String::new(), cause: Cause::Lost };
        self.finish_now(id, end, false);
        let gone = lock(&self.state).containers.remove(id);
        gone.iter().for_each(|container| self.happened_to_container(container, What::Removed));
        gone.is_some()
    }

    /// A started container has a log, also when it says nothing.
    fn write_log(&self, container: &FakeContainer, lines: &[String], at: i64) {
        let line = |line: &String| format!("{} stdout F {line}\n", Timestamp(at).rfc3339_nano());
        self.append(&container.log_path, &lines.iter().map(line).collect::<String>());
    }

    fn write_message(&self, container: &FakeContainer, text: &str) {
        let annotations = &container.config.annotations;
        let Some(path) = annotations.get("io.kubernetes.container.terminationMessagePath") else { return };
        if let Some(mount) = container.config.mounts.iter().find(|m| &m.container_path == path) {
            self.append(&mount.host_path, text);
        }
    }

    /// Makes a file, or adds to it. Best effort, as it is in life: most tests give no real directory.
    pub(super) fn append(&self, path: &str, text: &str) {
        if path.is_empty() {
            return;
        }
        if let Some(files) = &lock(&self.script).files {
            return files.append(Path::new(path), text.as_bytes()).unwrap_or_default();
        }
        let Ok(mut file) = std::fs::File::options().create(true).append(true).open(path) else { return };
        file.write_all(text.as_bytes()).unwrap_or_default();
    }

    fn program_of(&self, c: &FakeContainer) -> Program {
        let script = lock(&self.script);
        let asked = c.config.image.as_ref().map(|i| i.user_specified_image.as_str()).unwrap_or_default();
        let list = [c.name(), asked, &c.image].into_iter().find_map(|n| script.programs.get(n));
        let attempt = usize::try_from(c.attempt()).unwrap_or(usize::MAX);
        list.and_then(|l| l.get(attempt).or(l.last())).cloned().unwrap_or_else(Program::forever)
    }
}
