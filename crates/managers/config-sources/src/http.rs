//! The source of a URL (`staticPodURL`, pod-lifecycle 1.6): asked for periodically, one pod or a list of pods.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use actor::{Actor, Class, Ctx, supervised};
use bytes::Bytes;
use contract::board::ValuePoster;
use contract::config_sources::http::UrlManifests;
use contract::config_sources::{ManifestState, Source};
use contract::pod_manager::SetPods;
use contract::{Crew, HttpSource as Role};
use model::core::Pod;
use model::{Timestamp, pod};
use ports::fetch::{Fetch, Fetched};
use static_pod::MAX_MANIFEST_BYTES;

use crate::handover::{HandOver, PodSource, hand_over};
use crate::{own, view};

mod decode;

use decode::decode;

/// For the request and all of its answer.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Failures in a row that are logged as warnings; the rest only in detail.
const LOGGED: u32 = 3;

/// Settings.
#[derive(Clone, Debug)]
pub struct Config {
    /// Name of this node, part of the pods' names.
    pub node_name: String,
    /// `staticPodURL`.
    pub url: String,
    /// `staticPodURLHeader`.
    pub headers: Vec<(String, String)>,
    /// `httpCheckFrequency`.
    pub period: Duration,
}

/// What the source works with.
#[derive(Clone)]
pub struct Deps {
    /// Fetches the URL.
    pub fetch: Arc<dyn Fetch>,
}

impl std::fmt::Debug for Deps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("config_sources::http::Deps")
    }
}

/// The actor.
#[derive(Debug)]
pub struct HttpSource {
    view: ValuePoster<UrlManifests>,
    config: Arc<Config>,
    deps: Deps,
    /// The last body that was good.
    body: Option<Bytes>,
    pods: Vec<Arc<Pod>>,
    /// A good answer has come: there is a set to hand over.
    has_set: bool,
    fetching: bool,
    failures: u32,
    hand_over: HandOver<Role>,
}

impl Actor for HttpSource {
    type Context = Ctx<Self>;

    fn started(&mut self, ctx: &mut Ctx<Self>) {
        self.fetch(ctx);
        ctx.every(self.config.period, |act, ctx| {
            if act.has_set {
                // Also when nothing changed: PodManager may have lost the set.
                hand_over(act, ctx);
            }
            act.fetch(ctx);
        });
    }
}
supervised!(HttpSource);

impl HttpSource {
    /// A fresh instance; it asks when it starts.
    #[must_use]
    pub fn new(crew: Crew<Role>, config: Arc<Config>, deps: Deps) -> Self {
        Self {
            view: crew.publisher(),
            config,
            deps,
            body: None,
            pods: Vec::new(),
            has_set: false,
            fetching: false,
            failures: 0,
            hand_over: HandOver::new(crew),
        }
    }

    fn fetch(&mut self, ctx: &mut Ctx<Self>) {
        if std::mem::replace(&mut self.fetching, true) {
            return;
        }
        let (config, fetch, effects, last) =
            (self.config.clone(), self.deps.fetch.clone(), ctx.effects(), self.body.clone());
        let work = async move {
            effects.hit("fetch").await;
            let answer =
                tokio::time::timeout(TIMEOUT, fetch.get(&config.url, &config.headers, MAX_MANIFEST_BYTES)).await;
            let body = match answer {
                Err(_) => return Err(format!("no answer within {TIMEOUT:?}")),
                Ok(Err(error)) => return Err(error),
                Ok(Ok(Fetched { code: 200, body })) => body,
                Ok(Ok(Fetched { code, .. })) => return Err(format!("answered with status code {code}")),
            };
            if last.as_ref() == Some(&body) {
                return Ok(None);
            }
            // Up to 10 MiB of somebody's text: not on this thread.
            let read = effects.attempt(Class::Computing, move || (decode(&body, &config.node_name, &config.url), body));
            match read.await {
                Ok((Ok(pods), body)) => Ok(Some((pods, body))),
                Ok((Err(error), _)) => Err(error),
                Err(error) => Err(error.to_string()),
            }
        };
        ctx.run(work, |act: &mut Self, answer, ctx| act.apply_answer(answer, ctx));
    }

    fn apply_answer(&mut self, answer: Result<Option<(Vec<Pod>, Bytes)>, String>, ctx: &mut Ctx<Self>) {
        self.fetching = false;
        ctx.fault_point("answer");
        let error = match answer {
            Ok(None) => None,
            Ok(Some((pods, body))) => {
                let error = body.is_empty().then(|| "answered with nothing: no pods".to_owned());
                self.pods = self.own(pods, Timestamp(ctx.clock().unix_nanos()));
                self.body = Some(body);
                self.has_set = true;
                hand_over(self, ctx);
                error
            }
            Err(error) => Some(error),
        };
        self.log(error.as_deref());
        let rows = self.pods.iter().enumerate().map(|(at, p)| {
            let url = if self.pods.len() > 1 { format!("{}#{at}", self.config.url) } else { self.config.url.clone() };
            (url, ManifestState::Accepted { pod: pod::namespaced_name(p) })
        });
        view::publish(&self.view, UrlManifests, rows.collect(), error);
    }

    fn own(&self, pods: Vec<Pod>, now: Timestamp) -> Vec<Arc<Pod>> {
        let before: BTreeMap<_, _> = self.pods.iter().map(|p| (&p.metadata.uid, p)).collect();
        let own = |p: Pod| (before.get(&p.metadata.uid).copied(), Arc::new(p));
        pods.into_iter().map(own).map(|(before, p)| own::own(p, Source::Http, before, now)).collect()
    }

    fn log(&mut self, error: Option<&str>) {
        let url = &self.config.url;
        let Some(error) = error else {
            if self.failures > 0 {
                tracing::info!(url, "manifests can be read again");
            }
            self.failures = 0;
            return;
        };
        self.failures = self.failures.saturating_add(1);
        if self.failures <= LOGGED {
            tracing::warn!(url, error, "manifests cannot be read; what was read before still stands");
        } else {
            tracing::debug!(url, error, failures = self.failures, "manifests cannot be read");
        }
    }
}

impl PodSource for HttpSource {
    type Role = Role;

    fn hand_over_state(&mut self) -> &mut HandOver<Role> {
        &mut self.hand_over
    }

    fn set(&self) -> SetPods {
        SetPods { source: Source::Http, pods: self.pods.clone(), provisional: false, number: 0 }
    }

    fn delivered(&self) {
        view::delivered(&self.view, UrlManifests);
    }
}
