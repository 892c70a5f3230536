//! Orders to a supervisee from outside of its mailbox: die, restart with the group.

use futures::task::AtomicWaker;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

/// Locks without caring whether a holder panicked: every value guarded here is valid at each step.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Order {
    /// Crash now, with this cause.
    Kill(String),
    /// Rebuild after the delay, without asking the group: the group asks.
    Restart(Duration),
}

#[derive(Debug, Default)]
pub(crate) struct Control {
    pending: AtomicBool,
    order: Mutex<Option<Order>>,
    waker: AtomicWaker,
}

impl Control {
    pub(crate) fn give(&self, order: Order) {
        *locked(&self.order) = Some(order);
        self.pending.store(true, Ordering::Release);
        self.wake();
    }

    pub(crate) fn take_order(&self) -> Option<Order> {
        if !self.pending.load(Ordering::Acquire) {
            return None;
        }
        self.pending.store(false, Ordering::Release);
        locked(&self.order).take()
    }

    pub(crate) fn register(&self, waker: &Waker) {
        self.waker.register(waker);
    }

    pub(crate) fn wake(&self) {
        self.waker.wake();
    }
}
