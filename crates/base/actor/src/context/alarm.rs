//! Whose turn it is when an actor wakes: each future of it has a waker of its own, so that a hundred that wait cost a hundred
//! looks at a flag and not a hundred polls.

use futures::task::AtomicWaker;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Wake, Waker};

/// The waker of one future.
pub(super) struct Alarm {
    bell: Arc<Bell>,
    waker: Waker,
}

struct Bell {
    rung: AtomicBool,
    /// Wakes the actor.
    actor: AtomicWaker,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.rung.swap(true, Ordering::AcqRel) {
            self.actor.wake();
        }
    }
}

impl Alarm {
    /// Rung: who was never polled has to be.
    pub(super) fn new() -> Self {
        let bell = Arc::new(Bell { rung: AtomicBool::new(true), actor: AtomicWaker::new() });
        let waker = Waker::from(bell.clone());
        Alarm { bell, waker }
    }

    /// The next answer polls, whoever makes the actor come to it.
    pub(super) fn set(&self) {
        self.bell.rung.store(true, Ordering::Release);
    }

    /// Runs `poll` if somebody rang since the last time.
    pub(super) fn answer<T>(&self, cx: &Context<'_>, poll: impl FnOnce(&mut Context<'_>) -> T) -> Option<T> {
        if !self.bell.rung.load(Ordering::Acquire) {
            return None;
        }
        // In this order: who rings from now on wakes the actor again.
        self.bell.actor.register(cx.waker());
        self.bell.rung.store(false, Ordering::Release);
        Some(poll(&mut Context::from_waker(&self.waker)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::task::noop_waker_ref;
    use std::sync::atomic::AtomicUsize;

    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_future_is_polled_once_per_ring_and_rings_reach_the_actor() {
        let alarm = Alarm::new();
        let count = Arc::new(Count(AtomicUsize::new(0)));
        let actor = Waker::from(count.clone());
        let cx = Context::from_waker(&actor);
        let own = |cx: &mut Context<'_>| cx.waker().clone();
        let waker = alarm.answer(&cx, own).expect("the first poll needs no ring");
        assert!(alarm.answer(&cx, own).is_none(), "nobody rang");
        waker.wake_by_ref();
        waker.wake_by_ref();
        assert_eq!(count.0.load(Ordering::Relaxed), 1, "one wake is enough until the answer");
        // A poll by somebody who cannot be woken (an actor that is dropped) loses no ring.
        let nobody = Context::from_waker(noop_waker_ref());
        assert!(alarm.answer(&nobody, |_| waker.wake_by_ref()).is_some());
        assert!(alarm.answer(&cx, own).is_some(), "rung while it was polled");
        waker.wake();
        assert_eq!(count.0.load(Ordering::Relaxed), 2);
    }
}
