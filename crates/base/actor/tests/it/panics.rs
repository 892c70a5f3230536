//! The panic matrix.

use crate::crew::{Add, Bomb, Explode, ExplodeDetached, LONG, Log, Quit, Site, Slow, Worker};
use actor::{AskError, Kernel, Spec, testing};

fn worker(kernel: &Kernel, bomb: Bomb) -> (actor::ActorRef<Worker>, Log) {
    let log = Log::default();
    (kernel.spawn(Spec::new("worker"), Worker::factory(bomb, &log)), log)
}

/// Explodes with three messages queued behind; gives what the asker saw.
fn explode_at(site: Site) -> Result<(), AskError> {
    testing::run(1, |kernel| async move {
        let (worker, _) = worker(&kernel, Bomb::None);
        assert_eq!(worker.ask(Add(5), LONG).await, Ok((0, 5)));
        let boom = worker.ask(Explode(site), LONG);
        let behind =
            async { tokio::join!(worker.ask(Add(1), LONG), worker.ask(Add(2), LONG), worker.ask(Add(3), LONG)) };
        let (boom, behind) = tokio::join!(biased; boom, behind);
        for answer in [behind.0, behind.1, behind.2] {
            assert!(answer.is_ok(), "{site:?}: a queued message was lost: {answer:?}");
        }
        testing::settle().await;
        testing::settle().await;
        let info = worker.info();
        assert!(info.restarts >= 1, "{site:?}: not restarted: {info:?}");
        assert_eq!(info.generation, info.restarts, "{site:?}");
        let (generation, _) = worker.ask(Add(7), LONG).await.unwrap();
        assert_eq!(generation, info.generation, "{site:?}: serves again, in a new generation");
        boom
    })
}

macro_rules! matrix {
    ($($name:ident: $site:ident => $seen:expr;)*) => { $(
        #[test]
        fn $name() {
            assert_eq!(explode_at(Site::$site), $seen);
        }
    )* };
}

matrix! {
    restarts_after_a_panic_in_a_handler: Handler => Err(AskError::Crashed);
    restarts_after_a_panic_in_a_deferred_answer: Deferred => Err(AskError::Crashed);
    restarts_after_a_late_panic_in_a_deferred_answer: DeferredLater => Err(AskError::Crashed);
    restarts_after_a_panic_after_a_deferred_answer: DeferredThen => Err(AskError::Crashed);
    restarts_after_a_panic_in_an_effect: Run => Ok(());
    restarts_after_a_panic_when_an_effect_is_done: RunDone => Ok(());
    restarts_after_a_panic_in_a_timer: After => Ok(());
    restarts_after_a_panic_in_a_tick: Every => Ok(());
    restarts_after_a_panic_in_a_watch: Watch => Ok(());
    restarts_after_a_panic_in_a_wait: Wait => Ok(());
    restarts_after_a_panic_in_an_actix_timer: ActixLater => Ok(());
    restarts_after_a_panic_in_a_notified_message: Notify => Ok(());
    restarts_after_a_panic_with_a_future_that_panics_when_dropped: FutureDrop => Ok(());
}

#[test]
fn outlives_a_panic_in_a_detached_answer() {
    testing::run(1, |kernel| async move {
        let (worker, _) = worker(&kernel, Bomb::None);
        assert_eq!(worker.ask(ExplodeDetached, LONG).await, Err(AskError::Crashed));
        assert_eq!(worker.ask(Add(1), LONG).await, Ok((0, 1)));
        assert_eq!(worker.info().detached_panics, 1);
        assert_eq!(worker.info().restarts, 0);
    });
}

#[test]
fn retries_a_constructor_that_panics_at_generation_0() {
    testing::run(1, |kernel| async move {
        let (worker, log) = worker(&kernel, Bomb::Constructor(3));
        assert_eq!(worker.ask(Add(1), LONG).await, Ok((3, 1)), "the message waited for the fourth attempt");
        assert_eq!(log.lines(), ["build 0", "build 1", "build 2", "build 3", "started 3", "add 1"]);
        assert_eq!(worker.info().restarts, 3);
    });
}

#[test]
fn retries_a_start_that_panics() {
    testing::run(1, |kernel| async move {
        let (worker, _) = worker(&kernel, Bomb::Started(2));
        assert_eq!(worker.ask(Add(1), LONG).await, Ok((2, 1)));
        assert!(worker.info().last_cause.unwrap().contains("panic: started bomb, in started"));
    });
}

#[test]
fn retries_a_constructor_that_panics_after_a_crash() {
    testing::run(1, |kernel| async move {
        let log = Log::default();
        let mut attempts = 0;
        let factory_log = log.clone();
        let worker = kernel.spawn(Spec::new("worker"), move |generation| {
            attempts += 1;
            assert!(attempts != 2, "second build");
            Worker::new(generation, Bomb::None, factory_log.clone())
        });
        assert_eq!(worker.ask(Explode(Site::Handler), LONG).await, Err(AskError::Crashed));
        assert_eq!(worker.ask(Add(1), LONG).await, Ok((2, 1)));
        assert_eq!(log.count("drop 0"), 1, "the crashed state is dropped once");
    });
}

#[test]
fn outlives_a_panic_in_the_drop_of_the_crashed_state() {
    testing::run(1, |kernel| async move {
        let (worker, log) = worker(&kernel, Bomb::Drop(0));
        assert_eq!(worker.ask(Explode(Site::Handler), LONG).await, Err(AskError::Crashed));
        assert_eq!(worker.ask(Add(1), LONG).await, Ok((1, 1)));
        assert_eq!(log.count("drop 0"), 1);
        assert_eq!(worker.info().restarts, 1, "the drop is not a crash of its own");
    });
}

#[test]
fn outlives_panics_of_the_farewell() {
    for bomb in [Bomb::Stopping, Bomb::Stopped, Bomb::Drop(0)] {
        testing::run(1, |kernel| async move {
            let (worker, log) = worker(&kernel, bomb);
            worker.ask(Add(1), LONG).await.unwrap();
            worker.stop();
            worker.stopped().await;
            assert_eq!(log.count("drop 0"), 1, "{bomb:?}");
            assert_eq!(log.count("build 1"), 0, "{bomb:?}: a stopped actor is not rebuilt");
            assert!(kernel.directory().actors().is_empty(), "{bomb:?}");
        });
    }
}

#[test]
fn outlives_panics_of_the_farewell_of_an_actor_that_quits() {
    for bomb in [Bomb::Stopping, Bomb::Stopped, Bomb::Drop(0)] {
        testing::run(1, |kernel| async move {
            let (worker, log) = worker(&kernel, bomb);
            worker.ask(Quit, LONG).await.unwrap();
            worker.stopped().await;
            assert_eq!((log.count("drop 0"), log.count("build 1")), (1, 0), "{bomb:?}");
        });
    }
}

#[test]
fn outlives_panics_of_the_farewell_when_the_group_gives_up() {
    for bomb in [Bomb::Stopping, Bomb::Stopped, Bomb::Drop(0)] {
        let root = actor::Policy { max_restarts: 0, ..Default::default() };
        testing::run_with(actor::KernelConfig { root, ..Default::default() }, |kernel| async move {
            let (worker, log) = worker(&kernel, bomb);
            assert_eq!(worker.ask(Explode(Site::Handler), LONG).await, Err(AskError::Crashed));
            worker.stopped().await;
            assert_eq!((log.count("drop 0"), log.count("build 1")), (1, 0), "{bomb:?}");
        });
    }
}

#[test]
fn a_crashed_state_that_is_given_up_is_not_touched_again() {
    let root = actor::Policy { max_restarts: 0, ..Default::default() };
    testing::run_with(actor::KernelConfig { root, ..Default::default() }, |kernel| async move {
        let (worker, log) = worker(&kernel, Bomb::None);
        let answers = tokio::join!(biased; worker.ask(Explode(Site::Handler), LONG), worker.ask(Add(1), LONG));
        assert_eq!(answers, (Err(AskError::Crashed), Err(AskError::NotDelivered)));
        worker.stopped().await;
        assert_eq!(log.lines(), ["build 0", "started 0", "drop 0"], "no farewell, no message");
    });
}

#[test]
fn outlives_panics_of_the_farewell_when_the_runtime_ends() {
    for bomb in [Bomb::Stopping, Bomb::Stopped, Bomb::Drop(0)] {
        let log = testing::run(1, |kernel| async move {
            let (worker, log) = worker(&kernel, bomb);
            worker.ask(Add(1), LONG).await.unwrap();
            log
        });
        assert_eq!(log.lines()[3..], ["drop 0"], "{bomb:?}: dropped, without a farewell");
    }
}

#[test]
fn answers_crashed_at_once_to_askers_of_unfinished_work() {
    testing::run(1, |kernel| async move {
        let (worker, _) = worker(&kernel, Bomb::None);
        let slow = worker.ask(Slow(LONG / 2), LONG);
        let kill = async {
            testing::settle().await;
            worker.kill();
        };
        let before = kernel.clock().now();
        let (slow, ()) = tokio::join!(slow, kill);
        assert_eq!(slow, Err(AskError::Crashed));
        assert!(before.elapsed() < std::time::Duration::from_secs(1));
        assert_eq!(worker.ask(Add(1), LONG).await, Ok((1, 1)));
        assert!(worker.info().last_cause.unwrap().starts_with("killed by request"));
    });
}

#[test]
fn says_what_crashed_where_and_in_which_message() {
    testing::run(1, |kernel| async move {
        let (worker, _) = worker(&kernel, Bomb::None);
        let _ = worker.ask(Explode(Site::Handler), LONG).await;
        testing::settle().await;
        let cause = worker.info().last_cause.unwrap();
        assert!(cause.starts_with("panic: handler, in Explode, at "), "{cause}");
        assert!(cause.contains("crew.rs:") && cause.ends_with("(generation 0)"), "{cause}");
        let trace = kernel.directory().backtrace("worker").unwrap();
        assert!(trace.contains("Explode"), "{trace}");
        assert!(!trace.contains("tokio::runtime"), "{trace}");
    });
}
