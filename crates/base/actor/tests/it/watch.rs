//! The watch of the kernel, beside what tokio's promises.

use actor::{testing, watch};
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Wake, Waker};
use std::time::Duration;
use tokio::task::spawn_local;

#[test]
fn readers_are_woken_in_the_order_of_their_subscription() {
    testing::run(1, async |_| {
        let (tx, first) = watch::channel(0);
        let log = Arc::new(Mutex::new(Vec::new()));
        let mut readers = vec![first];
        readers.extend((1..50).map(|_| tx.subscribe()));
        for (n, mut rx) in readers.into_iter().enumerate() {
            let log = log.clone();
            spawn_local(async move {
                while rx.changed().await.is_ok() {
                    log.lock().unwrap().push(n);
                }
            });
        }
        for value in 1..4 {
            testing::settle().await;
            log.lock().unwrap().clear();
            tx.send_replace(value);
            testing::settle().await;
            assert_eq!(*log.lock().unwrap(), (0..50).collect::<Vec<_>>());
        }
    });
}

/// The waker of a task that moved on may be the last that keeps the task, with all its readers.
#[test]
fn a_replaced_waker_may_hold_a_reader_of_the_same_value() {
    struct Holds(#[allow(dead_code, reason = "held, to be dropped")] watch::Receiver<u32>);
    impl Wake for Holds {
        fn wake(self: Arc<Self>) {}
    }
    let (done, wait) = mpsc::channel();
    std::thread::spawn(move || {
        let (tx, mut rx) = watch::channel(0);
        let first = Waker::from(Arc::new(Holds(rx.clone())));
        let mut changed = pin!(rx.changed());
        assert!(changed.as_mut().poll(&mut Context::from_waker(&first)).is_pending());
        drop(first);
        assert!(changed.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        done.send(tx.receiver_count()).unwrap();
    });
    assert_eq!(wait.recv_timeout(Duration::from_secs(20)), Ok(1), "the reader in the waker is gone, and nothing hangs");
}

#[test]
fn the_latest_value_is_seen_once_and_the_end_after_it() {
    testing::run(1, async |_| {
        let (tx, mut rx) = watch::channel("a");
        assert_eq!(rx.has_changed(), Ok(false));
        tx.send_replace("b");
        tx.send_replace("c");
        let mut late = tx.subscribe();
        let mut twin = rx.clone();
        assert_eq!((rx.has_changed(), late.has_changed()), (Ok(true), Ok(false)));
        rx.changed().await.unwrap();
        assert_eq!(*rx.borrow(), "c");
        assert_eq!(rx.has_changed(), Ok(false));
        assert_eq!(*twin.borrow_and_update(), "c");
        assert!(!tx.send_if_modified(|_| false));
        assert_eq!(twin.has_changed(), Ok(false));
        let waits = spawn_local(async move { (late.changed().await, late.changed().await) });
        testing::settle().await;
        tx.send_modify(|v| *v = "d");
        drop(tx.clone());
        testing::settle().await;
        drop(tx);
        assert_eq!(waits.await.unwrap(), (Ok(()), Err(watch::Closed)));
        assert_eq!(rx.changed().await, Ok(()), "what was not seen comes before the end");
        assert_eq!((rx.changed().await, rx.has_changed()), (Err(watch::Closed), Err(watch::Closed)));
    });
}

#[test]
fn a_value_that_nobody_reads_is_refused_or_kept() {
    let (tx, rx) = watch::channel(1);
    drop(rx);
    assert_eq!((tx.receiver_count(), tx.send(2)), (0, Err(2)));
    assert_eq!((tx.send_replace(3), *tx.borrow()), (1, 3));
    assert_eq!(*tx.subscribe().borrow(), 3);
}
