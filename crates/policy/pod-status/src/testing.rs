//! Builders and short forms for this crate's tests.

use std::collections::BTreeMap;
use std::net::IpAddr;

use model::core::{ContainerState as ApiState, ContainerStatus, Pod, PodStatus};
use model::probe::ProbeVerdict;
use model::runtime::{ContainerObservation, ContainerState, PodObservation, SandboxObservation};
use model::{ContainerId, PodUid, Timestamp};
use serde_json::{Value, json};

use crate::conditions::find;
use crate::input::{ContainerVerdicts, ProbeFacts, StatusInput, WaitingReason};

pub(crate) const NOW: Timestamp = Timestamp::from_secs(1_000_000);

/// A pod with the given spec and generation 1.
pub(crate) fn pod(spec: Value) -> Pod {
    let meta = json!({"name": "p", "namespace": "ns", "uid": "u1", "generation": 1});
    serde_json::from_value(json!({"metadata": meta, "spec": spec})).unwrap()
}

/// A pod of one container `app`.
pub(crate) fn app_pod(policy: &str) -> Pod {
    pod(json!({"restartPolicy": policy, "containers": [{"name": "app", "image": "img:1"}]}))
}

pub(crate) fn deleting(mut pod: Pod) -> Pod {
    pod.metadata.deletion_timestamp = NOW.to_api();
    pod
}

pub(crate) fn as_static(mut pod: Pod) -> Pod {
    let annotations = pod.metadata.annotations.get_or_insert_default();
    annotations.insert(model::pod::CONFIG_SOURCE.into(), "file".into());
    pod
}

/// A status from JSON.
pub(crate) fn status(value: Value) -> PodStatus {
    serde_json::from_value(value).unwrap()
}

/// A status with regular containers in short form, see [`container`].
pub(crate) fn base(phase: &str, containers: &[&str]) -> PodStatus {
    PodStatus {
        phase: Some(phase.into()),
        container_statuses: Some(containers.iter().map(|c| container(c)).collect()),
        ..PodStatus::default()
    }
}

/// `name state last count`, e.g. `app T1 - 3`: state is `R`, `W` (default reason), `W:Reason`, `T<code>` or
/// `T<code>:Reason`; last is `-` or as a terminated state. The container id is `containerd://<name>-old`.
pub(crate) fn container(short: &str) -> ContainerStatus {
    let parts: Vec<&str> = short.split(' ').collect();
    let last = if parts[2] == "-" { json!({}) } else { state_json(parts[2]) };
    let mut value = json!({
        "name": parts[0], "image": "img:1", "imageID": "sha256:old", "ready": false,
        "restartCount": parts[3].parse::<i32>().unwrap(), "state": state_json(parts[1]), "lastState": last,
    });
    if !parts[1].starts_with('W') {
        value["containerID"] = json!(format!("containerd://{}-old", parts[0]));
    }
    serde_json::from_value(value).unwrap()
}

fn state_json(short: &str) -> Value {
    let (head, reason) = short.split_once(':').unwrap_or((short, ""));
    match head.split_at(1) {
        ("R", _) => json!({"running": {"startedAt": "1970-01-02T00:00:00Z"}}),
        ("W", _) => json!({"waiting": {"reason": if reason.is_empty() { "ContainerCreating" } else { reason }}}),
        ("T", code) => json!({"terminated": {
            "exitCode": code.parse::<i32>().unwrap(), "reason": if reason.is_empty() { "Error" } else { reason }}}),
        _ => panic!("unknown short state {short}"),
    }
}

/// The short form of a state: `R`, `W(Reason)`, `T1(Error)`, `-`.
pub(crate) fn show_state(state: Option<&ApiState>) -> String {
    let Some(state) = state else { return "none".into() };
    if state.running.is_some() {
        return "R".into();
    }
    if let Some(w) = &state.waiting {
        return format!("W({})", w.reason.as_deref().unwrap_or_default());
    }
    state
        .terminated
        .as_ref()
        .map_or("-".into(), |t| format!("T{}({})", t.exit_code, t.reason.as_deref().unwrap_or_default()))
}

/// `state/last rc=n`.
pub(crate) fn show(status: &ContainerStatus) -> String {
    let (state, last) = (show_state(status.state.as_ref()), show_state(status.last_state.as_ref()));
    format!("{state}/{last} rc={}", status.restart_count)
}

/// `True`, or `False Reason: message`.
pub(crate) fn show_condition(status: &PodStatus, type_: &str) -> String {
    let Some(c) = find(status, type_) else { return "absent".into() };
    let mut text = c.status.clone();
    if let Some(reason) = &c.reason {
        text.push_str(&format!(" {reason}"));
    }
    if let Some(message) = &c.message {
        text.push_str(&format!(": {message}"));
    }
    text
}

/// What the runtime reports, in short.
#[derive(Clone, Debug)]
pub(crate) struct Seen(pub(crate) PodObservation);

impl Seen {
    pub(crate) fn nothing() -> Self {
        Self(PodObservation::empty(PodUid::from("u1"), "ns", "p"))
    }

    /// One ready sandbox `s0` with an address.
    pub(crate) fn sandbox() -> Self {
        Self::nothing().with_sandbox("s0", 0, true)
    }

    pub(crate) fn with_sandbox(mut self, id: &str, attempt: u32, ready: bool) -> Self {
        self.0.sandboxes.push(SandboxObservation {
            created_at: Timestamp::from_secs(10 + i64::from(attempt)),
            host_network: Some(false),
            ips: Some(vec!["10.0.0.7".into()]),
            ..SandboxObservation::new(id, attempt, ready)
        });
        self.0.normalise();
        if ready {
            self.0.ips = vec!["10.0.0.7".parse().unwrap()];
        }
        self
    }

    /// `name state created id`: state is `C`reated, `R`unning, `U`nknown or `X<code>`; in sandbox `s0` unless the id is
    /// written `id@sandbox`.
    pub(crate) fn with(mut self, short: &str) -> Self {
        let parts: Vec<&str> = short.split(' ').collect();
        let (state, exit_code) = match parts[1].split_at(1) {
            ("C", _) => (ContainerState::Created, 0),
            ("R", _) => (ContainerState::Running, 0),
            ("U", _) => (ContainerState::Unknown, 0),
            ("X", code) => (ContainerState::Exited, code.parse().unwrap()),
            _ => panic!("unknown short observation {short}"),
        };
        let created = Timestamp::from_secs(parts[2].parse().unwrap());
        let (id, sandbox) = parts[3].split_once('@').unwrap_or((parts[3], "s0"));
        let exited = state == ContainerState::Exited;
        self.0.containers.push(ContainerObservation {
            created_at: created,
            started_at: if state == ContainerState::Created { Timestamp::ZERO } else { created },
            finished_at: if exited { Timestamp(created.0 + 500_000_000) } else { Timestamp::ZERO },
            exit_code,
            image: "img:1".into(),
            image_ref: "sha256:ref".into(),
            reason: if !exited {
                ""
            } else if exit_code == 0 {
                "Completed"
            } else {
                "Error"
            }
            .into(),
            ..ContainerObservation::new(id, parts[0], sandbox, state)
        });
        self.0.normalise();
        self
    }

    pub(crate) fn count(mut self, id: &str, restart_count: u32) -> Self {
        for c in self.0.containers.iter_mut().filter(|c| c.id.as_str() == id) {
            c.restart_count = restart_count;
        }
        self
    }
}

/// Owned parts of a [`StatusInput`].
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) pod: Pod,
    pub(crate) base: Option<PodStatus>,
    pub(crate) seen: PodObservation,
    pub(crate) reasons: BTreeMap<String, WaitingReason>,
    pub(crate) probes: ProbeFacts,
    pub(crate) is_terminal: bool,
    pub(crate) restart_all: bool,
    pub(crate) resize: crate::ResizeFacts,
    pub(crate) now: Timestamp,
    pub(crate) host_ips: Vec<IpAddr>,
}

impl Case {
    pub(crate) fn new(pod: Pod, seen: Seen) -> Self {
        Self {
            pod,
            base: None,
            seen: seen.0,
            reasons: BTreeMap::new(),
            probes: ProbeFacts::default(),
            is_terminal: false,
            restart_all: true,
            resize: crate::ResizeFacts::default(),
            now: NOW,
            host_ips: vec!["192.0.2.1".parse().unwrap()],
        }
    }

    pub(crate) fn base(mut self, base: PodStatus) -> Self {
        self.base = Some(base);
        self
    }

    pub(crate) fn terminal(mut self) -> Self {
        self.is_terminal = true;
        self
    }

    pub(crate) fn reason(mut self, container: &str, reason: &str) -> Self {
        let why = WaitingReason { reason: reason.into(), message: format!("why {container}") };
        self.reasons.insert(container.into(), why);
        self
    }

    /// A startup probe on `name`, with its verdict on instance `id` if any.
    pub(crate) fn startup(mut self, name: &str, id: &str, verdict: Option<ProbeVerdict>) -> Self {
        self.probes.startup_probes.insert(name.into());
        self.verdict(id).startup = verdict;
        self
    }

    pub(crate) fn readiness(mut self, name: &str, id: &str, verdict: Option<ProbeVerdict>) -> Self {
        self.probes.readiness_probes.insert(name.into());
        self.verdict(id).readiness = verdict;
        self
    }

    fn verdict(&mut self, id: &str) -> &mut ContainerVerdicts {
        self.probes.verdicts.entry(ContainerId::from(id)).or_default()
    }

    pub(crate) fn input(&self) -> StatusInput<'_> {
        StatusInput {
            pod: &self.pod,
            base: self.base.as_ref(),
            observed: &self.seen,
            reasons: &self.reasons,
            probes: &self.probes,
            is_terminal: self.is_terminal,
            restart_all: self.restart_all,
            now: self.now,
            host_ips: &self.host_ips,
            runtime_name: "containerd",
            recursive_read_only: false,
            resize: &self.resize,
        }
    }

    pub(crate) fn generate(&self) -> PodStatus {
        crate::generate(&self.input())
    }
}
