//! What credential plugins and the node's credential files answered. Outlives the actor, because pulls do.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use model::Timestamp;
use pull_credentials::{AccountKey, AuthMap, PluginCache};

/// How long the node's own credential files are believed.
const NODE_FILES_FRESH: Duration = Duration::from_secs(300);

/// Caches of plugins, calls of plugins under way, credential files of the node. Make it once, outside of the actor.
#[derive(Clone, Debug, Default)]
pub struct CredentialCache(Arc<Inner>);

#[derive(Default)]
struct Inner {
    plugins: Mutex<BTreeMap<String, PluginCache>>,
    calls: Mutex<BTreeMap<CallKey, SharedCall>>,
    node: Mutex<Option<(AuthMap, Timestamp)>>,
}

// Nothing in here is for logs.
impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CredentialCache")
    }
}

/// Calls with the same key give the same answer: plugin, image, on whose behalf.
pub(crate) type CallKey = (String, String, AccountKey);
/// Credentials, or none when the plugin failed.
pub(crate) type CallResult = Option<AuthMap>;
type SharedCall = Shared<BoxFuture<'static, CallResult>>;

fn locked<T>(m: &Mutex<T>) -> MutexGuard<'_, T> {
    m.lock().unwrap_or_else(PoisonError::into_inner)
}

impl CredentialCache {
    /// The plugin's cache.
    pub(crate) fn plugin<R>(&self, name: &str, f: impl FnOnce(&mut PluginCache) -> R) -> R {
        f(locked(&self.0.plugins).entry(name.to_owned()).or_default())
    }

    /// Joins the call under way for this key, or starts one.
    pub(crate) async fn call(
        &self,
        key: CallKey,
        start: impl FnOnce() -> BoxFuture<'static, CallResult>,
    ) -> CallResult {
        let call = locked(&self.0.calls).entry(key.clone()).or_insert_with(|| start().shared()).clone();
        let out = call.clone().await;
        let mut calls = locked(&self.0.calls);
        // Somebody may have started the next one meanwhile.
        if calls.get(&key).is_some_and(|c| c.ptr_eq(&call)) {
            calls.remove(&key);
        }
        out
    }

    /// Credentials of the node's files, when they were read lately.
    pub(crate) fn node_auths(&self, now: Timestamp) -> Option<AuthMap> {
        let held = locked(&self.0.node);
        held.as_ref().filter(|(_, until)| now < *until).map(|(auths, _)| auths.clone())
    }

    pub(crate) fn keep_node_auths(&self, auths: AuthMap, now: Timestamp) {
        *locked(&self.0.node) = Some((auths, now.plus(NODE_FILES_FRESH)));
    }
}
