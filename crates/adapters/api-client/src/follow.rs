//! List and watch: the whole first, then each change; resumed where it broke, listed anew where it cannot be
//! (interfaces 9.2).

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::{self, BoxStream};
use http_body_util::{BodyExt, Limited};
use ports::api::{ApiError, ApiResult, Followed, Kind, Method, Object, Request, Selection, Throttle};
use tokio::sync::watch;
use tokio::time::Instant;

use self::decode::Change;
use self::lines::Lines;
use self::pause::Pauses;
use crate::error;
use crate::pools::Place;
use crate::transport::{BODY_LIMIT, Transport};

mod decode;
mod lines;
mod pause;

/// Deadline of a list, and of the head of a watch.
const LIST_LIMIT: Duration = Duration::from_secs(60);
const HEAD_LIMIT: Duration = Duration::from_secs(30);
/// Servers end a watch by themselves; one that lives so much longer than asked for is dead.
const OVERTIME: Duration = Duration::from_secs(15);
/// A watch that ends sooner and brought nothing is a failure.
const SHORT: Duration = Duration::from_secs(1);
/// Objects per page of a list that is not served from the cache.
const PAGE: &str = "500";

/// Where a list starts.
#[derive(Clone, Debug, PartialEq, Eq)]
enum From {
    /// Whatever the server's cache holds.
    Cache,
    /// Not older than this.
    NotOlder(String),
    /// The newest there is.
    Newest,
}

enum Phase {
    List(From),
    /// Watch from this version on.
    Watch(String),
    Watching(Box<Watching>),
}

struct Watching {
    version: String,
    lines: Lines,
    began: Instant,
    ends: Instant,
    events: u64,
}

struct Follower {
    transport: Arc<Transport>,
    place: Place,
    kind: Kind,
    path: String,
    fields: String,
    phase: Phase,
    pauses: Pauses,
    /// Slept before the next try.
    pause: Option<Duration>,
    generation: watch::Receiver<u64>,
    identities: watch::Receiver<u64>,
    ready: VecDeque<Followed>,
}

pub(crate) fn follow(transport: Arc<Transport>, selection: Selection) -> BoxStream<'static, Followed> {
    let follower = Follower {
        kind: selection.kind,
        path: path(&selection),
        fields: selection.field_selector,
        phase: Phase::List(From::Cache),
        pauses: Pauses::new(&transport.settings.watch),
        pause: None,
        generation: transport.generation.subscribe(),
        identities: transport.identities.subscribe(),
        place: transport.pools.place(),
        ready: VecDeque::new(),
        transport,
    };
    stream::unfold(follower, |mut follower| async move {
        let step = follower.next().await;
        Some((step, follower))
    })
    .boxed()
}

fn path(selection: &Selection) -> String {
    let (root, resource) = match selection.kind {
        Kind::Pod => ("/api/v1", "pods"),
        Kind::Node => ("/api/v1", "nodes"),
        Kind::Service => ("/api/v1", "services"),
        Kind::ConfigMap => ("/api/v1", "configmaps"),
        Kind::Secret => ("/api/v1", "secrets"),
        Kind::RuntimeClass => ("/apis/node.k8s.io/v1", "runtimeclasses"),
        Kind::CertificateSigningRequest => ("/apis/certificates.k8s.io/v1", "certificatesigningrequests"),
        Kind::ClusterTrustBundle => ("/apis/certificates.k8s.io/v1beta1", "clustertrustbundles"),
        Kind::ClusterTrustBundleAlpha => ("/apis/certificates.k8s.io/v1alpha1", "clustertrustbundles"),
        Kind::PodCertificateRequest => ("/apis/certificates.k8s.io/v1beta1", "podcertificaterequests"),
        Kind::CsiDriver => ("/apis/storage.k8s.io/v1", "csidrivers"),
    };
    match &selection.namespace {
        Some(namespace) => format!("{root}/namespaces/{namespace}/{resource}"),
        None => format!("{root}/{resource}"),
    }
}

impl Follower {
    async fn next(&mut self) -> Followed {
        loop {
            if let Some(step) = self.ready.pop_front() {
                return step;
            }
            self.rest().await;
            // Only while a step runs; a step that is dropped half-way ends the whole stream.
            match std::mem::replace(&mut self.phase, Phase::List(From::Newest)) {
                Phase::List(from) => self.list(from).await,
                Phase::Watch(version) => self.start(version).await,
                Phase::Watching(watching) => self.read(watching).await,
            }
        }
    }

    /// Sleeps the pause that is due; a new identity ends it. New connections alone do not: they are made again and again
    /// while heartbeats fail, and a server that is down must not be stormed by all follows at once.
    async fn rest(&mut self) {
        if let Some(pause) = self.pause.take() {
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                // The sender lives in `transport`.
                _ = self.identities.changed() => {}
            }
        }
        self.identities.borrow_and_update();
        if !matches!(self.phase, Phase::Watching(_)) {
            self.generation.borrow_and_update();
        }
    }

    fn request(&self, query: &[(&str, &str)]) -> Request {
        let mut request = Request::new(Method::Get, self.path.clone());
        if !self.fields.is_empty() {
            request = request.query("fieldSelector", self.fields.as_str());
        }
        query.iter().fold(request, |request, (key, value)| request.query(key, *value))
    }

    fn failed(&mut self, error: ApiError, then: Phase) {
        tracing::debug!(path = self.path, %error, "follow failed");
        self.pause = Some(self.pauses.next().max(error.retry_after().unwrap_or_default()));
        self.ready.push_back(Followed::Failed(error));
        self.phase = then;
    }

    /// The version is forgotten: list the newest, at once the first time.
    fn expired(&mut self) {
        self.pause = if self.pauses.is_calm() { self.pauses.note() } else { Some(self.pauses.next()) };
        self.phase = Phase::List(From::Newest);
    }

    async fn list(&mut self, from: From) {
        match tokio::time::timeout(LIST_LIMIT, self.pages(&from)).await {
            Ok(Ok((version, objects, broken))) => {
                self.ready.push_back(Followed::All(objects));
                self.ready.extend(broken.into_iter().map(Followed::Failed));
                self.phase = Phase::Watch(version);
            }
            Ok(Err(error)) if from != From::Newest && too_old_or_new(&error) => self.expired(),
            Ok(Err(error)) => self.failed(error, Phase::List(from)),
            Err(_) => self.failed(ApiError::TimedOut { after: LIST_LIMIT }, Phase::List(from)),
        }
    }

    async fn pages(&self, from: &From) -> ApiResult<(String, Vec<Object>, Vec<ApiError>)> {
        let (mut objects, mut broken) = (Vec::new(), Vec::new());
        let mut next: Option<String> = None;
        loop {
            let request = match (&next, from) {
                (Some(token), _) => self.request(&[("limit", PAGE), ("continue", token)]),
                (None, From::Newest) => self.request(&[("limit", PAGE)]),
                (None, From::Cache) => self.request(&[("resourceVersion", "0")]),
                (None, From::NotOlder(version)) => {
                    self.request(&[("resourceVersion", version), ("resourceVersionMatch", "NotOlderThan")])
                }
            };
            let deadline = Instant::now() + LIST_LIMIT;
            self.transport.turn(Throttle::Main, deadline).await;
            let answer = self.transport.read(&request, self.place.index).await?;
            let body = Limited::new(answer.into_body(), BODY_LIMIT)
                .collect()
                .await
                .map_err(|e| error::unreachable(&*e))?
                .to_bytes();
            let page = decode::page(self.kind, &body, &mut objects, &mut broken)?;
            match page.next {
                Some(token) => next = Some(token),
                None => return Ok((page.version, objects, broken)),
            }
        }
    }

    async fn start(&mut self, version: String) {
        let (least, most) = self.transport.settings.watch.life_s;
        let life_s = fastrand::u64(least..=most.max(least));
        let request = self.request(&[
            ("watch", "true"),
            ("allowWatchBookmarks", "true"),
            ("resourceVersion", &version),
            ("timeoutSeconds", &life_s.to_string()),
        ]);
        let head = async {
            self.transport.turn(Throttle::Main, Instant::now() + HEAD_LIMIT).await;
            self.transport.read(&request, self.place.index).await
        };
        let head = tokio::time::timeout(HEAD_LIMIT, head).await;
        match head.unwrap_or(Err(ApiError::TimedOut { after: HEAD_LIMIT })) {
            Ok(answer) => {
                let began = Instant::now();
                let ends = began + Duration::from_secs(life_s) + OVERTIME;
                let lines = Lines::new(answer.into_body());
                self.phase = Phase::Watching(Box::new(Watching { version, lines, began, ends, events: 0 }));
            }
            Err(error) if too_old_or_new(&error) => self.expired(),
            // Too busy, but still the server we know.
            Err(error) if error.code() == Some(429) => self.failed(error, Phase::Watch(version)),
            // Whoever answers next may be a server that was restored from an older state: ask for the whole.
            Err(error) => self.failed(error, Phase::List(From::NotOlder(version))),
        }
    }

    async fn read(&mut self, mut watching: Box<Watching>) {
        let silent = (Instant::now() + self.transport.settings.watch.idle).min(watching.ends);
        let line = tokio::select! {
            line = tokio::time::timeout_at(silent, watching.lines.next()) => line,
            _ = self.generation.changed() => {
                self.phase = Phase::Watch(watching.version);
                return;
            }
        };
        let line = match line {
            Ok(Ok(Some(line))) => line,
            Err(_) => {
                tracing::debug!(path = self.path, "a watch fell silent and is taken up anew");
                self.phase = Phase::Watch(watching.version);
                return;
            }
            Ok(Err(error @ ApiError::Garbage { .. })) => {
                return self.failed(error, Phase::Watch(watching.version));
            }
            // Ended or broken.
            Ok(Ok(None) | Err(_)) => {
                if watching.events == 0 && watching.began.elapsed() < SHORT {
                    self.pause = Some(self.pauses.next());
                }
                self.phase = Phase::Watch(watching.version);
                return;
            }
        };
        watching.events += 1;
        match decode::line(self.kind, &line) {
            Ok(change) => self.apply(change, watching),
            Err(error) => self.failed(error, Phase::Watch(watching.version)),
        }
    }

    /// A line of the watch has been read.
    fn apply(&mut self, change: Change, mut watching: Box<Watching>) {
        let version = match change {
            Change::Step(step, version) => {
                self.ready.push_back(step);
                version
            }
            Change::Bookmark(version) => version,
            Change::Failed(error) if too_old_or_new(&error) => return self.expired(),
            Change::Failed(error) => {
                let list = Phase::List(From::NotOlder(watching.version));
                return self.failed(error, list);
            }
        };
        if !version.is_empty() {
            watching.version = version;
        }
        self.phase = Phase::Watching(watching);
    }
}

/// The server cannot begin at that version: it forgot it, or it has not come so far.
fn too_old_or_new(error: &ApiError) -> bool {
    let ApiError::Status { code, reason, .. } = error else { return false };
    *code == 410 || reason == "Expired" || reason == error::TOO_LARGE
}
