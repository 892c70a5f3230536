//! Starts of containers: those that are asked for, and those that a supervisor tells of, as somebody asked who is gone.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cri_api::v1;
use oci_spec::runtime::Spec;
use pod_supervisor::wire::{Answer, Request};
use pod_supervisor::{ContainerPlan, ExitRecord, Held};
use tracing::{info, warn};

use crate::blocking::Class;
use crate::error::{At, Done, RuntimeError};
use crate::records::SandboxRecord;
use crate::runtime::{Container, Runtime};
use crate::supervisor::{self, SupervisorError};
use crate::{bundle, cgroups, ends};

/// Exit code of a container that could not be started, as containerd has it.
const START_FAILED: i32 = 128;

/// Starts a container.
pub(crate) async fn start(rt: &Arc<Runtime>, id: &str) -> Done<()> {
    let container = rt.container(id)?;
    let _work = container.work.lock().await;
    let record = container.record();
    if record.state() != v1::ContainerState::ContainerCreated {
        return Err(RuntimeError::Refused(format!("container {id:?} was started already")));
    }
    let pod = rt.pod(&record.pod)?;
    // What the supervisor starts is in its cgroup, by which it is found should that die.
    pod.joined().await;
    let sandbox = pod.record();
    let bundle = rt.options.bundle(&record.pod, &record.id);
    let cgroup = match prepare(rt, &container, &bundle, &sandbox).await {
        Ok(cgroup) => cgroup,
        Err(e) => return failed(rt, &container, e).await,
    };
    let plan = ContainerPlan {
        id: record.id.clone(),
        bundle,
        log: PathBuf::from(&record.log_path),
        stdin: record.config.stdin,
        stdin_once: record.config.stdin_once,
        tty: record.config.tty,
        oom_file: cgroups::oom_file(rt, &sandbox, id),
        cgroup,
    };
    let asked = supervisor::ask(&rt.socket(&record.pod), id, &Request::Run { container: plan }).await;
    match asked {
        Ok(Answer::Started { pid, started_at }) => {
            take_in(rt, &container, pid, started_at);
            Ok(())
        }
        Ok(other) => Err(SupervisorError::Strange(format!("{other:?}")).into()),
        Err(e @ SupervisorError::Failed(_)) => not_started(rt, &container, e).await,
        Err(e @ SupervisorError::Gone) => {
            // It may have died over this start.
            ends::left_by_supervisor(rt, &container.pod).await;
            if ends::may_run(rt, &container) {
                ends::make(rt, &container, ends::LOST).await;
            }
            failed(rt, &container, e).await
        }
        Err(e) => Err(e.into()),
    }
}

/// What a supervisor is left to do without the OCI runtime.
#[derive(Clone, Copy)]
struct Left {
    /// Commands: what starts the pod's containers makes nothing else.
    commands: bool,
    /// The container itself: the pod asks for no runtime by name, and kernel and cgroups are such that the supervisor knows them.
    start: bool,
    /// Those that have profiles: it loads filters of seccomp and takes AppArmor's on.
    confined: bool,
}

impl Left {
    fn to(rt: &Runtime, sandbox: &SandboxRecord) -> Self {
        let commands = rt.handlers.leaves_commands(&sandbox.runtime_handler);
        let start = commands && sandbox.runtime_handler.is_empty() && !rt.options.systemd_cgroup;
        Self { commands, start, confined: rt.options.confines(&sandbox.id) }
    }
}

/// What is to be there before a container is started: the filter of its seccomp profile, for who becomes a process of it without the OCI runtime, and
/// the cgroup of one that its supervisor can start itself, which is answered.
async fn prepare(
    rt: &Arc<Runtime>,
    container: &Container,
    bundle: &Path,
    sandbox: &SandboxRecord,
) -> Done<Option<String>> {
    let left = Left::to(rt, sandbox);
    if !left.commands {
        return Ok(None);
    }
    let (shared, bundle) = (Arc::clone(rt), bundle.to_owned());
    let (pod, id) = (container.pod.clone(), container.id.clone());
    let made = move || {
        let spec = bundle::spec(&bundle)?;
        if container_spec::has_profile(&spec) && !left.confined {
            return Ok(None);
        }
        let can_be_held = write_filter(&spec, &bundle, &shared.handlers.node().architecture)?;
        if !(left.start && can_be_held && container_spec::is_plain_container(&spec)) {
            return Ok(None);
        }
        // One that was begun has it, with its rules; the supervisor will say so.
        let is_new = !shared.options.is_own_start(&pod, &id);
        own_cgroup(&shared, &spec, &bundle, is_new)
    };
    rt.blocking.run(Class::State, made).await
}

/// Whether the supervisor can hold processes of a container to its seccomp profile, if it has one: then the filter is written.
fn write_filter(spec: &Spec, bundle: &Path, architecture: &str) -> Done<bool> {
    let Some(profile) = spec.linux().as_ref().and_then(|l| l.seccomp().as_ref()) else { return Ok(true) };
    let filter = container_spec::profile_filter(profile, architecture);
    filter.map_or(Ok(false), |filter| bundle::write_filter(bundle, &filter).map(|()| true))
}

/// The path of a plain container's cgroup. Of version 2 it is made here, as rules for devices take a call that only one crate may make.
fn own_cgroup(rt: &Runtime, spec: &Spec, bundle: &Path, is_new: bool) -> Done<Option<String>> {
    let linux = spec.linux().as_ref();
    let path = linux.and_then(|l| l.cgroups_path().as_ref()?.to_str().map(str::to_owned));
    if let (Some(path), true) = (&path, rt.handlers.node().cgroup_v2 && is_new) {
        let limits = linux.and_then(|l| l.resources().as_ref()).map(cgroups::own_limits).transpose();
        cgroups::make_v2(rt, path, &limits.at("read", bundle)?.unwrap_or_default())?;
    }
    Ok(path)
}

/// The supervisor says no. It may be as it has started the container already, for who died meanwhile.
async fn not_started(rt: &Arc<Runtime>, container: &Arc<Container>, e: SupervisorError) -> Done<()> {
    match held(rt, container).await {
        Ok(None) | Err(SupervisorError::Gone) => failed(rt, container, e).await,
        Ok(Some(Held { exit: Some(exit), .. })) => {
            ends::take_in(rt, container, exit, "", "").await;
            Err(e.into())
        }
        Ok(Some(Held { pid, started_at, .. })) if started_at != 0 => {
            take_in(rt, container, pid, started_at);
            Ok(())
        }
        Ok(Some(_)) => Err(RuntimeError::Refused(format!("container {:?} is being started", container.id))),
        Err(other) => Err(other.into()),
    }
}

/// What the supervisor knows of a container.
async fn held(rt: &Arc<Runtime>, container: &Container) -> Result<Option<Held>, SupervisorError> {
    match supervisor::ask_soon(&rt.socket(&container.pod), &container.id, &Request::State).await? {
        Answer::State { containers } => Ok(containers.into_iter().find(|held| held.id == container.id)),
        other => Err(SupervisorError::Strange(format!("{other:?}"))),
    }
}

/// Notes that a container could not be started.
async fn failed(rt: &Arc<Runtime>, container: &Arc<Container>, e: impl Into<RuntimeError>) -> Done<()> {
    let e = e.into();
    let exit = ExitRecord { exit_code: START_FAILED, started_at: 0, finished_at: pod_supervisor::now(), oom: false };
    container.change(|r| {
        if r.exit.is_none() {
            (r.reason, r.message) = ("StartError".into(), e.to_string());
            r.exit = Some(exit);
        }
    });
    container.ended.send_replace(true);
    rt.write_container(container).await?;
    Err(e)
}

/// Takes in that a container was started. Told twice is told once; an end that was told before is not undone.
pub(crate) fn take_in(rt: &Arc<Runtime>, container: &Arc<Container>, pid: i32, started_at: i64) {
    let mut first = false;
    container.change(|r| {
        first = r.started_at == 0 && r.exit.is_none();
        (r.pid, r.started_at) = (pid, started_at);
    });
    if !first {
        return;
    }
    // The supervisor knows of it, and so does its record of the end: nobody has to wait for the disk.
    let (shared, written) = (Arc::clone(rt), Arc::clone(container));
    tokio::spawn(async move {
        if let Err(e) = shared.write_container(&written).await {
            warn!(container = written.id, "that it was started is not in its record yet: {e}");
        }
    });
    rt.happened(&container.id, &container.pod, v1::ContainerEventType::ContainerStartedEvent);
    info!(container = container.id, "started");
}
