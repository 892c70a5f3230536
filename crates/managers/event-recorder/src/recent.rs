//! A map that forgets what was not used for longest.

use std::collections::BTreeMap;

/// At most `capacity` entries; the one untouched for longest goes first.
#[derive(Debug)]
pub(crate) struct Recent<K, V> {
    capacity: usize,
    entries: BTreeMap<K, (u64, V)>,
    order: BTreeMap<u64, K>,
    clock: u64,
}

impl<K: Ord + Clone, V> Recent<K, V> {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { capacity: capacity.max(1), entries: BTreeMap::new(), order: BTreeMap::new(), clock: 0 }
    }

    /// The entry of `key`, made by `fresh` when there is none. Counts as use.
    pub(crate) fn touch(&mut self, key: &K, fresh: impl FnOnce() -> V) -> &mut V {
        self.clock += 1;
        let clock = self.clock;
        if !self.entries.contains_key(key) && self.entries.len() >= self.capacity {
            self.forget_oldest();
        }
        let entry = self.entries.entry(key.clone()).or_insert_with(|| (clock, fresh()));
        self.order.remove(&entry.0);
        entry.0 = clock;
        self.order.insert(clock, key.clone());
        &mut entry.1
    }

    /// The value of `key`; counts as no use.
    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        self.entries.get(key).map(|(_, value)| value)
    }

    /// Removes `key`.
    pub(crate) fn forget(&mut self, key: &K) {
        if let Some((at, _)) = self.entries.remove(key) {
            self.order.remove(&at);
        }
    }

    fn forget_oldest(&mut self) {
        if let Some((_, key)) = self.order.pop_first() {
            self.entries.remove(&key);
        }
    }

    #[cfg(test)]
    pub(crate) fn keys(&self) -> Vec<K> {
        self.order.values().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_entry_untouched_for_longest_is_forgotten() {
        let mut recent = Recent::new(2);
        *recent.touch(&"a", || 0) += 1;
        recent.touch(&"b", || 0);
        *recent.touch(&"a", || 0) += 1;
        recent.touch(&"c", || 0);
        assert_eq!(recent.keys(), ["a", "c"]);
        assert_eq!(*recent.touch(&"a", || 9), 2, "kept its value");
        assert_eq!(*recent.touch(&"b", || 9), 9, "made again");
        assert_eq!(recent.keys(), ["a", "b"]);
    }
}
