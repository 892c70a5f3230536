//! Requests on their way: rate limits, deadlines, retries, and connections that can be exchanged while they are in use.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue, USER_AGENT};
use hyper::{Request as HttpRequest, Response, Uri};
use ports::api::{ApiError, ApiResult, Method, PatchKind, Request, Throttle};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::connect::Connector;
use crate::credentials::Credentials;
use crate::error::{self, BuildError};
use crate::kubeconfig::Kubeconfig;
use crate::pem::Identity;
use crate::pools::Pools;
use crate::settings::Settings;
use crate::throttle::Bucket;
use crate::tls::{self, Shown};
use crate::traced::Traced;
use crate::{measure, url};

/// Answers larger than this are refused.
pub(crate) const BODY_LIMIT: usize = 64 << 20;
/// How often a request is sent again when the server names a time (the generic client's limit).
const RETRIES: u32 = 10;
/// Wait before a read is sent again whose connection broke.
const BROKEN_WAIT: Duration = Duration::from_secs(1);
/// Heartbeats that fail in a row before the connections are given up.
const FAILED_BEATS: u32 = 2;

/// Everything that clones of a client share.
pub(crate) struct Transport {
    pub(crate) settings: Settings,
    server: Uri,
    agent: HeaderValue,
    pub(crate) pools: Arc<Pools>,
    /// Ticks when connections are exchanged: watches move over.
    pub(crate) generation: watch::Sender<u64>,
    /// Ticks when there is a new identity: who waits after a failure tries again.
    pub(crate) identities: watch::Sender<u64>,
    shown: Arc<Shown>,
    credentials: Credentials,
    main: Bucket,
    events: Bucket,
    failed_beats: AtomicU32,
}

/// How one try ended without an answer.
struct Lost {
    error: ApiError,
    /// There was a connection, and it broke.
    broke: bool,
}

impl From<ApiError> for Lost {
    fn from(error: ApiError) -> Self {
        Self { error, broke: false }
    }
}

impl Transport {
    pub(crate) fn new(kubeconfig: &Kubeconfig, settings: Settings) -> Result<Self, BuildError> {
        let agent = HeaderValue::try_from(settings.user_agent.as_str())
            .map_err(|_| BuildError::Header { what: "the user agent" })?;
        let shown = Arc::new(Shown::default());
        shown.set(kubeconfig.identity.as_ref().map(|identity| identity.key.clone()));
        let tls = Arc::new(tls::config(&kubeconfig.trust, shown.clone(), settings.http2)?);
        let connector = Connector::new(tls, kubeconfig.server_name.as_deref(), kubeconfig.proxy.clone());
        Ok(Self {
            server: kubeconfig.server.clone(),
            agent,
            pools: Pools::new(connector),
            generation: watch::Sender::new(0),
            identities: watch::Sender::new(0),
            credentials: Credentials::new(kubeconfig.auth.clone(), shown.clone()),
            shown,
            main: Bucket::new(settings.main),
            events: Bucket::new(settings.events),
            failed_beats: AtomicU32::new(0),
            settings,
        })
    }

    pub(crate) fn server(&self) -> &Uri {
        &self.server
    }

    /// From now on connections are made with this client certificate.
    pub(crate) fn show(&self, identity: Identity) {
        self.shown.set(Some(identity.key));
        self.exchange_connections();
        self.identities.send_modify(|n| *n += 1);
    }

    fn exchange_connections(&self) {
        self.pools.exchange();
        self.generation.send_modify(|n| *n += 1);
    }

    /// Waits for its turn under a rate limit.
    pub(crate) async fn turn(&self, throttle: Throttle, deadline: Instant) {
        let bucket = match throttle {
            Throttle::Main => &self.main,
            Throttle::Events => &self.events,
            Throttle::Unlimited => return,
        };
        match bucket.acquire(deadline.saturating_duration_since(Instant::now())) {
            Some(wait) if wait.is_zero() => {}
            Some(wait) => tokio::time::sleep(wait).await,
            // Its turn never comes: the caller's deadline ends this.
            None => std::future::pending().await,
        }
    }

    /// `host:port`, as metrics name the server.
    fn host(&self) -> &str {
        self.server.authority().map_or("", hyper::http::uri::Authority::as_str)
    }

    /// Sends one request over a pool and answers with the head of a 2xx answer.
    async fn send(&self, request: &Request, pool: usize) -> Result<Response<Incoming>, Lost> {
        let began = Instant::now();
        let mut traced = Traced::begin(measure::verb(request.method));
        let answer = self.send_once(request, pool, &mut traced).await;
        let code = match &answer {
            Ok(answer) => answer.status().as_str().to_owned(),
            Err(lost) => measure::code(&lost.error),
        };
        traced.end(&code, answer.as_ref().err().map(|lost| &lost.error));
        measure::tried(self.host(), measure::verb(request.method), &code, began.elapsed());
        answer
    }

    async fn send_once(&self, request: &Request, pool: usize, traced: &mut Traced) -> Result<Response<Incoming>, Lost> {
        let (method, content) = match request.method {
            Method::Get => (hyper::Method::GET, None),
            Method::Post => (hyper::Method::POST, Some("application/json")),
            Method::Put => (hyper::Method::PUT, Some("application/json")),
            Method::Delete => (hyper::Method::DELETE, Some("application/json")),
            Method::Patch(PatchKind::Strategic) => {
                (hyper::Method::PATCH, Some("application/strategic-merge-patch+json"))
            }
            Method::Patch(PatchKind::Merge) => (hyper::Method::PATCH, Some("application/merge-patch+json")),
        };
        let carried = self.credentials.carried().await?;
        if carried.certificate_changed {
            self.exchange_connections();
        }
        let uri = url::join(&self.server, &request.path, &request.query)
            .ok_or_else(|| ApiError::status(400, "BadRequest", format!("{:?} is not a path", request.path)))?;
        let mut built = HttpRequest::new(Full::new(request.body.clone()));
        *built.method_mut() = method;
        *built.uri_mut() = uri;
        let headers = built.headers_mut();
        headers.insert(USER_AGENT, self.agent.clone());
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        if let Some(content) = content.filter(|_| !request.body.is_empty()) {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(content));
        }
        if let Some(header) = carried.header {
            headers.insert(AUTHORIZATION, header);
        }
        traced.tell(&mut built);
        let answer = self.pools.get(pool).request(built).await.map_err(|e| {
            let error = error::unreachable(&e);
            Lost { broke: !e.is_connect() && !error::is_alert(&error), error }
        })?;
        if answer.status().is_success() {
            return Ok(answer);
        }
        if answer.status() == hyper::StatusCode::UNAUTHORIZED {
            self.credentials.refused().await;
        }
        Err(error::of_answer(answer).await.into())
    }

    /// As `send`, for reads: a kept connection that turns out to be dead is replaced at once.
    pub(crate) async fn read(&self, request: &Request, pool: usize) -> ApiResult<Response<Incoming>> {
        match self.send(request, pool).await {
            Err(lost) if lost.broke => self.send(request, pool).await,
            other => other,
        }
        .map_err(|lost| lost.error)
    }

    async fn once(&self, request: &Request) -> Result<Bytes, Lost> {
        let answer = self.send(request, 0).await;
        let (host, verb, sent) = (self.host(), measure::verb(request.method), request.body.len());
        let answer = answer.inspect_err(|_| measure::sizes(host, verb, sent, None))?;
        let body = Limited::new(answer.into_body(), BODY_LIMIT).collect().await;
        let body = body.map_err(|e| Lost { error: error::unreachable(&*e), broke: true })?.to_bytes();
        measure::sizes(host, verb, sent, Some(body.len()));
        // Something between here and the server answers in its place: success must not be believed.
        match body.iter().find(|b| !b.is_ascii_whitespace()) {
            None | Some(b'{') => Ok(body),
            Some(_) => Err(ApiError::Garbage { message: "the answer is not a JSON object".to_owned() }.into()),
        }
    }

    /// Sends a request until it is answered for good; `last` is the failure before the try that is under way.
    pub(crate) async fn tries(
        &self,
        request: &Request,
        deadline: Instant,
        last: &mut Option<ApiError>,
    ) -> ApiResult<Bytes> {
        let mut tried = 0;
        loop {
            let began = Instant::now();
            self.turn(request.throttle, deadline).await;
            measure::waited(self.host(), measure::verb(request.method), request.throttle, began.elapsed());
            let lost = match self.once(request).await {
                Ok(body) => return Ok(body),
                Err(lost) => lost,
            };
            let wait = match &lost.error {
                ApiError::Status { code: 429 | 500..=599, retry_after: Some(wait), .. } => *wait,
                // The first time it is most likely a kept connection that the server had closed.
                ApiError::Unreachable { .. } if lost.broke && request.method == Method::Get => {
                    BROKEN_WAIT * tried.min(1)
                }
                _ => return Err(lost.error),
            };
            tried += 1;
            // Who cannot wait so long learns at once what the server said.
            if tried > RETRIES || Instant::now() + wait >= deadline {
                return Err(lost.error);
            }
            measure::again(self.host(), measure::verb(request.method), &lost.error);
            *last = Some(lost.error);
            tokio::time::sleep(wait).await;
        }
    }

    /// A path to the server that lets heartbeats vanish is left.
    pub(crate) fn beat(&self, answer: &ApiResult<Bytes>) {
        match answer {
            Err(ApiError::Unreachable { .. } | ApiError::TimedOut { .. }) => {
                if self.failed_beats.fetch_add(1, Ordering::Relaxed) + 1 >= FAILED_BEATS {
                    self.failed_beats.store(0, Ordering::Relaxed);
                    tracing::warn!(server = %self.server, "heartbeats fail, all connections are made anew");
                    self.exchange_connections();
                }
            }
            _ => self.failed_beats.store(0, Ordering::Relaxed),
        }
    }
}
