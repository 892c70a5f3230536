//! Where one pod stands: the facts of the boards, in the words of the policy. It is answered also while actors of the node are
//! broken or the API server is away: only the volumes are asked for, and not for long.

use std::time::Duration;

use axum::Json;
use axum::extract::{Path, State};
use contract::config_sources::Source;
use contract::pod_manager::DesiredPod;
use contract::pod_worker::{WorkerPhase, WorkerState};
use contract::volume::{ListVolumes, VolumeRow, VolumeStage};
use model::core::{Pod, PodStatus};
use model::event::EventObject;
use model::probe::{ProbeKind, ProbeVerdict};
use model::{ContainerId, PodUid, Timestamp};
use pod_history::{
    ApiFacts, Facts, Probes, Pulls, RuntimeFacts, Timeline, Verdict, VolumeFacts, WorkerFacts, WorkerStage,
};

use super::routes::{Refusal, Shared, find};
use super::views::Views;

/// How long a verdict waits for what is known of volumes.
const VOLUMES: Duration = Duration::from_secs(2);

pub(super) async fn why(State(views): Shared, Path(name): Path<String>) -> Result<Json<Verdict>, Refusal> {
    let (uid, pod) = find(&views, &name)?;
    Ok(Json(verdict(&views, &uid, &pod).await))
}

pub(super) async fn why_of(
    State(views): Shared,
    Path((namespace, name)): Path<(String, String)>,
) -> Result<Json<Verdict>, Refusal> {
    let (uid, pod) = find(&views, &format!("{namespace}/{name}"))?;
    Ok(Json(verdict(&views, &uid, &pod).await))
}

pub(super) async fn timeline(State(views): Shared, Path(name): Path<String>) -> Result<Json<Timeline>, Refusal> {
    let (uid, pod) = find(&views, &name)?;
    Ok(Json(life(&views, &uid, &pod)))
}

pub(super) async fn timeline_of(
    State(views): Shared,
    Path((namespace, name)): Path<(String, String)>,
) -> Result<Json<Timeline>, Refusal> {
    let (uid, pod) = find(&views, &format!("{namespace}/{name}"))?;
    Ok(Json(life(&views, &uid, &pod)))
}

fn now(views: &Views) -> Timestamp {
    Timestamp(views.kernel.clock().unix_nanos())
}

fn life(views: &Views, uid: &PodUid, pod: &Pod) -> Timeline {
    let history = views.histories.get(uid);
    pod_history::timeline(pod, pod.status.as_ref(), history.as_deref(), now(views))
}

async fn verdict(views: &Views, uid: &PodUid, pod: &Pod) -> Verdict {
    let volumes = match tokio::time::timeout(VOLUMES, views.crew.ask(ListVolumes)).await {
        Ok(Ok(rows)) => Ok(rows.iter().filter(|row| row.pod.as_ref() == Some(uid)).map(volume).collect::<Vec<_>>()),
        Ok(Err(e)) => Err(format!("volume manager: {e}")),
        Err(_) => Err("the volume manager does not answer".to_owned()),
    };
    let (desired, worker, history) = (views.pods.get(uid), views.workers.get(uid), views.histories.get(uid));
    let (runtime, node, api, images) = (views.runtime.get(), views.node.get(), views.api.get(), views.images.get());
    let empty = PodStatus::default();
    let probes = failing(views, uid, pod.status.as_ref().unwrap_or(&empty));
    let facts = Facts {
        now: now(views),
        pod,
        status: pod.status.as_ref(),
        from_api: desired.as_ref().is_none_or(|d| d.source == Source::Api),
        rejected: desired.as_ref().and_then(|d: &std::sync::Arc<DesiredPod>| {
            d.rejected.as_ref().map(|(reason, message)| (&**reason, &**message))
        }),
        undecided: desired.as_ref().is_some_and(|d| d.undecided),
        unwanted: desired.is_none(),
        worker: worker.as_deref().map(worker_facts),
        history: history.as_deref(),
        volumes: volumes.as_deref().map_err(|e| &**e),
        pulls: Pulls { pulling: &images.pulling, queued: images.queued },
        runtime: RuntimeFacts {
            ready: runtime.ready,
            stale: runtime.stale,
            error: runtime.error.as_deref(),
            network: runtime.network.as_ref().err().map(|why| &**why),
        },
        probes: &probes,
        pressure: &node.pressure,
        api: views.cluster.then(|| ApiFacts { synced: api.synced, error: api.error.as_deref() }),
    };
    pod_history::why(&facts)
}

fn worker_facts(row: &WorkerState) -> WorkerFacts<'_> {
    let kill = row.kill.as_ref();
    WorkerFacts {
        stage: match row.phase {
            WorkerPhase::Waiting => WorkerStage::Waiting,
            WorkerPhase::Syncing => WorkerStage::Syncing,
            WorkerPhase::Terminating => WorkerStage::Terminating,
            WorkerPhase::Terminated => WorkerStage::Terminated,
            WorkerPhase::Finished => WorkerStage::Finished,
        },
        stop_requested: row.termination_requested,
        stop_reason: kill.and_then(|k| k.reason.as_ref()).map(|(reason, message)| (&**reason, &**message)),
        grace_s: kill.and_then(|k| k.grace_s),
        synced_at: row.synced_at,
        error: row.error.as_deref(),
    }
}

fn volume(row: &VolumeRow) -> VolumeFacts {
    VolumeFacts {
        name: row.volume.clone(),
        kind: row.kind.clone(),
        claim: row.claim.clone(),
        driver: row.driver.clone(),
        mounted: row.stage == VolumeStage::Mounted && row.call.is_none(),
        since: row.since,
        error: row.error.clone(),
        call: row.call.as_ref().map(|c| (c.name.clone(), c.since)),
    }
}

/// Probes that do not succeed, of the instances that the status has, in the order in which they count.
fn failing(views: &Views, uid: &PodUid, status: &PodStatus) -> Vec<Probes> {
    let Some(row) = views.probes.get(uid) else { return Vec::new() };
    let events = views.events.get();
    let message = |container: &str, kind: ProbeKind| {
        let path_end = format!("{{{container}}}");
        let is_it = |o: &EventObject| matches!(o, EventObject::Pod { uid: of, field_path, .. } if of == uid && field_path.ends_with(&path_end));
        let said = events.entries.iter().rev().filter(|e| e.reason == "Unhealthy" && is_it(&e.object));
        said.map(|e| e.message.trim_end().to_owned()).find(|m| m.starts_with(kind.as_str()))
    };
    let mut out = Vec::new();
    let lists = status.container_statuses.iter().chain(&status.init_container_statuses).flatten();
    for c in lists {
        let id = c.container_id.as_deref().and_then(|id| id.split_once("://")).map(|(_, id)| ContainerId::from(id));
        let Some(id) = id else { continue };
        for kind in [ProbeKind::Startup, ProbeKind::Liveness, ProbeKind::Readiness] {
            let verdict = row.verdict(&id, kind).unwrap_or(ProbeVerdict::Unknown);
            // Until the first verdict a liveness probe counts as good.
            let is_good =
                verdict == ProbeVerdict::Success || (kind == ProbeKind::Liveness && verdict == ProbeVerdict::Unknown);
            if !row.has(&c.name, kind) || is_good {
                continue;
            }
            let failed = verdict == ProbeVerdict::Failure;
            out.push(Probes {
                container: c.name.clone(),
                kind: kind.as_str(),
                failed: failed && (kind != ProbeKind::Readiness || message(&c.name, kind).is_some()),
                message: message(&c.name, kind),
            });
            if kind == ProbeKind::Startup {
                // The others have not begun.
                break;
            }
        }
    }
    out
}
