//! Certificates of pods (KEP-4317): how far each one is, and what is to be done about it. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use contract::objects::PodCertificate;
use model::core::Pod;
use model::event::{EventObject, EventType, NodeEvent};
use model::k8s_openapi::ByteString;
use model::k8s_openapi::api::certificates::v1beta1::{PodCertificateRequest, PodCertificateRequestSpec};
use model::k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use model::object::ObjectRef;
use model::{PodUid, Timestamp};
use projection::references::service_account;

mod under_way;

pub(crate) use self::under_way::Certificates;

/// A request of ours that nobody shows after this (and a jitter) was deleted.
const ABANDONED: Duration = Duration::from_secs(10 * 60);
/// A certificate that is not renewed this long after its time is overdue.
const OVERDUE: Duration = Duration::from_secs(10 * 60);
/// No certificate is renewed sooner after it was issued, whatever times it has: where this node's clock goes before the
/// signer's, its time may have come already, as that of the next one, and so on. A kubelet looks every one to two minutes.
const PAUSE: Duration = Duration::from_secs(60);
/// Renewals of many pods are spread over this.
pub(crate) const JITTER: Duration = Duration::from_secs(5 * 60);
/// What a kubelet says where the gate is off.
pub(crate) const NO_GATE: &str = "unimplemented";

/// What one source of one volume asks for. Does not change in the life of its pod.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Wanted {
    pub(crate) namespace: String,
    pub(crate) pod: String,
    pub(crate) uid: PodUid,
    pub(crate) account: String,
    pub(crate) signer: String,
    pub(crate) key_type: String,
    max_expiration_s: Option<i32>,
    annotations: Option<BTreeMap<String, String>>,
}

/// Every certificate that a pod asks for.
pub(crate) fn wanted(pod: &Pod) -> BTreeMap<ObjectRef, Wanted> {
    let (namespace, uid) = (model::pod::namespace(pod), model::pod::uid(pod));
    let mut out = BTreeMap::new();
    for volume in pod.spec.iter().flat_map(|s| s.volumes.iter().flatten()) {
        let sources = volume.projected.iter().flat_map(|p| p.sources.iter().flatten()).enumerate();
        for (index, source) in sources.filter_map(|(i, s)| Some((i, s.pod_certificate.as_ref()?))) {
            let wanted = Wanted {
                namespace: namespace.to_owned(),
                pod: model::pod::name(pod).to_owned(),
                uid: uid.clone(),
                account: service_account(pod).to_owned(),
                signer: source.signer_name.clone(),
                key_type: source.key_type.clone(),
                max_expiration_s: source.max_expiration_seconds,
                annotations: source.user_annotations.clone(),
            };
            out.insert(ObjectRef::pod_certificate(namespace, &uid, &volume.name, index), wanted);
        }
    }
    out
}

/// The request as it is made, for a key that this PKCS#10 request was signed with.
pub(crate) fn request(
    wanted: &Wanted,
    node: (&str, &str),
    account_uid: &str,
    pkcs10: Vec<u8>,
) -> PodCertificateRequest {
    let owner = OwnerReference {
        api_version: "v1".to_owned(),
        kind: "Pod".to_owned(),
        name: wanted.pod.clone(),
        uid: wanted.uid.to_string(),
        ..OwnerReference::default()
    };
    let metadata = ObjectMeta {
        namespace: Some(wanted.namespace.clone()),
        generate_name: Some("req-".to_owned()),
        owner_references: Some(vec![owner]),
        ..ObjectMeta::default()
    };
    let spec = PodCertificateRequestSpec {
        signer_name: wanted.signer.clone(),
        pod_name: wanted.pod.clone(),
        pod_uid: wanted.uid.to_string(),
        service_account_name: wanted.account.clone(),
        service_account_uid: account_uid.to_owned(),
        node_name: node.0.to_owned(),
        node_uid: node.1.to_owned(),
        max_expiration_seconds: wanted.max_expiration_s,
        stub_pkc_s10_request: ByteString(pkcs10),
        unverified_user_annotations: wanted.annotations.clone(),
        ..PodCertificateRequestSpec::default()
    };
    PodCertificateRequest { metadata, spec, status: None }
}

/// A request that was made.
#[derive(Clone, PartialEq)]
pub(crate) struct Asked {
    pub(crate) key_pem: Arc<str>,
    pub(crate) name: String,
    /// When it is taken for deleted, unless it is seen.
    abandon_at: Timestamp,
}

impl Asked {
    /// `asked_at`: by this node's clock. By the server's, where that goes behind, it would be taken for deleted before it could
    /// be seen, and the next one as well.
    pub(crate) fn new(key_pem: Arc<str>, name: String, asked_at: Timestamp, jitter: Duration) -> Self {
        Self { key_pem, name, abandon_at: asked_at.plus(ABANDONED).plus(jitter) }
    }
}

/// A certificate in use.
#[derive(Clone, PartialEq)]
pub(crate) struct Issued {
    pair: PodCertificate,
    /// Request that it came of.
    name: String,
    refresh_at: Timestamp,
    not_after: Timestamp,
    told_overdue: bool,
    told_expired: bool,
    renewal: Option<Asked>,
}

/// How far it is.
#[derive(Clone, PartialEq, Default)]
pub(crate) enum State {
    /// Nothing was asked for yet.
    #[default]
    Initial,
    Asked(Asked),
    /// For good: `permanently denied` or `permanently failed`, with reason and message.
    Refused(&'static str, String, String),
    Issued(Issued),
}

/// One certificate.
#[derive(Clone, PartialEq)]
pub(crate) struct Record {
    pub(crate) wanted: Arc<Wanted>,
    pub(crate) state: State,
}

// Keys stay out of logs.
impl std::fmt::Debug for Record {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} for {}/{}: {}", self.wanted.signer, self.wanted.namespace, self.wanted.pod, self.version())
    }
}

/// What is to be done next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Ask the API server for a certificate.
    Ask,
    /// Look again then.
    At(Timestamp),
    /// Nothing, ever.
    Nothing,
}

/// The end that a request came to.
enum End<'a> {
    Refused(&'static str, &'static str, &'a str, &'a str),
    Issued { chain: &'a str, refresh_at: Timestamp, not_after: Timestamp },
}

fn end(request: &PodCertificateRequest) -> Option<End<'_>> {
    let status = request.status.as_ref()?;
    status.conditions.iter().flatten().find_map(|c| match c.type_.as_str() {
        "Denied" => Some(End::Refused("Denied", "permanently denied", &c.reason, &c.message)),
        "Failed" => Some(End::Refused("Failed", "permanently failed", &c.reason, &c.message)),
        "Issued" => Some(End::Issued {
            chain: status.certificate_chain.as_deref().unwrap_or_default(),
            refresh_at: Timestamp::from_api(status.begin_refresh_at.as_ref()?),
            not_after: Timestamp::from_api(status.not_after.as_ref()?),
        }),
        _ => None,
    })
}

impl Record {
    /// One that nothing was done for yet.
    pub(crate) fn new(wanted: Wanted) -> Self {
        Self { wanted: Arc::new(wanted), state: State::Initial }
    }

    /// What a volume is given, or why it is not.
    pub(crate) fn answer(&self) -> Result<PodCertificate, String> {
        match &self.state {
            State::Initial | State::Asked(_) => Err("credential bundle is not issued yet".to_owned()),
            State::Refused(how, reason, message) => {
                Err(format!("PodCertificateRequest was {how}: reason={reason:?} message={message:?}"))
            }
            State::Issued(issued) => Ok(issued.pair.clone()),
        }
    }

    /// Another word for every other answer.
    pub(crate) fn version(&self) -> String {
        match &self.state {
            State::Initial | State::Asked(_) => "not issued".to_owned(),
            State::Refused(how, ..) => (*how).to_owned(),
            State::Issued(issued) => issued.name.clone(),
        }
    }

    /// As metrics tell it.
    pub(crate) fn word(&self, now: Timestamp) -> &'static str {
        match &self.state {
            State::Initial | State::Asked(_) => "not_yet_issued",
            State::Refused("permanently denied", ..) => "denied",
            State::Refused(..) => "failed",
            State::Issued(issued) if now > issued.not_after => "expired",
            State::Issued(issued) if now > issued.refresh_at.plus(OVERDUE) => "overdue_for_refresh",
            State::Issued(_) => "fresh",
        }
    }

    /// The request that is waited for.
    pub(crate) fn asked(&self) -> Option<&Asked> {
        match &self.state {
            State::Asked(asked) => Some(asked),
            State::Issued(issued) => issued.renewal.as_ref(),
            State::Initial | State::Refused(..) => None,
        }
    }

    /// A request was made.
    pub(crate) fn ask(&mut self, asked: Asked) {
        match &mut self.state {
            State::Issued(issued) => issued.renewal = Some(asked),
            other => *other = State::Asked(asked),
        }
    }

    /// The request that is waited for, as it is now. Answers what users are told.
    pub(crate) fn see(
        &mut self,
        request: &PodCertificateRequest,
        now: Timestamp,
        jitter: Duration,
    ) -> Option<NodeEvent> {
        let asked = self.asked()?.clone();
        match end(request)? {
            End::Refused(kind, how, reason, message) => {
                let verb = if kind == "Denied" { "was denied" } else { "failed" };
                let name = format!("{}/{}", self.wanted.namespace, asked.name);
                let text = format!("PodCertificateRequest {name} {verb}, reason={reason:?}, message={message:?}");
                self.state = State::Refused(how, reason.to_owned(), message.to_owned());
                Some(self.event(kind, text))
            }
            End::Issued { chain, refresh_at, not_after } => {
                let pair = PodCertificate { key_pem: asked.key_pem, chain_pem: projection::clean_chain(chain).into() };
                self.state = State::Issued(Issued {
                    pair,
                    name: asked.name,
                    refresh_at: refresh_at.plus(jitter).max(now.plus(PAUSE)),
                    not_after,
                    told_overdue: false,
                    told_expired: false,
                    renewal: None,
                });
                None
            }
        }
    }

    /// What time brings: a request that nobody shows any more, and what users are told.
    pub(crate) fn pass(&mut self, now: Timestamp, is_listed: bool) -> Vec<NodeEvent> {
        if self.asked().is_some_and(|a| !is_listed && now > a.abandon_at) {
            match &mut self.state {
                State::Issued(issued) => issued.renewal = None,
                other => *other = State::Initial,
            }
        }
        let mut said = Vec::new();
        if let State::Issued(issued) = &mut self.state {
            if now > issued.refresh_at.plus(OVERDUE) && !std::mem::replace(&mut issued.told_overdue, true) {
                said.push(("CertificateOverdueForRefresh", "PodCertificate refresh overdue"));
            }
            if now > issued.not_after && !std::mem::replace(&mut issued.told_expired, true) {
                said.push(("CertificateExpired", "PodCertificate expired"));
            }
        }
        said.into_iter().map(|(reason, text)| self.event(reason, text.to_owned())).collect()
    }

    /// What is to be done now, or when to look again.
    pub(crate) fn next(&self, now: Timestamp, is_listed: bool) -> Next {
        // Just past a moment that must have passed.
        let after = |t: Timestamp| t.plus(Duration::from_nanos(1));
        let gone = self.asked().filter(|_| !is_listed).map(|a| after(a.abandon_at));
        match &self.state {
            State::Initial => Next::Ask,
            State::Refused(..) => Next::Nothing,
            State::Asked(_) => gone.map_or(Next::Nothing, Next::At),
            State::Issued(issued) if issued.renewal.is_none() && now >= issued.refresh_at => Next::Ask,
            State::Issued(issued) => {
                let moments = [issued.refresh_at, after(issued.refresh_at.plus(OVERDUE)), after(issued.not_after)];
                let next = moments.into_iter().chain(gone).filter(|t| *t > now).min();
                next.map_or(Next::Nothing, Next::At)
            }
        }
    }

    fn event(&self, reason: &'static str, message: String) -> NodeEvent {
        let Wanted { namespace, pod, uid, .. } = &*self.wanted;
        let (namespace, name, uid) = (namespace.clone(), pod.clone(), uid.clone());
        let object = EventObject::Pod { namespace, name, uid, field_path: String::new() };
        NodeEvent { kind: EventType::Warning, reason: reason.into(), message, object }
    }
}

#[cfg(test)]
mod tests;
