//! Whose turn it is to go, what is said of a pod, and the order to its worker.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use contract::eviction::{OrderView, VictimView};
use contract::pod_manager::{DesiredPod, KillPod};
use contract::pod_worker::{KillRequest, WorkerPhase, WorkerState};
use contract::{Crew, EvictionManager as Role};
use eviction::{Candidate, Layout, Signals, Threshold, told};
use model::core::Pod;
use model::event::{EventObject, EventType, NodeEvent};
use model::stats::{PodStats, Summary};
use model::{PodUid, pod};

/// What status and event say.
pub(crate) const REASON: &str = "Evicted";
/// An order that its worker was told is on the worker's row by then.
pub(crate) const TAKEN_LIMIT: Duration = Duration::from_secs(1);
/// A worker that takes longer than this, or one and a half times the grace period, to stop its pod is told of.
const STOP_LIMIT: Duration = Duration::from_secs(10);

/// The end of one pod.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    pub(crate) pod: Arc<Pod>,
    pub(crate) grace_s: i64,
    pub(crate) message: String,
    pub(crate) annotations: BTreeMap<String, String>,
    /// What it is counted as.
    pub(crate) signal: String,
    /// It went over a limit of its own.
    pub(crate) own_fault: bool,
}

impl Order {
    /// How long its worker may take to stop it.
    pub(crate) fn stop_limit(&self) -> Duration {
        let grace = Duration::from_secs(u64::try_from(self.grace_s).unwrap_or(0));
        grace.mul_f64(1.5).max(STOP_LIMIT)
    }
}

/// Pods that may have to go: they have a worker that has not ended them, and nobody evicts them already.
pub(crate) fn active(crew: &Crew<Role>) -> Vec<Arc<Pod>> {
    let (pods, workers) = (crew.board::<DesiredPod>(), crew.board::<WorkerState>());
    let may_go = |uid: &PodUid| workers.get(uid).is_some_and(|w| w.phase < WorkerPhase::Terminated && !w.evicted);
    pods.snapshot().into_iter().filter(|(uid, _)| may_go(uid)).map(|(_, row)| row.pod.clone()).collect()
}

/// Pods that are being evicted and are not gone yet, by the order of a former instance or of an admission.
pub(crate) fn ending(crew: &Crew<Role>) -> Vec<Order> {
    let ends = |row: &WorkerState| row.evicted && row.phase < WorkerPhase::Finished;
    let desired = crew.board::<DesiredPod>();
    let order = |(uid, row): (PodUid, Arc<WorkerState>)| {
        let kill = row.kill.clone().unwrap_or_default();
        let (_, message) = kill.reason.unwrap_or_default();
        Some(Order {
            pod: row.pod.clone().or_else(|| Some(desired.get(&uid)?.pod.clone()))?,
            grace_s: kill.grace_s.unwrap_or_default(),
            message,
            annotations: BTreeMap::new(),
            signal: String::new(),
            own_fault: kill.own_fault,
        })
    };
    let rows = crew.board::<WorkerState>().snapshot();
    rows.into_iter().filter(|(_, row)| ends(row)).filter_map(order).collect()
}

/// Numbers of pods by UID.
pub(crate) fn by_uid(summary: &Summary) -> BTreeMap<&str, &PodStats> {
    summary.pods.iter().map(|stats| (stats.pod_ref.uid.as_str(), stats)).collect()
}

/// Pods that may go and have a volume of their own on disk that was not measured yet.
pub(crate) fn unmeasured(crew: &Crew<Role>, summary: &Summary) -> BTreeSet<PodUid> {
    let stats = by_uid(summary);
    let pods = active(crew);
    let may_go = pods.iter().filter(|pod| !pod::is_critical(pod)).map(|pod| (pod, pod::uid(pod)));
    let of = may_go.filter(|(pod, uid)| stats.get(uid.as_str()).is_some_and(|s| eviction::is_unmeasured(pod, s)));
    of.map(|(_, uid)| uid).collect()
}

/// Pods that use more of the disk than they allow themselves; all of them go.
pub(crate) fn over_limits(pods: &[Arc<Pod>], summary: &Summary, layout: Layout) -> Vec<Order> {
    let stats = by_uid(summary);
    let order = |pod: &Arc<Pod>| {
        let overrun = eviction::local_overrun(pod, stats.get(pod::uid(pod).as_str())?, layout)?;
        Some(Order {
            pod: pod.clone(),
            grace_s: 1,
            message: overrun.message,
            annotations: BTreeMap::new(),
            signal: overrun.signal.to_owned(),
            own_fault: true,
        })
    };
    pods.iter().filter(|pod| !pod::is_critical(pod)).filter_map(order).collect()
}

/// What must go for a threshold, in the order in which it goes; only one does.
pub(crate) fn for_threshold(
    pods: &[Arc<Pod>],
    summary: &Summary,
    layout: Layout,
    due: &[Threshold],
    seen: &Signals,
    max_grace: Duration,
) -> Vec<Order> {
    let Some(threshold) = due.first() else { return Vec::new() };
    let stats = by_uid(summary);
    let mut candidates: Vec<_> =
        pods.iter().map(|pod| Candidate { pod, stats: stats.get(pod::uid(pod).as_str()).copied() }).collect();
    eviction::rank(threshold.signal, layout, &mut candidates);
    let order = |candidate: Candidate<'_>| {
        let told = told(threshold.signal.resource(), candidate.pod, candidate.stats, due, seen);
        Some(Order {
            pod: pods.iter().find(|pod| std::ptr::eq(&***pod, candidate.pod))?.clone(),
            grace_s: eviction::grace_seconds(threshold, candidate.pod, max_grace),
            message: told.message,
            annotations: told.annotations,
            signal: threshold.signal.as_str().to_owned(),
            own_fault: false,
        })
    };
    candidates.into_iter().filter(|candidate| !pod::is_critical(candidate.pod)).filter_map(order).collect()
}

/// What became of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The pod's worker was told.
    Taken,
    /// There is nobody to take it: the next one goes in its stead.
    Nobody,
    /// Nobody knows whether it was taken: the row of its worker shows it soon, if it was.
    Unknown,
}

/// Gives the order.
pub(crate) async fn give(crew: &Crew<Role>, order: &Order) -> Answer {
    let uid = pod::uid(&order.pod);
    let request = KillRequest {
        grace_s: Some(order.grace_s),
        evicted: true,
        reason: Some((REASON.to_owned(), order.message.clone())),
        own_fault: order.own_fault,
        ..KillRequest::default()
    };
    match crew.ask(KillPod { uid, request }).await {
        Ok(true) => Answer::Taken,
        Ok(false) => Answer::Nobody,
        Err(e) => {
            tracing::warn!(pod = %pod::describe(&order.pod), error = %e, "nobody knows yet whether the pod is evicted");
            Answer::Unknown
        }
    }
}

/// Tells that the pod goes, and counts it.
pub(crate) fn tell_evicted(crew: &Crew<Role>, order: &OrderView) {
    let VictimView { message, signal, pod, .. } = &order.victim;
    tracing::warn!(pod, uid = %order.uid, message, "pod evicted");
    metrics::eviction::EVICTIONS.with_label_values(&[signal.as_str()]).inc();
    let (namespace, name) = pod.split_once('/').unwrap_or(("default", pod.as_str()));
    let (kind, object) = (EventType::Warning, event_object(namespace, name, order.uid.clone()));
    let event = NodeEvent { kind, reason: REASON.into(), message: message.clone(), object };
    crew.emit_annotated(event, order.annotations.clone());
}

/// Whether the pod's worker knows of the order.
pub(crate) fn knows(row: &WorkerState) -> bool {
    let reason = row.kill.as_ref().and_then(|kill| kill.reason.as_ref());
    row.evicted && reason.is_some_and(|(reason, _)| reason == REASON)
}

/// Tells that a worker takes too long.
pub(crate) fn tell_late(crew: &Crew<Role>, pod: &Pod) {
    let message = "Container runtime did not kill the pod within specified grace period.".to_owned();
    let (kind, object) = (EventType::Warning, object(pod));
    crew.emit(NodeEvent { kind, reason: "ExceededGracePeriod".into(), message, object });
}

fn object(pod: &Pod) -> EventObject {
    event_object(pod::namespace(pod), pod::name(pod), pod::uid(pod))
}

fn event_object(namespace: &str, name: &str, uid: PodUid) -> EventObject {
    EventObject::Pod { namespace: namespace.to_owned(), name: name.to_owned(), uid, field_path: String::new() }
}
