//! A pod and a simulated runtime, built in a few words.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::time::Duration;

use model::allocation::Amounts;
use model::core::{
    Container, ContainerResizePolicy, ContainerRestartRule, ContainerRestartRuleOnExitCodes, EphemeralContainer, Pod,
    PodSpec, Probe,
};
use model::k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use model::pod::ContainerKind;
use model::runtime::{ContainerObservation, ContainerState, PodObservation, SandboxObservation};
use model::{ContainerId, PodUid, SandboxId, Timestamp};

use model::go_duration::format_millis;

use crate::backoff::{CrashBackoff, crash_key};
use crate::hash::{container_hash, spec_hash};
use crate::{Gates, How, PlanInput, PodPlan, ProbeResults, plan};

/// Seconds at which every world begins.
pub(super) const START: i64 = 1_700_000_000;

#[derive(Clone, Debug)]
pub(super) struct World {
    pub(super) pod: Pod,
    pub(super) observed: PodObservation,
    pub(super) probes: ProbeResults,
    pub(super) backoff: CrashBackoff,
    pub(super) ended_for: BTreeMap<ContainerId, Duration>,
    pub(super) resumable: BTreeSet<ContainerId>,
    pub(super) failed_starts: BTreeSet<ContainerId>,
    pub(super) actuated: BTreeMap<String, Amounts>,
    pub(super) pod_resized: bool,
    pub(super) now: Timestamp,
    pub(super) restarting_all: bool,
    pub(super) gates: Gates,
}

pub(super) fn container(name: &str) -> Container {
    Container { name: name.into(), image: Some("img:1".into()), ..Container::default() }
}

pub(super) fn rule(action: &str, operator: &str, values: &[i32]) -> ContainerRestartRule {
    ContainerRestartRule {
        action: action.into(),
        exit_codes: Some(ContainerRestartRuleOnExitCodes { operator: operator.into(), values: Some(values.to_vec()) }),
    }
}

impl World {
    pub(super) fn new(policy: &str) -> Self {
        Self {
            pod: Pod {
                metadata: ObjectMeta {
                    name: Some("web".into()),
                    namespace: Some("ns".into()),
                    uid: Some("u1".into()),
                    ..ObjectMeta::default()
                },
                spec: Some(PodSpec { restart_policy: Some(policy.into()), ..PodSpec::default() }),
                status: None,
            },
            observed: PodObservation::empty(PodUid::from("u1"), "ns", "web"),
            probes: ProbeResults::default(),
            backoff: CrashBackoff::default(),
            ended_for: BTreeMap::new(),
            resumable: BTreeSet::new(),
            failed_starts: BTreeSet::new(),
            actuated: BTreeMap::new(),
            pod_resized: false,
            now: Timestamp::from_secs(START),
            restarting_all: false,
            gates: Gates::default(),
        }
    }

    pub(super) fn spec(&mut self) -> &mut PodSpec {
        self.pod.spec.as_mut().unwrap()
    }

    pub(super) fn regular(mut self, name: &str) -> Self {
        self.spec().containers.push(container(name));
        self
    }

    pub(super) fn init(mut self, name: &str) -> Self {
        self.spec().init_containers.get_or_insert_default().push(container(name));
        self
    }

    pub(super) fn sidecar(mut self, name: &str) -> Self {
        let c = Container { restart_policy: Some("Always".into()), ..container(name) };
        self.spec().init_containers.get_or_insert_default().push(c);
        self
    }

    pub(super) fn ephemeral(mut self, name: &str) -> Self {
        let c = EphemeralContainer { name: name.into(), image: Some("img:1".into()), ..EphemeralContainer::default() };
        self.spec().ephemeral_containers.get_or_insert_default().push(c);
        self
    }

    pub(super) fn with(mut self, name: &str, change: impl FnOnce(&mut Container)) -> Self {
        let spec = self.spec();
        let all = spec.init_containers.iter_mut().flatten().chain(&mut spec.containers);
        change(all.into_iter().find(|c| c.name == name).unwrap());
        self
    }

    pub(super) fn startup_probe(self, name: &str) -> Self {
        self.with(name, |c| c.startup_probe = Some(Probe::default()))
    }

    pub(super) fn liveness_probe(self, name: &str) -> Self {
        self.with(name, |c| c.liveness_probe = Some(Probe::default()))
    }

    pub(super) fn own_policy(self, name: &str, policy: &str, rules: Vec<ContainerRestartRule>) -> Self {
        self.with(name, |c| {
            c.restart_policy = Some(policy.into());
            c.restart_policy_rules = Some(rules);
        })
    }

    /// Resized to nothing from 10 bytes of memory; `restarts`: not without starting it anew.
    pub(super) fn shrink(&mut self, name: &str, restarts: bool) {
        self.resized(name, Amounts { memory_limit_bytes: 10, ..Amounts::default() }, restarts);
    }

    /// The runtime was told these amounts last. The policy is about memory.
    pub(super) fn resized(&mut self, name: &str, actuated: Amounts, restarts: bool) {
        self.actuated.insert(name.to_owned(), actuated);
        let spec = self.spec();
        let all = spec.init_containers.iter_mut().flatten().chain(&mut spec.containers);
        let policy = if restarts { "RestartContainer" } else { "NotRequired" };
        all.into_iter().find(|c| c.name == name).unwrap().resize_policy =
            Some(vec![ContainerResizePolicy { resource_name: "memory".to_owned(), restart_policy: policy.to_owned() }]);
    }

    pub(super) fn then(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// The next sandbox, `sb<attempt>`, with an address.
    pub(super) fn sandbox(mut self, ready: bool) -> Self {
        self.add_sandbox(ready);
        self
    }

    pub(super) fn add_sandbox(&mut self, ready: bool) {
        let attempt = u32::try_from(self.observed.sandboxes.len()).unwrap();
        let host_network = Some(model::pod::is_host_network(&self.pod));
        self.now = Timestamp(self.now.0 + 1);
        self.observed.sandboxes.push(SandboxObservation {
            created_at: self.now,
            host_network,
            ips: Some(vec!["10.0.0.1".into()]),
            ..SandboxObservation::new(format!("sb{attempt}"), attempt, ready)
        });
        self.observed.normalise();
    }

    /// One more instance of a container, `<name>-<count>`, in the newest sandbox, one nanosecond newer than the last.
    pub(super) fn seen(mut self, name: &str, state: ContainerState) -> Self {
        let count = u32::try_from(self.observed.instances(name).count()).unwrap();
        self.add_instance(name, state, count);
        self
    }

    pub(super) fn exited(self, name: &str, code: i32) -> Self {
        self.seen(name, ContainerState::Exited).newest(name, |o| {
            o.exit_code = code;
            o.reason = if code == 0 { "Completed".into() } else { "Error".into() };
        })
    }

    pub(super) fn running(self, name: &str) -> Self {
        self.seen(name, ContainerState::Running)
    }

    pub(super) fn newest(mut self, name: &str, change: impl FnOnce(&mut ContainerObservation)) -> Self {
        change(self.observed.containers.iter_mut().find(|o| o.name == name).unwrap());
        self
    }

    pub(super) fn hash_of(&self, name: &str) -> u64 {
        model::pod::find_container(&self.pod, name)
            .map_or_else(|| container_hash(name, "img:1"), |(_, c)| spec_hash(&c))
    }

    pub(super) fn add_instance(&mut self, name: &str, state: ContainerState, restart_count: u32) -> ContainerId {
        self.now = Timestamp(self.now.0 + 1);
        let id = ContainerId::from(format!("{name}-{restart_count}"));
        let never = Timestamp::ZERO;
        let started = if matches!(state, ContainerState::Created) { never } else { self.now };
        self.observed.containers.push(ContainerObservation {
            created_at: self.now,
            started_at: started,
            finished_at: if state == ContainerState::Exited { self.now } else { never },
            image: "img:1".into(),
            restart_count,
            hash: Some(self.hash_of(name)),
            ..ContainerObservation::new(
                id.clone(),
                name,
                self.observed.sandbox().map_or_else(|| SandboxId::from("none"), |s| s.id.clone()),
                state,
            )
        });
        self.observed.normalise();
        id
    }

    pub(super) fn plan(&self) -> PodPlan {
        plan(&PlanInput {
            pod: &self.pod,
            observed: &self.observed,
            probes: &self.probes,
            backoff: &self.backoff,
            ended_for: &self.ended_for,
            resumable: &self.resumable,
            failed_starts: &self.failed_starts,
            actuated: &self.actuated,
            pod_resized: self.pod_resized,
            now: self.now,
            restarting_all: self.restarting_all,
            gates: self.gates,
        })
    }

    pub(super) fn container(&self, name: &str) -> (ContainerKind, Container) {
        model::pod::find_container(&self.pod, name).unwrap()
    }

    pub(super) fn stop(&mut self, id: &ContainerId, code: i32) {
        self.now = Timestamp(self.now.0 + 1);
        let now = self.now;
        let o = self.observed.containers.iter_mut().find(|o| o.id == *id).unwrap();
        o.state = ContainerState::Exited;
        o.exit_code = code;
        o.finished_at = now;
        o.reason = if code == 0 { "Completed".into() } else { "Error".into() };
    }

    /// Carries a plan out to the letter, as the runtime would take it.
    pub(super) fn apply(&mut self, plan: &PodPlan) {
        if let Some(kill) = &plan.kill_pod {
            for id in &kill.containers {
                self.stop(id, 137);
            }
            self.observed.sandboxes.iter_mut().for_each(|s| s.ready = false);
        }
        for kill in &plan.kill {
            self.stop(&kill.id, 137);
        }
        let gone: BTreeSet<&ContainerId> =
            plan.purge_init.iter().chain(plan.reset.iter().map(|r| &r.id)).chain(&plan.prune_init).collect();
        self.observed.containers.retain(|o| !gone.contains(&o.id));
        if let Some(create) = &plan.create_sandbox {
            self.add_sandbox(true);
            self.observed.sandboxes[0].attempt = create.attempt;
        }
        for start in plan.starts().filter(|s| s.hold.is_none()) {
            assert!(self.observed.sandbox().is_some_and(|s| s.ready), "{} starts without a sandbox", start.name);
            let twice = self.observed.instances(&start.name).any(|o| o.state == ContainerState::Running);
            assert!(!twice, "{} would run twice", start.name);
            let (_, container) = self.container(&start.name);
            if let Some(at) = start.crashed_at {
                let now = self.now;
                self.backoff.next(&crash_key(&self.pod, &container), at, now);
            }
            match &start.how {
                How::Create { attempt } => {
                    let attempt = attempt.unwrap_or(0);
                    self.add_instance(&start.name, ContainerState::Running, attempt);
                }
                How::Resume { id, .. } => {
                    let now = self.now;
                    let o = self.observed.containers.iter_mut().find(|o| o.id == *id).unwrap();
                    assert_eq!(o.state, ContainerState::Created, "only a created container can be resumed");
                    o.state = ContainerState::Running;
                    o.started_at = now;
                }
            }
        }
    }
}

/// A plan in one line.
pub(super) fn brief(plan: &PodPlan) -> String {
    let mut out = Vec::new();
    if let Some(k) = &plan.kill_pod {
        let mut what: Vec<&str> = k.containers.iter().map(ContainerId::as_str).collect();
        what.extend(k.sandboxes.iter().map(SandboxId::as_str));
        out.push(format!("kill-pod[{}]", what.join(" ")));
    }
    out.extend(plan.purge_init.iter().map(|id| format!("purge {id}")));
    for k in &plan.kill {
        out.push(format!("kill {} '{}'{}", k.id, k.message, if k.restart { "" } else { " for good" }));
    }
    for r in &plan.reset {
        out.push(format!("{} {}", if r.kill_first { "kill+reset" } else { "reset" }, r.id));
    }
    out.extend(plan.prune_init.iter().map(|id| format!("prune {id}")));
    if let Some(c) = &plan.create_sandbox {
        let mut text = format!("sandbox {}", c.attempt);
        if let Some(old) = &c.replaces {
            let _ = write!(text, " for {old}");
        }
        out.push(text);
    }
    for s in plan.starts() {
        out.push(match (&s.how, s.hold) {
            (How::Resume { id, .. }, _) => format!("resume {id}"),
            (How::Create { attempt: None }, _) => format!("start {}@log", s.name),
            (How::Create { attempt: Some(n) }, None) => format!("start {}@{n}", s.name),
            (How::Create { attempt: Some(n) }, Some(h)) => format!("hold {}@{n} {}", s.name, format_millis(h.delay)),
        });
    }
    if plan.keep > 0 {
        out.push(format!("keep {}", plan.keep));
    }
    out.extend(plan.waits.iter().map(ToString::to_string));
    out.join("; ")
}

/// Checks a table of (name of the row, world, plan in one line).
pub(super) fn check(rows: Vec<(&str, World, &str)>) {
    let wrong: Vec<String> = rows
        .into_iter()
        .filter_map(|(name, world, want)| {
            let got = brief(&world.plan());
            (got != want).then(|| format!("{name}\n   want: {want}\n    got: {got}"))
        })
        .collect();
    assert!(wrong.is_empty(), "rows that differ:\n{}", wrong.join("\n"));
}
