//! The actor: holds in, answers out.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use actor::{Actor, AsyncContext, Ctx, Deferred, Handler, SpawnHandle, supervised};
use contract::Crew;
use contract::board::BoardPoster;
use contract::objects::{
    FetchConfigMap, FetchRuntimeClass, FetchSecret, FetchServiceAccount, FetchServices, FetchToken, HoldObjects,
    ObjectError, ObjectVersion, ReleaseObjects, ServiceAccountFacts, Token,
};
use model::core::{ConfigMap, Pod, Secret, Service};
use model::object::{ObjectKind, ObjectRef};
use model::{PodUid, Timestamp};
use ports::api::ApiServer;
use tokio::sync::watch;

use crate::fetch::{self, STANDALONE_TOKEN, no_client};
use crate::follow::{Target, selection};
use crate::holds::{Holds, wanted};
use crate::keep::is_away;
use crate::ledger::{Content, Ledger};
use crate::services::Services;
use crate::tokens::{self, MAX_JITTER_NS, TokenKey, Tokens};

/// How changes of configMaps and secrets are noticed (`configMapAndSecretChangeDetectionStrategy`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strategy {
    /// Each object that a pod names is followed.
    #[default]
    Watch,
    /// Each question is a request.
    Get,
    /// As `Get`, with answers kept for [`Config::cache_life`].
    Cache,
}

/// Settings.
#[derive(Clone, Debug)]
pub struct Config {
    /// How changes are noticed.
    pub strategy: Strategy,
    /// An object that nobody names any more is followed this much longer.
    pub linger: Duration,
    /// How long answers are kept with [`Strategy::Cache`].
    pub cache_life: Duration,
    /// How long a question about all services or classes waits for the first answer of the server.
    pub first_answer: Duration,
    /// How long one about a configMap or secret does. A kubelet waits 1 s and then tells of a failure, also where many pods
    /// that come at once only make the server slow.
    pub first_object: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            strategy: Strategy::Watch,
            linger: Duration::from_secs(60),
            cache_life: Duration::from_secs(60),
            first_answer: Duration::from_secs(1),
            first_object: Duration::from_secs(5),
        }
    }
}

/// What ObjectStore works with.
#[derive(Clone)]
pub struct Deps {
    /// `None`: standalone.
    pub api: Option<Arc<dyn ApiServer>>,
    /// Made once for the life of the daemon.
    pub ledger: Ledger,
}

impl std::fmt::Debug for Deps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("object_store::Deps")
    }
}

/// One followed object.
#[derive(Debug, Default)]
pub(crate) struct Follow {
    /// The wait for its next step; none when it needs no following any more.
    pub(crate) under_way: Option<SpawnHandle>,
    /// Nobody holds it: it goes then.
    pub(crate) leaves: Option<SpawnHandle>,
}

/// The actor.
#[derive(Debug)]
pub struct ObjectStore {
    pub(crate) config: Arc<Config>,
    pub(crate) deps: Arc<Deps>,
    pub(crate) versions: BoardPoster<ObjectRef, ObjectVersion>,
    pub(crate) holds: Holds,
    pub(crate) follows: BTreeMap<ObjectRef, Follow>,
    pub(crate) services: Services,
    pub(crate) services_synced: watch::Sender<bool>,
    /// Handler by name of the class.
    pub(crate) classes: BTreeMap<String, String>,
    pub(crate) classes_synced: watch::Sender<bool>,
    classes_followed: bool,
    /// The API server cannot select services by their address (before 1.31): all are followed.
    pub(crate) all_services: bool,
    tokens: Tokens,
    /// Services and classes are about to be written down.
    pub(crate) lists_due: bool,
    /// Lines that nobody claims are about to be removed, or are.
    pub(crate) swept: bool,
}

impl Actor for ObjectStore {
    type Context = Ctx<Self>;

    fn started(&mut self, ctx: &mut Ctx<Self>) {
        for (uid, objects) in self.deps.ledger.holds.snapshot() {
            let _all_followed_below = self.holds.set(&uid, objects);
        }
        for object in self.holds.objects().cloned().collect::<Vec<_>>() {
            self.gain(&object, ctx);
        }
        // What was only lingering lingers no more.
        for object in self.deps.ledger.seen.snapshot().into_keys().filter(|o| !self.holds.contains(o)) {
            self.forget(&object);
        }
        if self.deps.api.is_some() {
            self.follow(Target::Services, ctx);
        } else {
            self.services_synced.send_replace(true);
        }
    }
}
supervised!(ObjectStore);

impl ObjectStore {
    /// A fresh instance; what pods hold is read from the ledger when it starts.
    #[must_use]
    pub fn new(crew: Crew<contract::ObjectStore>, config: Arc<Config>, deps: Arc<Deps>) -> Self {
        Self {
            config,
            deps,
            versions: crew.poster(),
            holds: Holds::default(),
            follows: BTreeMap::new(),
            services: Services::default(),
            services_synced: watch::channel(false).0,
            classes: BTreeMap::new(),
            classes_synced: watch::channel(false).0,
            classes_followed: false,
            all_services: false,
            tokens: Tokens::default(),
            lists_due: false,
            swept: false,
        }
    }

    fn hold(&mut self, uid: &PodUid, objects: BTreeSet<ObjectRef>, ctx: &mut Ctx<Self>) {
        let moved = self.holds.set(uid, objects);
        for object in &moved.gained {
            self.gain(object, ctx);
        }
        for object in moved.lost {
            self.lose(object, ctx);
        }
    }

    fn gain(&mut self, object: &ObjectRef, ctx: &mut Ctx<Self>) {
        if let Some(follow) = self.follows.get_mut(object) {
            if let Some(leaves) = follow.leaves.take() {
                ctx.cancel_future(leaves);
            }
            return;
        }
        if self.config.strategy != Strategy::Watch || self.deps.api.is_none() {
            return;
        }
        self.follows.insert(object.clone(), Follow::default());
        // An immutable object that was seen in an earlier life of this actor is known for good.
        let seen = self.deps.ledger.seen.get(object);
        if !seen.is_some_and(|s| !s.stale && s.content.as_ref().is_some_and(Content::immutable)) {
            self.follow(Target::Object(object.clone()), ctx);
        }
    }

    fn lose(&mut self, object: ObjectRef, ctx: &mut Ctx<Self>) {
        let Some(follow) = self.follows.get_mut(&object) else { return self.forget(&object) };
        let later = object.clone();
        follow.leaves = Some(ctx.after(self.config.linger, move |act, ctx| {
            let gone = act.follows.remove(&later);
            if let Some(handle) = gone.and_then(|f| f.under_way) {
                ctx.cancel_future(handle);
            }
            act.forget(&later);
        }));
    }

    fn forget(&self, object: &ObjectRef) {
        self.deps.ledger.seen.remove(object);
        self.deps.ledger.drop_line(object);
        self.versions.remove(object);
    }

    /// Starts following, from the first list.
    pub(crate) fn follow(&mut self, target: Target, ctx: &mut Ctx<Self>) {
        if let (Some(api), Some(selection)) = (&self.deps.api, selection(&target, self.all_services)) {
            let stream = api.follow(selection);
            self.pump(target, stream, ctx);
        }
    }

    fn find(&self, object: ObjectRef, now: Timestamp) -> fetch::Finding {
        let Some(api) = self.deps.api.clone() else {
            return Box::pin(std::future::ready(Err(no_client(&object))));
        };
        let question = fetch::Question {
            ledger: self.deps.ledger.clone(),
            versions: self.versions.clone(),
            config: self.config.clone(),
            api,
            object,
            now,
        };
        match self.config.strategy {
            Strategy::Get => Box::pin(question.get()),
            _ if !self.holds.contains(&question.object) => {
                Box::pin(std::future::ready(Err(fetch::not_registered(&question.object))))
            }
            Strategy::Cache => Box::pin(question.cached()),
            Strategy::Watch => Box::pin(question.watched()),
        }
    }
}

fn now(ctx: &Ctx<ObjectStore>) -> Timestamp {
    Timestamp(ctx.clock().unix_nanos())
}

impl Handler<HoldObjects> for ObjectStore {
    type Result = ();

    fn handle(&mut self, HoldObjects { pod }: HoldObjects, ctx: &mut Ctx<Self>) {
        let (uid, objects) = (model::pod::uid(&pod), wanted(&pod));
        self.deps.ledger.holds.put(uid.clone(), objects.clone());
        self.hold(&uid, objects, ctx);
    }
}

impl Handler<ReleaseObjects> for ObjectStore {
    type Result = ();

    fn handle(&mut self, ReleaseObjects { uid }: ReleaseObjects, ctx: &mut Ctx<Self>) {
        self.deps.ledger.holds.remove(&uid);
        let tokens = self.tokens.forget(&uid);
        self.deps.ledger.drop_tokens(tokens.into_iter());
        self.hold(&uid, BTreeSet::new(), ctx);
    }
}

impl Handler<FetchConfigMap> for ObjectStore {
    type Result = Deferred<Self, Result<Arc<ConfigMap>, ObjectError>>;

    fn handle(&mut self, FetchConfigMap { namespace, name }: FetchConfigMap, ctx: &mut Ctx<Self>) -> Self::Result {
        let object = ObjectRef { kind: ObjectKind::ConfigMap, namespace, name };
        let found = self.find(object, now(ctx));
        Deferred::new(async move {
            match found.await? {
                Content::ConfigMap(object) => Ok(object),
                Content::Secret(_) => Err(fetch::other_kind()),
            }
        })
    }
}

impl Handler<FetchSecret> for ObjectStore {
    type Result = Deferred<Self, Result<Arc<Secret>, ObjectError>>;

    fn handle(&mut self, FetchSecret { namespace, name }: FetchSecret, ctx: &mut Ctx<Self>) -> Self::Result {
        let object = ObjectRef { kind: ObjectKind::Secret, namespace, name };
        let found = self.find(object, now(ctx));
        Deferred::new(async move {
            match found.await? {
                Content::Secret(object) => Ok(object),
                Content::ConfigMap(_) => Err(fetch::other_kind()),
            }
        })
    }
}

impl Handler<FetchToken> for ObjectStore {
    type Result = Deferred<Self, Result<Token, ObjectError>>;

    fn handle(&mut self, msg: FetchToken, ctx: &mut Ctx<Self>) -> Self::Result {
        let key = token_key(&msg.pod, msg.audience, msg.expiration_s);
        if let Some(token) = self.tokens.fresh(&key, now(ctx)) {
            return Deferred::ready(Ok(token));
        }
        let Some(api) = self.deps.api.clone() else {
            return Deferred::ready(self.tokens.instead(&key, STANDALONE_TOKEN, now(ctx)));
        };
        let jitter = ctx.rng().i64(0..=MAX_JITTER_NS);
        let asked = key.clone();
        let ledger = self.deps.ledger.clone();
        let answer = async move {
            match tokens::request(&*api, &msg.pod, &asked, jitter).await {
                Ok(token) => Ok(token),
                Err(e) if is_away(&e) => Err((e, ledger.recall_token(&asked).await)),
                Err(e) => Err((e, None)),
            }
        };
        Deferred::then(answer, move |this: &mut Self, answer, ctx| match answer {
            Ok(token) => {
                // A pod that was released meanwhile is not remembered.
                if this.deps.ledger.holds.get(&key.uid).is_some() {
                    this.deps.ledger.keep_token(&key, &token);
                    this.tokens.put(key, token.clone());
                }
                Ok(token)
            }
            Err((why, kept)) => {
                let instead = this.tokens.instead(&key, &why.to_string(), now(ctx));
                let kept = kept.map(|t| Token { refresh_at: now(ctx).plus(tokens::RETRY), ..t });
                instead.or_else(|e| kept.ok_or(e))
            }
        })
    }
}

fn token_key(pod: &Pod, audience: String, expiration_s: i64) -> TokenKey {
    let account = projection::references::service_account(pod).to_owned();
    TokenKey { uid: model::pod::uid(pod), account, audience, expiration_s }
}

impl Handler<FetchServices> for ObjectStore {
    type Result = Deferred<Self, Result<Arc<Vec<Arc<Service>>>, ObjectError>>;

    fn handle(&mut self, FetchServices { namespace }: FetchServices, _ctx: &mut Ctx<Self>) -> Self::Result {
        let synced = fetch::synced(&self.services_synced, self.config.first_answer);
        Deferred::then(synced, move |this: &mut Self, synced, _ctx| {
            if synced {
                return Ok(Arc::new(this.services.of(&namespace)));
            }
            let text = "services have not yet been read at least once, cannot construct envvars";
            Err(ObjectError::Failed(text.to_owned()))
        })
    }
}

impl Handler<FetchServiceAccount> for ObjectStore {
    type Result = Deferred<Self, Result<ServiceAccountFacts, ObjectError>>;

    fn handle(&mut self, msg: FetchServiceAccount, _ctx: &mut Ctx<Self>) -> Self::Result {
        match self.deps.api.clone() {
            Some(api) => Deferred::new(fetch::service_account(api, msg.namespace, msg.name)),
            None => Deferred::ready(Err(ObjectError::Failed("no kubeClient defined".to_owned()))),
        }
    }
}

impl Handler<FetchRuntimeClass> for ObjectStore {
    type Result = Deferred<Self, Result<String, ObjectError>>;

    fn handle(&mut self, FetchRuntimeClass { name }: FetchRuntimeClass, ctx: &mut Ctx<Self>) -> Self::Result {
        if self.deps.api.is_none() {
            let text = format!("failed to lookup RuntimeClass {name}: no kubeClient defined");
            return Deferred::ready(Err(ObjectError::Failed(text)));
        }
        // Followed from the first question on: most nodes never need them.
        if !std::mem::replace(&mut self.classes_followed, true) {
            self.follow(Target::RuntimeClasses, ctx);
        }
        let synced = fetch::synced(&self.classes_synced, self.config.first_answer);
        Deferred::then(synced, move |this: &mut Self, synced, _ctx| match this.classes.get(&name) {
            Some(handler) => Ok(handler.clone()),
            None if synced => Err(ObjectError::NotFound(format!("runtimeclass.node.k8s.io {name:?} not found"))),
            None => {
                let text = format!("failed to lookup RuntimeClass {name}: timed out waiting for the condition");
                Err(ObjectError::Failed(text))
            }
        })
    }
}
