//! Real threads: callers on others than the actors', the watchdog. All waits are for events.

use crate::crew::{Add, Bomb, Explode, LONG, Log, Site, Worker};
use actor::{
    Actor, ActorRef, AskError, Ctx, Handler, Kernel, KernelConfig, Spec, TellError, Watchdog, message, run_system,
    supervised,
};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

/// An actor on a thread of its own, and what `others` does with it on this one.
fn beside<R>(mailbox: usize, others: impl FnOnce(&ActorRef<Worker>, &Log) -> R) -> R {
    let (hand_over, far) = mpsc::channel();
    let system = std::thread::spawn(move || {
        run_system(|| async move {
            let (kernel, log) = (Kernel::new(KernelConfig::default()), Log::default());
            let far = kernel.spawn(Spec::new("far").mailbox(mailbox), Worker::factory(Bomb::None, &log));
            hand_over.send((far.clone(), log)).unwrap();
            far.stopped().await;
        })
    });
    let (far, log) = far.recv().unwrap();
    let out = others(&far, &log);
    far.stop();
    system.join().unwrap().unwrap();
    out
}

#[test]
fn actors_are_asked_from_other_threads() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    beside(16, |far, _| {
        runtime.block_on(async {
            assert_eq!(far.ask(Add(2), LONG).await, Ok((0, 2)));
            assert_eq!(far.ask(Explode(Site::Handler), LONG).await, Err(AskError::Crashed));
            assert_eq!(far.ask(Add(3), LONG).await, Ok((1, 3)));
        });
    });
}

#[test]
fn every_message_that_was_taken_is_handled_whatever_races() {
    for round in 0..20 {
        let (taken, log) = beside(16, |far, log| {
            let tellers = [(); 4].map(|()| {
                let far = far.clone();
                std::thread::spawn(move || {
                    let mut taken = 0;
                    loop {
                        match far.tell(Add(1)) {
                            Ok(()) => taken += 1,
                            Err(TellError::Full) => std::thread::yield_now(),
                            Err(TellError::Gone) => return taken,
                        }
                    }
                })
            });
            while log.count("add 1") < 50 * (round + 1) {
                std::thread::yield_now();
            }
            far.stop();
            (tellers.into_iter().map(|t| t.join().unwrap()).sum::<usize>(), log.clone())
        });
        assert_eq!(taken, log.count("add 1"), "round {round}");
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
    let (told, found) = mpsc::channel();
    let on_blocked = Arc::new(move |blocked: &actor::Blocked| told.send(blocked.clone()).unwrap());
    let watchdog = Some(Watchdog { limit: Duration::from_millis(40), on_blocked });
    let (hand_over, kernel) = mpsc::channel();
    let (free, held) = mpsc::channel();
    let system = std::thread::spawn(move || {
        run_system(|| async move {
            let kernel = Kernel::new(KernelConfig { watchdog, ..KernelConfig::default() });
            let held = Arc::new(Mutex::new(held));
            let blocker = kernel.spawn(Spec::new("blocker"), move |_| Blocker(held.clone()));
            hand_over.send(kernel).unwrap();
            blocker.ask(BlockThread, LONG).await
        })
    });
    let kernel = kernel.recv().unwrap();
    let blocked = found.recv().unwrap();
    assert_eq!((blocked.actor.as_str(), blocked.message.as_str()), ("blocker", "BlockThread"));
    assert!(blocked.since >= Duration::from_millis(40));
    let why = kernel.health().unwrap_err().to_string();
    assert!(why.starts_with("a turn of blocker holds its thread for "), "{why}");
    free.send(()).unwrap();
    assert_eq!(system.join().unwrap().unwrap(), Ok(()));
    while kernel.health().is_err() {
        std::thread::yield_now();
    }
}
