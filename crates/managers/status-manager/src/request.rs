//! One sync of one pod with the API server (pod-lifecycle 9.8).

use std::sync::Arc;

use actor::FaultHandle;
use contract::status::StatusEntry;
use model::core::{Pod, PodStatus};
use pod_status::merge::{KnownTimes, for_api};
use pod_status::wire::status_patch;
use ports::api::{ApiError, ApiExt, ApiServer, Method, Preconditions, Request, Throttle};
use serde_json::json;

use crate::copy::{Answer, ApiCopy};
use crate::unknown_fields::UnknownFields;

/// A patch that meets another writer is made anew this often before the pod waits its turn.
const ATTEMPTS: u32 = 3;

/// The status that the API server shall have of one pod, and what is known of its copy.
#[derive(Debug)]
pub(crate) struct SyncRequest {
    /// Newest copy that is known; without a resource version the server is asked first.
    pub(crate) copy: ApiCopy,
    pub(crate) entry: Arc<StatusEntry>,
    pub(crate) may_run: bool,
    /// The object is the pod itself, no mirror.
    pub(crate) is_api_pod: bool,
    pub(crate) times: Option<KnownTimes>,
    pub(crate) unknown_fields: UnknownFields,
}

/// What the API has now.
#[derive(Debug)]
pub(crate) struct Accepted {
    pub(crate) version: u64,
    /// The status is that of an end, and its phase was held back.
    pub(crate) phase_held_back: bool,
    pub(crate) copy: ApiCopy,
    pub(crate) times: KnownTimes,
    /// The object was deleted.
    pub(crate) deleted: bool,
}

/// How a sync ended.
#[derive(Debug)]
pub(crate) enum SyncOutcome {
    /// The API has the status.
    Accepted(Accepted),
    /// There is no such object any more.
    Gone,
    /// The server did not take it; what was done before that.
    Failed(ApiError, Option<Accepted>),
}

/// How the API's copy differs from the kept status.
#[derive(Debug)]
pub(crate) struct Difference {
    /// Patch of the status; `None`: the API says so already.
    pub(crate) patch: Option<serde_json::Value>,
    /// The terminal phase is held back: a container could run.
    pub(crate) phase_held_back: bool,
}

/// Compares the API's copy with the kept status.
pub(crate) fn difference(entry: &StatusEntry, copy: &ApiCopy, may_run: bool, times: Option<&KnownTimes>) -> Difference {
    let nothing = PodStatus::default();
    let api = copy.pod.status.as_ref().unwrap_or(&nothing);
    let mut kept = (*entry.status).clone();
    if let Some(times) = times {
        times.apply(&mut kept);
    }
    // A condition that is forced by the end of the pod changes when this version was made: the same on each attempt.
    let ends = |s: &PodStatus| model::pod::is_terminal_phase(s.phase.as_deref());
    let has_ended = ends(&kept);
    let merged = for_api(api, kept, may_run, entry.changed_at);
    Difference { patch: status_patch(api, &merged), phase_held_back: has_ended && !ends(&merged) }
}

/// Whether the object of a pod of the API may be deleted (pod-lifecycle 9.8): it is to go, it shows its end, and its
/// worker is done.
pub(crate) fn is_deletable(entry: &StatusEntry, copy: &ApiCopy) -> bool {
    copy.deleting && copy.is_terminal() && entry.finished
}

/// Patches the status where it differs, then deletes the object where that is due.
pub(crate) async fn sync(api: &dyn ApiServer, request: SyncRequest, faults: &FaultHandle) -> SyncOutcome {
    let mut accepted = match patch_status(api, &request, faults).await {
        Ok(Some(accepted)) => accepted,
        Ok(None) => return SyncOutcome::Gone,
        Err(error) => return SyncOutcome::Failed(error, None),
    };
    if !request.is_api_pod || accepted.phase_held_back || !is_deletable(&request.entry, &accepted.copy) {
        return SyncOutcome::Accepted(accepted);
    }
    faults.hit("before delete").await;
    let when = Preconditions { uid: Some(accepted.copy.uid.clone()), grace_s: Some(0) };
    let deleted = api.delete::<Pod>(Some(&request.entry.namespace), &request.entry.name, when).await;
    faults.hit("after delete").await;
    if let Err(error) = deleted {
        // Gone already, or another pod has the name by now.
        let over = error.is_not_found() || (error.is_conflict() && is_another(api, &request, &accepted.copy).await);
        if !over {
            return SyncOutcome::Failed(error, Some(accepted));
        }
    }
    accepted.deleted = true;
    SyncOutcome::Accepted(accepted)
}

/// Whether the object of this name is not the one that was known.
async fn is_another(api: &dyn ApiServer, request: &SyncRequest, known: &ApiCopy) -> bool {
    match api.get::<Pod>(Some(&request.entry.namespace), &request.entry.name).await {
        Ok(pod) => pod.metadata.uid.as_ref() != Some(&known.uid),
        Err(error) => error.is_not_found(),
    }
}

/// Patches the status where it differs. `None`: there is no such object.
async fn patch_status(
    api: &dyn ApiServer,
    request: &SyncRequest,
    faults: &FaultHandle,
) -> Result<Option<Accepted>, ApiError> {
    let (namespace, name) = (Some(request.entry.namespace.as_str()), request.entry.name.as_str());
    let mut copy = request.copy.clone();
    let mut ask = copy.version.is_none();
    for attempt in 1.. {
        if ask {
            match api.fetch::<Answer>(Request::to::<Pod>(Method::Get, namespace, Some(name))).await {
                Ok(answer) => {
                    let live = ApiCopy::from(answer);
                    if live.uid != request.copy.uid {
                        return Ok(None);
                    }
                    copy = live;
                }
                Err(error) if error.is_not_found() => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        let times = request.times.clone().unwrap_or_else(|| KnownTimes::learn(&copy.status(), &request.entry.status));
        let difference = difference(&request.entry, &copy, request.may_run, Some(&times));
        let (version, phase_held_back) = (request.entry.version, difference.phase_held_back);
        let Some(patch) = difference.patch.and_then(|patch| request.unknown_fields.leave_out(patch)) else {
            return Ok(Some(Accepted { version, phase_held_back, copy, times, deleted: false }));
        };
        let body = json!({ "metadata": { "uid": copy.uid }, "status": patch });
        faults.hit("before patch").await;
        let answer = api.patch_status::<Pod, Answer>(namespace, name, &body, Throttle::Main).await;
        faults.hit("after patch").await;
        match answer {
            Ok(answer) => {
                let copy = ApiCopy::from(answer);
                return Ok(Some(Accepted { version, phase_held_back, copy, times, deleted: false }));
            }
            Err(error) if error.is_not_found() => return Ok(None),
            Err(error) if error.is_conflict() && attempt < ATTEMPTS => ask = true,
            // Patched without what it does not know.
            Err(error) if request.unknown_fields.learn(&error, &body["status"]) => ask = false,
            // A UID that is not the object's is refused as a change of a field that cannot change (seen of a 1.20 server).
            Err(error) if error.code() == Some(422) => {
                return if is_another(api, request, &copy).await { Ok(None) } else { Err(error) };
            }
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}
