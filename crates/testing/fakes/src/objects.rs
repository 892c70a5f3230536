//! An object store that has what a test puts there.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use contract::objects::{
    FetchConfigMap, FetchPodCertificate, FetchRuntimeClass, FetchSecret, FetchServiceAccount, FetchServices,
    FetchToken, FetchTrustAnchors, HoldObjects, ObjectError, ObjectVersion, PodCertificate, ReleaseObjects,
    ServiceAccountFacts, Token,
};
use contract::{ObjectStore, RoleMessage, Wiring};
use model::core::{Pod, Service};
use model::object::{ObjectKind, ObjectRef};
use model::{PodUid, Timestamp};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{StandIn, object};

/// The store of one namespace, with the board that tells of it. Once it was told of pods, it answers only for objects that
/// one of them names.
#[derive(Clone, Debug)]
pub struct Objects {
    state: Arc<Mutex<State>>,
    wiring: Wiring,
}

#[derive(Debug, Default)]
struct State {
    namespace: String,
    /// By kind and name, as messages call them: `configmap "x"`.
    objects: BTreeMap<String, Value>,
    annotations: BTreeMap<String, String>,
    token: Option<Token>,
    anchors: Option<Arc<str>>,
    certificate: Option<PodCertificate>,
    services: Option<Arc<Vec<Arc<Service>>>>,
    held: BTreeMap<PodUid, Arc<Pod>>,
    told_of_pods: bool,
    away: Option<String>,
    version: u64,
    asked: Vec<String>,
}

impl State {
    fn find<T: DeserializeOwned>(&mut self, kind: &str, namespace: &str, name: &str) -> Result<T, ObjectError> {
        assert!(kind == CLASS || *namespace == *self.namespace, "{kind} {name} is asked for in {namespace}");
        self.asked.push(format!("{kind} {name}"));
        self.away()?;
        let quoted = format!("{name:?}");
        if self.told_of_pods && kind != CLASS && !self.holds(name) {
            return Err(ObjectError::NotRegistered(format!("object {quoted} not registered")));
        }
        let key = format!("{kind} {quoted}");
        let found = self.objects.get(&key).cloned().map(object);
        found.ok_or_else(|| ObjectError::NotFound(format!("{key} not found")))
    }

    fn holds(&self, name: &str) -> bool {
        let quoted = format!("{name:?}");
        let names = |pod: &Arc<Pod>| serde_json::to_string(&pod.spec).is_ok_and(|spec| spec.contains(&quoted));
        self.held.values().any(names)
    }

    fn away(&self) -> Result<(), ObjectError> {
        self.away.clone().map_or(Ok(()), |why| Err(ObjectError::Failed(why)))
    }

    fn token(&mut self, m: &FetchToken) -> Result<Token, ObjectError> {
        self.asked.push(format!("token {}/{}", m.audience, m.expiration_s));
        self.away()?;
        let text = || format!("token-of-{}-for-{}", model::pod::name(&m.pod), m.audience);
        let (expires_at, refresh_at) = (Timestamp::ZERO, Timestamp::ZERO);
        Ok(self.token.clone().unwrap_or_else(|| Token { text: text(), expires_at, refresh_at }))
    }

    fn anchors(&mut self, m: &FetchTrustAnchors) -> Result<Arc<str>, ObjectError> {
        let name = m.name.as_deref().or(m.signer_name.as_deref()).unwrap_or_default();
        self.asked.push(format!("anchors {name}"));
        self.away()?;
        self.anchors.clone().ok_or_else(|| ObjectError::NotFound(format!("clustertrustbundle {name:?} not found")))
    }
}

const CLASS: &str = "runtimeclass.node.k8s.io";

impl Objects {
    /// An empty store of a namespace, on this wiring. It has read that there are no services.
    #[must_use]
    pub fn on(wiring: &Wiring, namespace: &str) -> Self {
        let state = State { namespace: namespace.to_owned(), services: Some(Arc::default()), ..State::default() };
        let objects = Self { state: Arc::new(Mutex::new(state)), wiring: wiring.clone() };
        objects.on_each(|s, m: &FetchConfigMap| s.find("configmap", &m.namespace, &m.name).map(Arc::new));
        objects.on_each(|s, m: &FetchSecret| s.find("secret", &m.namespace, &m.name).map(Arc::new));
        objects.on_each(|s, m: &FetchRuntimeClass| s.find(CLASS, "", &m.name));
        objects.on_each(State::token);
        objects.on_each(State::anchors);
        objects.on_each(|s, _: &FetchPodCertificate| {
            let missing = || ObjectError::Failed("credential bundle is not issued yet".to_owned());
            s.certificate.clone().ok_or_else(missing)
        });
        objects.on_each(|s, m: &FetchServiceAccount| {
            Ok(ServiceAccountFacts { uid: format!("uid-{}", m.name), annotations: s.annotations.clone() })
        });
        objects.on_each(|s, _: &FetchServices| {
            s.services.clone().ok_or_else(|| ObjectError::Failed("not yet".to_owned()))
        });
        objects.on_each(|s, m: &HoldObjects| {
            s.told_of_pods = true;
            s.held.insert(model::pod::uid(&m.pod), m.pod.clone());
        });
        objects.on_each(|s, m: &ReleaseObjects| drop(s.held.remove(&m.uid)));
        objects
    }

    fn on_each<M>(&self, answer: fn(&mut State, &M) -> M::Result)
    where
        M: RoleMessage<To = ObjectStore, Result: Send>,
    {
        let own = self.clone();
        StandIn::on(&self.wiring).answer(move |m| answer(&mut own.state(), m));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn show(&self, kind: ObjectKind, word: &str, name: &str, object: Option<Value>) {
        let mut state = self.state();
        let (key, version) = (format!("{word} {name:?}"), state.version + 1);
        let resource_version = object.as_ref().map(|_| version.to_string()).unwrap_or_default();
        match object {
            Some(object) => state.objects.insert(key, object),
            None => state.objects.remove(&key),
        };
        state.version = version;
        let (namespace, name) = (state.namespace.clone(), name.to_owned());
        drop(state);
        self.wiring.put(ObjectRef { kind, namespace, name }, ObjectVersion { resource_version });
    }

    /// A config map with this `data`.
    pub fn put_map(&self, name: &str, data: Value) {
        let map = serde_json::json!({ "metadata": { "name": name }, "data": data });
        self.show(ObjectKind::ConfigMap, "configmap", name, Some(map));
    }

    /// Takes a config map away.
    pub fn remove_map(&self, name: &str) {
        self.show(ObjectKind::ConfigMap, "configmap", name, None);
    }

    /// A secret with this `data`, in base64.
    pub fn put_secret(&self, name: &str, data: Value) {
        let secret = serde_json::json!({ "metadata": { "name": name }, "data": data });
        self.show(ObjectKind::Secret, "secret", name, Some(secret));
    }

    /// A runtime class.
    pub fn put_class(&self, name: &str, handler: &str) {
        self.state().objects.insert(format!("{CLASS} {name:?}"), handler.into());
    }

    /// Trust anchors of every bundle from now on.
    pub fn put_anchors(&self, pem: &str) {
        let mut state = self.state();
        (state.anchors, state.version) = (Some(pem.into()), state.version + 1);
        let version = ObjectVersion { resource_version: state.version.to_string() };
        drop(state);
        self.wiring.put(ObjectRef::trust_bundles(), version);
    }

    /// The certificate of a source of a pod's volume is issued, or another one.
    pub fn put_certificate(&self, pod: &Pod, volume: &str, index: usize, chain_pem: &str) {
        let mut state = self.state();
        let pair = PodCertificate { key_pem: "KEY\n".into(), chain_pem: chain_pem.into() };
        (state.certificate, state.version) = (Some(pair), state.version + 1);
        let version = ObjectVersion { resource_version: state.version.to_string() };
        let (namespace, uid) = (state.namespace.clone(), model::pod::uid(pod));
        drop(state);
        self.wiring.put(ObjectRef::pod_certificate(&namespace, &uid, volume, index), version);
    }

    /// Every token from now on; before, each is `token-of-POD-for-AUDIENCE` and due at once.
    pub fn put_token(&self, text: &str, refresh_at: Timestamp) {
        self.state().token = Some(Token { text: text.into(), expires_at: refresh_at, refresh_at });
    }

    /// All services; `None`: they have not been read yet.
    pub fn put_services(&self, services: Option<&[Service]>) {
        self.state().services = services.map(|all| Arc::new(all.iter().cloned().map(Arc::new).collect()));
    }

    /// One more annotation of every service account.
    pub fn annotate_accounts(&self, key: &str, value: &str) {
        self.state().annotations.insert(key.to_owned(), value.to_owned());
    }

    /// Config maps, secrets and tokens are not answered but with this failure; `None`: they are again.
    pub fn go_away(&self, why: Option<&str>) {
        self.state().away = why.map(str::to_owned);
    }

    /// Whether it was told of a pod that names such an object.
    #[must_use]
    pub fn holds(&self, name: &str) -> bool {
        self.state().holds(name)
    }

    /// What was asked for since the last look: `configmap x`, `secret x`, `token AUDIENCE/SECONDS`.
    #[allow(clippy::must_use_candidate, reason = "a look may be made only to forget")]
    pub fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.state().asked)
    }
}
