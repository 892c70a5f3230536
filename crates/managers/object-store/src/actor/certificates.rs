//! Certificates of pods: asked for when their pod is held, followed until they are issued, renewed in time. Their keys are
//! in the memory of this process alone: another daemon asks for new certificates.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use actor::{AsyncContext, Ctx, Deferred, Handler};
use contract::node::NodeView;
use contract::objects::{FetchPodCertificate, ObjectError, ObjectVersion, PodCertificate};
use metrics::certificates::POD_CERTIFICATES;
use model::Timestamp;
use model::core::{Pod, ServiceAccount};
use model::k8s_openapi::api::certificates::v1beta1::PodCertificateRequest;
use model::object::{ObjectKind, ObjectRef};
use ports::api::{ApiExt, ApiServer, Followed, Object};

use super::{ObjectStore, now};
use crate::certificates::{Asked, JITTER, NO_GATE, Next, Record, Wanted, request, wanted};
use crate::follow::Target;
use crate::keys::{self, KeyAndProof};

/// First pause after a request that could not be made; doubled for each further one.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// Longest pause. A kubelet looks at all certificates every one to two minutes, too.
const LAST_PAUSE: Duration = Duration::from_secs(64);

impl ObjectStore {
    /// The pod is here: what it asks for is got.
    pub(super) fn hold_certificates(&mut self, pod: &Pod, ctx: &mut Ctx<Self>) {
        if !self.config.pod_certificates || self.deps.api.is_none() {
            return;
        }
        for (object, wanted) in wanted(pod) {
            if self.deps.cache.certificates.get(&object).is_none() {
                self.deps.cache.certificates.put(object.clone(), Record::new(wanted));
                self.drive(&object, ctx);
            }
        }
    }

    /// Goes on with what a former generation knew. One that died while it let a pod go may have left a key that nobody has.
    pub(super) fn resume_certificates(&mut self, ctx: &mut Ctx<Self>) {
        for object in self.deps.cache.certificates.snapshot().into_keys() {
            if self.holds.contains(&object) {
                self.drive(&object, ctx);
            } else {
                self.drop_certificate(&object, ctx);
            }
        }
    }

    /// The pod is gone, and its key with it.
    pub(super) fn drop_certificate(&mut self, object: &ObjectRef, ctx: &mut Ctx<Self>) {
        self.deps.cache.certificates.remove(object);
        self.versions.remove(object);
        if let Some(under_way) = self.certificates.under_way.remove(object) {
            // A key that waits to be made is not made any more.
            under_way.look.into_iter().chain(under_way.asking).for_each(|handle| {
                ctx.cancel_future(handle);
            });
        }
        if self.deps.cache.certificates.is_empty() {
            if let Some(following) = self.certificates.following.take() {
                ctx.cancel_future(following);
            }
            self.certificates.requests.clear();
        }
        self.count_certificates(now(ctx));
    }

    /// Looks at one certificate, and does what is to be done about it.
    fn drive(&mut self, object: &ObjectRef, ctx: &mut Ctx<Self>) {
        let Some(mut record) = self.deps.cache.certificates.get(object) else { return };
        if self.certificates.following.is_none() {
            self.follow(Target::CertificateRequests, ctx);
        }
        let at = now(ctx);
        let jitter = self.jitter(ctx);
        let request = record.asked().map(|a| (object.namespace.clone(), a.name.clone()));
        let request = request.and_then(|key| self.certificates.requests.get(&key).cloned());
        let seen = request.as_ref().and_then(|r| record.see(r, at, jitter));
        let said = record.pass(at, request.is_some());
        seen.into_iter().chain(said).for_each(|event| self.crew.emit(event));
        let next = record.next(at, record.asked().is_some() && request.is_some());
        self.keep(object, record, at);
        match next {
            Next::Ask => self.ask_for_certificate(object, ctx),
            Next::At(then) => self.look_later(object, wait(at, then), ctx),
            Next::Nothing => {}
        }
    }

    fn keep(&mut self, object: &ObjectRef, record: Record, at: Timestamp) {
        let row = ObjectVersion { resource_version: record.version() };
        self.deps.cache.certificates.put(object.clone(), record);
        if self.versions.get(object).is_none_or(|before| *before != row) {
            self.versions.post(object.clone(), Arc::new(row));
        }
        self.count_certificates(at);
    }

    fn look_later(&mut self, object: &ObjectRef, wait: Duration, ctx: &mut Ctx<Self>) {
        let of = object.clone();
        let look = ctx.after(wait, move |act, ctx| act.drive(&of, ctx));
        let under_way = self.certificates.under_way.entry(object.clone()).or_default();
        if let Some(before) = under_way.look.replace(look) {
            ctx.cancel_future(before);
        }
    }

    fn ask_for_certificate(&mut self, object: &ObjectRef, ctx: &mut Ctx<Self>) {
        let Some(api) = self.deps.api.clone() else { return };
        let Some(record) = self.deps.cache.certificates.get(object) else { return };
        if self.certificates.under_way.get(object).is_some_and(|u| u.asking.is_some()) {
            return;
        }
        let (node, of) = (self.node.get(), object.clone());
        let name = self.config.node_name.clone();
        let (effects, slow_keys) = (ctx.effects(), self.deps.cache.slow_keys.clone());
        let asked = async move {
            let made = keys::make(&record.wanted.key_type, &effects, &slow_keys);
            ask(&*api, &record.wanted, (&name, &node), made).await
        };
        let asking = ctx.run(asked, move |act: &mut Self, asked, ctx| {
            let Some(under_way) = act.certificates.under_way.get_mut(&of) else { return };
            under_way.asking = None;
            match asked {
                Ok((key_pem, name)) => {
                    under_way.failures = 0;
                    let asked = Asked::new(key_pem, name, now(ctx), act.jitter(ctx));
                    if let Some(mut record) = act.deps.cache.certificates.get(&of) {
                        record.ask(asked);
                        act.deps.cache.certificates.put(of.clone(), record);
                        act.drive(&of, ctx);
                    }
                }
                Err(error) => {
                    let pause = FIRST_PAUSE.saturating_mul(1 << under_way.failures.min(6)).min(LAST_PAUSE);
                    under_way.failures = under_way.failures.saturating_add(1);
                    tracing::warn!(certificate = %of.name, namespace = %of.namespace, error, "no certificate was asked for");
                    act.look_later(&of, pause, ctx);
                }
            }
        });
        self.certificates.under_way.entry(object.clone()).or_default().asking = Some(asking);
    }

    /// A step of the requests of this node.
    pub(super) fn apply_requests(&mut self, step: Followed, ctx: &mut Ctx<Self>) {
        let request = |o| match o {
            Object::PodCertificateRequest(request) => Some(request),
            _ => None,
        };
        let key = |r: &PodCertificateRequest| {
            (r.metadata.namespace.clone().unwrap_or_default(), r.metadata.name.clone().unwrap_or_default())
        };
        let requests = &mut self.certificates.requests;
        let changed = match step {
            Followed::All(all) => {
                *requests = all.into_iter().filter_map(request).map(|r| (key(&r), r)).collect();
                None
            }
            Followed::Applied(o) => request(o).map(|r| {
                requests.insert(key(&r), r.clone());
                key(&r)
            }),
            Followed::Deleted(o) => request(o).map(|r| {
                requests.remove(&key(&r));
                key(&r)
            }),
            Followed::Failed(_) => return,
        };
        for (object, record) in self.deps.cache.certificates.snapshot() {
            let is_meant = |(namespace, name): &(String, String)| {
                object.namespace == *namespace && record.asked().is_some_and(|a| a.name == *name)
            };
            if changed.as_ref().is_none_or(is_meant) {
                self.drive(&object, ctx);
            }
        }
    }

    fn jitter(&self, ctx: &mut Ctx<Self>) -> Duration {
        let most = u64::try_from(JITTER.as_nanos()).unwrap_or(u64::MAX);
        Duration::from_nanos(ctx.rng().u64(..most))
    }

    fn count_certificates(&self, at: Timestamp) {
        let mut count: BTreeMap<(String, &'static str), i64> = BTreeMap::new();
        for record in self.deps.cache.certificates.snapshot().into_values() {
            *count.entry((record.wanted.signer.clone(), record.word(at))).or_default() += 1;
        }
        POD_CERTIFICATES.reset();
        for ((signer, word), n) in count {
            POD_CERTIFICATES.with_label_values(&[signer.as_str(), word]).set(n);
        }
    }
}

/// Until then, a moment at least.
fn wait(now: Timestamp, then: Timestamp) -> Duration {
    Duration::from_nanos(u64::try_from(then.nanos_since(now)).unwrap_or(0)).max(Duration::from_millis(1))
}

/// Asks the API server for one certificate, with a key that is made when all else is known. Answers with the key and the name of
/// the request.
async fn ask(
    api: &dyn ApiServer,
    wanted: &Wanted,
    (node_name, node): (&str, &NodeView),
    key: impl Future<Output = Result<KeyAndProof, String>>,
) -> Result<(Arc<str>, String), String> {
    let account: ServiceAccount = api
        .get(Some(&wanted.namespace), &wanted.account)
        .await
        .map_err(|e| format!("while fetching service account: {e}"))?;
    let node_uid = node.api_uid().ok_or("while getting node object from local cache: it is not there yet")?;
    let (key_pem, pkcs10) = key.await?;
    let account_uid = account.metadata.uid.unwrap_or_default();
    let new = request(wanted, (node_name, node_uid), &account_uid, pkcs10);
    let made: PodCertificateRequest =
        api.create(Some(&wanted.namespace), &new).await.map_err(|e| format!("while creating on API: {e}"))?;
    Ok((key_pem.into(), made.metadata.name.unwrap_or_default()))
}

impl Handler<FetchPodCertificate> for ObjectStore {
    type Result = Deferred<Self, Result<PodCertificate, ObjectError>>;

    fn handle(&mut self, ask: FetchPodCertificate, _ctx: &mut Ctx<Self>) -> Self::Result {
        let FetchPodCertificate { pod, volume, index } = ask;
        let (namespace, uid) = (model::pod::namespace(&pod), model::pod::uid(&pod));
        let object = ObjectRef::pod_certificate(namespace, &uid, &volume, index);
        debug_assert_eq!(object.kind, ObjectKind::PodCertificate);
        let answer = match self.deps.cache.certificates.get(&object) {
            _ if !self.config.pod_certificates || self.deps.api.is_none() => Err(NO_GATE.to_owned()),
            Some(record) => record.answer(),
            None => {
                let name = model::pod::name(&pod);
                Err(format!("no credentials yet for key={{{namespace} {name} {uid} {volume} {index}}}"))
            }
        };
        Deferred::ready(answer.map_err(ObjectError::Failed))
    }
}
