//! Replays what a kubelet 1.36.2 wrote: from each recorded status the observation behind it is rebuilt, and `generate`
//! (with the sandbox and teardown patches that a kubelet uses too) must come to the same status, field by field.
//!
//! Left out: pod-level `resources`, since after the containers ended, a kubelet shows
//! the remains of a cgroup (`9007199254740988Ki`).

use std::fs;
use std::path::{Path, PathBuf};

use model::core::{ContainerState as ApiState, ContainerStatus, Pod, PodStatus};
use model::probe::ProbeVerdict;
use model::runtime::{ContainerObservation, ContainerState, PodObservation, SandboxObservation};
use model::{PodUid, Timestamp, pod};
use serde_json::Value;

use crate::containers::{bare_id, ended, is_plain_init, is_running, last_end};
use crate::input::WaitingReason;
use crate::testing::Case;
use crate::{generate, merge, patch, reasons, store};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/golden/kubelet-1.36.2")
}

fn read(case: &str, file: &str) -> Value {
    let path = folder().join(case).join(file);
    let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).unwrap()
}

/// The observation that the recorded status was made from.
fn observation(pod: &Pod, recorded: &PodStatus, sandbox_ready: bool) -> PodObservation {
    let mut seen = PodObservation::empty(PodUid::from("u"), pod::namespace(pod), pod::name(pod));
    let host_network = pod::is_host_network(pod);
    let created = recorded.start_time.as_ref().map_or(Timestamp::ZERO, Timestamp::from_api);
    seen.sandboxes.push(SandboxObservation {
        created_at: created,
        host_network: Some(host_network),
        ..SandboxObservation::new("s", 0, sandbox_ready)
    });
    if !host_network {
        seen.ips = recorded.pod_ips.iter().flatten().map(|p| p.ip.parse().unwrap()).collect();
    }
    for status in recorded.init_container_statuses.iter().chain(&recorded.container_statuses).flatten() {
        let (current, last) = (status.state.as_ref().unwrap(), status.last_state.as_ref());
        let waiting = current.waiting.is_some();
        if !bare_id(status).is_empty() && !waiting {
            seen.containers.push(instance(status, current, bare_id(status), 2));
        }
        if let Some(end) = last_end(status) {
            let id = end.container_id.as_deref().unwrap().split_once("://").unwrap().1;
            let count = if waiting { status.restart_count } else { status.restart_count - 1 };
            let older = ContainerStatus { restart_count: count, ..status.clone() };
            seen.containers.push(instance(&older, last.unwrap(), id, 1));
        }
    }
    seen.normalise();
    seen
}

fn instance(status: &ContainerStatus, state: &ApiState, id: &str, order: i64) -> ContainerObservation {
    let time = |t: &Option<_>| t.as_ref().map_or(Timestamp::ZERO, Timestamp::from_api);
    let end = state.terminated.clone();
    let text = |s: Option<&String>| s.cloned().unwrap_or_default();
    ContainerObservation {
        created_at: Timestamp::from_secs(order),
        started_at: match &end {
            Some(e) => time(&e.started_at),
            None => time(&state.running.as_ref().unwrap().started_at),
        },
        finished_at: end.as_ref().map_or(Timestamp::ZERO, |e| time(&e.finished_at)),
        exit_code: end.as_ref().map_or(0, |e| e.exit_code),
        image: status.image.clone(),
        image_ref: status.image_id.clone(),
        reason: text(end.as_ref().and_then(|e| e.reason.as_ref())),
        message: text(end.as_ref().and_then(|e| e.message.as_ref())),
        restart_count: u32::try_from(status.restart_count).unwrap(),
        ..ContainerObservation::new(
            id,
            status.name.clone(),
            "s",
            if end.is_some() { ContainerState::Exited } else { ContainerState::Running },
        )
    }
}

fn condition_is_true(status: &PodStatus, type_: &str) -> bool {
    status.conditions.iter().flatten().any(|c| c.type_ == type_ && c.status == "True")
}

/// Everything `generate` needs, rebuilt from the recorded status.
fn rebuilt(pod: &Pod, recorded: &PodStatus) -> Case {
    let mut case = Case::new(pod.clone(), crate::testing::Seen::nothing());
    case.host_ips = recorded.host_ips.iter().flatten().map(|h| h.ip.parse().unwrap()).collect();
    case.seen = observation(pod, recorded, condition_is_true(recorded, "PodReadyToStartContainers"));
    if !condition_is_true(recorded, "PodReadyToStartContainers")
        && case.seen.containers.is_empty()
        && pod.metadata.deletion_timestamp.is_none()
    {
        case.seen.sandboxes.clear();
    }
    for status in recorded.init_container_statuses.iter().chain(&recorded.container_statuses).flatten() {
        let waiting = status.state.as_ref().and_then(|s| s.waiting.as_ref());
        let reason = waiting.and_then(|w| w.reason.clone()).unwrap_or_default();
        if let Some(w) = waiting
            && ![reasons::CONTAINER_CREATING, reasons::POD_INITIALIZING].contains(&reason.as_str())
        {
            let why = WaitingReason { reason, message: w.message.clone().unwrap_or_default() };
            case.reasons.insert(status.name.clone(), why);
        }
        if is_running(status) && !is_plain_init(pod, &status.name) {
            let verdict = |good: bool| Some(if good { ProbeVerdict::Success } else { ProbeVerdict::Failure });
            let id = bare_id(status).to_owned();
            case = case.startup(&status.name, &id, verdict(status.started == Some(true)));
            case = case.readiness(&status.name, &id, verdict(status.ready));
        }
    }
    case
}

/// What a sync would make of this step.
fn synced(case: &mut Case, held: Option<&PodStatus>, recorded: &PodStatus) -> PodStatus {
    if let Some(why) = recorded.message.as_deref().and_then(|m| m.strip_prefix("Pod was rejected: ")) {
        return patch::rejected(&case.pod, recorded.reason.as_deref().unwrap(), why);
    }
    case.base = held.cloned();
    let containers = recorded.init_container_statuses.iter().chain(&recorded.container_statuses).flatten();
    let torn_down = containers.into_iter().any(|c| ended(c).is_some_and(|e| e.container_id.is_none()));
    // Whether this was the sync before or after the containers were stopped shows only in its outcome.
    let over =
        recorded.conditions.iter().flatten().any(|c| c.type_ == "Ready" && c.reason.as_deref() == Some("PodFailed"));
    let deleting = case.pod.metadata.deletion_timestamp.is_some();
    case.is_terminal = pod::is_terminal_phase(recorded.phase.as_deref()) || (deleting && over);
    let status = generate(&case.input());
    if torn_down { patch::terminated(&case.pod, &status) } else { status }
}

/// Whether nothing but the verdict of a probe is new. A kubelet patches its held status then; we sync (docs/compat.md).
fn only_a_verdict_moved(held: &PodStatus, recorded: &PodStatus) -> bool {
    let without_verdicts = |s: &PodStatus| -> Vec<ContainerStatus> {
        let all = s.init_container_statuses.iter().chain(&s.container_statuses).flatten().cloned();
        all.map(|c| ContainerStatus { started: None, ready: false, ..c }).collect()
    };
    without_verdicts(held) == without_verdicts(recorded)
}

/// The one thing that such a patch leaves behind: which containers `Initialized` names.
fn keep_initialized(written: &mut PodStatus, recorded: &PodStatus) {
    let initialized = |s: &PodStatus| s.conditions.iter().flatten().find(|c| c.type_ == "Initialized").cloned();
    let message = initialized(recorded).and_then(|c| c.message);
    for condition in written.conditions.iter_mut().flatten().filter(|c| c.type_ == "Initialized") {
        condition.message.clone_from(&message);
    }
}

/// As JSON without what is compared elsewhere or differs by nature.
fn comparable(status: &PodStatus) -> Value {
    let mut value = serde_json::to_value(status).unwrap();
    value.as_object_mut().unwrap().remove("resources");
    value
}

fn may_run_no_more(recorded: &PodStatus) -> bool {
    pod::is_terminal_phase(recorded.phase.as_deref())
}

/// The status as it would be written to the API.
fn written(case: &Case, status: PodStatus, held: Option<&PodStatus>, recorded: &PodStatus) -> (PodStatus, PodStatus) {
    let status = store::settle(&case.pod, status, held, case.now);
    let ended = may_run_no_more(recorded);
    let mut written = merge::for_api(case.pod.status.as_ref().unwrap(), status.clone(), !ended, case.now);
    if ended && recorded.pod_ip.is_none() && !pod::is_host_network(&case.pod) {
        // A kubelet may forget the address while it tears a pod down (a race); we keep it.
        (written.pod_ip, written.pod_ips) = (None, None);
    }
    (status, written)
}

fn replay(name: &str) -> usize {
    let mut pod: Pod = serde_json::from_value(read(name, "pod.json")).unwrap();
    let history = read(name, "history.json");
    let mut held: Option<PodStatus> = None;
    let mut api: Option<PodStatus> = None;
    let mut compared = 0;
    for (n, version) in history.as_array().unwrap().iter().enumerate() {
        let recorded: PodStatus = serde_json::from_value(version["status"].clone()).unwrap();
        let same = api.as_ref().is_some_and(|a| comparable(a) == comparable(&recorded));
        if recorded.start_time.is_none() || same {
            // Written by the API server, or a change outside of the status.
            api = Some(recorded);
            continue;
        }
        pod.metadata.deletion_timestamp = serde_json::from_value(version["deletionTimestamp"].clone()).unwrap();
        pod.metadata.generation = recorded.observed_generation;
        pod.status.clone_from(&api);
        let mut case = rebuilt(&pod, &recorded);
        let changes = recorded.conditions.iter().flatten().filter_map(|c| c.last_transition_time.as_ref());
        let changes = changes.chain(&recorded.start_time);
        case.now = changes.map(Timestamp::from_api).max().unwrap_or(case.now);
        let by_sync = synced(&mut case, held.as_ref(), &recorded);
        let (status, mut written) = written(&case, by_sync, held.as_ref(), &recorded);
        if held.as_ref().is_some_and(|held| only_a_verdict_moved(held, &recorded)) {
            keep_initialized(&mut written, &recorded);
        }
        let difference = difference(&comparable(&written), &comparable(&recorded));
        assert_eq!(difference, None, "{name} version {n}");
        if let Some(held) = &held {
            assert_eq!(store::check_transition(&pod, held, &status), Ok(()), "{name} version {n}");
        }
        compared += 1;
        held = Some(status);
        api = Some(recorded);
    }
    compared
}

/// The lines that are only in one of both.
fn difference(got: &Value, expected: &Value) -> Option<String> {
    let lines = |v: &Value| serde_json::to_string_pretty(v).unwrap().lines().map(str::to_owned).collect::<Vec<_>>();
    let (got, expected) = (lines(got), lines(expected));
    let only = |a: &[String], b: &[String]| a.iter().filter(|l| !b.contains(l)).cloned().collect::<Vec<_>>().join("\n");
    (got != expected).then(|| format!("got\n{}\nexpected\n{}", only(&got, &expected), only(&expected, &got)))
}

#[test]
fn every_recorded_history_is_reproduced() {
    let mut total = 0;
    let mut names: Vec<String> = fs::read_dir(folder())
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .filter(|n| folder().join(n).join("history.json").exists())
        .collect();
    names.sort();
    assert!(names.len() >= 25, "only {} recorded cases found", names.len());
    for name in &names {
        total += replay(name);
    }
    assert!(total > 150, "{total} versions compared");
}

#[test]
fn every_recorded_static_pod_is_reproduced() {
    let mut compared = 0;
    for entry in fs::read_dir(folder()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if !folder().join(&name).join("kubelet-pods-endpoint.json").exists() {
            continue;
        }
        let mut pod: Pod = serde_json::from_value(read(&name, "kubelet-pods-endpoint.json")).unwrap();
        let recorded = pod.status.take().unwrap();
        let mut case = rebuilt(&pod, &recorded);
        let changes = recorded.conditions.iter().flatten().filter_map(|c| c.last_transition_time.as_ref());
        case.now = changes.map(Timestamp::from_api).max().unwrap();
        let status = store::settle(&pod, generate(&case.input()), None, case.now);
        let strip = |status: &PodStatus| {
            let mut status = status.clone();
            status.start_time = None;
            for condition in status.conditions.iter_mut().flatten() {
                condition.last_transition_time = None;
            }
            comparable(&status)
        };
        if let Some(difference) = difference(&strip(&status), &strip(&recorded)) {
            panic!("{name}: {difference}");
        }
        compared += 1;
    }
    assert!(compared >= 8, "{compared} static pods compared");
}
