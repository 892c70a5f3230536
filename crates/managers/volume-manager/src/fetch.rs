//! Fetching what volumes are made of.

use std::sync::Arc;

use actor::AskError;
use contract::board::BoardReader;
use contract::objects::{
    FetchConfigMap, FetchPodCertificate, FetchSecret, FetchToken, FetchTrustAnchors, ObjectError, ObjectVersion, Token,
};
use contract::{Asks, Crew, RoleMessage, VolumeManager};
use futures::future::join_all;
use model::Timestamp;
use model::core::Pod;
use model::object::{ObjectKind, ObjectRef};
use model::pod;
use projection::{Credential, Fetched, Missing, Needs, SourceSlot, TokenSlot};

use crate::desired::ObjectVersions;
use crate::spec;

/// What is fetched for all volumes of a pod that its containers use.
pub(crate) fn needs(pod: &Pod) -> Needs {
    let mut all = Needs::default();
    for (volume, _) in spec::used_volumes(pod) {
        all.extend(projection::needs(volume));
    }
    all
}

/// The objects among them, as the board names them.
pub(crate) fn refs(pod: &Pod, needs: &Needs) -> Vec<ObjectRef> {
    let of = |kind, name: &String| ObjectRef { kind, namespace: pod::namespace(pod).to_owned(), name: name.clone() };
    let maps = needs.config_maps.iter().map(|n| of(ObjectKind::ConfigMap, n));
    let bundles = (!needs.trust_anchors.is_empty()).then(ObjectRef::trust_bundles);
    let secrets = needs.secrets.iter().map(|n| of(ObjectKind::Secret, n));
    let (namespace, uid) = (pod::namespace(pod), pod::uid(pod));
    let certificates =
        needs.certificates.iter().map(|slot| ObjectRef::pod_certificate(namespace, &uid, &slot.volume, slot.index));
    maps.chain(secrets).chain(bundles).chain(certificates).collect()
}

/// Versions that the store knows now.
pub(crate) fn versions(
    board: &BoardReader<ObjectRef, ObjectVersion>,
    refs: impl IntoIterator<Item = ObjectRef>,
) -> ObjectVersions {
    let version = |r: &ObjectRef| board.get(r).map(|v| v.resource_version.clone());
    refs.into_iter().map(|r| (r.clone(), version(&r))).collect()
}

/// Asks for all that the API server has, and shows to whoever follows it.
pub(crate) async fn objects(crew: &Crew<VolumeManager>, pod: &Pod, needs: &Needs) -> Fetched {
    let namespace = pod::namespace(pod);
    let maps = join_all(needs.config_maps.iter().map(|name| async {
        let ask = FetchConfigMap { namespace: namespace.to_owned(), name: name.clone() };
        (name.clone(), ask_for(crew, ask).await)
    }));
    let secrets = join_all(needs.secrets.iter().map(|name| async {
        let ask = FetchSecret { namespace: namespace.to_owned(), name: name.clone() };
        (name.clone(), ask_for(crew, ask).await)
    }));
    let anchors = join_all(needs.trust_anchors.iter().map(|(slot, source)| async {
        let ask = FetchTrustAnchors {
            name: source.name.clone(),
            signer_name: source.signer_name.clone(),
            label_selector: source.label_selector.clone(),
            optional: source.optional == Some(true),
        };
        (slot.clone(), ask_for(crew, ask).await)
    }));
    let (maps, secrets, anchors) = futures::join!(maps, secrets, anchors);
    Fetched {
        config_maps: maps.into_iter().collect(),
        secrets: secrets.into_iter().collect(),
        trust_anchors: anchors.into_iter().collect(),
        ..Fetched::default()
    }
}

/// What is made for one pod when it asks for it, which takes a request or more.
#[derive(Default)]
pub(crate) struct Granted {
    tokens: Vec<(TokenSlot, Result<Token, Missing>)>,
    certificates: Vec<(SourceSlot, Result<Credential, Missing>)>,
}

impl Granted {
    /// When the first of the tokens is to be asked for anew.
    pub(crate) fn due(&self) -> Option<Timestamp> {
        self.tokens.iter().filter_map(|(_, token)| Some(token.as_ref().ok()?.refresh_at)).min()
    }

    /// The same beside what the API server has.
    pub(crate) fn join(self, objects: Fetched) -> Fetched {
        let text = |(slot, token): (TokenSlot, Result<Token, Missing>)| (slot, token.map(|t| t.text));
        Fetched {
            tokens: self.tokens.into_iter().map(text).collect(),
            certificates: self.certificates.into_iter().collect(),
            ..objects
        }
    }
}

/// Asks for all that is made for this pod.
pub(crate) async fn granted(crew: &Crew<VolumeManager>, pod: &Arc<Pod>, needs: &Needs) -> Granted {
    let tokens = join_all(needs.tokens.iter().map(|slot| async {
        let TokenSlot { audience, expiration_s } = slot.clone();
        let ask = FetchToken { pod: pod.clone(), audience, expiration_s };
        (slot.clone(), ask_for(crew, ask).await)
    }));
    let certificates = join_all(needs.certificates.iter().map(|slot| async {
        let ask = FetchPodCertificate { pod: pod.clone(), volume: slot.volume.clone(), index: slot.index };
        let found = ask_for(crew, ask).await;
        (slot.clone(), found.map(|c| Credential { key_pem: c.key_pem, chain_pem: c.chain_pem }))
    }));
    let (tokens, certificates) = futures::join!(tokens, certificates);
    Granted { tokens, certificates }
}

async fn ask_for<M, T>(crew: &Crew<VolumeManager>, message: M) -> Result<T, Missing>
where
    VolumeManager: Asks<M>,
    M: RoleMessage<Result = Result<T, ObjectError>>,
{
    match crew.ask(message).await {
        Ok(Ok(found)) => Ok(found),
        Ok(Err(e)) => Err(Missing { not_found: e.is_not_found(), text: e.to_string() }),
        // Nobody serves objects here: a standalone node.
        Err(AskError::NotDelivered) => Err(Missing {
            not_found: false,
            text: "not supported due to running kubelet in standalone mode".to_owned(),
        }),
        Err(e) => Err(Missing { not_found: false, text: format!("object store: {e}") }),
    }
}
