//! The calls. Each runs in a task of its own within its limit, outlives a crash of the actor, and makes the view inspect what it
//! changed.

use std::future::Future;
use std::time::Duration;

use actor::{ActorRef, Ctx, Detached, Handler, message};
use contract::runtime::{
    CallError, CreateContainer, ExecOutcome, ExecSync, RemoveContainer, RemovePodSandbox, RunPodSandbox,
    StartContainer, StopContainer, StopPodSandbox, UpdateContainerResources, UpdatePodSandboxResources,
};
use cri_api::v1;
use model::{ContainerId, PodUid, SandboxId};
use ports::runtime::RuntimeResult;

use super::RuntimeClient;
use crate::error::call_error;
use crate::limits::CallLimit;
use crate::requests::{Expectation, Request};

/// How long an answer waits for the actor to note it.
const NOTE_LIMIT: Duration = Duration::from_secs(5);

/// A call has ended, or died, and may have changed this.
#[derive(Clone, Debug)]
pub(super) struct Touched {
    uid: PodUid,
    what: Target,
    /// It was a call that starts something.
    start: bool,
    /// What it was to end.
    end: Option<String>,
}

message!(Touched => ());

#[derive(Clone, Debug)]
enum Target {
    Pod,
    Sandbox(String),
    /// It is started next: that tells more than a look now.
    Created(String, SandboxId),
    Started(String),
    Stopped(String),
    StoppedSandbox(String),
    Removed(String),
}

/// A container that was created and not started, and of which nobody asked, is looked at after this time.
const CREATED_FOR: Duration = Duration::from_secs(1);

impl Handler<Touched> for RuntimeClient {
    type Result = ();

    fn handle(&mut self, m: Touched, ctx: &mut Ctx<Self>) {
        let seq = self.next_seq();
        let requests = self.requests.entry(m.uid.clone()).or_default();
        requests.touched = seq;
        if m.start {
            requests.starting = requests.starting.saturating_sub(1);
        }
        if let Some(id) = &m.end {
            requests.ending.remove(id);
        }
        let request = match m.what {
            Target::Pod => Request::all(),
            Target::Sandbox(id) => {
                self.index.learn_sandbox(&id, &m.uid, seq);
                self.index.own(&id);
                Request::id(&id, Expectation::Anything)
            }
            Target::Created(id, sandbox) => {
                self.index.learn_container(&id, &m.uid, &sandbox, seq);
                self.index.own(&id);
                return self.request_later(m.uid, Request::id(&id, Expectation::Anything), CREATED_FOR, ctx);
            }
            Target::Started(id) => {
                self.index.own(&id);
                self.about(&id, Expectation::Anything)
            }
            Target::Stopped(id) => self.about(&id, Expectation::Stopped),
            Target::StoppedSandbox(id) if self.has_stopped(&m.uid, &id) => return,
            Target::StoppedSandbox(_) => Request::all(),
            Target::Removed(id) => return self.removed(&m.uid, id, ctx),
        };
        self.request(&m.uid, request, ctx);
    }
}

impl RuntimeClient {
    /// A look at a container, or at all of its pod.
    fn about(&self, id: &str, expectation: Expectation) -> Request {
        // Not seen since this actor was rebuilt: the id alone does not tell the sandbox.
        if self.index.uid(id).is_some() { Request::id(id, expectation) } else { Request::all() }
    }
}

/// Tells the actor what a call touched, even when the call's task dies.
struct Touch {
    this: ActorRef<RuntimeClient>,
    note: Option<Touched>,
}

impl Touch {
    async fn done(mut self, what: Target) {
        if let Some(note) = self.note.take() {
            // Noted before the asker is answered: who asks about the pod next is told the new state. A failure means
            // that the actor is being rebuilt or replaced; whoever comes will list.
            let _ = self.this.ask(Touched { what, ..note }, NOTE_LIMIT).await;
        }
    }
}

impl Drop for Touch {
    fn drop(&mut self) {
        let Some(note) = self.note.take() else { return };
        if self.this.tell(note.clone()).is_err() {
            tracing::warn!(pod_uid = %note.uid, "a call died and its pod could not be marked; a relist will tell");
        }
    }
}

/// Which limit a call is under.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Sandbox,
    Container,
    Stop,
}

type Answer<T> = Detached<Result<T, CallError>>;

impl RuntimeClient {
    /// Runs `call` within the limit of its class; `what` says what a good answer changed.
    fn call<T: Send + 'static>(
        &mut self,
        ctx: &mut Ctx<Self>,
        uid: PodUid,
        class: Class,
        call: impl Future<Output = RuntimeResult<T>> + Send + 'static,
        what: impl FnOnce(&T) -> Target + Send + 'static,
    ) -> Answer<T> {
        let start = class != Class::Stop;
        if start {
            self.requests.entry(uid.clone()).or_default().starting += 1;
        }
        self.run_call(ctx, Touched { uid, what: Target::Pod, start, end: None }, class, call, what)
    }

    /// As [`Self::call`], of what is gone or dead after it: what events tell of that meanwhile is no news.
    fn end(
        &mut self,
        ctx: &mut Ctx<Self>,
        (uid, id): (PodUid, String),
        call: impl Future<Output = RuntimeResult<()>> + Send + 'static,
        what: fn(String) -> Target,
    ) -> Answer<()> {
        self.requests.entry(uid.clone()).or_default().ending.insert(id.clone());
        let note = Touched { uid, what: Target::Pod, start: false, end: Some(id.clone()) };
        self.run_call(ctx, note, Class::Stop, call, move |()| what(id))
    }

    fn run_call<T: Send + 'static>(
        &mut self,
        ctx: &mut Ctx<Self>,
        note: Touched,
        class: Class,
        call: impl Future<Output = RuntimeResult<T>> + Send + 'static,
        what: impl FnOnce(&T) -> Target + Send + 'static,
    ) -> Answer<T> {
        let uid = note.uid.clone();
        let note = Some(note);
        let touch = Touch { this: ctx.this(), note };
        let (limits, faults) = (self.deps.limits.clone(), ctx.faults());
        Detached::new(async move {
            let limit: &CallLimit = match class {
                Class::Sandbox => &limits.sandbox,
                Class::Container => &limits.start,
                Class::Stop => &limits.stop,
            };
            let result = limit
                .run(&uid, async {
                    faults.hit("before-call").await;
                    call.await
                })
                .await;
            faults.hit("after-call").await;
            touch.done(result.as_ref().map_or(Target::Pod, what)).await;
            result.map_err(call_error)
        })
    }
}

/// What is gone already has been stopped and removed.
fn or_gone(result: RuntimeResult<()>) -> RuntimeResult<()> {
    match result {
        Err(e) if e.is_not_found() => Ok(()),
        other => other,
    }
}

impl Handler<RunPodSandbox> for RuntimeClient {
    type Result = Answer<SandboxId>;

    fn handle(&mut self, m: RunPodSandbox, ctx: &mut Ctx<Self>) -> Self::Result {
        let runtime = self.deps.runtime.clone();
        let call = async move {
            let config = Some((*m.config).clone());
            let request = v1::RunPodSandboxRequest { config, runtime_handler: m.runtime_handler };
            Ok(SandboxId::from(runtime.run_pod_sandbox(request).await?.pod_sandbox_id))
        };
        self.call(ctx, m.uid, Class::Sandbox, call, |id| Target::Sandbox(id.to_string()))
    }
}

impl Handler<UpdateContainerResources> for RuntimeClient {
    type Result = Answer<()>;

    fn handle(&mut self, m: UpdateContainerResources, ctx: &mut Ctx<Self>) -> Self::Result {
        let runtime = self.deps.runtime.clone();
        let request = v1::UpdateContainerResourcesRequest {
            container_id: m.container.to_string(),
            linux: Some((*m.linux).clone()),
            ..v1::UpdateContainerResourcesRequest::default()
        };
        let call = async move { runtime.update_container_resources(request).await };
        self.call(ctx, m.uid, Class::Container, call, |()| Target::Pod)
    }
}

impl Handler<UpdatePodSandboxResources> for RuntimeClient {
    type Result = Answer<()>;

    fn handle(&mut self, m: UpdatePodSandboxResources, ctx: &mut Ctx<Self>) -> Self::Result {
        let runtime = self.deps.runtime.clone();
        let request = v1::UpdatePodSandboxResourcesRequest {
            pod_sandbox_id: m.sandbox.to_string(),
            overhead: Some((*m.linux_overhead).clone()),
            resources: Some((*m.linux).clone()),
        };
        let call = async move {
            match runtime.update_pod_sandbox_resources(request).await {
                Err(e) if e.is_unimplemented() => Ok(()),
                other => other,
            }
        };
        self.call(ctx, m.uid, Class::Container, call, |()| Target::Pod)
    }
}

impl Handler<StopPodSandbox> for RuntimeClient {
    type Result = Answer<()>;

    fn handle(&mut self, m: StopPodSandbox, ctx: &mut Ctx<Self>) -> Self::Result {
        let runtime = self.deps.runtime.clone();
        let request = v1::StopPodSandboxRequest { pod_sandbox_id: m.sandbox.to_string() };
        let call = async move { or_gone(runtime.stop_pod_sandbox(request).await) };
        self.end(ctx, (m.uid, m.sandbox.to_string()), call, Target::StoppedSandbox)
    }
}

impl Handler<RemovePodSandbox> for RuntimeClient {
    type Result = Answer<()>;

    fn handle(&mut self, m: RemovePodSandbox, ctx: &mut Ctx<Self>) -> Self::Result {
        let runtime = self.deps.runtime.clone();
        let request = v1::RemovePodSandboxRequest { pod_sandbox_id: m.sandbox.to_string() };
        let call = async move { or_gone(runtime.remove_pod_sandbox(request).await) };
        self.end(ctx, (m.uid, m.sandbox.to_string()), call, Target::Removed)
    }
}

impl Handler<CreateContainer> for RuntimeClient {
    type Result = Answer<ContainerId>;

    fn handle(&mut self, m: CreateContainer, ctx: &mut Ctx<Self>) -> Self::Result {
        let runtime = self.deps.runtime.clone();
        let sandbox = m.sandbox.clone();
        let call = async move {
            let request = v1::CreateContainerRequest {
                pod_sandbox_id: m.sandbox.to_string(),
                config: Some((*m.config).clone()),
                sandbox_config: Some((*m.sandbox_config).clone()),
            };
            Ok(ContainerId::from(runtime.create_container(request).await?.container_id))
        };
        self.call(ctx, m.uid, Class::Container, call, |id| Target::Created(id.to_string(), sandbox))
    }
}

impl Handler<StartContainer> for RuntimeClient {
    type Result = Answer<()>;

    fn handle(&mut self, m: StartContainer, ctx: &mut Ctx<Self>) -> Self::Result {
        let runtime = self.deps.runtime.clone();
        let container_id = m.container.to_string();
        let target = Target::Started(container_id.clone());
        let call = async move { runtime.start_container(v1::StartContainerRequest { container_id }).await };
        self.call(ctx, m.uid, Class::Container, call, |()| target)
    }
}

impl Handler<StopContainer> for RuntimeClient {
    type Result = Answer<()>;

    fn handle(&mut self, m: StopContainer, ctx: &mut Ctx<Self>) -> Self::Result {
        let runtime = self.deps.runtime.clone();
        let container_id = m.container.to_string();
        let target = Target::Stopped(container_id.clone());
        let request = v1::StopContainerRequest { container_id, timeout: m.grace_s };
        let call = async move { or_gone(runtime.stop_container(request).await) };
        self.call(ctx, m.uid, Class::Stop, call, |()| target)
    }
}

impl Handler<RemoveContainer> for RuntimeClient {
    type Result = Answer<()>;

    fn handle(&mut self, m: RemoveContainer, ctx: &mut Ctx<Self>) -> Self::Result {
        let runtime = self.deps.runtime.clone();
        let request = v1::RemoveContainerRequest { container_id: m.container.to_string() };
        let call = async move { or_gone(runtime.remove_container(request).await) };
        self.end(ctx, (m.uid, m.container.to_string()), call, Target::Removed)
    }
}

impl Handler<ExecSync> for RuntimeClient {
    type Result = Answer<ExecOutcome>;

    fn handle(&mut self, m: ExecSync, ctx: &mut Ctx<Self>) -> Self::Result {
        let (runtime, limits, faults) = (self.deps.runtime.clone(), self.deps.limits.clone(), ctx.faults());
        // Whole seconds on the wire, where 0 means for ever.
        let seconds = m.timeout.as_secs().max(u64::from(!m.timeout.is_zero()));
        let request = v1::ExecSyncRequest {
            container_id: m.container.to_string(),
            cmd: m.command,
            timeout: i64::try_from(seconds).unwrap_or(i64::MAX),
        };
        Detached::new(async move {
            faults.hit("before-exec").await;
            let answer = limits.exec.run(&m.uid, runtime.exec_sync(request)).await.map_err(call_error)?;
            Ok(ExecOutcome { exit_code: answer.exit_code, stdout: answer.stdout, stderr: answer.stderr })
        })
    }
}
