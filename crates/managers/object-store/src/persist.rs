//! Lines of the sealed cache: their names, and what stands in them.

use contract::objects::Token;
use model::core::{ConfigMap, Secret};
use model::json::{FromJson, ToJson};
use model::object::{ObjectKind, ObjectRef};
use model::{PodUid, Timestamp};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::cache::{Content, ObjectCache};
use crate::sealed::TABLE;
use crate::tokens::TokenKey;

/// Line of the services.
pub(crate) const SERVICES: &str = "object/services";
/// Line of the runtime classes.
pub(crate) const CLASSES: &str = "object/classes";

/// Name of an object's line.
pub(crate) fn line_of(object: &ObjectRef) -> String {
    format!("{TABLE}{}/{}/{}", object.kind.singular(), object.namespace, object.name)
}

pub(crate) fn tokens_of(uid: &PodUid) -> String {
    format!("{TABLE}token/{uid}/")
}

fn token_line(key: &TokenKey) -> String {
    let TokenKey { uid, account, audience, expiration_s } = key;
    format!("{}{account}/{expiration_s}/{audience}", tokens_of(uid))
}

pub(crate) fn encode(value: &impl Serialize) -> Option<Vec<u8>> {
    // Objects came as JSON, and go as such.
    serde_json::to_vec(value).ok()
}

impl Content {
    fn encode(&self) -> Option<Vec<u8>> {
        match self {
            Self::ConfigMap(object) => object.to_json().ok(),
            Self::Secret(object) => object.to_json().ok(),
        }
    }

    fn decode(kind: ObjectKind, bytes: &[u8]) -> Option<Self> {
        match kind {
            ObjectKind::ConfigMap => ConfigMap::from_json(bytes).ok().map(Self::config_map),
            ObjectKind::Secret => Secret::from_json(bytes).ok().map(Self::secret),
            ObjectKind::ClusterTrustBundle | ObjectKind::PodCertificate | ObjectKind::Unknown => None,
        }
    }
}

impl ObjectCache {
    /// Keeps what the server said of an object.
    pub(crate) fn persist(&self, object: &ObjectRef, content: Option<&Content>) {
        if let Some(sealed) = &self.sealed {
            sealed.put(line_of(object), content.and_then(Content::encode));
        }
    }

    /// Removes an object's line.
    pub(crate) fn erase(&self, object: &ObjectRef) {
        if let Some(sealed) = &self.sealed {
            sealed.put(line_of(object), None);
        }
    }

    /// What an earlier daemon wrote in a line.
    pub(crate) async fn read<T: DeserializeOwned>(&self, line: &str) -> Option<T> {
        serde_json::from_slice(&self.sealed.as_ref()?.get(line).await?).ok()
    }

    /// The object as it was last seen, by an earlier daemon.
    pub(crate) async fn restore(&self, object: &ObjectRef) -> Option<Content> {
        let bytes = self.sealed.as_ref()?.get(&line_of(object)).await?;
        Content::decode(object.kind, &bytes)
    }

    pub(crate) fn persist_token(&self, key: &TokenKey, token: &Token) {
        if let Some(sealed) = &self.sealed {
            let fields = (&token.text, token.expires_at.0, token.refresh_at.0);
            sealed.put(token_line(key), encode(&fields));
        }
    }

    /// A token of an earlier daemon. It may have ended: while the server is away nobody can be asked with it anyway, and the
    /// pod starts.
    pub(crate) async fn restore_token(&self, key: &TokenKey) -> Option<Token> {
        let (text, expires, refresh): (String, i64, i64) = self.read(&token_line(key)).await?;
        Some(Token { text, expires_at: Timestamp(expires), refresh_at: Timestamp(refresh) })
    }

    /// Removes the lines of a pod's tokens.
    pub(crate) fn erase_tokens(&self, keys: impl Iterator<Item = TokenKey>) {
        if let Some(sealed) = &self.sealed {
            keys.for_each(|key| sealed.put(token_line(&key), None));
        }
    }
}
