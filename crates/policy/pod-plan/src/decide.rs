//! `computePodActions` (pod-lifecycle 4.3): one pass over one pod.

use std::collections::BTreeMap;

use model::core::Container;
use model::pod::{self, ContainerKind, RestartPolicy};
use model::probe::ProbeVerdict;
use model::runtime::{ContainerObservation, ContainerState};
use model::{ContainerId, Timestamp};

use crate::action::{
    Cause, ContainerKill, ContainerReset, ContainerStart, CreateSandbox, How, KillPod, KillReason, PodPlan,
};
use crate::backoff::{Hold, after_failed_start, crash_key};
use crate::hash::definition_changed;
use crate::init::init_plan;
use crate::input::PlanInput;
use crate::resize::Resize;
use crate::restart::{Verdict, effective_policy, should_be_restarted, verdict};
use crate::sandbox::{SandboxChange, sandbox_decision};

/// Says what to do with one pod now.
#[must_use]
pub fn plan(input: &PlanInput<'_>) -> PodPlan {
    let mut out = PodPlan::new(sandbox_decision(input.pod, input.observed));
    if input.gates.restart_all_containers {
        out.reset = resets(input);
        if !out.reset.is_empty() {
            return out;
        }
    }
    match out.sandbox.changed {
        Some(change) => plan_new_sandbox(input, change, &mut out),
        None => plan_in_sandbox(input, &mut out),
    }
    if out.purge_init.is_empty() {
        out.prune_init = superseded_init_instances(input);
    }
    out
}

/// Chapter 4.3 A. Every instance of a name goes, so that an older one cannot pass for the newest; sources go last, so that
/// an interrupted reset is taken up again.
fn resets(input: &PlanInput<'_>) -> Vec<ContainerReset> {
    let inits = pod::init_containers(input.pod);
    let regulars = pod::regular_containers(input.pod);
    if input.pod.metadata.deletion_timestamp.is_some() {
        return Vec::new();
    }
    let is_source = |c: &Container| {
        input.observed.container(&c.name).is_some_and(|o| {
            o.state == ContainerState::Exited && verdict(input.pod, c, o.exit_code, input.gates) == Verdict::RestartAll
        })
    };
    if !input.restarting_all && !inits.iter().chain(regulars).any(is_source) {
        return Vec::new();
    }
    let mut out = Vec::new();
    for source in [false, true] {
        let ordered =
            regulars.iter().map(|c| (ContainerKind::Regular, c)).chain(inits.iter().map(|c| (init_kind(c), c)));
        for (kind, c) in ordered.filter(|(_, c)| is_source(c) == source) {
            out.extend(instances_oldest_first(input, &c.name).map(|o| ContainerReset {
                id: o.id.clone(),
                name: c.name.clone(),
                kind,
                kill_first: o.state != ContainerState::Exited,
                source,
            }));
        }
    }
    out
}

fn instances_oldest_first<'a>(
    input: &PlanInput<'a>,
    name: &'a str,
) -> impl Iterator<Item = &'a ContainerObservation> + 'a {
    input.observed.containers.iter().rev().filter(move |c| c.name == name)
}

fn init_kind(c: &Container) -> ContainerKind {
    if pod::is_sidecar(c) { ContainerKind::Sidecar } else { ContainerKind::Init }
}

/// Chapter 4.3 B.
fn plan_new_sandbox(input: &PlanInput<'_>, change: SandboxChange, out: &mut PodPlan) {
    let observed = input.observed;
    out.kill_pod = Some(kill_pod(input, Cause::Sandbox(change)));
    let once = pod::restart_policy(input.pod) == RestartPolicy::Never;
    if once && out.sandbox.attempt != 0 && !observed.containers.is_empty() {
        return;
    }
    let regulars = pod::regular_containers(input.pod);
    let wanted: Vec<usize> = regulars
        .iter()
        .enumerate()
        .filter(|(_, c)| !(effective_policy(input.pod, c) == RestartPolicy::OnFailure && succeeded(input, c)))
        .map(|(i, _)| i)
        .collect();
    if wanted.is_empty() && regulars.iter().any(|c| ran_before(input, c)) {
        return;
    }
    out.create_sandbox =
        Some(CreateSandbox { attempt: out.sandbox.attempt, replaces: out.sandbox.id.clone(), cause: change });
    let inits = pod::init_containers(input.pod);
    out.purge_init = inits.iter().flat_map(|c| instances_oldest_first(input, &c.name)).map(|o| o.id.clone()).collect();
    if inits.is_empty() {
        out.regular = wanted
            .into_iter()
            .map(|i| container_start(input, (ContainerKind::Regular, i), &regulars[i], Cause::NewSandbox))
            .collect();
        out.initialised = true;
    } else {
        out.init = vec![container_start(input, (init_kind(&inits[0]), 0), &inits[0], Cause::NewSandbox)];
    }
    // What is created in the old sandbox can only be replaced.
    for s in out.init.iter_mut().chain(&mut out.regular) {
        if let How::Resume { attempt, .. } = s.how {
            s.how = How::Create { attempt: Some(attempt.saturating_add(1)) };
            s.cause = Cause::NewSandbox;
        }
    }
}

fn succeeded(input: &PlanInput<'_>, c: &Container) -> bool {
    input.observed.container(&c.name).is_some_and(|o| o.state == ContainerState::Exited && o.exit_code == 0)
}

fn ran_before(input: &PlanInput<'_>, c: &Container) -> bool {
    input.observed.container(&c.name).is_some_and(|o| o.state != ContainerState::Unknown)
}

/// Chapter 4.3 C.
fn plan_in_sandbox(input: &PlanInput<'_>, out: &mut PodPlan) {
    for (index, (c, _)) in pod::ephemeral_containers(input.pod).enumerate() {
        let unstarted = input.observed.container(&c.name).is_none_or(|o| is_resumable(input, &c, o));
        if unstarted {
            out.ephemeral.push(container_start(input, (ContainerKind::Ephemeral, index), &c, Cause::Absent));
        }
    }
    let init = init_plan(input);
    out.initialised = init.initialised;
    out.waits = init.waits;
    out.resize = Resize { pod: input.pod_resized, ..init.resize };
    if let Some(name) = init.failed {
        out.kill_pod = Some(kill_pod(input, Cause::InitFailed { name }));
        out.ephemeral.clear();
        return;
    }
    out.kill = init.kill;
    let inits = pod::init_containers(input.pod);
    out.init = init
        .start
        .into_iter()
        .map(|(i, cause)| container_start(input, (init_kind(&inits[i]), i), &inits[i], cause))
        .collect();
    if !out.initialised {
        return;
    }
    for (index, c) in pod::regular_containers(input.pod).iter().enumerate() {
        judge_regular(input, index, c, out);
    }
    if out.keep == 0 && out.regular.is_empty() {
        out.kill_pod = Some(kill_pod(input, Cause::AllDone));
        out.init.clear();
        out.ephemeral.clear();
        // The kill of the pod covers them.
        out.kill.clear();
        out.waits.clear();
        out.resize = Resize::default();
    }
}

fn judge_regular(input: &PlanInput<'_>, index: usize, c: &Container, out: &mut PodPlan) {
    let at = (ContainerKind::Regular, index);
    let newest = input.observed.container(&c.name);
    let Some(running) = newest.filter(|o| o.state == ContainerState::Running) else {
        if !should_be_restarted(input.pod, c, newest, input.gates) {
            return;
        }
        let cause = match newest.map(|o| (o, o.state)) {
            None => Cause::Absent,
            Some((_, ContainerState::Created)) => Cause::NotStarted,
            Some((o, ContainerState::Unknown)) => {
                let message = "Container is in \"unknown\" state, try killing it before restart".to_owned();
                out.kill.push(regular_kill(o, message, KillReason::UnknownState, true));
                Cause::Killed(KillReason::UnknownState)
            }
            Some((o, ContainerState::Exited | ContainerState::Running)) => Cause::Exited { code: o.exit_code },
        };
        out.regular.push(container_start(input, at, c, cause));
        return;
    };
    let failed =
        |results: &BTreeMap<ContainerId, ProbeVerdict>| results.get(&running.id) == Some(&ProbeVerdict::Failure);
    let (what, reason) = if definition_changed(c, running) {
        ("definition changed", KillReason::DefinitionChanged)
    } else if failed(&input.probes.liveness) {
        ("failed liveness probe", KillReason::LivenessProbe)
    } else if failed(&input.probes.startup) {
        ("failed startup probe", KillReason::StartupProbe)
    } else if out.resize.judge(input, c, running) {
        ("resize requires restart", KillReason::Resize)
    } else {
        out.keep += 1;
        return;
    };
    let restart = matches!(reason, KillReason::DefinitionChanged | KillReason::Resize)
        || effective_policy(input.pod, c) != RestartPolicy::Never;
    let suffix = if restart && reason != KillReason::Resize { ", will be restarted" } else { "" };
    let message = format!("Container {} {what}{suffix}", c.name);
    out.kill.push(regular_kill(running, message, reason, restart));
    if restart {
        out.regular.push(container_start(input, at, c, Cause::Killed(reason)));
    }
}

fn regular_kill(o: &ContainerObservation, message: String, reason: KillReason, restart: bool) -> ContainerKill {
    ContainerKill { id: o.id.clone(), name: o.name.clone(), kind: ContainerKind::Regular, message, reason, restart }
}

fn kill_pod(input: &PlanInput<'_>, cause: Cause) -> KillPod {
    let observed = input.observed;
    KillPod {
        cause,
        containers: observed
            .containers
            .iter()
            .filter(|c| c.state == ContainerState::Running)
            .map(|c| c.id.clone())
            .collect(),
        sandboxes: observed.sandboxes.iter().map(|s| s.id.clone()).collect(),
        anything_alive: observed.is_alive(),
    }
}

/// A created container that may be started as it is: nobody tried, it is of the sandbox in use and still as specified.
fn is_resumable(input: &PlanInput<'_>, c: &Container, o: &ContainerObservation) -> bool {
    o.state == ContainerState::Created
        && input.resumable.contains(&o.id)
        && input.observed.sandbox().is_some_and(|s| s.id == o.sandbox)
        && !definition_changed(c, o)
}

fn container_start(
    input: &PlanInput<'_>,
    (kind, index): (ContainerKind, usize),
    c: &Container,
    cause: Cause,
) -> ContainerStart {
    let newest = input.observed.container(&c.name);
    if let Some(o) = newest.filter(|o| is_resumable(input, c, o)) {
        return ContainerStart {
            kind,
            index,
            name: c.name.clone(),
            how: How::Resume { id: o.id.clone(), attempt: o.restart_count },
            cause: Cause::Interrupted,
            hold: None,
            crashed_at: None,
            replaces: None,
        };
    }
    let crashed_at = last_exit(input, &c.name);
    ContainerStart {
        kind,
        index,
        name: c.name.clone(),
        how: How::Create { attempt: newest.map(|o| o.restart_count.saturating_add(1)) },
        cause,
        hold: crashed_at
            .and_then(|at| input.backoff.check(&crash_key(input.pod, c), at, input.now))
            .or_else(|| failed_lately(input, c, newest?)),
        crashed_at,
        replaces: newest.filter(|o| o.state != ContainerState::Running).map(|o| o.id.clone()),
    }
}

/// Some runtimes leave a container created whose start failed: no end tells when, and nothing else would pace the next try.
fn failed_lately(input: &PlanInput<'_>, c: &Container, newest: &ContainerObservation) -> Option<Hold> {
    let failed = newest.state == ContainerState::Created && input.failed_starts.contains(&newest.id);
    if failed && !definition_changed(c, newest) { after_failed_start(newest.created_at, input.now) } else { None }
}

/// End of the newest *exited* instance (pod-lifecycle 6.1); created and unknown ones are skipped. It cannot lie nearer than it
/// has been known.
fn last_exit(input: &PlanInput<'_>, name: &str) -> Option<Timestamp> {
    input.observed.containers.iter().find(|o| o.name == name && o.state == ContainerState::Exited).map(|o| {
        let known = input.ended_for.get(&o.id).copied().unwrap_or_default();
        o.finished_at.min(Timestamp(input.now.0.saturating_sub(i64::try_from(known.as_nanos()).unwrap_or(i64::MAX))))
    })
}

/// Chapter 4.6 step 3: of each init container the newest exited or unknown instance stays, older ones go.
fn superseded_init_instances(input: &PlanInput<'_>) -> Vec<ContainerId> {
    let dead = |o: &&ContainerObservation| matches!(o.state, ContainerState::Exited | ContainerState::Unknown);
    pod::init_containers(input.pod)
        .iter()
        .flat_map(|c| input.observed.containers.iter().filter(|o| o.name == c.name).filter(dead).skip(1))
        .map(|o| o.id.clone())
        .collect()
}
