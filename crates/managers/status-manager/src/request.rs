//! One sync of one pod with the API server (pod-lifecycle 9.8).

use std::sync::Arc;

use actor::FaultHandle;
use contract::status::StatusEntry;
use model::core::Pod;
use pod_status::merge::KnownTimes;
use ports::api::{ApiError, ApiExt, ApiServer, Preconditions, Throttle};
use serde_json::json;

use crate::copy::ApiCopy;
use crate::dialect::Dialect;
use crate::lane::{is_deletable, wanted};

/// A patch that meets another writer is made anew this often before the pod waits its turn.
const ATTEMPTS: u32 = 3;

/// What is to be said about one pod.
#[derive(Debug)]
pub(crate) struct Job {
    /// Newest copy that is known; without a resource version the server is asked first.
    pub(crate) copy: ApiCopy,
    pub(crate) entry: Arc<StatusEntry>,
    pub(crate) may_run: bool,
    /// The object is the pod itself, no mirror.
    pub(crate) is_api_pod: bool,
    pub(crate) times: Option<KnownTimes>,
    /// What this server cannot be told.
    pub(crate) dialect: Dialect,
}

/// What the API has now.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) version: u64,
    pub(crate) held: bool,
    pub(crate) copy: ApiCopy,
    pub(crate) times: KnownTimes,
    /// The object was told to go.
    pub(crate) deleted: bool,
}

/// How a sync ended.
#[derive(Debug)]
pub(crate) enum Ending {
    /// The API says what it should.
    Taken(Taken),
    /// There is no such object any more.
    Gone,
    /// The server did not take it; what was done before that.
    Failed(ApiError, Option<Taken>),
}

/// Patches the status where it differs, then deletes the object where that is due.
pub(crate) async fn sync(api: &dyn ApiServer, job: Job, faults: &FaultHandle) -> Ending {
    let mut taken = match say(api, &job, faults).await {
        Ok(Some(taken)) => taken,
        Ok(None) => return Ending::Gone,
        Err(error) => return Ending::Failed(error, None),
    };
    if !job.is_api_pod || taken.held || !is_deletable(&job.entry, &taken.copy) {
        return Ending::Taken(taken);
    }
    faults.hit("before delete").await;
    let when = Preconditions { uid: Some(taken.copy.uid.clone()), grace_s: Some(0) };
    let deleted = api.delete::<Pod>(Some(&job.entry.namespace), &job.entry.name, when).await;
    faults.hit("after delete").await;
    if let Err(error) = deleted {
        // Gone already, or another pod has the name by now.
        let over = error.is_not_found() || (error.is_conflict() && is_another(api, &job, &taken.copy).await);
        if !over {
            return Ending::Failed(error, Some(taken));
        }
    }
    taken.deleted = true;
    Ending::Taken(taken)
}

/// Whether the object of this name is not the one that was known.
async fn is_another(api: &dyn ApiServer, job: &Job, known: &ApiCopy) -> bool {
    match api.get::<Pod>(Some(&job.entry.namespace), &job.entry.name).await {
        Ok(pod) => pod.metadata.uid.as_ref() != Some(&known.uid),
        Err(error) => error.is_not_found(),
    }
}

/// `None`: there is no such object.
async fn say(api: &dyn ApiServer, job: &Job, faults: &FaultHandle) -> Result<Option<Taken>, ApiError> {
    let (namespace, name) = (Some(job.entry.namespace.as_str()), job.entry.name.as_str());
    let mut copy = job.copy.clone();
    let mut ask = copy.version.is_none();
    for attempt in 1.. {
        if ask {
            match api.get::<Pod>(namespace, name).await {
                Ok(pod) => {
                    let live = ApiCopy::answered(pod);
                    if live.uid != job.copy.uid {
                        return Ok(None);
                    }
                    copy = live;
                }
                Err(error) if error.is_not_found() => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        let times = job.times.clone().unwrap_or_else(|| KnownTimes::learn(&copy.status(), &job.entry.status));
        let wanted = wanted(&job.entry, &copy, job.may_run, Some(&times));
        let (version, held) = (job.entry.version, wanted.held);
        let Some(patch) = wanted.patch.and_then(|patch| job.dialect.spoken(patch)) else {
            return Ok(Some(Taken { version, held, copy, times, deleted: false }));
        };
        let body = json!({ "metadata": { "uid": copy.uid }, "status": patch });
        faults.hit("before patch").await;
        let answer = api.patch_status::<Pod>(namespace, name, &body, Throttle::Main).await;
        faults.hit("after patch").await;
        match answer {
            Ok(pod) => {
                let copy = ApiCopy::answered(pod);
                return Ok(Some(Taken { version, held, copy, times, deleted: false }));
            }
            Err(error) if error.is_not_found() => return Ok(None),
            Err(error) if error.is_conflict() && attempt < ATTEMPTS => ask = true,
            // Told without what it does not know.
            Err(error) if job.dialect.learn(&error, &body["status"]) => ask = false,
            // A UID that is not the object's is refused as a change of a field that cannot change (seen of a 1.20 server).
            Err(error) if error.code() == Some(422) => {
                return if is_another(api, job, &copy).await { Ok(None) } else { Err(error) };
            }
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}
