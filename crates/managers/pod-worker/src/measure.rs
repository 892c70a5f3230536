//! Counts steps, starts and ends (interfaces 5.1).

use std::collections::BTreeSet;
use std::time::Duration;

use metrics::actors::Phase;
use metrics::pods;
use model::core::{Pod, PodStatus};
use model::pod::{self, CONFIG_SEEN, ContainerKind};
use model::runtime::{ContainerState, PodObservation};
use model::{ContainerId, Timestamp};

/// Label `container_type`.
pub(crate) fn container_type(kind: ContainerKind) -> &'static str {
    match kind {
        ContainerKind::Init | ContainerKind::Sidecar => "init_container",
        ContainerKind::Regular => "container",
        ContainerKind::Ephemeral => "ephemeral_container",
    }
}

fn since(then: Timestamp, now: Timestamp) -> Duration {
    Duration::from_nanos(u64::try_from(now.nanos_since(then)).unwrap_or(0))
}

fn first_seen(of: &Pod) -> Option<Timestamp> {
    Timestamp::parse_rfc3339(pod::annotation(of, CONFIG_SEEN)?)
}

/// The first step begins.
pub(crate) fn began(of: &Pod, now: Timestamp) {
    let Some(seen) = first_seen(of) else { return };
    pods::WORKER_START.observe(since(seen, now).as_secs_f64());
    Phase::Source.took(since(seen, now));
}

/// A status that is about to be published. The one that first says `Running` ends the start.
pub(crate) fn status(of: &Pod, before: Option<&PodStatus>, after: &PodStatus, now: Timestamp, start: &Start<'_>) {
    let phase = |s: &PodStatus| s.phase.clone().unwrap_or_default();
    let pending = before.is_some_and(|s| phase(s) == "Pending");
    let (Some(seen), true) = (first_seen(of), pending && phase(after) == "Running") else { return };
    pods::START.observe(since(seen, now).as_secs_f64());
    // Pods of a manifest have no other time of creation.
    let created = of.metadata.creation_timestamp.as_ref().map_or(seen, Timestamp::from_api);
    let total = since(created, now);
    let sli = total.saturating_sub(start.pulls + init_time(start.observed));
    pods::START_TOTAL.observe(total.as_secs_f64());
    pods::START_SLI.observe(sli.as_secs_f64());
    if pods::FIRST_NETWORK_POD_START_SLI.get() == 0.0 && !pod::is_host_network(of) {
        pods::FIRST_NETWORK_POD_START_SLI.set(sli.as_secs_f64());
    }
    if let Some(ran) = start.observed.active_containers().map(|c| c.started_at).max() {
        Phase::Status.took(since(ran, now));
    }
}

/// What is known of a start.
pub(crate) struct Start<'a> {
    /// Time that went into images.
    pub(crate) pulls: Duration,
    /// What the runtime has.
    pub(crate) observed: &'a PodObservation,
}

/// From the first start to the last end of what ended already: init containers, while nothing else has ended yet.
fn init_time(observed: &PodObservation) -> Duration {
    let ended = || observed.active_containers().filter(|c| c.state == ContainerState::Exited);
    let (first, last) = (ended().map(|c| c.started_at).min(), ended().map(|c| c.finished_at).max());
    first.zip(last).map_or(Duration::ZERO, |(first, last)| since(first, last))
}

/// Counts containers that ended since they were last seen alive.
pub(crate) fn ends(of: &Pod, observed: &PodObservation, alive: &mut BTreeSet<ContainerId>) {
    for c in &observed.containers {
        match c.state {
            ContainerState::Running => {
                alive.insert(c.id.clone());
            }
            ContainerState::Exited if alive.remove(&c.id) => {
                let kind = pod::find_container(of, &c.name).map_or("container", |(kind, _)| container_type(kind));
                let code = c.exit_code.to_string();
                pods::CONTAINERS_TERMINATED.with_label_values(&[kind, &*code, &*c.reason]).inc();
            }
            ContainerState::Created | ContainerState::Exited | ContainerState::Unknown => {}
        }
    }
    alive.retain(|id| observed.containers.iter().any(|c| c.id == *id));
}

/// A sleep hook that runs; counted when it is given up before it is over.
pub(crate) struct SleepHook(pub(crate) bool);

impl Drop for SleepHook {
    fn drop(&mut self) {
        if self.0 {
            metrics::lifecycle::SLEEP_TERMINATED_EARLY.inc();
        }
    }
}
