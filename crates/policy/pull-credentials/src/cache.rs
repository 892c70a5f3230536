//! Answers of one plugin, kept for as long as it said.

use std::collections::BTreeMap;
use std::time::Duration;

use model::Timestamp;
use sha2::{Digest, Sha256};

use crate::docker_config::AuthMap;
use crate::exchange::{Answer, CacheScope};

#[cfg(test)]
mod tests;

const GLOBAL: &str = "global";

/// On whose behalf a plugin is asked: answers for one service account never serve another.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct AccountKey(Vec<String>);

impl AccountKey {
    /// A service account, with the annotations that the plugin is shown; with its token where answers are kept per token.
    #[must_use]
    pub fn new(
        (namespace, name, uid): (&str, &str, &str),
        annotations: &BTreeMap<String, String>,
        token: Option<&str>,
    ) -> Self {
        let mut parts = vec![namespace.to_owned(), name.to_owned(), uid.to_owned()];
        parts.extend(annotations.iter().flat_map(|(k, v)| [k.clone(), v.clone()]));
        // The token itself stays out of keys, which end up in logs.
        parts.extend(token.map(|t| crate::keyring::hex(&Sha256::digest(t.as_bytes()))));
        Self(parts)
    }
}

/// The cache. Holds nothing that is over, as far as anybody asks.
#[derive(Clone, Debug, Default)]
pub struct PluginCache {
    entries: BTreeMap<(String, AccountKey), (AuthMap, Timestamp)>,
}

impl PluginCache {
    /// Credentials for an image: kept for it, for its registry, or for everything.
    #[must_use]
    pub fn get(&self, image: &str, account: &AccountKey, now: Timestamp) -> Option<&AuthMap> {
        [image, registry(image), GLOBAL].into_iter().find_map(|key| {
            let (auths, until) = self.entries.get(&(key.to_owned(), account.clone()))?;
            (now <= *until).then_some(auths)
        })
    }

    /// Keeps an answer, unless its time is 0. Drops what is over.
    pub fn put(&mut self, image: &str, account: AccountKey, answer: &Answer, default: Duration, now: Timestamp) {
        self.entries.retain(|_, (_, until)| now <= *until);
        let keep = answer.cache_duration.unwrap_or(default);
        if keep.is_zero() {
            return;
        }
        let key = match answer.scope {
            CacheScope::Image => image,
            CacheScope::Registry => registry(image),
            CacheScope::Global => GLOBAL,
        };
        self.entries.insert((key.to_owned(), account), (answer.auths.clone(), now.plus(keep)));
    }
}

/// Host and port of an image.
fn registry(image: &str) -> &str {
    image.split('/').next().unwrap_or(image)
}
