//! An API server in memory: resource versions, watches, conflicts, preconditions, graceful deletion, patches as a real one
//! applies them; and trouble on request. It does not check schemas, permissions or that a namespace exists.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use model::k8s_openapi::jiff::Timestamp;
use ports::api::{ApiError, ApiResult, Method, Request, Selection, Throttle};
use serde_json::Value;
use tokio::time::Instant;

mod claims;
mod follow;
mod patch;
mod review;
mod server;
mod store;
mod target;
mod trouble;
mod user;

pub use follow::collection;
pub use store::{Ask, Backup, Change, Event, Store, list_body};
pub use target::{FieldSelector, Target};
pub use trouble::{Matching, Trouble, Troubles, verb};

/// One request that arrived.
#[derive(Clone, Debug)]
pub struct Logged {
    /// Since the server was made.
    pub at: Duration,
    /// Method.
    pub method: Method,
    /// Path.
    pub path: String,
    /// Query.
    pub query: Vec<(String, String)>,
    /// Body; `Null`: none, or not JSON.
    pub body: Value,
    /// Its rate limit.
    pub throttle: Throttle,
    /// What the caller was told; `None` while it waits.
    pub failure: Option<ApiError>,
    /// The caller has its answer.
    pub answered: bool,
}

/// As [`Logged`], its body not read yet: most are never looked at.
#[derive(Debug)]
struct Entry {
    request: Request,
    at: Duration,
    failure: Option<ApiError>,
    answered: bool,
}

impl Entry {
    fn logged(&self) -> Logged {
        let Request { method, path, query, body, throttle, .. } = &self.request;
        Logged {
            at: self.at,
            method: *method,
            path: path.clone(),
            query: query.clone(),
            body: serde_json::from_slice(body).unwrap_or_default(),
            throttle: *throttle,
            failure: self.failure.clone(),
            answered: self.answered,
        }
    }
}

#[derive(Debug)]
struct State {
    store: Store,
    troubles: Troubles,
    log: Vec<Entry>,
    lists: Vec<Selection>,
    cuts: u64,
    cut_with: ApiError,
    held: bool,
    /// What a review lets everybody do.
    allows: Vec<String>,
    /// Resources that discovery tells of, by group and version.
    discovered: BTreeMap<String, Vec<String>>,
}

impl State {
    /// What followers depend on: newest and oldest version, cuts, and whether they are told.
    fn seen_by_followers(&self) -> (u64, u64, u64, bool) {
        (self.store.version(), self.store.oldest(), self.cuts, self.held)
    }
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// Ticks at each change, of the log of requests, too.
    changed: actor::watch::Sender<u64>,
    /// Ticks when followers may see something new.
    moved: actor::watch::Sender<u64>,
    began: Instant,
    wall: Timestamp,
}

impl Shared {
    fn with<T>(&self, f: impl FnOnce(&mut State) -> T) -> T {
        f(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// As `with`, and wakes who waits for it.
    fn change<T>(&self, f: impl FnOnce(&mut State) -> T) -> T {
        let (out, has_moved) = self.with(|s| {
            let before = s.seen_by_followers();
            let out = f(s);
            (out, before != s.seen_by_followers())
        });
        if has_moved {
            self.moved.send_modify(|n| *n += 1);
        }
        self.changed.send_modify(|n| *n += 1);
        out
    }
}

/// The server; a clone is the same server.
#[derive(Clone, Debug)]
pub struct FakeApi {
    shared: Arc<Shared>,
}

impl Default for FakeApi {
    fn default() -> Self {
        Self::new()
    }
}

impl FakeApi {
    /// An empty cluster whose clock begins now.
    #[must_use]
    pub fn new() -> Self {
        Self::at(Timestamp::now())
    }

    /// An empty cluster whose clock begins at `wall` and goes on with tokio's.
    #[must_use]
    pub fn at(wall: Timestamp) -> Self {
        let state = State {
            store: Store::default(),
            troubles: Troubles::default(),
            log: Vec::new(),
            lists: Vec::new(),
            cuts: 0,
            cut_with: ApiError::Unreachable { message: "connection reset by peer".to_owned() },
            held: false,
            allows: Vec::new(),
            discovered: BTreeMap::new(),
        };
        let ((changed, _), (moved, _)) = (actor::watch::channel(0), actor::watch::channel(0));
        Self { shared: Arc::new(Shared { state: Mutex::new(state), changed, moved, began: Instant::now(), wall }) }
    }

    /// Time of the server.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.shared.wall.checked_add(self.shared.began.elapsed()).unwrap_or(self.shared.wall)
    }

    /// Looks at or changes the store; followers see the changes.
    pub fn store<T>(&self, f: impl FnOnce(&mut Store) -> T) -> T {
        self.shared.change(|s| f(&mut s.store))
    }

    /// Looks at the store without waking anybody.
    pub fn peek<T>(&self, f: impl FnOnce(&Store) -> T) -> T {
        self.shared.with(|s| f(&s.store))
    }

    /// Ticks when the store has another version, or followers are told of it otherwise than before.
    #[must_use]
    pub fn moves(&self) -> actor::watch::Receiver<u64> {
        self.shared.moved.subscribe()
    }

    /// Ticks after each change of the store, and each request.
    #[must_use]
    pub fn changes(&self) -> actor::watch::Receiver<u64> {
        self.shared.changed.subscribe()
    }

    /// Answers a request as the store says, without trouble and without a trace in the log.
    ///
    /// # Errors
    /// As [`Store::answer`].
    pub fn answer(
        &self,
        method: Method,
        path: &str,
        query: &[(String, String)],
        body: Value,
    ) -> Result<Arc<Value>, ApiError> {
        if let Some(answer) = self.review(method, &body).or_else(|| self.discovery(method, path)) {
            return Ok(answer.into());
        }
        let now = self.now();
        self.store(|store| store.answer(&Ask { method, path, query, body, now }))
    }

    /// Discovery tells of one more resource. Objects of others can be had all the same.
    pub fn discover(&self, group_version: &str, resource: &str) {
        let of = |s: &mut State| s.discovered.entry(group_version.to_owned()).or_default().push(resource.to_owned());
        self.shared.with(of);
    }

    fn discovery(&self, method: Method, path: &str) -> Option<Value> {
        let group_version = path.strip_prefix("/apis/").filter(|_| method == Method::Get)?;
        let names = self.shared.with(|s| s.discovered.get(group_version).cloned())?;
        let resources: Vec<Value> = names.iter().map(|name| serde_json::json!({ "name": name })).collect();
        Some(serde_json::json!({ "kind": "APIResourceList", "groupVersion": group_version, "resources": resources }))
    }

    /// Trouble for the next `times` requests that match. Lists of followers match as `GET` of the collection.
    pub fn trouble(&self, matching: Matching, trouble: Trouble, times: u32) {
        self.shared.with(|s| s.troubles.add(matching, trouble, Some(times)));
    }

    /// Trouble for every request that matches, until [`FakeApi::calm`].
    pub fn lasting_trouble(&self, matching: Matching, trouble: Trouble) {
        self.shared.with(|s| s.troubles.add(matching, trouble, None));
    }

    /// The next `times` requests of a verb on a path that contains `path` fail.
    pub fn fail(&self, verb: &'static str, path: &str, times: u32, error: ApiError) {
        self.trouble(Matching::of(verb, path), Trouble::Fail(error), times);
    }

    /// Ends all trouble.
    pub fn calm(&self) {
        self.shared.change(|s| {
            s.troubles.clear();
            s.held = false;
        });
    }

    /// Nobody reaches the server any more: calls fail and follows are cut. Ends with [`FakeApi::calm`].
    pub fn unplug(&self) {
        let gone = ApiError::Unreachable { message: "dial tcp: connection refused".to_owned() };
        self.lasting_trouble(Matching::any(), Trouble::Fail(gone.clone()));
        self.cut_follows(gone);
    }

    /// Ends every watch: followers see this failure and then, a second later, the whole selection again.
    pub fn cut_follows(&self, error: ApiError) {
        self.shared.change(|s| {
            s.cuts += 1;
            s.cut_with = error;
        });
    }

    /// Followers see no changes (a half-closed watch) until [`FakeApi::calm`] or a cut.
    pub fn hold_follows(&self) {
        self.shared.with(|s| s.held = true);
    }

    /// All requests since the start or the last [`FakeApi::forget_requests`]; follows are not among them.
    #[must_use]
    pub fn requests(&self) -> Vec<Logged> {
        self.shared.with(|s| s.log.iter().map(Entry::logged).collect())
    }

    /// Requests of a verb whose path contains a text.
    #[must_use]
    pub fn requests_of(&self, verb: &'static str, path: &str) -> Vec<Logged> {
        let matching = Matching::of(verb, path);
        let takes = |e: &&Entry| matching.takes(e.request.method, &e.request.path);
        self.shared.with(|s| s.log.iter().filter(takes).map(Entry::logged).collect())
    }

    /// Empties the log of requests.
    pub fn forget_requests(&self) {
        self.shared.with(|s| s.log.clear());
    }

    /// Selections that were listed by followers, in order, one entry per list.
    #[must_use]
    pub fn lists(&self) -> Vec<Selection> {
        self.shared.with(|s| s.lists.clone())
    }

    async fn troubled(&self, request: &Request, mut body: Value) -> ApiResult<Bytes> {
        let trouble = self.shared.with(|s| s.troubles.next(request.method, &request.path));
        let lost = match trouble {
            Some(Trouble::Fail(error)) => return Err(error),
            Some(Trouble::DoneButLost(error)) => Some(error),
            Some(Trouble::Slow(time)) => {
                tokio::time::sleep(time).await;
                None
            }
            Some(Trouble::Hang) => std::future::pending().await,
            Some(Trouble::Garbage) => return Ok(Bytes::from_static(b"<html>")),
            Some(Trouble::Unaware(group, field)) => {
                body.pointer_mut(group).and_then(Value::as_object_mut).and_then(|group| group.remove(field));
                None
            }
            None => None,
        };
        let answer = self.answer(request.method, &request.path, &request.query, body)?;
        match lost {
            Some(error) => Err(error),
            None => Ok(Bytes::from(serde_json::to_vec(&*answer).expect("JSON can be written as such"))),
        }
    }
}

#[cfg(test)]
mod tests;
