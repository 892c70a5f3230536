//! Budgets, back-off, escalation, one-for-all.

use crate::crew::{Add, Bomb, LONG, Log, Slow, Worker};
use actor::{ActorRef, AskError, Group, Kernel, KernelConfig, Policy, Spec, Strategy, testing};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

fn spawn(kernel: &Kernel, name: &str, group: &Group) -> ActorRef<Worker> {
    kernel.spawn(Spec::new(name).group(group), Worker::factory(Bomb::None, &Log::default()))
}

/// Kills, and waits until it serves again; gives the time without service.
async fn kill(kernel: &Kernel, worker: &ActorRef<Worker>) -> Duration {
    worker.ask(Add(0), LONG).await.unwrap();
    worker.kill();
    tokio::task::yield_now().await;
    let before = kernel.clock().now();
    worker.ask(Add(0), LONG).await.unwrap();
    before.elapsed()
}

fn budget(max_restarts: usize) -> Policy {
    Policy { max_restarts, ..Policy::default() }
}

#[test]
fn restarts_at_once_first_and_then_ever_later() {
    testing::run(1, |kernel| async move {
        let policy = Policy { backoff_max: Duration::from_millis(50), ..budget(100) };
        let worker = spawn(&kernel, "worker", &kernel.group("g", policy));
        let mut delays = Vec::new();
        for _ in 0..6 {
            delays.push(kill(&kernel, &worker).await.as_millis());
        }
        // tokio's timers are a millisecond late at most.
        let nominal = [0, 10, 20, 40, 50, 50];
        assert!(delays.iter().zip(nominal).all(|(d, n)| (n..=n + 1).contains(d)), "{delays:?}");
    });
}

#[test]
fn starts_the_back_off_anew_after_a_calm_period() {
    testing::run(1, |kernel| async move {
        let worker = spawn(&kernel, "worker", &kernel.group("g", budget(100)));
        for _ in 0..4 {
            kill(&kernel, &worker).await;
        }
        tokio::time::sleep(61 * SECOND).await;
        assert_eq!(kill(&kernel, &worker).await, Duration::ZERO);
    });
}

#[test]
fn does_not_slow_the_first_restart_of_one_for_the_crashes_of_another() {
    testing::run(1, |kernel| async move {
        let group = kernel.group("g", budget(100));
        let (a, b) = (spawn(&kernel, "a", &group), spawn(&kernel, "b", &group));
        for _ in 0..4 {
            kill(&kernel, &a).await;
        }
        assert_eq!(kill(&kernel, &b).await, Duration::ZERO);
    });
}

#[test]
fn restarts_only_the_crashed_one_for_one() {
    testing::run(1, |kernel| async move {
        let group = kernel.group("g", Policy::default());
        let (a, b) = (spawn(&kernel, "a", &group), spawn(&kernel, "b", &group));
        kill(&kernel, &a).await;
        assert_eq!((a.info().generation, b.info().generation), (1, 0));
    });
}

#[test]
fn restarts_all_for_one_with_the_groups_below() {
    testing::run(1, |kernel| async move {
        let group = kernel.group("g", Policy { strategy: Strategy::OneForAll, ..Policy::default() });
        let below = group.child("below", Policy::default());
        let other = kernel.group("other", Policy::default());
        let a = spawn(&kernel, "a", &group);
        let b = spawn(&kernel, "b", &group);
        let c = spawn(&kernel, "c", &below);
        let d = spawn(&kernel, "d", &other);
        b.ask(Add(5), LONG).await.unwrap();
        let slow = b.ask(Slow(LONG / 2), LONG);
        let killing = async {
            testing::settle().await;
            kill(&kernel, &a).await;
        };
        let (slow, _) = tokio::join!(slow, killing);
        testing::settle().await;
        assert_eq!(slow, Err(AskError::Crashed), "the sibling's unfinished work is over");
        assert_eq!(b.ask(Add(1), LONG).await, Ok((1, 1)), "the sibling lost its state");
        let generations = [&a, &b, &c, &d].map(|w| w.info().generation);
        assert_eq!(generations, [1, 1, 1, 0]);
        let restarts = [&a, &b, &c, &d].map(|w| w.info().restarts);
        assert_eq!(restarts, [1, 0, 0, 0], "only the culprit's count");
    });
}

#[test]
fn escalates_when_the_budget_of_the_group_is_exhausted() {
    testing::run(1, |kernel| async move {
        let group = kernel.group("g", budget(2));
        let (a, b) = (spawn(&kernel, "a", &group), spawn(&kernel, "b", &group));
        let bystander = spawn(&kernel, "c", &kernel.group("other", Policy::default()));
        kill(&kernel, &a).await;
        kill(&kernel, &a).await;
        assert_eq!(b.info().generation, 0);
        kill(&kernel, &a).await;
        testing::settle().await;
        assert_eq!((a.info().generation, b.info().generation), (3, 1), "the whole group was restarted");
        assert_eq!(bystander.info().generation, 0);
        kill(&kernel, &a).await;
        assert_eq!(b.info().generation, 1, "with a fresh budget");
    });
}

#[test]
fn forgets_crashes_older_than_the_period() {
    testing::run(1, |kernel| async move {
        let group = kernel.group("g", budget(2));
        let (a, b) = (spawn(&kernel, "a", &group), spawn(&kernel, "b", &group));
        for _ in 0..10 {
            kill(&kernel, &a).await;
            tokio::time::sleep(31 * SECOND).await;
        }
        assert_eq!((a.info().restarts, b.info().generation), (10, 0));
    });
}

#[test]
fn gives_up_once_when_the_root_is_exhausted() {
    let fatal = Arc::new(Mutex::new(Vec::new()));
    let seen = fatal.clone();
    let config = KernelConfig {
        root: budget(1),
        on_fatal: Some(Arc::new(move |who: &str| seen.lock().unwrap().push(who.to_owned()))),
        ..KernelConfig::default()
    };
    testing::run_with(config, |kernel| async move {
        let group = kernel.group("g", budget(0));
        let (a, b) = (spawn(&kernel, "a", &group), spawn(&kernel, "b", &group));
        kill(&kernel, &a).await;
        assert!(kernel.health().is_ok());
        a.ask(Add(0), LONG).await.unwrap();
        a.kill();
        assert_eq!(a.ask(Add(0), LONG).await, Err(AskError::NotDelivered));
        a.stopped().await;
        let why = kernel.health().unwrap_err().to_string();
        assert_eq!(why, "the supervisor has given up, g crashed last");
        assert_eq!(
            b.ask(Add(3), LONG).await,
            Ok((1, 3)),
            "the others are not torn down: that is the callback's to say"
        );
    });
    assert_eq!(*fatal.lock().unwrap(), ["g"]);
}

#[test]
fn keeps_queued_messages_over_a_long_back_off() {
    testing::run(1, |kernel| async move {
        let policy = Policy { backoff_first: 20 * SECOND, ..Policy::default() };
        let log = Log::default();
        let spec = Spec::new("worker").group(&kernel.group("g", policy)).mailbox(4);
        let worker = kernel.spawn(spec, Worker::factory(Bomb::None, &log));
        worker.ask(Add(0), LONG).await.unwrap();
        worker.kill();
        testing::settle().await;
        let told = (1..=5).filter(|n| worker.tell(Add(*n)).is_ok()).count();
        assert_eq!(told, 4, "bounded also while it is down");
        assert_eq!(worker.info().state, actor::ActorPhase::Restarting);
        assert_eq!(worker.ask(Add(9), SECOND).await, Err(AskError::Overloaded));
        tokio::time::sleep(30 * SECOND).await;
        assert_eq!(log.lines()[5..], ["started 1", "add 1", "add 2", "add 3", "add 4"]);
    });
}

#[test]
fn a_stopped_actor_in_back_off_ends_when_its_queue_is_empty() {
    testing::run(1, |kernel| async move {
        let policy = Policy { backoff_first: 20 * SECOND, ..Policy::default() };
        let worker = spawn(&kernel, "worker", &kernel.group("g", policy));
        worker.ask(Add(0), LONG).await.unwrap();
        worker.kill();
        testing::settle().await;
        worker.stop();
        let before = kernel.clock().now();
        worker.stopped().await;
        assert!(before.elapsed() < SECOND);
    });
}

#[test]
fn stops_as_a_whole() {
    testing::run(1, |kernel| async move {
        let group = kernel.group("g", Policy::default());
        let below = group.child("below", Policy::default());
        let (a, b) = (spawn(&kernel, "a", &group), spawn(&kernel, "b", &below));
        let other = spawn(&kernel, "c", kernel.root());
        a.tell(Add(1)).unwrap();
        group.stop();
        group.stopped().await;
        assert_eq!((a.info().turns, b.info().state), (1, actor::ActorPhase::Gone));
        assert_eq!(other.ask(Add(1), LONG).await, Ok((0, 1)));
    });
}

#[test]
fn names_groups_by_their_path() {
    testing::run(1, |kernel| async move {
        let group = kernel.group("pods", Policy::default()).child("workers", Policy::default());
        let worker = spawn(&kernel, "w", &group);
        assert_eq!(worker.info().group, "pods/workers");
    });
}
