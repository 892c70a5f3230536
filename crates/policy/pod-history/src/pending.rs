//! The rules of the verdict, in their order: what is refused, what is at its end, what is held up on its way.

use model::Timestamp;
use model::core::{ContainerStateTerminated, ContainerStatus};
use model::history::{End, Reason, Transition, What};

use crate::facts::{Facts, VolumeFacts, WorkerStage};
use crate::found::{Cause, Found};
use crate::record::open;

/// A call that takes longer than this is worth the name of a hang.
const SLOW_MS: i64 = 10_000;
/// Kinds of volumes whose content or address comes from the API server.
const OF_API: &[&str] = &["configMap", "secret", "projected", "downwardAPI", "persistentVolumeClaim", ""];
/// Waiting reasons that tell of an image.
const OF_IMAGES: &[&str] = &[
    "ErrImagePull",
    "ImagePullBackOff",
    "ErrImageNeverPull",
    "InvalidImageName",
    "ImageInspectError",
    "RegistryUnavailable",
    "SignatureValidationFailed",
];

pub(crate) fn refused(f: &Facts<'_>) -> Option<Found> {
    if let Some((reason, message)) = f.rejected {
        let pressure = reason == "Evicted";
        let cause = if pressure { Cause::NodePressure } else { Cause::AdmissionRefused };
        let found = Found::new(cause, "admission", "pod-manager", format!("admission refused it: {reason}"));
        return Some(found.since(f.started_at()).said(Some(message)).look("bosun get node"));
    }
    let evicted = f.status.is_some_and(|s| s.reason.as_deref() == Some("Evicted"));
    let asked = f.worker.and_then(|w| w.stop_reason).filter(|(reason, _)| *reason == "Evicted");
    if evicted || asked.is_some() {
        let said = f.status.and_then(|s| s.message.as_deref()).or(asked.map(|(_, message)| message));
        let now = if f.pressure.is_empty() { String::new() } else { format!(" ({} now)", f.pressure.join(", ")) };
        let summary = format!("it was evicted: the node ran short of something{now}, or the pod used more than it may");
        let since = f.condition("DisruptionTarget").and_then(|(_, since)| since);
        let found = Found::new(Cause::NodePressure, "evicted", "eviction-manager", summary);
        return Some(found.since(since).said(said).look("bosun get node").look("bosun top"));
    }
    None
}

pub(crate) fn ending(f: &Facts<'_>) -> Option<Found> {
    let deleted = f.pod.metadata.deletion_timestamp.is_some() || f.unwanted;
    let deleted_at = asked_at(f);
    let Some(worker) = f.worker.filter(|w| w.stop_requested || w.stage > WorkerStage::Syncing) else {
        return model::pod::is_terminal_phase(Some(f.phase())).then(|| completed(f));
    };
    match worker.stage {
        WorkerStage::Finished if deleted => Some(object_left(f).since(deleted_at)),
        WorkerStage::Finished => Some(completed(f)),
        _ => Some(being_stopped(f, deleted_at)),
    }
}

/// When somebody deleted it: the API server notes when its grace is over.
fn asked_at(f: &Facts<'_>) -> Option<Timestamp> {
    let over = Timestamp::from_api(f.pod.metadata.deletion_timestamp.as_ref()?);
    let grace_s = f.pod.metadata.deletion_grace_period_seconds.unwrap_or(0).max(0);
    Some(Timestamp(over.0.saturating_sub(grace_s.saturating_mul(1_000_000_000)).min(f.now.0)))
}

fn completed(f: &Facts<'_>) -> Found {
    let word = if f.phase() == "Succeeded" { "well" } else { "with a failure" };
    let reason = f.status.and_then(|s| s.reason.as_deref()).map(|r| format!(" ({r})")).unwrap_or_default();
    let said = f.status.and_then(|s| s.message.as_deref());
    Found::new(Cause::Completed, "done", "nobody", format!("it has run to its end, {word}{reason}")).said(said)
}

/// Nothing of it is left here but its object.
fn object_left(f: &Facts<'_>) -> Found {
    if let Some(error) = f.api_away().filter(|_| f.from_api) {
        let summary = "it is done here; its object is to be deleted at the API server, which does not answer";
        let found = Found::new(Cause::ApiAway, "delete the object", "status-syncer", summary);
        return found.waits_for("the API server").said(Some(error)).look("bosun get node");
    }
    let finalizers = f.pod.metadata.finalizers.as_deref().unwrap_or_default();
    if !finalizers.is_empty() {
        let names = finalizers.join(", ");
        let summary = format!("it is done here; its object is kept by finalizers: {names}");
        let found = Found::new(Cause::TerminatingFinalizer, "delete the object", "who set the finalizers", summary);
        return found.waits_for(format!("finalizers {names} to be removed at the API server"));
    }
    Found::new(Cause::Ending, "delete the object", "status-syncer", "it is done here; its object is about to go")
}

fn being_stopped(f: &Facts<'_>, asked: Option<Timestamp>) -> Found {
    let latest = newest_open(f, |t| matches!(t.what, What::Stop | What::CleanUp | What::Look));
    let of_api = f.pod.metadata.deletion_grace_period_seconds;
    let grace = f.worker.and_then(|w| w.grace_s).or(of_api).or_else(|| model::pod::spec_grace_seconds(f.pod));
    let grace_s = grace.unwrap_or(30).max(0);
    match latest.map(|t| (t.what, t.last)) {
        Some((What::CleanUp, since)) => match f.volumes.unwrap_or_default().iter().find(|v| is_in_the_way(v)) {
            Some(volume) => of_volume(f, volume, "give back volumes", Some(since)),
            None => Found::new(Cause::Ending, "clean up", "pod-worker", "what it had is being given back")
                .since(Some(since)),
        },
        Some((What::Stop, since)) => {
            let until = since.plus(std::time::Duration::from_secs(u64::try_from(grace_s).unwrap_or(0)));
            if millis(until, f.now) > SLOW_MS {
                let summary = format!("its grace of {grace_s} s is over, and the runtime has not stopped it");
                return hangs("stop what runs", "StopContainer or StopPodSandbox", summary, Some(since))
                    .said(of_runtime(f));
            }
            let summary = format!("its containers have {grace_s} s to end");
            Found::new(Cause::Ending, "stop what runs", "its own processes", summary)
                .since(Some(since))
                .until(Some(until))
                .waits_for("processes and preStop hooks to end")
        }
        Some((_, since)) if millis(since, f.now) > SLOW_MS => {
            let summary = "the runtime does not tell what it has of the pod";
            hangs("look", "PodSandboxStatus or ContainerStatus", summary, Some(since)).said(of_runtime(f))
        }
        _ => ended_badly(f, asked),
    }
}

fn ended_badly(f: &Facts<'_>, asked: Option<Timestamp>) -> Found {
    let failed = newest(f, |t| t.end == End::Failed);
    let error = f.worker.and_then(|w| w.error);
    match (failed.map(|t| t.what), error) {
        (Some(What::Stop | What::Look), Some(error)) => {
            let summary = "the runtime cannot stop it; it is tried again";
            hangs("stop what runs", "StopContainer or StopPodSandbox", summary, asked).said(Some(error))
        }
        (Some(What::CleanUp), Some(error)) => match f.volumes.unwrap_or_default().iter().find(|v| is_in_the_way(v)) {
            Some(volume) => of_volume(f, volume, "give back volumes", asked),
            None => Found::new(Cause::Ending, "clean up", "pod-worker", "what it had cannot be given back yet")
                .since(asked)
                .said(Some(error))
                .look("bosun get volumes"),
        },
        (_, error) => Found::new(Cause::Ending, "stop", "pod-worker", "it is being ended").since(asked).said(error),
    }
}

pub(crate) fn starting(f: &Facts<'_>) -> Option<Found> {
    let rules: &[fn(&Facts<'_>) -> Option<Found>] =
        &[undecided, turn, runtime_away, network, under_way, waiting, failed, init_runs, probes, gates];
    rules.iter().find_map(|rule| rule(f))
}

fn undecided(f: &Facts<'_>) -> Option<Found> {
    if f.undecided {
        if let Some(error) = f.api_away().filter(|_| f.from_api) {
            let summary =
                "it comes from the store of pods, and may run only once the API server says that it is still its turn";
            let found = Found::new(Cause::ApiAway, "admission", "api-source", summary).waits_for("the API server");
            return Some(found.said(Some(error)).look("bosun get node"));
        }
        let summary = "admission has not let it in yet: others may have to end first";
        return Some(
            Found::new(Cause::AdmissionPending, "admission", "pod-manager", summary).waits_for("room on the node"),
        );
    }
    f.worker.is_none().then(|| {
        Found::new(Cause::Starting, "admission", "pod-manager", "it has no worker yet").look("bosun get actors")
    })
}

fn turn(f: &Facts<'_>) -> Option<Found> {
    f.worker.filter(|w| w.stage == WorkerStage::Waiting)?;
    let since = newest_open(f, |t| t.what == What::Turn).map(|t| t.last);
    let summary = "another pod of the same name and namespace has not ended here";
    let found = Found::new(Cause::WaitsForTurn, "wait for its turn", "pod-manager", summary);
    Some(found.since(since).waits_for("the other pod's end").look("bosun get pods -o wide"))
}

fn runtime_away(f: &Facts<'_>) -> Option<Found> {
    let ready = f.condition("Ready").is_some_and(|(ready, _)| ready);
    if (f.runtime.ready && !f.runtime.stale) || ready {
        return None;
    }
    let since = newest_open(f, |_| true).map(|t| t.last);
    let summary = "the container runtime does not answer, or is not ready";
    Some(hangs("look", "the runtime", summary, since).said(of_runtime(f)))
}

fn network(f: &Facts<'_>) -> Option<Found> {
    let why = f.runtime.network.filter(|_| !model::pod::is_host_network(f.pod))?;
    let latest = newest(f, |t| !t.what.is_decision())?;
    (latest.what == What::Network).then(|| {
        Found::new(
            Cause::NetworkNotReady,
            "pod network",
            "the network plugin of the node",
            "the pod network is not ready",
        )
        .since(Some(latest.at))
        .waits_for("the runtime to say NetworkReady")
        .said(Some(why))
        .look("bosun get node")
    })
}

fn under_way(f: &Facts<'_>) -> Option<Found> {
    let t = newest_open(f, |t| t.what != What::Hold)?;
    let name = f.history.map_or("", |h| h.name(t));
    let since = Some(t.last);
    let slow = millis(t.last, f.now) > SLOW_MS;
    let call = match t.what {
        What::Pull => return Some(pulling(f, name, t)),
        What::Volumes => return Some(volumes(f, since, None)),
        What::PostStart => {
            let summary = format!("the postStart hook of {name} runs");
            let found = Found::new(Cause::HookRuns, format!("postStart of {name}"), "its own hook", summary);
            return Some(found.since(since).waits_for("the hook to end"));
        }
        What::Cgroup if slow => {
            let summary = "its cgroup is not made yet";
            return Some(Found::new(Cause::CgroupFails, "cgroup", "cgroup-manager", summary).since(since));
        }
        What::Look => "PodSandboxStatus or ContainerStatus",
        What::Sandbox => "RunPodSandbox",
        What::Create => "CreateContainer",
        What::Start => "StartContainer",
        _ => return None,
    };
    let step = if name.is_empty() { call.to_owned() } else { format!("{call} of {name}") };
    if slow {
        let summary = format!("the runtime has not answered {call}");
        return Some(hangs(&step, call, summary, since).said(of_runtime(f)));
    }
    let quick = !matches!(t.what, What::Look);
    quick.then(|| {
        Found::new(Cause::Starting, step, "runtime-client", "it is being started").since(since).waits_for(call)
    })
}

fn pulling(f: &Facts<'_>, name: &str, t: &Transition) -> Found {
    let image = image_of(f, name);
    let step = format!("image of {name}");
    if let Some(found) = f.containers().find(|c| c.name == name).and_then(|c| image_missing(f, c)) {
        return found;
    }
    // It is pulled under its whole name.
    let is_it = |p: &str| {
        let with_tag = p.strip_prefix(&*image).is_some_and(|rest| rest.is_empty() || rest.starts_with(':'));
        with_tag || p.ends_with(&format!("/{image}")) || p.contains(&format!("/{image}:"))
    };
    let is_pulled = f.pulls.pulling.iter().any(|p| is_it(p));
    if !is_pulled && f.pulls.queued > 0 {
        let summary = format!("image {image} waits for other pulls ({} in the queue)", f.pulls.queued);
        let found = Found::new(Cause::PullQueued, step, "image-manager", summary);
        return found.since(Some(t.last)).waits_for(format!("{} pulls under way", f.pulls.pulling.len()));
    }
    let summary = format!("image {image} is being pulled");
    Found::new(Cause::ImagePulling, step, "the registry", summary)
        .since(Some(t.last))
        .waits_for(format!("PullImage {image}"))
        .look("bosun get events")
}

/// Of a container, or of a volume that is one.
fn image_of(f: &Facts<'_>, name: &str) -> String {
    let of_container = model::pod::find_container(f.pod, name).and_then(|(_, c)| c.image);
    let of_volume = || {
        let volumes = f.pod.spec.iter().flat_map(|s| s.volumes.iter().flatten());
        volumes.filter(|v| v.name == name).find_map(|v| v.image.as_ref()?.reference.clone())
    };
    of_container.or_else(of_volume).unwrap_or_default()
}

fn image_missing(f: &Facts<'_>, c: &ContainerStatus) -> Option<Found> {
    let waiting = c.state.as_ref()?.waiting.as_ref()?;
    let reason = waiting.reason.as_deref().filter(|r| OF_IMAGES.contains(r))?;
    let image = image_of(f, &c.name);
    let pulled = |t: &Transition| t.what == What::Pull && t.end == End::Failed && name_of(f, t) == c.name;
    let first = f.history.and_then(|h| h.transitions.iter().find(|t| pulled(t)));
    // What the registry said is with the failure; while it backs off, the status only says that.
    let told = newest(f, |t| pulled(t) && t.text.as_deref().is_some_and(|s| !s.starts_with("ImagePullBackOff")));
    let said = told.and_then(|t| t.text.as_deref()).or(waiting.message.as_deref());
    let summary = format!("image {image} cannot be had: {reason}");
    let found = Found::new(Cause::ImageMissing, format!("image of {}", c.name), "image-manager", summary);
    let waits = if reason == "ErrImageNeverPull" { "somebody to bring the image" } else { "the next try" };
    Some(found.since(first.map(|t| t.at)).waits_for(waits).said(said).look("bosun get events"))
}

/// Why containers wait, as their statuses say.
fn waiting(f: &Facts<'_>) -> Option<Found> {
    f.containers().find_map(|c| {
        let waiting = c.state.as_ref()?.waiting.as_ref()?;
        let reason = waiting.reason.as_deref()?;
        match reason {
            "CrashLoopBackOff" => Some(crashes(f, c)),
            _ if OF_IMAGES.contains(&reason) => image_missing(f, c),
            "CreateContainerConfigError" | "CreateContainerError" | "RunContainerError" => {
                let summary = format!("container {} cannot be started: {reason}", c.name);
                let owner = if reason == "CreateContainerConfigError" { "pod-worker" } else { "the runtime" };
                let of = newest(f, |t| t.end == End::Failed && name_of(f, t) == c.name);
                let found = Found::new(Cause::ContainerFails, format!("start {}", c.name), owner, summary);
                let said = of_api_when_away(f).or(waiting.message.clone());
                Some(found.since(of.map(|t| t.at)).waits_for("the next try").said(said))
            }
            "PostStartHookError" => {
                let summary = format!("the postStart hook of {} failed", c.name);
                let found = Found::new(Cause::HookFails, format!("postStart of {}", c.name), "its own hook", summary);
                Some(found.said(waiting.message.as_deref()))
            }
            _ => None,
        }
    })
}

fn of_api_when_away(f: &Facts<'_>) -> Option<String> {
    f.api_away().map(|error| format!("the API server does not answer: {error}"))
}

/// A container that ended and has to wait. The true cause may be a probe that failed.
fn crashes(f: &Facts<'_>, c: &ContainerStatus) -> Found {
    let hold = newest(f, |t| t.what == What::Hold && name_of(f, t) == c.name);
    let until = hold.map(|t| t.at.plus(std::time::Duration::from_millis(t.took_ms.into())));
    let ended = c.last_state.as_ref().and_then(|s| s.terminated.as_ref());
    let said = ended
        .map(how_it_ended)
        .or_else(|| c.state.as_ref().and_then(|s| s.waiting.as_ref()).and_then(|w| w.message.clone()));
    let is_init = f.init().any(|i| i.name == c.name) && !is_sidecar(f, &c.name);
    let step = format!("back-off of {}", c.name);
    let times = c.restart_count;
    let (cause, summary) = match killed_by_probe(f, &c.name) {
        Some(kind) => {
            (Cause::ProbeFailing, format!("container {} is restarted because its {kind} probe fails", c.name))
        }
        None if is_init => {
            (Cause::InitLoop, format!("init container {} fails again and again ({times} restarts)", c.name))
        }
        None => (Cause::CrashLoop, format!("container {} ends again and again ({times} restarts)", c.name)),
    };
    let waits = "its back-off to be over";
    let since = ended.and_then(|t| t.finished_at.as_ref()).map(Timestamp::from_api).or(hold.map(|t| t.at));
    let found = Found::new(cause, step, "its own process", summary).since(since).until(until).waits_for(waits);
    found.said(probe_message(f, &c.name, cause).or(said)).look(previous_log(f, &c.name))
}

fn probe_message(f: &Facts<'_>, container: &str, cause: Cause) -> Option<String> {
    let told = f.probes.iter().filter(|p| p.container == container && cause == Cause::ProbeFailing);
    told.filter_map(|p| p.message.clone()).next()
}

fn previous_log(f: &Facts<'_>, container: &str) -> String {
    let (namespace, name) = (model::pod::namespace(f.pod), model::pod::name(f.pod));
    format!("bosun logs {namespace}/{name} -c {container} --previous")
}

fn how_it_ended(t: &ContainerStateTerminated) -> String {
    let reason = t.reason.as_deref().map(|r| format!(" ({r})")).unwrap_or_default();
    let message = t.message.as_deref().filter(|m| !m.is_empty()).map(|m| format!(": {m}")).unwrap_or_default();
    format!("exited with code {}{reason}{message}", t.exit_code)
}

/// The latest stop of this container was for a probe.
fn killed_by_probe(f: &Facts<'_>, container: &str) -> Option<&'static str> {
    let kill = newest(f, |t| t.what == What::Kill && name_of(f, t) == container)?;
    match kill.reason {
        Reason::KilledLiveness => Some("liveness"),
        Reason::KilledStartup => Some("startup"),
        _ => None,
    }
}

/// A step failed before any container had its turn.
fn failed(f: &Facts<'_>) -> Option<Found> {
    let error = f.worker.and_then(|w| w.error)?;
    let t = newest(f, |t| t.end == End::Failed || (t.end == End::Done && t.what != What::Hold))?;
    if t.end != End::Failed {
        return None;
    }
    let said = t.text.as_deref().unwrap_or(error);
    let since = Some(t.at);
    Some(match t.what {
        What::Volumes => volumes(f, since, Some(said)),
        What::Sandbox => Found::new(Cause::SandboxFails, "sandbox", "the runtime", "its sandbox cannot be made")
            .since(since)
            .waits_for("the next try")
            .said(Some(said))
            .look("bosun get events"),
        What::Cgroup => Found::new(Cause::CgroupFails, "cgroup", "cgroup-manager", "its cgroup cannot be made")
            .since(since)
            .said(Some(said)),
        What::Look => {
            hangs("look", "PodSandboxStatus or ContainerStatus", "the runtime does not tell what it has", since)
                .said(Some(said))
        }
        _ => return None,
    })
}

fn volumes(f: &Facts<'_>, since: Option<Timestamp>, said: Option<&str>) -> Found {
    let all = match f.volumes {
        Ok(all) => all,
        Err(error) => {
            let found = Found::new(Cause::VolumeWaits, "volumes", "volume-manager", "its volumes are not there");
            return found.since(since).said(Some(said.unwrap_or(error)));
        }
    };
    let waits = || all.iter().filter(|v| !v.mounted);
    let first =
        waits().find(|v| v.call.is_some()).or_else(|| waits().find(|v| v.error.is_some())).or_else(|| waits().next());
    match first {
        Some(volume) => of_volume(f, volume, "volumes", since),
        None => {
            let summary = "its volumes are not there";
            Found::new(Cause::VolumeWaits, "volumes", "volume-manager", summary)
                .since(since)
                .said(said)
                .look("bosun get volumes")
        }
    }
}

fn of_volume(f: &Facts<'_>, v: &VolumeFacts, step: &str, since: Option<Timestamp>) -> Found {
    let kind = if v.kind.is_empty() { String::new() } else { format!(" ({})", v.kind) };
    let name = claim_of(f, v);
    let claim = if name.is_empty() { String::new() } else { format!(" of claim {name}") };
    let needs_api = OF_API.contains(&v.kind.as_str()) || !name.is_empty();
    if let Some(error) = f.api_away().filter(|_| needs_api && v.call.is_none()) {
        let summary = format!("volume {}{kind}{claim} needs the API server, which does not answer", v.name);
        let found = Found::new(Cause::ApiAway, step, "object-store", summary).since(v.since.or(since));
        return found
            .waits_for("the API server")
            .said(Some(v.error.as_deref().unwrap_or(error)))
            .look("bosun get node");
    }
    let (owner, waits, since) = match &v.call {
        Some((call, at)) => ("the CSI driver", format!("{call} of {}", v.driver), Some(*at)),
        None => ("volume-manager", format!("volume {}", v.name), v.since.or(since)),
    };
    let how = match (&v.call, step) {
        (Some((call, _)), _) => format!(": {} has not answered {call}", v.driver),
        (None, "volumes") => " is not there yet".to_owned(),
        (None, _) => " does not go".to_owned(),
    };
    let summary = format!("volume {}{kind}{claim}{how}", v.name);
    Found::new(Cause::VolumeWaits, step, owner, summary)
        .since(since)
        .waits_for(waits)
        .said(v.error.as_deref())
        .look("bosun get volumes")
}

/// While a volume waits to be attached, only the pod names its claim.
fn claim_of<'a>(f: &Facts<'a>, v: &'a VolumeFacts) -> &'a str {
    if !v.claim.is_empty() {
        return &v.claim;
    }
    let mut volumes = f.pod.spec.iter().flat_map(|s| s.volumes.iter().flatten());
    let claim = volumes.find(|w| w.name == v.name).and_then(|w| w.persistent_volume_claim.as_ref());
    claim.map_or("", |c| &c.claim_name)
}

fn is_in_the_way(v: &VolumeFacts) -> bool {
    v.call.is_some() || v.error.is_some()
}

fn init_runs(f: &Facts<'_>) -> Option<Found> {
    let running = |c: &&ContainerStatus| c.state.as_ref().is_some_and(|s| s.running.is_some());
    if let Some(c) = f.init().filter(running).find(|c| !is_sidecar(f, &c.name)) {
        let since = c.state.as_ref().and_then(|s| s.running.as_ref()?.started_at.as_ref()).map(Timestamp::from_api);
        let (cause, words) = match c.restart_count {
            0 => (Cause::InitRunning, "runs".to_owned()),
            n => (Cause::InitLoop, format!("failed before and runs again ({n} restarts)")),
        };
        let summary = format!("init container {} {words}", c.name);
        let found = Found::new(cause, format!("init container {}", c.name), "its own process", summary);
        let (namespace, name) = (model::pod::namespace(f.pod), model::pod::name(f.pod));
        let look = format!("bosun logs {namespace}/{name} -c {}", c.name);
        return Some(found.since(since).waits_for("it to end").look(look));
    }
    let failed =
        |c: &&ContainerStatus| c.state.as_ref().and_then(|s| s.terminated.as_ref()).is_some_and(|t| t.exit_code != 0);
    let c = f.init().find(failed)?;
    let ended = c.state.as_ref().and_then(|s| s.terminated.as_ref())?;
    let summary = format!("init container {} failed; it is about to start again", c.name);
    let found = Found::new(Cause::InitLoop, format!("init container {}", c.name), "its own process", summary);
    let since = ended.finished_at.as_ref().map(Timestamp::from_api);
    Some(found.since(since).said(Some(how_it_ended(ended))).look(previous_log(f, &c.name)))
}

fn probes(f: &Facts<'_>) -> Option<Found> {
    let running =
        |name: &str| f.containers().any(|c| c.name == name && c.state.as_ref().is_some_and(|s| s.running.is_some()));
    let not_ready = f.condition("Ready").is_none_or(|(ready, _)| !ready);
    let mut of_running = f.probes.iter().filter(|p| running(&p.container) && not_ready);
    let p = of_running.clone().find(|p| p.failed).or_else(|| of_running.next())?;
    let restarted = killed_by_probe(f, &p.container);
    let failing = p.failed || p.message.is_some() || restarted.is_some();
    let kind = p.kind.to_lowercase();
    let (cause, how) =
        if failing { (Cause::ProbeFailing, "fails") } else { (Cause::ProbePending, "has not succeeded yet") };
    let summary = format!("the {kind} probe of container {} {how}", p.container);
    let since = f.condition("Ready").and_then(|(_, since)| since);
    let found = Found::new(cause, format!("{kind} probe of {}", p.container), "its own process", summary);
    let (namespace, name) = (model::pod::namespace(f.pod), model::pod::name(f.pod));
    let look = format!("bosun logs {namespace}/{name} -c {}", p.container);
    Some(found.since(since).waits_for("the probe to succeed").said(p.message.as_deref()).look(look))
}

fn gates(f: &Facts<'_>) -> Option<Found> {
    let (_, since) = f.condition("Ready").filter(|(ready, _)| !ready)?;
    f.condition("ContainersReady").filter(|(ready, _)| *ready)?;
    let gates = f.pod.spec.as_ref()?.readiness_gates.as_deref()?;
    let closed = gates.iter().find(|g| f.condition(&g.condition_type).is_none_or(|(open, _)| !open))?;
    let summary = format!("its containers are ready; condition {} is not True", closed.condition_type);
    let found = Found::new(Cause::ReadinessGate, "readiness gates", "who sets the condition", summary);
    Some(found.since(since).waits_for(format!("condition {}", closed.condition_type)))
}

fn hangs(step: &str, call: &str, summary: impl Into<String>, since: Option<Timestamp>) -> Found {
    let found = Found::new(Cause::RuntimeHangs, step, "the container runtime", summary);
    found.since(since).waits_for(call).look("bosun get node").look("crictl info")
}

fn of_runtime<'a>(f: &Facts<'a>) -> Option<&'a str> {
    f.runtime.error.or(f.worker.and_then(|w| w.error))
}

fn is_sidecar(f: &Facts<'_>, name: &str) -> bool {
    model::pod::init_containers(f.pod).iter().any(|c| c.name == name && model::pod::is_sidecar(c))
}

fn name_of<'a>(f: &Facts<'a>, t: &Transition) -> &'a str {
    f.history.map_or("", |h| h.name(t))
}

fn newest<'a>(f: &Facts<'a>, so: impl Fn(&Transition) -> bool) -> Option<&'a Transition> {
    // What was counted again is newer than its place says.
    f.history?.transitions.iter().filter(|t| so(t)).max_by_key(|t| t.last)
}

fn newest_open<'a>(f: &Facts<'a>, so: impl Fn(&Transition) -> bool) -> Option<&'a Transition> {
    open(f.history?).filter(|t| so(t)).last()
}

fn millis(from: Timestamp, to: Timestamp) -> i64 {
    to.nanos_since(from) / 1_000_000
}
