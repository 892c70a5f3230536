//! Pure: two looks at the daemon become figures.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use clap::ValueEnum;
use model::core::Pod;
use serde::Serialize;

use super::sample::{ActorLine, Cpu, Sample};
use crate::columns::{line, moment};

/// What comes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Sort {
    /// The busiest: CPU of pods, time in turns of actors.
    #[default]
    Cpu,
    /// The fullest: memory of pods, mailboxes of actors.
    Memory,
    /// Who was restarted most.
    Restarts,
    /// Names.
    Name,
}

/// All that is shown; also the document of `-o json`.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct View {
    /// RFC 3339.
    pub(crate) time: String,
    pub(crate) node: NodeRow,
    pub(crate) pods: Vec<PodRow>,
    pub(crate) actors: Vec<ActorRow>,
    /// What is missing, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) notes: Vec<String>,
}

#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NodeRow {
    pub(crate) name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cpu_nano_cores: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) memory_working_set_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) memory_available_bytes: Option<u64>,
}

#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PodRow {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) ready: String,
    pub(crate) status: String,
    pub(crate) restarts: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cpu_nano_cores: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) memory_working_set_bytes: Option<u64>,
}

#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ActorRow {
    pub(crate) name: String,
    /// The pod that it cares for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pod: Option<String>,
    pub(crate) state: String,
    pub(crate) restarts: u64,
    pub(crate) mailbox_depth: u64,
    pub(crate) mailbox_capacity: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) turns_per_second: Option<f64>,
    /// Share of time spent in turns, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) busy: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) last_cause: Option<String>,
}

impl View {
    /// Figures of the later look; those that need two have the earlier one to compare with.
    pub(super) fn of(before: Option<&Sample>, after: &Sample, namespace: Option<&str>) -> Self {
        let seconds = before.map_or(0.0, |b| after.taken.saturating_duration_since(b.taken).as_secs_f64());
        let mut view = View { time: moment(after.at.0), ..View::default() };
        match &after.summary {
            Ok(summary) => {
                let earlier = before.and_then(|b| b.summary.as_ref().ok()).and_then(|s| s.node.cpu);
                view.node.name.clone_from(&summary.node.node_name);
                view.node.cpu_nano_cores = summary.node.cpu.and_then(|cpu| rate(earlier, cpu, seconds));
                view.node.memory_working_set_bytes = summary.node.memory.and_then(|m| m.working_set_bytes);
                view.node.memory_available_bytes = summary.node.memory.and_then(|m| m.available_bytes);
            }
            Err(why) => view.notes.push(why.clone()),
        }
        let (stats, earlier) = (after.stats(), before.map(Sample::stats).unwrap_or_default());
        let wanted = |pod: &&Pod| namespace.is_none_or(|n| model::pod::namespace(pod) == n);
        for pod in after.pods.items.iter().filter(wanted) {
            let mut row = pod_row(pod, after);
            if let Some(mine) = stats.get(row.uid.as_str()) {
                let old = earlier.get(row.uid.as_str()).and_then(|p| p.cpu);
                row.cpu_nano_cores = mine.cpu.and_then(|cpu| rate(old, cpu, seconds));
                row.memory_working_set_bytes = mine.memory.and_then(|m| m.working_set_bytes);
            }
            view.pods.push(row);
        }
        let names: BTreeMap<&str, String> = after.pods.items.iter().filter_map(uid_and_name).collect();
        let old: BTreeMap<&str, &ActorLine> =
            before.iter().flat_map(|b| &b.actors).map(|a| (a.name.as_str(), a)).collect();
        view.actors =
            after.actors.iter().map(|a| actor_row(old.get(a.name.as_str()).copied(), a, seconds, &names)).collect();
        view
    }

    /// The most of what is asked for first; equal ones by name.
    pub(crate) fn sort(&mut self, by: Sort) {
        let name = |p: &PodRow| (p.namespace.clone(), p.name.clone());
        match by {
            Sort::Cpu => self.pods.sort_by_key(|p| (Reverse(p.cpu_nano_cores), name(p))),
            Sort::Memory => self.pods.sort_by_key(|p| (Reverse(p.memory_working_set_bytes), name(p))),
            Sort::Restarts => self.pods.sort_by_key(|p| (Reverse(p.restarts), name(p))),
            Sort::Name => self.pods.sort_by_key(name),
        }
        self.actors.sort_by(|a, b| a.name.cmp(&b.name));
        let (busy, turns) = (|a: &ActorRow| a.busy.unwrap_or(0.0), |a: &ActorRow| a.turns_per_second.unwrap_or(0.0));
        match by {
            Sort::Cpu => {
                self.actors.sort_by(|a, b| busy(b).total_cmp(&busy(a)).then(turns(b).total_cmp(&turns(a))));
            }
            Sort::Memory => self.actors.sort_by_key(|a| Reverse(a.mailbox_depth)),
            Sort::Restarts => self.actors.sort_by_key(|a| Reverse(a.restarts)),
            Sort::Name => {}
        }
    }
}

/// The daemon's own rate, else what the counter gained. A counter that fell belongs to another container.
fn rate(before: Option<Cpu>, after: Cpu, seconds: f64) -> Option<u64> {
    if after.usage_nano_cores.is_some() {
        return after.usage_nano_cores;
    }
    let gained = after.usage_core_nano_seconds?.checked_sub(before?.usage_core_nano_seconds?)?;
    per_second(gained, seconds).map(|r| r.round() as u64)
}

fn per_second(gained: u64, seconds: f64) -> Option<f64> {
    (seconds > 0.0).then(|| gained as f64 / seconds)
}

fn uid_and_name(pod: &Pod) -> Option<(&str, String)> {
    let name = model::pod::namespaced_name(pod);
    pod.metadata.uid.as_deref().map(|uid| (uid, name))
}

fn pod_row(pod: &Pod, sample: &Sample) -> PodRow {
    let l = line(pod, sample.at);
    let restarts = l.restarts.parse().unwrap_or_default();
    PodRow {
        namespace: l.namespace,
        name: l.name,
        uid: l.uid,
        ready: l.ready,
        status: l.status,
        restarts,
        ..PodRow::default()
    }
}

fn actor_row(before: Option<&ActorLine>, a: &ActorLine, seconds: f64, names: &BTreeMap<&str, String>) -> ActorRow {
    // Counters of an actor live as long as its name: a rebuild goes on with them, a new one begins.
    let gained = |f: fn(&ActorLine) -> u64| before.and_then(|b| f(a).checked_sub(f(b)));
    let turns = gained(|a| a.turns).and_then(|n| per_second(n, seconds));
    let busy = gained(|a| a.turn_sum_ns).and_then(|n| per_second(n, seconds)).map(|ns| ns / 1e9);
    let uid = a.name.rsplit_once('/').map(|(_, uid)| uid);
    ActorRow {
        name: a.name.clone(),
        pod: uid.and_then(|uid| names.get(uid)).cloned(),
        state: a.state.clone(),
        restarts: a.restarts.max(a.generation),
        mailbox_depth: a.mailbox_depth,
        mailbox_capacity: a.mailbox_capacity,
        turns_per_second: turns,
        busy,
        last_cause: a.last_cause.clone(),
    }
}
