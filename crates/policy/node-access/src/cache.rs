//! Rules of the caches: what is a key, how long an answer holds, who goes when it is full.

use std::collections::BTreeMap;
use std::time::Duration;

use sha2::{Digest, Sha256};

use crate::User;

#[cfg(test)]
mod tests;

/// Requests whose attributes are larger than this, bytes, are not kept.
pub const CACHED_BYTES: usize = 10_000;

/// What an answer is kept under. A digest: tokens do not stay in memory, and a key is small whatever it was made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key([u8; 32]);

impl Key {
    /// Key of a token.
    #[must_use]
    pub fn token(token: &str) -> Self {
        Self(Sha256::digest(token.as_bytes()).into())
    }

    /// Key of a question about access; `None`: what the caller controls of it is too large to be kept.
    #[must_use]
    pub fn access(user: &User, verb: &str, subresource: &str, node: &str) -> Option<Self> {
        let controlled = verb.len() + subresource.len() + node.len() + "nodesv1".len();
        if controlled >= CACHED_BYTES {
            return None;
        }
        let mut digest = Sha256::new();
        // Each part with its length before it: no two questions make the same bytes.
        let mut part = |bytes: &[u8]| {
            digest.update((bytes.len() as u64).to_be_bytes());
            digest.update(bytes);
        };
        for text in [verb, subresource, node, &user.name, &user.uid] {
            part(text.as_bytes());
        }
        part(&(user.groups.len() as u64).to_be_bytes());
        for group in &user.groups {
            part(group.as_bytes());
        }
        for (name, values) in &user.extra {
            part(name.as_bytes());
            part(&(values.len() as u64).to_be_bytes());
            for value in values {
                part(value.as_bytes());
            }
        }
        Some(Self(digest.finalize().into()))
    }
}

/// How long answers hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ttl {
    /// `authentication.webhook.cacheTTL`, for tokens that are somebody's and for those that are nobody's.
    pub token: Duration,
    /// `authorization.webhook.cacheAuthorizedTTL`.
    pub allowed: Duration,
    /// `authorization.webhook.cacheUnauthorizedTTL`.
    pub denied: Duration,
}

impl Default for Ttl {
    fn default() -> Self {
        Self { token: Duration::from_secs(120), allowed: Duration::from_secs(300), denied: Duration::from_secs(30) }
    }
}

/// A map of bounded size whose entries end; the one that was used longest ago goes first. Times are since any fixed moment.
#[derive(Clone, Debug)]
pub struct Lru<V> {
    most: usize,
    tick: u64,
    entries: BTreeMap<Key, Entry<V>>,
    /// Keys by last use.
    order: BTreeMap<u64, Key>,
}

#[derive(Clone, Debug)]
struct Entry<V> {
    value: V,
    ends: Duration,
    used: u64,
}

impl<V: Clone> Lru<V> {
    /// An empty one for at most so many entries.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self { most, tick: 0, entries: BTreeMap::new(), order: BTreeMap::new() }
    }

    /// The value of a key, unless it ended.
    pub fn get(&mut self, key: &Key, now: Duration) -> Option<V> {
        let entry = self.entries.get_mut(key)?;
        self.order.remove(&entry.used);
        if entry.ends <= now {
            self.entries.remove(key);
            return None;
        }
        self.tick += 1;
        entry.used = self.tick;
        self.order.insert(self.tick, *key);
        Some(entry.value.clone())
    }

    /// Keeps a value until a time. Without a life it is not kept.
    pub fn put(&mut self, key: Key, value: V, now: Duration, life: Duration) {
        self.remove(&key);
        if life.is_zero() || self.most == 0 {
            return;
        }
        while self.entries.len() >= self.most {
            let Some((_, oldest)) = self.order.pop_first() else { break };
            self.entries.remove(&oldest);
        }
        self.tick += 1;
        self.order.insert(self.tick, key);
        self.entries.insert(key, Entry { value, ends: now + life, used: self.tick });
    }

    fn remove(&mut self, key: &Key) {
        if let Some(entry) = self.entries.remove(key) {
            self.order.remove(&entry.used);
        }
    }

    /// Entries, those that ended and were not asked for since included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether nothing is kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}
