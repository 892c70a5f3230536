//! Heartbeat: an actor that holds its mailbox shut too long is a crashed one.

use crate::crew::{Add, Bomb, Freeze, LONG, Log, Slow, Worker};
use actor::{Spec, testing};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn restarts_an_actor_that_takes_no_turn_while_messages_wait() {
    testing::run(1, |kernel| async move {
        let log = Log::default();
        let spec = Spec::new("worker").stuck_after(10 * SECOND);
        let worker = kernel.spawn(spec, Worker::factory(Bomb::None, &log));
        worker.ask(Freeze(LONG), LONG).await.unwrap();
        let before = kernel.clock().now();
        assert_eq!(worker.ask(Add(1), LONG).await, Ok((1, 1)), "served by the next generation");
        let took = before.elapsed();
        assert!((10 * SECOND..=13 * SECOND).contains(&took), "{took:?}");
        let cause = worker.info().last_cause.unwrap();
        assert!(cause.starts_with("stuck: no turn for 10s with 1 queued, last message Freeze"), "{cause}");
    });
}

#[test]
fn leaves_a_frozen_actor_alone_while_nobody_waits_for_it() {
    testing::run(1, |kernel| async move {
        let worker =
            kernel.spawn(Spec::new("worker").stuck_after(10 * SECOND), Worker::factory(Bomb::None, &Log::default()));
        worker.ask(Freeze(1000 * SECOND), LONG).await.unwrap();
        tokio::time::sleep(999 * SECOND).await;
        assert_eq!(worker.ask(Add(1), LONG).await, Ok((0, 1)));
    });
}

#[test]
fn leaves_a_busy_actor_alone_whose_mailbox_is_open() {
    testing::run(1, |kernel| async move {
        let worker =
            kernel.spawn(Spec::new("worker").stuck_after(SECOND), Worker::factory(Bomb::None, &Log::default()));
        assert_eq!(worker.ask(Slow(500 * SECOND), LONG).await, Ok(0));
        assert_eq!(worker.info().restarts, 0);
    });
}

#[test]
fn counts_the_patience_from_the_first_message_that_waits() {
    testing::run(1, |kernel| async move {
        let worker =
            kernel.spawn(Spec::new("worker").stuck_after(8 * SECOND), Worker::factory(Bomb::None, &Log::default()));
        worker.ask(Freeze(20 * SECOND), LONG).await.unwrap();
        tokio::time::sleep(13 * SECOND).await;
        assert_eq!(worker.ask(Add(1), LONG).await, Ok((0, 1)), "waited 7 s only");
    });
}
