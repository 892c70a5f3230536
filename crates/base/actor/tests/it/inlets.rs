//! Swappable routes.

use crate::crew::{Add, Bomb, Freeze, LONG, Log, Worker};
use actor::{AskError, Inlet, Spec, TellError, testing};
use std::time::Duration;

#[test]
fn an_unbound_inlet_says_so() {
    testing::run(1, |_| async move {
        let inlet = Inlet::<Add>::unbound("add");
        assert_eq!(inlet.tell(Add(1)), Err(TellError::Gone));
        assert_eq!(inlet.ask(Add(1), LONG).await, Err(AskError::NotDelivered));
        assert!(!inlet.is_connected());
    });
}

#[test]
fn a_swap_moves_all_clones_and_leaves_queued_asks_where_they_are() {
    testing::run(1, |kernel| async move {
        let old = kernel.spawn(Spec::new("old"), Worker::factory(Bomb::None, &Log::default()));
        let new = kernel.spawn(Spec::new("new"), Worker::factory(Bomb::None, &Log::default()));
        old.ask(Add(100), LONG).await.unwrap();
        let inlet = Inlet::<Add>::unbound("add");
        let clone = inlet.clone();
        inlet.connect(&old);
        old.ask(Freeze(Duration::from_secs(5)), LONG).await.unwrap();
        let queued = clone.ask(Add(1), LONG);
        let swap = async {
            testing::settle().await;
            inlet.connect(&new);
            old.stop();
            clone.ask(Add(1), LONG).await
        };
        let (queued, swapped) = tokio::join!(queued, swap);
        assert_eq!(queued, Ok((0, 101)), "answered by the old one, before it stopped");
        assert_eq!(swapped, Ok((0, 1)), "answered by the new one");
        old.stopped().await;
        inlet.disconnect();
        assert_eq!(clone.tell(Add(1)), Err(TellError::Gone));
    });
}

#[test]
fn a_route_outlives_restarts() {
    testing::run(1, |kernel| async move {
        let worker = kernel.spawn(Spec::new("worker"), Worker::factory(Bomb::None, &Log::default()));
        let inlet = Inlet::<Add>::unbound("add");
        inlet.connect(&worker);
        inlet.ask(Add(1), LONG).await.unwrap();
        worker.kill();
        testing::settle().await;
        assert_eq!(inlet.ask(Add(1), LONG).await, Ok((1, 1)));
    });
}
