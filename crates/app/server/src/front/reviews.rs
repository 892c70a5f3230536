//! `TokenReview` and `SubjectAccessReview`, asked of the API server and kept for a while.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use node_access::{Key, Lru, TokenBuckets, User};
use ports::api::{ApiError, ApiServer, Method, Request};
use tokio::time::Instant;

use super::lookups::{Failed, Lookups};
use super::settings::Limits;

/// Users of tokens that are kept.
const USERS: usize = 1024;
/// Tokens of nobody that are kept. Apart from the users: made-up tokens push no user out.
const NOBODIES: usize = 4096;
/// Answers about access that are kept.
const ACCESSES: usize = 8192;
/// Tokens that were not seen before may cause so many reviews per second, and at once.
const PACE: (u32, u32) = (20, 100);
/// The same for those from one origin: it must not use up what others need to be known again when their time in the cache ends.
const ORIGIN_PACE: (u32, u32) = (4, 20);
/// A token of nobody is kept for so long at most: one that is too new for the API server, or that could not be judged because of
/// a fault there, is somebody's a moment later. (A kubelet keeps no answer that came with an error, and such answers do.)
const NOBODY: Duration = Duration::from_secs(10);

/// The way to the API server, and the time.
struct Asked {
    api: Arc<dyn ApiServer>,
    began: Instant,
    limit: Duration,
}

impl Asked {
    fn now(&self) -> Duration {
        self.began.elapsed()
    }

    /// One review, tried again while it can help. `done` hears the code and the time of each try.
    async fn review(
        &self,
        (path, body): (&'static str, serde_json::Value),
        done: fn(&str, Duration),
    ) -> Result<bytes::Bytes, String> {
        let ends = Instant::now() + self.limit;
        let body = serde_json::to_vec(&body).map_err(|e| e.to_string())?;
        let mut failed = 0;
        loop {
            let began = Instant::now();
            let left = ends.saturating_duration_since(began);
            let request = Request::new(Method::Post, path).body(body.clone()).deadline(left);
            let answer = tokio::time::timeout(left, self.api.call(request)).await;
            let answer = answer.unwrap_or(Err(ApiError::TimedOut { after: self.limit }));
            done(&code(&answer), began.elapsed());
            let error = match answer {
                Ok(body) => return Ok(body),
                Err(error) => error,
            };
            failed += 1;
            let pause = node_access::pause(failed, fastrand::f64());
            match pause.filter(|p| error.is_transient() && Instant::now() + *p < ends) {
                Some(pause) => tokio::time::sleep(pause).await,
                None => return Err(error.to_string()),
            }
        }
    }
}

fn code(answer: &Result<bytes::Bytes, ApiError>) -> String {
    match answer {
        Ok(_) => "201".to_owned(),
        Err(error) => error.code().map_or_else(|| "<error>".to_owned(), |code| code.to_string()),
    }
}

/// Users of bearer tokens.
pub(super) struct Tokens {
    asked: Asked,
    ttl: Duration,
    pace: Mutex<TokenBuckets<IpAddr>>,
    users: Mutex<Lru<Arc<User>>>,
    nobodies: Mutex<Lru<()>>,
    lookups: Arc<Lookups<Option<Arc<User>>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Tokens {
    pub(super) fn new(api: Arc<dyn ApiServer>, ttl: Duration, limits: &Limits) -> Arc<Self> {
        Arc::new(Self {
            asked: Asked { api, began: Instant::now(), limit: limits.review },
            ttl,
            pace: Mutex::new(TokenBuckets::new(PACE, ORIGIN_PACE)),
            users: Mutex::new(Lru::new(USERS)),
            nobodies: Mutex::new(Lru::new(NOBODIES)),
            lookups: Lookups::new(limits.reviews),
        })
    }

    /// Whose token it is; `None`: nobody's.
    pub(super) async fn user(self: &Arc<Self>, token: &str, origin: IpAddr) -> Result<Option<Arc<User>>, Failed> {
        let key = Key::token(token);
        let now = self.asked.now();
        if let Some(user) = lock(&self.users).get(&key, now) {
            return Ok(Some(user));
        }
        if lock(&self.nobodies).get(&key, now).is_some() {
            return Ok(None);
        }
        let may = || lock(&self.pace).try_acquire(origin, now);
        let ask = || {
            let (this, review) = (self.clone(), node_access::token_review(token));
            async move {
                let answer = this.asked.review(review, count_authn).await?;
                let user = node_access::decide_token(&answer).map_err(|e| e.to_string())?.map(Arc::new);
                let now = this.asked.now();
                match &user {
                    Some(user) => lock(&this.users).put(key, user.clone(), now, this.ttl),
                    None => lock(&this.nobodies).put(key, (), now, this.ttl.min(NOBODY)),
                }
                Ok(user)
            }
        };
        self.lookups.answer(key, may, ask).await
    }
}

/// What users may do.
pub(super) struct Accesses {
    asked: Asked,
    node: String,
    allowed_ttl: Duration,
    denied_ttl: Duration,
    kept: Mutex<Lru<bool>>,
    lookups: Arc<Lookups<bool>>,
}

impl Accesses {
    pub(super) fn new(
        api: Arc<dyn ApiServer>,
        node: &str,
        (allowed_ttl, denied_ttl): (Duration, Duration),
        limits: &Limits,
    ) -> Arc<Self> {
        Arc::new(Self {
            asked: Asked { api, began: Instant::now(), limit: limits.review },
            node: node.to_owned(),
            allowed_ttl,
            denied_ttl,
            kept: Mutex::new(Lru::new(ACCESSES)),
            lookups: Lookups::new(limits.reviews),
        })
    }

    /// Whether a user may use a verb on a sub-resource of this node.
    pub(super) async fn allowed(self: &Arc<Self>, user: &User, verb: &str, subresource: &str) -> Result<bool, Failed> {
        let review = node_access::access_review(user, verb, subresource, &self.node);
        let Some(key) = Key::access(user, verb, subresource, &self.node) else {
            // Too large to be kept or shared.
            let answer = self.asked.review(review, count_authz).await.map_err(Failed::Error)?;
            return node_access::decide_access(&answer).map_err(|e| Failed::Error(e.to_string()));
        };
        if let Some(allowed) = lock(&self.kept).get(&key, self.asked.now()) {
            return Ok(allowed);
        }
        let ask = || {
            let this = self.clone();
            async move {
                let answer = this.asked.review(review, count_authz).await?;
                let allowed = node_access::decide_access(&answer).map_err(|e| e.to_string())?;
                let life = if allowed { this.allowed_ttl } else { this.denied_ttl };
                lock(&this.kept).put(key, allowed, this.asked.now(), life);
                Ok(allowed)
            }
        };
        self.lookups.answer(key, || true, ask).await
    }
}

fn count_authn(code: &str, took: Duration) {
    metrics::auth::AUTHN_REQUESTS.with_label_values(&[code]).inc();
    metrics::auth::AUTHN_DURATION.with_label_values(&[code]).observe(took.as_secs_f64());
}

fn count_authz(code: &str, took: Duration) {
    metrics::auth::AUTHZ_REQUESTS.with_label_values(&[code]).inc();
    metrics::auth::AUTHZ_DURATION.with_label_values(&[code]).observe(took.as_secs_f64());
}
