//! One value that many read and wait for, as `tokio::sync::watch` has it, but readers are woken in the order in which they
//! subscribed. Tokio wakes them in an order by chance, and then the same seed would not give the same run.

use crate::control::locked;
use std::collections::BTreeMap;
use std::fmt;
use std::future::poll_fn;
use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};
use std::task::{Context, Poll, Waker};

struct Shared<T> {
    value: RwLock<T>,
    readers: Mutex<Readers>,
    senders: AtomicUsize,
}

#[derive(Default)]
struct Readers {
    version: u64,
    next: u64,
    living: usize,
    /// Those who wait, by the number of their subscription.
    waiting: BTreeMap<u64, Waker>,
}

/// Writes the value. A clone writes the same one.
pub struct Sender<T>(Arc<Shared<T>>);

/// Reads the value and waits for the next. A clone has seen what the original has seen.
pub struct Receiver<T> {
    shared: Arc<Shared<T>>,
    id: u64,
    seen: u64,
}

/// A look at the value; keep it short, for the writer waits.
pub struct Ref<'a, T>(RwLockReadGuard<'a, T>);

/// Nobody can write any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("nobody can change the value any more")]
pub struct Closed;

/// A value, seen by its first reader.
pub fn channel<T>(value: T) -> (Sender<T>, Receiver<T>) {
    let readers = Readers { living: 1, next: 1, ..Readers::default() };
    let shared =
        Arc::new(Shared { value: RwLock::new(value), readers: Mutex::new(readers), senders: AtomicUsize::new(1) });
    (Sender(shared.clone()), Receiver { shared, id: 0, seen: 0 })
}

impl<T> Shared<T> {
    fn read(&self) -> Ref<'_, T> {
        Ref(self.value.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn wake(&self, changed: bool) {
        let waiting = {
            let mut readers = locked(&self.readers);
            readers.version += u64::from(changed);
            std::mem::take(&mut readers.waiting)
        };
        waiting.into_values().for_each(Waker::wake);
    }

    fn subscribe(self: &Arc<Self>, seen: Option<u64>) -> Receiver<T> {
        let mut readers = locked(&self.readers);
        let id = readers.next;
        readers.next += 1;
        readers.living += 1;
        Receiver { id, seen: seen.unwrap_or(readers.version), shared: self.clone() }
    }
}

impl<T> Sender<T> {
    /// Replaces the value and gives the old one.
    pub fn send_replace(&self, value: T) -> T {
        let mut value = value;
        self.send_modify(|v| std::mem::swap(v, &mut value));
        value
    }

    /// Replaces the value, unless nobody reads; whether somebody does.
    ///
    /// # Errors
    /// The value, when nobody reads.
    pub fn send(&self, value: T) -> Result<(), T> {
        if self.receiver_count() == 0 {
            return Err(value);
        }
        self.send_replace(value);
        Ok(())
    }

    /// Changes the value.
    pub fn send_modify(&self, change: impl FnOnce(&mut T)) {
        self.send_if_modified(|v| {
            change(v);
            true
        });
    }

    /// Changes the value; readers are told when `change` says so.
    pub fn send_if_modified(&self, change: impl FnOnce(&mut T) -> bool) -> bool {
        let changed = change(&mut self.0.value.write().unwrap_or_else(PoisonError::into_inner));
        if changed {
            self.0.wake(true);
        }
        changed
    }

    /// The value now.
    pub fn borrow(&self) -> Ref<'_, T> {
        self.0.read()
    }

    /// A reader who has seen the present value.
    pub fn subscribe(&self) -> Receiver<T> {
        self.0.subscribe(None)
    }

    /// How many read.
    pub fn receiver_count(&self) -> usize {
        locked(&self.0.readers).living
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        self.0.senders.fetch_add(1, Ordering::Relaxed);
        Sender(self.0.clone())
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        if self.0.senders.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.wake(false);
        }
    }
}

impl<T> Receiver<T> {
    /// The value now; a change that was not waited for stays one.
    pub fn borrow(&self) -> Ref<'_, T> {
        self.shared.read()
    }

    /// The value now, which counts as seen.
    pub fn borrow_and_update(&mut self) -> Ref<'_, T> {
        // Before the look: what changes meanwhile is seen twice rather than never.
        self.seen = locked(&self.shared.readers).version;
        self.shared.read()
    }

    /// The present value counts as seen.
    pub fn mark_unchanged(&mut self) {
        self.seen = locked(&self.shared.readers).version;
    }

    /// The present value counts as not seen.
    pub fn mark_changed(&mut self) {
        // No version has this number.
        self.seen = u64::MAX;
    }

    /// Waits until the value is such, or is so now; it then counts as seen.
    ///
    /// # Errors
    /// It is not, and nobody can write any more.
    pub async fn wait_for(&mut self, mut such: impl FnMut(&T) -> bool) -> Result<Ref<'_, T>, Closed> {
        loop {
            // Before the look: what changes meanwhile is looked at again.
            self.seen = locked(&self.shared.readers).version;
            if such(&self.borrow()) {
                return Ok(self.borrow());
            }
            self.changed().await?;
        }
    }

    /// Whether there is a value that was not seen.
    ///
    /// # Errors
    /// Nobody can write any more.
    pub fn has_changed(&self) -> Result<bool, Closed> {
        if self.shared.senders.load(Ordering::Acquire) == 0 {
            return Err(Closed);
        }
        Ok(locked(&self.shared.readers).version != self.seen)
    }

    /// Waits for a value that was not seen; then it counts as seen. Safe to drop and call anew.
    ///
    /// # Errors
    /// All is seen, and nobody can write any more.
    pub async fn changed(&mut self) -> Result<(), Closed> {
        poll_fn(|cx| self.poll_changed(cx)).await
    }

    fn poll_changed(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Closed>> {
        let mut readers = locked(&self.shared.readers);
        if readers.version != self.seen {
            self.seen = readers.version;
            return Poll::Ready(Ok(()));
        }
        if self.shared.senders.load(Ordering::Acquire) == 0 {
            return Poll::Ready(Err(Closed));
        }
        let former = readers.waiting.insert(self.id, cx.waker().clone());
        drop(readers);
        // Outside of the lock: it may hold the last of something that reads here too.
        drop(former);
        Poll::Pending
    }
}

impl<T> Clone for Receiver<T> {
    fn clone(&self) -> Self {
        self.shared.subscribe(Some(self.seen))
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        let mut readers = locked(&self.shared.readers);
        readers.living -= 1;
        let waker = readers.waiting.remove(&self.id);
        drop(readers);
        // Outside of the lock: it may hold the last of something that reads here too.
        drop(waker);
    }
}

impl<T> Deref for Ref<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: fmt::Debug> fmt::Debug for Ref<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T: fmt::Debug> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Sender").field(&self.borrow()).finish()
    }
}

impl<T: fmt::Debug> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Receiver").field(&self.borrow()).finish()
    }
}
