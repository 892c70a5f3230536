//! What goes into the sealed cache and comes out of it.

use std::collections::BTreeMap;
use std::time::Duration;

use actor::Ctx;
use contract::objects::Token;
use model::core::Service;
use model::object::{ObjectKind, ObjectRef};
use model::{PodUid, Timestamp};
use ports::api::ApiError;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::actor::ObjectStore;
use crate::follow::Target;
use crate::ledger::{Content, Ledger, Seen};
use crate::sealed::TABLE;
use crate::tokens::TokenKey;

/// Line of the services.
const SERVICES: &str = "object/services";
/// Line of the runtime classes.
const CLASSES: &str = "object/classes";
/// Services change in swarms: they are written this long after the first change.
const SETTLE: Duration = Duration::from_secs(1);
/// Lines that nobody has claimed by then, counted from the server's first word, are removed.
const UNCLAIMED: Duration = Duration::from_secs(10 * 60);

/// Nothing is wrong with the request: the server is away, or cannot answer. A refusal is an answer.
pub(crate) fn is_away(error: &ApiError) -> bool {
    error.is_transient() && error.code() != Some(429)
}

/// Name of an object's line.
pub(crate) fn line_of(object: &ObjectRef) -> String {
    format!("{TABLE}{}/{}/{}", object.kind.singular(), object.namespace, object.name)
}

fn tokens_of(uid: &PodUid) -> String {
    format!("{TABLE}token/{uid}/")
}

fn token_line(key: &TokenKey) -> String {
    let TokenKey { uid, account, audience, expiration_s } = key;
    format!("{}{account}/{expiration_s}/{audience}", tokens_of(uid))
}

fn encode(value: &impl Serialize) -> Option<Vec<u8>> {
    // Objects came as JSON, and go as such.
    serde_json::to_vec(value).ok()
}

impl Content {
    fn encode(&self) -> Option<Vec<u8>> {
        match self {
            Self::ConfigMap(object) => encode(&**object),
            Self::Secret(object) => encode(&**object),
        }
    }

    fn decode(kind: ObjectKind, bytes: &[u8]) -> Option<Self> {
        match kind {
            ObjectKind::ConfigMap => serde_json::from_slice(bytes).ok().map(Self::config_map),
            ObjectKind::Secret => serde_json::from_slice(bytes).ok().map(Self::secret),
            ObjectKind::Unknown => None,
        }
    }
}

impl Ledger {
    /// Keeps what the server said of an object.
    pub(crate) fn keep(&self, object: &ObjectRef, content: Option<&Content>) {
        if let Some(sealed) = &self.sealed {
            sealed.put(line_of(object), content.and_then(Content::encode));
        }
    }

    pub(crate) fn drop_line(&self, object: &ObjectRef) {
        if let Some(sealed) = &self.sealed {
            sealed.put(line_of(object), None);
        }
    }

    async fn read<T: DeserializeOwned>(&self, line: &str) -> Option<T> {
        serde_json::from_slice(&self.sealed.as_ref()?.get(line).await?).ok()
    }

    /// The object as it was last seen, by an earlier daemon.
    pub(crate) async fn recall(&self, object: &ObjectRef) -> Option<Content> {
        let bytes = self.sealed.as_ref()?.get(&line_of(object)).await?;
        Content::decode(object.kind, &bytes)
    }

    pub(crate) fn keep_token(&self, key: &TokenKey, token: &Token) {
        if let Some(sealed) = &self.sealed {
            let fields = (&token.text, token.expires_at.0, token.refresh_at.0);
            sealed.put(token_line(key), encode(&fields));
        }
    }

    /// A token of an earlier daemon. It may have ended: while the server is away nobody can be asked with it anyway, and the
    /// pod starts.
    pub(crate) async fn recall_token(&self, key: &TokenKey) -> Option<Token> {
        let (text, expires, refresh): (String, i64, i64) = self.read(&token_line(key)).await?;
        Some(Token { text, expires_at: Timestamp(expires), refresh_at: Timestamp(refresh) })
    }

    /// Removes the lines of a pod's tokens.
    pub(crate) fn drop_tokens(&self, keys: impl Iterator<Item = TokenKey>) {
        if let Some(sealed) = &self.sealed {
            keys.for_each(|key| sealed.put(token_line(&key), None));
        }
    }
}

impl ObjectStore {
    /// The server does not answer for a selection that nothing is known of: the sealed cache does.
    pub(crate) fn stand_in(&mut self, target: &Target, error: &ApiError, ctx: &mut Ctx<Self>) {
        match target {
            Target::Object(object) => self.stand_in_object(object, error, ctx),
            Target::Services if !*self.services_synced.borrow() && is_away(error) => {
                let ledger = self.deps.ledger.clone();
                let read = async move { ledger.read::<Vec<Service>>(SERVICES).await };
                ctx.run(read, |act, kept, _ctx| {
                    if let Some(kept) = kept.filter(|_| !*act.services_synced.borrow()) {
                        tracing::warn!("services are those of an earlier run: the API server is away");
                        act.services.replace(kept.into_iter().map(std::sync::Arc::new));
                        act.services_synced.send_replace(true);
                    }
                });
            }
            Target::RuntimeClasses if !*self.classes_synced.borrow() && is_away(error) => {
                let ledger = self.deps.ledger.clone();
                let read = async move { ledger.read::<BTreeMap<String, String>>(CLASSES).await };
                ctx.run(read, |act, kept, _ctx| {
                    if let Some(kept) = kept.filter(|_| !*act.classes_synced.borrow()) {
                        act.classes = kept;
                        act.classes_synced.send_replace(true);
                    }
                });
            }
            Target::Services | Target::RuntimeClasses => {}
        }
    }

    fn stand_in_object(&mut self, object: &ObjectRef, error: &ApiError, ctx: &mut Ctx<Self>) {
        let seen = self.deps.ledger.seen.get(object);
        if !is_away(error) {
            // It answers, and refuses: what an earlier run was given is not given on.
            if seen.is_some_and(|s| s.stale) {
                self.deps.ledger.seen.remove(object);
                self.versions.remove(object);
            }
            return;
        }
        if seen.is_some() {
            return;
        }
        let (ledger, object) = (self.deps.ledger.clone(), object.clone());
        let wanted = object.clone();
        ctx.run(async move { ledger.recall(&wanted).await }, move |act, kept, ctx| {
            let unknown = act.deps.ledger.seen.get(&object).is_none() && act.follows.contains_key(&object);
            if let Some(content) = kept.filter(|_| unknown) {
                let ObjectRef { namespace, name, .. } = &object;
                tracing::warn!(
                    kind = object.kind.singular(),
                    namespace,
                    name,
                    "object of an earlier run: the API server is away"
                );
                let at = Timestamp(ctx.clock().unix_nanos());
                crate::fetch::note(
                    &act.deps.ledger,
                    &act.versions,
                    &object,
                    Seen { content: Some(content), at, stale: true },
                );
            }
        });
    }

    /// Services or classes changed: written a little later, all at once.
    pub(crate) fn keep_lists(&mut self, ctx: &mut Ctx<Self>) {
        if self.deps.ledger.sealed.is_none() || std::mem::replace(&mut self.lists_due, true) {
            return;
        }
        ctx.after(SETTLE, |act, _ctx| {
            act.lists_due = false;
            let Some(sealed) = &act.deps.ledger.sealed else { return };
            if *act.services_synced.borrow() {
                sealed.put(SERVICES.to_owned(), encode(&act.services.all()));
            }
            if *act.classes_synced.borrow() {
                sealed.put(CLASSES.to_owned(), encode(&act.classes));
            }
        });
    }

    /// Some time after the server's first word: what no pod has claimed belongs to nobody any more.
    pub(crate) fn sweep_later(&mut self, ctx: &mut Ctx<Self>) {
        if self.deps.ledger.sealed.is_none() || std::mem::replace(&mut self.swept, true) {
            return;
        }
        ctx.after(UNCLAIMED, |act, ctx| {
            let Some(sealed) = act.deps.ledger.sealed.clone() else { return };
            ctx.run(async move { sealed.lines().await }, |act, lines, _ctx| {
                let Some(sealed) = &act.deps.ledger.sealed else { return };
                let objects: Vec<String> = act.holds.objects().map(line_of).collect();
                let tokens: Vec<String> = act.deps.ledger.holds.snapshot().keys().map(tokens_of).collect();
                for line in lines {
                    let claimed = line == SERVICES
                        || line == CLASSES
                        || objects.contains(&line)
                        || tokens.iter().any(|prefix| line.starts_with(prefix));
                    if !claimed {
                        sealed.put(line, None);
                    }
                }
            });
        });
    }
}
