//! One function per route of the local socket.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use contract::config_sources::ManifestState;
use contract::event::EventEntry;
use contract::node::NodeOrigin;
use contract::plugin::PluginSocket;
use contract::pod_worker::WorkerPhase;
use contract::volume::{ListVolumes, VolumeRow};
use futures::stream;
use model::core::Pod;
use model::event::EventObject;
use model::runtime::EventTier;
use model::{PodUid, Timestamp};

use super::answer::{
    ApiLine, CertificateLine, EventLine, Manifests, NodeInfo, PluginLine, PodDetail, Refused, Registration, VolumeLine,
    WorkerLine,
};
use super::near::near;
use super::views::Views;

pub(super) type Shared = State<Arc<Views>>;

/// Why a request is refused.
pub(super) struct Refusal(StatusCode, String);

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        (self.0, self.1).into_response()
    }
}

pub(super) fn refuse(code: StatusCode, text: impl Into<String>) -> Refusal {
    Refusal(code, text.into())
}

/// A pod that a request may ask for, without a copy of it.
struct Candidate {
    uid: PodUid,
    pod: Arc<Pod>,
    /// Since when it has been on its way out, if it is no longer wanted.
    going: Option<Timestamp>,
}

/// Every pod that is wanted, and those that are no longer wanted but still being stopped.
fn candidates(views: &Views) -> Vec<Candidate> {
    let wanted = views.pods.snapshot();
    let mut out: Vec<Candidate> =
        wanted.iter().map(|(uid, row)| Candidate { uid: uid.clone(), pod: row.pod.clone(), going: None }).collect();
    for (uid, worker) in views.workers.snapshot() {
        let going = worker.phase < WorkerPhase::Finished && !wanted.contains_key(&uid);
        if let Some(pod) = worker.pod.as_ref().filter(|_| going) {
            out.push(Candidate { uid, pod: pod.clone(), going: Some(worker.synced_at) });
        }
    }
    out
}

/// The pod with the status that the API would see. One that is going carries a deletion timestamp, as a pod that the API deletes does.
fn shown(views: &Views, Candidate { uid, pod, going }: &Candidate) -> Pod {
    let mut pod = Pod::clone(pod);
    if let Some(entry) = views.status.get(uid) {
        pod.status = Some((*entry.status).clone());
    }
    let since = going.and_then(Timestamp::to_api);
    pod.metadata.deletion_timestamp = pod.metadata.deletion_timestamp.take().or(since);
    pod
}

/// Written pod by pod, as the client reads: a full node never stands in memory twice. The whole is a `PodItems`.
pub(super) async fn pods(State(views): Shared) -> Response {
    let mut all = candidates(&views);
    let key = |c: &Candidate| (c.pod.metadata.namespace.clone(), c.pod.metadata.name.clone());
    all.sort_by_cached_key(key);
    let mut open = "";
    let items = all.into_iter().map(move |candidate| {
        let text = serde_json::to_string(&shown(&views, &candidate)).map_err(std::io::Error::from)?;
        Ok(format!("{}{text}", std::mem::replace(&mut open, ",")))
    });
    let head = std::iter::once(Ok(r#"{"apiVersion":"v1","kind":"PodList","items":["#.to_owned()));
    let all = head.chain(items).chain([std::io::Result::Ok("]}".to_owned())]);
    let body = Body::from_stream(stream::iter(all));
    ([(CONTENT_TYPE, "application/json")], body).into_response()
}

/// A pod is named by its name, by `namespace/name` (slash written as `%2F`), or by its UID; a static pod also by the name
/// in its manifest, without the node's name behind it.
pub(super) fn find(views: &Views, name: &str) -> Result<(PodUid, Pod), Refusal> {
    let (namespace, plain) = name.split_once('/').map_or((None, name), |(namespace, plain)| (Some(namespace), plain));
    let short = format!("{plain}-{}", views.node_name.to_lowercase());
    let matches = |Candidate { uid, pod, .. }: &Candidate| {
        let own = model::pod::name(pod);
        let here = namespace.is_none_or(|n| n == model::pod::namespace(pod));
        here && (own == plain || own == short || uid.as_str() == plain)
    };
    let found: Vec<Candidate> = candidates(views).into_iter().filter(matches).collect();
    match &found[..] {
        [] => Err(refuse(StatusCode::NOT_FOUND, unknown(views, name, plain))),
        [only] => Ok((only.uid.clone(), shown(views, only))),
        _ => {
            let names: Vec<_> = found.iter().map(|c| model::pod::namespaced_name(&c.pod)).collect();
            Err(refuse(StatusCode::CONFLICT, format!("{name:?} fits several pods, name one: {}", names.join(", "))))
        }
    }
}

fn unknown(views: &Views, name: &str, plain: &str) -> String {
    let all = candidates(views);
    // A static pod is known without the node's name, too.
    let suffix = format!("-{}", views.node_name.to_lowercase());
    let short = |p: &'_ Pod| model::pod::name(p).trim_end_matches(&*suffix).to_owned();
    let names: Vec<String> = all.iter().map(|c| short(&c.pod)).collect();
    let near = near(plain.trim_end_matches(&*suffix), names.iter().map(String::as_str));
    let here = |name: &&str| all.iter().find(|c| short(&c.pod) == **name);
    let qualified = |c: &Candidate| model::pod::namespaced_name(&c.pod);
    let near: Vec<String> = near.iter().filter_map(here).map(qualified).collect();
    let meant = if near.is_empty() { String::new() } else { format!("; did you mean {}?", near.join(" or ")) };
    format!("no pod {name:?} on this node{meant} (`bosun get pods` lists them)")
}

pub(super) async fn pod(State(views): Shared, Path(name): Path<String>) -> Result<Json<PodDetail>, Refusal> {
    let (uid, pod) = find(&views, &name)?;
    let worker = views.workers.get(&uid).map(|w| WorkerLine {
        phase: format!("{:?}", w.phase),
        cause: w.cause.clone(),
        error: w.error.clone(),
    });
    let about = |e: &EventEntry| matches!(&e.object, EventObject::Pod { uid: about, .. } if *about == uid);
    let view = views.events.get();
    let events = view.entries.iter().filter(|e| about(e)).map(|e| event_line(e)).collect();
    Ok(Json(PodDetail { pod, worker, events }))
}

fn event_line(e: &EventEntry) -> EventLine {
    let object = match &e.object {
        EventObject::Node => "node".to_owned(),
        EventObject::Unknown => "unknown".to_owned(),
        EventObject::Claim { namespace, name, .. } => format!("claim/{namespace}/{name}"),
        EventObject::Pod { namespace, name, field_path, .. } if field_path.is_empty() => {
            format!("pod/{namespace}/{name}")
        }
        EventObject::Pod { namespace, name, field_path, .. } => format!("pod/{namespace}/{name} {field_path}"),
    };
    EventLine {
        kind: e.kind.as_str().to_owned(),
        reason: e.reason.clone(),
        object,
        message: e.message.clone(),
        count: e.count,
        last_ns: e.last.0,
    }
}

pub(super) async fn events(State(views): Shared) -> Json<Vec<EventLine>> {
    Json(views.events.get().entries.iter().map(|e| event_line(e)).collect())
}

pub(super) async fn actors(State(views): Shared) -> Response {
    Json(views.kernel.directory().actors()).into_response()
}

pub(super) async fn plugins(State(views): Shared) -> Json<Vec<PluginLine>> {
    let drivers = views.drivers.snapshot();
    let line = |(socket, row): (String, Arc<PluginSocket>)| {
        let driver = drivers.get(&row.name).filter(|_| row.registered_at.is_some());
        PluginLine {
            socket,
            name: row.name.clone(),
            kind: row.kind.clone(),
            versions: row.versions.clone(),
            registered_ns: row.registered_at.map(|at| at.0),
            failures: row.failures,
            error: row.error.clone().or_else(|| driver.and_then(|d| d.error.clone())),
            endpoint: driver.map(|d| d.endpoint.display().to_string()),
            node_id: driver.map(|d| d.node_id.clone()),
            max_volumes: driver.and_then(|d| d.max_volumes),
        }
    };
    Json(views.plugins.snapshot().into_iter().map(line).collect())
}

pub(super) async fn volumes(State(views): Shared) -> Result<Json<Vec<VolumeLine>>, Refusal> {
    let rows = views.crew.ask(ListVolumes).await;
    let rows = rows.map_err(|e| refuse(StatusCode::SERVICE_UNAVAILABLE, format!("volume manager: {e}")))?;
    let named = |uid: &PodUid| match views.pods.get(uid) {
        Some(row) => model::pod::namespaced_name(&row.pod),
        None => uid.to_string(),
    };
    let line = |row: &VolumeRow| VolumeLine {
        pod: row.pod.as_ref().map(named).unwrap_or_default(),
        volume: row.volume.clone(),
        kind: row.kind.clone(),
        driver: row.driver.clone(),
        handle: row.handle.clone(),
        claim: row.claim.clone(),
        path: row.path.as_ref().map(|p| p.display().to_string()),
        stage: format!("{:?}", row.stage),
        since_ns: row.since.map(|at| at.0),
        error: row.error.clone(),
        call: row.call.as_ref().map(|c| c.name.clone()),
        call_since_ns: row.call.as_ref().map(|c| c.since.0),
    };
    let mut lines: Vec<VolumeLine> = rows.iter().map(line).collect();
    lines.sort_by(|a, b| (&a.pod, &a.volume, &a.handle).cmp(&(&b.pod, &b.volume, &b.handle)));
    Ok(Json(lines))
}

pub(super) async fn manifests(State(views): Shared) -> Json<Manifests> {
    let (folder, url) = (views.sources.get(), views.url.get());
    let mut out = Manifests { error: folder.error.clone().or_else(|| url.error.clone()), ..Manifests::default() };
    for (path, state) in folder.manifests.iter().chain(&url.manifests) {
        match state {
            ManifestState::Accepted { pod } => drop(out.accepted.insert(path.clone(), pod.clone())),
            ManifestState::Refused { errors, keeps_old } => {
                let refused = Refused { errors: errors.clone(), keeps_old: *keeps_old };
                out.refused.insert(path.clone(), refused);
            }
            ManifestState::Unknown => {
                let errors = vec!["its state is not known to this version".to_owned()];
                out.refused.insert(path.clone(), Refused { errors, keeps_old: false });
            }
        }
    }
    Json(out)
}

pub(super) async fn node(State(views): Shared) -> Json<NodeInfo> {
    let info = views.runtime.get();
    let (node, certificates) = (views.node.get(), views.certificates.get());
    let events = match info.tier {
        EventTier::CriStream => "cri-stream",
        EventTier::Containerd => "containerd-events",
        EventTier::Relist => "relist",
    };
    Json(NodeInfo {
        name: views.node_name.clone(),
        runtime: format!("{} {}", info.name, info.version).trim().to_owned(),
        runtime_ready: info.ready,
        network: info.network.as_ref().err().cloned().unwrap_or_default(),
        error: info.error.clone(),
        events: events.to_owned(),
        divergences: info.divergences,
        stale: info.stale,
        sources_ready: views.sources.get().delivered,
        registration: views.cluster.then(|| Registration {
            registered: node.registered,
            from_api: node.origin == NodeOrigin::Api,
            lease_renewed_ns: node.lease_renewed_at.map(|t| t.0),
            error: node.error.clone(),
        }),
        api: views.cluster.then(|| api_line(&views)),
        certificates: CertificateLine {
            client_expires_ns: certificates.client.as_ref().map(|c| c.not_after.0),
            serving_expires_ns: certificates.serving.as_ref().map(|c| c.not_after.0),
            error: certificates.error.clone(),
        },
        ready: node.ready.as_ref().map(|(ready, _)| *ready),
        ready_message: node.ready.as_ref().map(|(_, message)| message.clone()).unwrap_or_default(),
        pressure: node.pressure.clone(),
        shutting_down: node.shutting_down,
        object: node.node.as_deref().cloned(),
    })
}

fn api_line(views: &Views) -> ApiLine {
    let view = views.api.get();
    ApiLine { synced: view.synced, from_store: view.from_store, pods: view.pods, error: view.error.clone() }
}

fn faults_allowed(views: &Views) -> Result<(), Refusal> {
    if views.faults {
        return Ok(());
    }
    Err(refuse(StatusCode::FORBIDDEN, "this daemon was started without --enable-faults"))
}

/// The body is rules in text form, e.g. `status-manager: panic@turn:SetPodStatus#1`.
pub(super) async fn add_fault(State(views): Shared, rules: String) -> Result<Response, Refusal> {
    faults_allowed(&views)?;
    views.kernel.faults().add_text(&rules).map_err(|e| refuse(StatusCode::BAD_REQUEST, e.to_string()))?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

pub(super) async fn clear_faults(State(views): Shared) -> Result<Response, Refusal> {
    faults_allowed(&views)?;
    views.kernel.faults().clear();
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// What has been injected, and which points exist.
pub(super) async fn faults(State(views): Shared) -> Result<Response, Refusal> {
    faults_allowed(&views)?;
    let log: Vec<String> = views.kernel.faults().log().iter().map(|l| format!("{l:?}")).collect();
    let declared = views.kernel.faults().declared();
    Ok(Json(serde_json::json!({ "log": log, "points": declared })).into_response())
}
