//! A single published value.

use std::fmt;
use std::sync::Arc;

use actor::watch;
use serde::Serialize;

use crate::board::Row;
use crate::fence::{Fence, FenceToken};
use crate::record::json;

/// The storage of a single value.
pub struct Value<V> {
    inner: Arc<Inner<V>>,
}

struct Inner<V> {
    name: &'static str,
    value: watch::Sender<Arc<V>>,
    /// Changes with the value: sent first, so that a number is never older than its value.
    seq: watch::Sender<u64>,
}

impl<V> Inner<V> {
    fn set(&self, value: V) {
        self.seq.send_modify(|seq| {
            *seq += 1;
            self.value.send_replace(Arc::new(value));
        });
    }

    /// As [`Self::set`], noted.
    fn post(&self, fence: &Fence, value: V)
    where
        V: Serialize,
    {
        fence.record(self.name, || json(&value));
        self.set(value);
    }
}

impl<V> Clone for Value<V> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone() }
    }
}

impl<V> fmt::Debug for Value<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Value({})", self.inner.name)
    }
}

impl<V: Send + Sync + 'static> Value<V> {
    /// Starts with `initial`, as change 0.
    #[must_use]
    pub fn new(name: &'static str, initial: V) -> Self {
        Self { inner: Arc::new(Inner { name, value: watch::channel(Arc::new(initial)).0, seq: watch::channel(0).0 }) }
    }

    /// The reading side.
    #[must_use]
    pub fn reader(&self) -> ValueReader<V> {
        ValueReader { inner: self.inner.clone() }
    }

    /// Replaces the value, past the fence.
    pub(crate) fn put(&self, fence: &Fence, value: V)
    where
        V: Serialize,
    {
        self.inner.post(fence, value);
    }

    /// The posting side, for as long as the token passes its fence.
    #[must_use]
    pub fn poster(&self, token: FenceToken) -> ValuePoster<V> {
        ValuePoster { inner: self.inner.clone(), token }
    }
}

/// The posting side of a single value; fenced as [`crate::board::BoardPoster`].
pub struct ValuePoster<V> {
    inner: Arc<Inner<V>>,
    token: FenceToken,
}

impl<V> Clone for ValuePoster<V> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), token: self.token.clone() }
    }
}

impl<V> fmt::Debug for ValuePoster<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ValuePoster({})", self.inner.name)
    }
}

impl<V: Serialize + Send + Sync + 'static> ValuePoster<V> {
    /// Replaces the value and wakes readers. Answers whether it was done: no when this poster is no longer the newest.
    pub fn publish(&self, value: V) -> bool {
        self.token.pass(self.inner.name, |fence| self.inner.post(fence, value))
    }

    /// The value now.
    #[must_use]
    pub fn get(&self) -> Arc<V> {
        self.inner.value.borrow().clone()
    }

    /// The reading side of the same value.
    #[must_use]
    pub fn reader(&self) -> ValueReader<V> {
        ValueReader { inner: self.inner.clone() }
    }
}

/// The reading side of a single value.
pub struct ValueReader<V> {
    inner: Arc<Inner<V>>,
}

impl<V> Clone for ValueReader<V> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone() }
    }
}

impl<V> fmt::Debug for ValueReader<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ValueReader({})", self.inner.name)
    }
}

impl<V> ValueReader<V> {
    /// The value now.
    #[must_use]
    pub fn get(&self) -> Arc<V> {
        self.inner.value.borrow().clone()
    }

    /// The value now with the number of the change that made it.
    #[must_use]
    pub fn row(&self) -> Row<V> {
        // The value is replaced while the number is locked for writing.
        let seq = self.inner.seq.borrow();
        Row { seq: *seq, value: self.get() }
    }

    /// Follows the number of the latest change.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.inner.seq.subscribe()
    }

    /// Follows the value.
    #[must_use]
    pub fn subscribe(&self) -> watch::Receiver<Arc<V>> {
        self.inner.value.subscribe()
    }
}
