//! The actor: holds in, answers out.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use actor::{Actor, AsyncContext, Ctx, Deferred, Handler, SpawnHandle, supervised};
use contract::Crew;
use contract::board::{BoardPoster, ValueReader};
use contract::node::NodeView;
use contract::objects::{
    FetchConfigMap, FetchRuntimeClass, FetchSecret, FetchServiceAccount, FetchServices, HoldObjects, ObjectError,
    ObjectVersion, ReleaseObjects, ServiceAccountFacts,
};
use model::core::{ConfigMap, Secret, Service};
use model::object::{ObjectKind, ObjectRef};
use model::{PodUid, Timestamp};

use crate::bundles::Bundles;
use crate::cache::Content;
use crate::certificates::Certificates;
use crate::deps::{Config, Deps, Strategy};
use crate::fetch::{self, no_client};
use crate::follow::Target;
use crate::holds::{Holds, wanted};
use crate::lists::Lists;
use crate::tokens::{Awaited, Tokens};

mod bundles;
mod certificates;
mod follow;
mod restore;
mod tokens;

/// One followed object.
#[derive(Debug, Default)]
struct Follow {
    /// The wait for its next step; none when it needs no following any more.
    under_way: Option<SpawnHandle>,
    /// Nobody holds it: when it is dropped.
    leaves: Option<SpawnHandle>,
}

/// The actor.
#[derive(Debug)]
pub struct ObjectStore {
    config: Arc<Config>,
    deps: Arc<Deps>,
    crew: Crew<contract::ObjectStore>,
    versions: BoardPoster<ObjectRef, ObjectVersion>,
    node: ValueReader<NodeView>,
    holds: Holds,
    follows: BTreeMap<ObjectRef, Follow>,
    lists: Lists,
    bundles: Bundles,
    certificates: Certificates,
    tokens: Tokens,
    /// Requests for tokens that are under way, and who waits for them.
    awaited_tokens: Awaited,
    /// Services and classes are about to be written down.
    lists_due: bool,
    /// Lines that nobody claims are about to be removed, or are.
    swept: bool,
}

impl Actor for ObjectStore {
    type Context = Ctx<Self>;

    fn started(&mut self, ctx: &mut Ctx<Self>) {
        for (uid, objects) in self.deps.cache.holds.snapshot() {
            let _all_followed_below = self.holds.set(&uid, objects);
        }
        for object in self.holds.objects().cloned().collect::<Vec<_>>() {
            self.gain(&object, ctx);
        }
        // What was only lingering lingers no more.
        for object in self.deps.cache.objects.snapshot().into_keys().filter(|o| !self.holds.contains(o)) {
            self.forget(&object);
        }
        self.resume_certificates(ctx);
        if self.deps.api.is_some() {
            self.follow(Target::Services, ctx);
        } else {
            self.lists.services_synced.send_replace(true);
        }
    }
}
supervised!(ObjectStore);

impl ObjectStore {
    /// A fresh instance; what pods hold is read from the cache when it starts.
    #[must_use]
    pub fn new(crew: Crew<contract::ObjectStore>, config: Arc<Config>, deps: Arc<Deps>) -> Self {
        Self {
            config,
            deps,
            versions: crew.poster(),
            node: crew.value(),
            crew,
            holds: Holds::default(),
            follows: BTreeMap::new(),
            lists: Lists::default(),
            bundles: Bundles::default(),
            certificates: Certificates::default(),
            tokens: Tokens::default(),
            awaited_tokens: Awaited::default(),
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
        match object.kind {
            ObjectKind::ClusterTrustBundle => return self.gain_bundles(ctx),
            // Which pod it is for is not known here.
            ObjectKind::PodCertificate => return,
            ObjectKind::ConfigMap | ObjectKind::Secret | ObjectKind::Unknown => {}
        }
        if self.config.strategy != Strategy::Watch || self.deps.api.is_none() {
            return;
        }
        self.follows.insert(object.clone(), Follow::default());
        // An immutable object that was seen in an earlier life of this actor is known for good.
        let cached = self.deps.cache.objects.get(object);
        if !cached.is_some_and(|c| !c.stale && c.content.as_ref().is_some_and(Content::immutable)) {
            self.follow(Target::Object(object.clone()), ctx);
        }
    }

    fn lose(&mut self, object: ObjectRef, ctx: &mut Ctx<Self>) {
        if object.kind == ObjectKind::PodCertificate {
            return self.drop_certificate(&object, ctx);
        }
        let Some(follow) = self.follows.get_mut(&object) else { return self.forget(&object) };
        let later = object.clone();
        follow.leaves = Some(ctx.after(self.config.linger, move |act, ctx| {
            let gone = act.follows.remove(&later);
            if let Some(handle) = gone.and_then(|f| f.under_way) {
                ctx.cancel_future(handle);
            }
            if later.kind == ObjectKind::ClusterTrustBundle {
                act.bundles = Bundles::default();
            }
            act.forget(&later);
        }));
    }

    fn forget(&self, object: &ObjectRef) {
        self.deps.cache.objects.remove(object);
        self.deps.cache.erase(object);
        self.versions.remove(object);
    }

    fn find(&self, object: ObjectRef, now: Timestamp) -> fetch::Answer {
        let Some(api) = self.deps.api.clone() else {
            return Box::pin(std::future::ready(Err(no_client(&object))));
        };
        let lookup = fetch::Lookup {
            cache: self.deps.cache.clone(),
            versions: self.versions.clone(),
            config: self.config.clone(),
            api,
            object,
            now,
        };
        match self.config.strategy {
            Strategy::Get => Box::pin(lookup.get()),
            _ if !self.holds.contains(&lookup.object) => {
                Box::pin(std::future::ready(Err(fetch::not_registered(&lookup.object))))
            }
            Strategy::Cache => Box::pin(lookup.cached()),
            Strategy::Watch => Box::pin(lookup.watched()),
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
        let is_new = self.deps.cache.holds.get(&uid).is_none();
        self.deps.cache.holds.put(uid.clone(), objects.clone());
        self.hold(&uid, objects, ctx);
        self.hold_certificates(&pod, ctx);
        if is_new {
            self.expect_tokens(&pod, ctx);
        }
    }
}

impl Handler<ReleaseObjects> for ObjectStore {
    type Result = ();

    fn handle(&mut self, ReleaseObjects { uid }: ReleaseObjects, ctx: &mut Ctx<Self>) {
        self.deps.cache.holds.remove(&uid);
        let tokens = self.tokens.forget(&uid);
        self.deps.cache.erase_tokens(tokens.into_iter());
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

impl Handler<FetchServices> for ObjectStore {
    type Result = Deferred<Self, Result<Arc<Vec<Arc<Service>>>, ObjectError>>;

    fn handle(&mut self, FetchServices { namespace }: FetchServices, _ctx: &mut Ctx<Self>) -> Self::Result {
        let synced = fetch::synced(&self.lists.services_synced, self.config.first_answer);
        Deferred::then(synced, move |this: &mut Self, synced, _ctx| {
            if synced {
                return Ok(Arc::new(this.lists.services.of(&namespace)));
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
        if !std::mem::replace(&mut self.lists.classes_followed, true) {
            self.follow(Target::RuntimeClasses, ctx);
        }
        let synced = fetch::synced(&self.lists.classes_synced, self.config.first_answer);
        Deferred::then(synced, move |this: &mut Self, synced, _ctx| match this.lists.classes.get(&name) {
            Some(handler) => Ok(handler.clone()),
            None if synced => Err(ObjectError::NotFound(format!("runtimeclass.node.k8s.io {name:?} not found"))),
            None => {
                let text = format!("failed to lookup RuntimeClass {name}: timed out waiting for the condition");
                Err(ObjectError::Failed(text))
            }
        })
    }
}
