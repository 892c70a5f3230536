//! Real threads: arbiters, the watchdog. No sleeping: all waits are for events.

use crate::crew::{Add, Bomb, Explode, LONG, Log, Site, Worker};
use actor::{
    Actor, AskError, Ctx, Handler, Kernel, KernelConfig, Spec, TellError, Watchdog, message, run_system, supervised,
};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

#[test]
fn actors_on_several_threads_ask_each_other() {
    let (here, there, again) = run_system(|arbiters| async move {
        let kernel = Kernel::new(KernelConfig::default());
        let near = kernel.spawn(Spec::new("near"), Worker::factory(Bomb::None, &Log::default()));
        let far = kernel.spawn(Spec::new("far").place(arbiters.start()), Worker::factory(Bomb::None, &Log::default()));
        let here = near.ask(Add(1), LONG).await;
        let there = far.ask(Add(2), LONG).await;
        assert_eq!(far.ask(Explode(Site::Handler), LONG).await, Err(AskError::Crashed));
        let again = tokio::spawn(async move { far.ask(Add(3), LONG).await }).await.unwrap();
        near.stop();
        near.stopped().await;
        (here, there, again)
    })
    .unwrap();
    assert_eq!((here, there, again), (Ok((0, 1)), Ok((0, 2)), Ok((1, 3))));
}

#[test]
fn an_actor_for_a_dead_thread_is_gone_at_once() {
    run_system(|arbiters| async move {
        let kernel = Kernel::new(KernelConfig::default());
        let place = arbiters.start();
        let first = kernel.spawn(Spec::new("first").place(place.clone()), Worker::factory(Bomb::None, &Log::default()));
        first.ask(Add(1), LONG).await.unwrap();
        let actor::Place::On(handle) = &place else { unreachable!() };
        handle.stop();
        first.stopped().await;
        while handle.alive() {
            tokio::task::yield_now().await;
        }
        let second = kernel.spawn(Spec::new("second").place(place), Worker::factory(Bomb::None, &Log::default()));
        second.stopped().await;
        assert_eq!(second.ask(Add(1), LONG).await, Err(AskError::NotDelivered));
        assert!(kernel.directory().actors().is_empty());
    })
    .unwrap();
}

#[test]
fn every_message_that_was_taken_is_handled_whatever_races() {
    for round in 0..20 {
        let (taken, handled) = run_system(|arbiters| async move {
            let kernel = Kernel::new(KernelConfig::default());
            let log = Log::default();
            let spec = Spec::new("far").place(arbiters.start()).mailbox(16);
            let far = kernel.spawn(spec, Worker::factory(Bomb::None, &log));
            let tellers: Vec<_> = (0..4)
                .map(|_| {
                    let far = far.clone();
                    tokio::spawn(async move {
                        let mut taken = 0;
                        loop {
                            match far.tell(Add(1)) {
                                Ok(()) => taken += 1,
                                Err(TellError::Full) => tokio::task::yield_now().await,
                                Err(TellError::Gone) => return taken,
                            }
                        }
                    })
                })
                .collect();
            for _ in 0..50 * (round + 1) {
                tokio::task::yield_now().await;
            }
            far.stop();
            far.stopped().await;
            let mut taken = 0;
            for teller in tellers {
                taken += teller.await.unwrap();
            }
            (taken, log.count("add 1"))
        })
        .unwrap();
        assert_eq!(taken, handled, "round {round}");
    }
}

/// Blocks its thread until the test says so.
struct Blocker(Arc<Mutex<mpsc::Receiver<()>>>);
impl Actor for Blocker {
    type Context = Ctx<Self>;
}
supervised!(Blocker);

struct BlockThread;
message!(BlockThread => ());
impl Handler<BlockThread> for Blocker {
    type Result = ();
    fn handle(&mut self, _: BlockThread, _: &mut Ctx<Self>) {
        let _ = self.0.lock().unwrap().recv();
    }
}

#[test]
fn the_watchdog_reports_a_turn_that_blocks_its_thread() {
    let (found_tx, found_rx) = tokio::sync::oneshot::channel();
    let found_tx = Mutex::new(Some(found_tx));
    let on_blocked = Arc::new(move |blocked: &actor::Blocked| {
        if let Some(tx) = found_tx.lock().unwrap().take() {
            let _ = tx.send(blocked.clone());
        }
    });
    let watchdog = Some(Watchdog { limit: Duration::from_millis(40), on_blocked });
    run_system(|arbiters| async move {
        let kernel = Kernel::new(KernelConfig { watchdog, ..KernelConfig::default() });
        let (free, held) = mpsc::channel();
        let held = Arc::new(Mutex::new(held));
        let blocker = kernel.spawn(Spec::new("blocker").place(arbiters.start()), move |_| Blocker(held.clone()));
        blocker.tell(BlockThread).unwrap();
        let blocked = found_rx.await.unwrap();
        assert_eq!((blocked.actor.as_str(), blocked.message.as_str()), ("blocker", "BlockThread"));
        assert!(blocked.since >= Duration::from_millis(40));
        let why = kernel.health().unwrap_err().to_string();
        assert!(why.starts_with("a turn of blocker holds its thread for "), "{why}");
        free.send(()).unwrap();
        while kernel.health().is_err() {
            tokio::task::yield_now().await;
        }
    })
    .unwrap();
}
