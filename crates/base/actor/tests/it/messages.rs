//! Tell, ask, mailbox, stop.

use crate::crew::{Add, Bomb, Freeze, LONG, Log, Quit, Slow, SlowDetached, Worker};
use actor::{ActorPhase, ActorRef, AskError, Kernel, Spec, TellError, testing};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

fn small(kernel: &Kernel, mailbox: usize) -> (ActorRef<Worker>, Log) {
    let log = Log::default();
    (kernel.spawn(Spec::new("worker").mailbox(mailbox), Worker::factory(Bomb::None, &log)), log)
}

#[test]
fn answers_in_order_of_arrival() {
    testing::run(1, |kernel| async move {
        let (worker, log) = small(&kernel, 8);
        for n in 1..=5 {
            worker.tell(Add(n)).unwrap();
        }
        assert_eq!(worker.ask(Add(6), LONG).await, Ok((0, 21)));
        assert_eq!(log.lines()[2..], ["add 1", "add 2", "add 3", "add 4", "add 5", "add 6"]);
    });
}

#[test]
fn refuses_a_tell_when_the_mailbox_is_full() {
    testing::run(1, |kernel| async move {
        let (worker, log) = small(&kernel, 3);
        worker.ask(Freeze(SECOND), LONG).await.unwrap();
        let told: Vec<_> = (0..5).map(|n| worker.tell(Add(n))).collect();
        assert_eq!(told, [Ok(()), Ok(()), Ok(()), Err(TellError::Full), Err(TellError::Full)]);
        assert_eq!((worker.info().mailbox_depth, worker.info().rejected_tells), (3, 2));
        tokio::time::sleep(2 * SECOND).await;
        assert_eq!(log.lines().iter().filter(|l| l.starts_with("add")).count(), 3);
        assert_eq!(worker.info().mailbox_depth, 0);
    });
}

#[test]
fn lets_an_ask_wait_for_room() {
    testing::run(1, |kernel| async move {
        let (worker, _) = small(&kernel, 1);
        worker.ask(Freeze(SECOND), LONG).await.unwrap();
        worker.tell(Add(1)).unwrap();
        assert_eq!(worker.ask(Add(2), 2 * SECOND).await, Ok((0, 3)));
    });
}

#[test]
fn calls_an_ask_overloaded_when_no_room_came_in_time() {
    testing::run(1, |kernel| async move {
        let (worker, _) = small(&kernel, 1);
        worker.ask(Freeze(10 * SECOND), LONG).await.unwrap();
        worker.tell(Add(1)).unwrap();
        assert_eq!(worker.ask(Add(2), SECOND).await, Err(AskError::Overloaded));
        assert_eq!(worker.info().overloaded_asks, 1);
        assert_eq!(worker.ask(Add(4), LONG).await, Ok((0, 5)), "the overloaded one was not handled");
    });
}

#[test]
fn does_not_start_an_ask_whose_deadline_has_passed() {
    testing::run(1, |kernel| async move {
        let (worker, log) = small(&kernel, 8);
        worker.ask(Freeze(10 * SECOND), LONG).await.unwrap();
        worker.tell(Add(1)).unwrap();
        assert_eq!(worker.ask(Add(2), SECOND).await, Err(AskError::Timeout { started: false }));
        assert_eq!(worker.ask(Add(4), LONG).await, Ok((0, 5)), "the tell is handled, the expired ask is not");
        assert_eq!(worker.info().expired_asks, 1);
        assert_eq!(log.count("add 2"), 0);
    });
}

#[test]
fn tells_a_started_ask_that_it_was_started() {
    testing::run(1, |kernel| async move {
        let (worker, log) = small(&kernel, 8);
        assert_eq!(worker.ask(Slow(LONG), SECOND).await, Err(AskError::Timeout { started: true }));
        assert_eq!(log.count("slow"), 1);
    });
}

#[test]
fn handles_the_message_of_an_asker_that_gave_up_early() {
    testing::run(1, |kernel| async move {
        let (worker, log) = small(&kernel, 8);
        worker.ask(Freeze(SECOND), LONG).await.unwrap();
        let gave_up = tokio::time::timeout(SECOND / 10, worker.ask(Add(1), LONG)).await;
        assert!(gave_up.is_err());
        assert_eq!(worker.ask(Add(2), LONG).await, Ok((0, 3)));
        assert_eq!(log.count("add 1"), 1);
    });
}

#[test]
fn keeps_a_detached_answer_over_the_death_of_the_actor() {
    testing::run(1, |kernel| async move {
        let (worker, _) = small(&kernel, 8);
        let kill = async {
            testing::settle().await;
            worker.kill();
        };
        let (answer, ()) = tokio::join!(worker.ask(SlowDetached(SECOND), LONG), kill);
        assert_eq!(answer, Ok(0), "the answer of generation 0");
        assert_eq!(worker.info().generation, 1);
    });
}

#[test]
fn works_off_its_queue_before_it_stops() {
    testing::run(1, |kernel| async move {
        let (worker, log) = small(&kernel, 64);
        for n in 0..40 {
            worker.tell(Add(n)).unwrap();
        }
        worker.stop();
        assert_eq!(worker.tell(Add(99)), Err(TellError::Gone));
        assert_eq!(worker.ask(Add(99), LONG).await, Err(AskError::NotDelivered));
        worker.stopped().await;
        assert_eq!(log.lines().iter().filter(|l| l.starts_with("add")).count(), 40);
        assert_eq!(log.lines()[42..], ["stopping", "stopped", "drop 0"]);
        assert_eq!(worker.info().state, ActorPhase::Gone);
        assert_eq!(kernel.directory().get("worker"), None);
    });
}

#[test]
fn stops_at_once_from_inside_and_leaves_its_queue() {
    testing::run(1, |kernel| async move {
        let (worker, log) = small(&kernel, 8);
        let (quit, left) = tokio::join!(biased; worker.ask(Quit, LONG), worker.ask(Add(1), LONG));
        assert_eq!((quit, left), (Ok(()), Err(AskError::NotDelivered)));
        worker.stopped().await;
        assert_eq!(log.count("add 1"), 0);
    });
}

#[test]
fn lives_on_when_nobody_holds_its_address() {
    testing::run(1, |kernel| async move {
        let (worker, log) = small(&kernel, 8);
        drop(worker);
        tokio::time::sleep(LONG).await;
        assert_eq!(kernel.directory().get("worker").unwrap().state, ActorPhase::Running);
        assert_eq!(log.count("stopped"), 0);
    });
}
