//! Objects with resource versions and the log of their changes, as an API server keeps them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use model::k8s_openapi::jiff::Timestamp;
use ports::api::ApiError;
use serde_json::{Value, json};

use super::target::{FieldSelector, Target};

mod write;

pub use write::Ask;

/// How many changes are remembered for watches.
const LOG: usize = 20_000;

/// `group/version`, resource, namespace, name.
type Key = (String, String, String, String);

/// What became of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "named after the events of a watch")]
pub enum Event {
    Added,
    Modified,
    Deleted,
}

/// One change as a watch with a selector sees it.
#[derive(Clone, Debug)]
pub struct Change {
    /// What happened, from the view of the selection.
    pub event: Event,
    /// The object after the change; the last state for a deletion.
    pub object: Arc<Value>,
    /// Resource version of the change.
    pub version: u64,
}

#[derive(Debug)]
struct Entry {
    version: u64,
    key: Key,
    old: Option<Arc<Value>>,
    new: Option<Arc<Value>>,
}

/// All objects of a cluster, in memory.
#[derive(Debug)]
pub struct Store {
    version: u64,
    ids: u64,
    objects: BTreeMap<Key, Arc<Value>>,
    log: VecDeque<Entry>,
    /// Changes up to here are forgotten.
    compacted: u64,
}

/// A copy of all objects of a cluster.
#[derive(Clone, Debug)]
pub struct Backup {
    version: u64,
    objects: BTreeMap<Key, Arc<Value>>,
}

impl Default for Store {
    fn default() -> Self {
        // 0 means "anything" in requests and is never a version.
        Self { version: 1, ids: 0, objects: BTreeMap::new(), log: VecDeque::new(), compacted: 0 }
    }
}

impl Store {
    /// The newest resource version.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The oldest resource version from which a watch can start.
    #[must_use]
    pub fn oldest(&self) -> u64 {
        self.compacted
    }

    /// Forgets the log: a watch from any older version is answered with 410.
    pub fn compact(&mut self) {
        self.log.clear();
        self.version += 1;
        self.compacted = self.version;
    }

    /// Forgets everything, as a cluster restored from nothing.
    pub fn clear(&mut self) {
        let keys: Vec<Key> = self.objects.keys().cloned().collect();
        for key in keys {
            self.drop_object(&key);
        }
    }

    /// What a backup of the server keeps.
    #[must_use]
    pub fn backup(&self) -> Backup {
        Backup { version: self.version, objects: self.objects.clone() }
    }

    /// The server is restored from a backup: what was written since never was, and resource versions are given a second time.
    /// Names of objects made since are not: their UIDs are of no order.
    pub fn restore(&mut self, backup: &Backup) {
        self.version = backup.version;
        self.objects = backup.objects.clone();
        self.log.clear();
        self.compacted = backup.version;
    }

    /// One object.
    #[must_use]
    pub fn get(&self, target: &Target) -> Option<Arc<Value>> {
        self.objects.get(&key(target, target.name.as_deref()?)).cloned()
    }

    /// Objects of a collection, by namespace and name.
    #[must_use]
    pub fn list(&self, target: &Target, fields: &FieldSelector) -> Vec<Arc<Value>> {
        let all = self.objects.iter().filter(|(k, object)| in_collection(k, target) && fields.takes(object));
        all.map(|(_, object)| object.clone()).collect()
    }

    /// What happened to a selection after a resource version.
    ///
    /// # Errors
    /// 410 when that version is forgotten.
    pub fn changes(&self, target: &Target, fields: &FieldSelector, after: u64) -> Result<Vec<Change>, ApiError> {
        if after < self.compacted {
            let message = format!("too old resource version: {after} ({})", self.compacted);
            return Err(ApiError::status(410, "Expired", message));
        }
        let entries = self.log.iter().skip(self.log.partition_point(|e| e.version <= after));
        let seen = |object: &Option<Arc<Value>>| object.clone().filter(|o| fields.takes(o));
        let changes = entries.filter(|e| in_collection(&e.key, target)).filter_map(|entry| {
            let (event, object) = match (seen(&entry.old), seen(&entry.new)) {
                (None, Some(new)) => (Event::Added, new),
                (Some(_), Some(new)) => (Event::Modified, new),
                (Some(old), None) => {
                    let mut last = Value::clone(&old);
                    last["metadata"]["resourceVersion"] = entry.version.to_string().into();
                    (Event::Deleted, Arc::new(last))
                }
                (None, None) => return None,
            };
            Some(Change { event, object, version: entry.version })
        });
        Ok(changes.collect())
    }

    /// Stores an object as it is (status included), as if it had always been so; metadata that is missing is filled in.
    pub fn seed(&mut self, target: &Target, mut object: Value, now: Timestamp) -> Arc<Value> {
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let key = key(target, &name);
        let old = self.objects.get(&key).cloned();
        let uid = old.as_ref().map(|o| o["metadata"]["uid"].clone());
        let uid = uid.unwrap_or_else(|| self.fresh_uid().into());
        let meta = &mut object["metadata"];
        if !target.namespace.is_empty() {
            meta["namespace"] = target.namespace.clone().into();
        }
        if meta.get("uid").is_none_or(Value::is_null) {
            meta["uid"] = uid;
        }
        if meta.get("creationTimestamp").is_none_or(Value::is_null) {
            meta["creationTimestamp"] = seconds(now).into();
        }
        self.put(key, target, object)
    }

    /// Takes an object away, whatever it waits for.
    pub fn vanish(&mut self, target: &Target) {
        if let Some(name) = &target.name {
            self.drop_object(&key(target, name));
        }
    }

    /// Writes an object under a new resource version.
    fn put(&mut self, key: Key, target: &Target, mut object: Value) -> Arc<Value> {
        self.version += 1;
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        object["apiVersion"] = target.group_version.clone().into();
        object["kind"] = target.kind().into();
        let new = Arc::new(object);
        let old = self.objects.insert(key.clone(), new.clone());
        self.record(Entry { version: self.version, key, old, new: Some(new.clone()) });
        new
    }

    fn drop_object(&mut self, key: &Key) -> Option<Arc<Value>> {
        let old = self.objects.remove(key)?;
        self.version += 1;
        self.record(Entry { version: self.version, key: key.clone(), old: Some(old.clone()), new: None });
        Some(old)
    }

    fn record(&mut self, entry: Entry) {
        self.log.push_back(entry);
        if self.log.len() > LOG
            && let Some(gone) = self.log.pop_front()
        {
            self.compacted = gone.version;
        }
    }

    fn next_id(&mut self) -> u64 {
        self.ids += 1;
        self.ids
    }

    fn fresh_uid(&mut self) -> String {
        format!("5eed0000-0000-4000-8000-{:012x}", self.next_id())
    }

    /// Five letters as servers append to `generateName`; the same ones in every run.
    fn suffix(&mut self) -> String {
        const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
        let mut n = self.next_id().wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let letter = |_| {
            n = n.rotate_left(13);
            char::from(LETTERS[usize::try_from(n % LETTERS.len() as u64).unwrap_or_default()])
        };
        (0..5).map(letter).collect()
    }
}

fn key(target: &Target, name: &str) -> Key {
    (target.group_version.clone(), target.resource.clone(), target.namespace.clone(), name.to_owned())
}

fn in_collection(key: &Key, target: &Target) -> bool {
    key.0 == target.group_version
        && key.1 == target.resource
        && (target.namespace.is_empty() || key.2 == target.namespace)
}

/// A time as `metav1.Time` is written.
pub(super) fn seconds(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// A list object.
#[must_use]
pub fn list_body(target: &Target, items: &[Arc<Value>], version: u64) -> Value {
    let kind = format!("{}List", target.kind());
    let metadata = json!({ "resourceVersion": version.to_string() });
    let items = items.iter().map(|item| {
        // Items of a list carry neither, as with a real server.
        let mut item = Value::clone(item);
        set_or_remove(&mut item, "kind", None);
        set_or_remove(&mut item, "apiVersion", None);
        item
    });
    let items: Vec<Value> = items.collect();
    json!({ "kind": kind, "apiVersion": target.group_version, "metadata": metadata, "items": items })
}

fn set_or_remove(object: &mut Value, field: &str, value: Option<Value>) {
    match (value, object.as_object_mut()) {
        (Some(value), Some(object)) => drop(object.insert(field.to_owned(), value)),
        (None, Some(object)) => drop(object.remove(field)),
        (_, None) => {}
    }
}

#[cfg(test)]
mod tests;
