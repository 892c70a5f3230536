//! Actors by key.

use crate::crew::LONG;
use actor::{
    Actor, AskError, Ctx, Family, Handler, Inlet, Kernel, MessageResult, Spec, TellError, message, supervised, testing,
};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// Counts what it was told; its number says which one it is.
struct Member {
    number: usize,
    count: usize,
}

impl Actor for Member {
    type Context = Ctx<Self>;
}
supervised!(Member);

/// Makes its member.
struct Open(&'static str);
message!(Open => (usize, usize));

/// Makes none.
struct Look(&'static str);
message!(Look => (usize, usize));

impl Handler<Open> for Member {
    type Result = MessageResult<Open>;
    fn handle(&mut self, _: Open, _: &mut Ctx<Self>) -> Self::Result {
        self.count += 1;
        MessageResult((self.number, self.count))
    }
}

impl Handler<Look> for Member {
    type Result = MessageResult<Look>;
    fn handle(&mut self, _: Look, _: &mut Ctx<Self>) -> Self::Result {
        MessageResult((self.number, self.count))
    }
}

struct Rig {
    family: Arc<Family<&'static str, Member>>,
    open: Inlet<Open>,
    look: Inlet<Look>,
    made: Arc<AtomicUsize>,
}

fn rig(kernel: Kernel) -> Rig {
    let made = Arc::new(AtomicUsize::new(0));
    let counter = made.clone();
    let family = Family::new(move |key: &&'static str| {
        let number = counter.fetch_add(1, Ordering::Relaxed) + 1;
        kernel.spawn(Spec::new(format!("member/{key}")), move |_| Member { number, count: 0 })
    });
    let (open, look) = (Inlet::unbound("open"), Inlet::unbound("look"));
    family.connect(&open, |Open(key)| key, true);
    family.connect(&look, |Look(key)| key, false);
    Rig { family, open, look, made }
}

#[test]
fn the_first_message_for_a_key_makes_its_actor_and_later_ones_find_it() {
    testing::run(1, |kernel| async move {
        let rig = rig(kernel);
        assert!(rig.family.member(&"a").is_none());
        assert_eq!(rig.open.ask(Open("a"), LONG).await, Ok((1, 1)));
        assert_eq!(rig.open.ask(Open("b"), LONG).await, Ok((2, 1)));
        rig.open.tell(Open("a")).unwrap();
        assert_eq!(rig.look.ask(Look("a"), LONG).await, Ok((1, 2)), "the same actor, after what was told");
        assert!(rig.family.member(&"a").is_some());
    });
}

#[test]
fn a_message_that_makes_none_is_not_delivered_where_there_is_none() {
    testing::run(1, |kernel| async move {
        let rig = rig(kernel);
        assert_eq!(rig.look.ask(Look("a"), LONG).await, Err(AskError::NotDelivered));
        assert_eq!(rig.look.tell(Look("a")), Err(TellError::Gone));
        assert_eq!(rig.made.load(Ordering::Relaxed), 0);
    });
}

#[test]
fn a_retired_actor_works_off_its_queue_and_a_later_message_makes_a_new_one() {
    testing::run(1, |kernel| async move {
        let rig = rig(kernel);
        rig.family.retire(&"a", || {});
        rig.open.ask(Open("a"), LONG).await.unwrap();
        let old = rig.family.member(&"a").unwrap();
        let queued = rig.open.ask(Open("a"), LONG);
        let retire = async {
            rig.family.retire(&"a", || {});
            rig.look.ask(Look("a"), LONG).await
        };
        let (queued, look) = tokio::join!(queued, retire);
        assert_eq!(queued, Ok((1, 2)), "queued before it was retired");
        assert_eq!(look, Err(AskError::NotDelivered), "it is found no more");
        old.stopped().await;
        assert_eq!(rig.open.ask(Open("a"), LONG).await, Ok((2, 1)));
    });
}

#[test]
fn nobody_finds_or_makes_an_actor_while_it_is_retired() {
    testing::run(1, |kernel| async move {
        let rig = rig(kernel);
        rig.family.member_or_new(&"a");
        let (found, finding) = mpsc::channel();
        std::thread::scope(|threads| {
            rig.family.retire(&"a", || {
                threads.spawn(|| found.send(rig.family.member(&"a").is_some()).unwrap());
                assert_eq!(finding.recv_timeout(Duration::from_millis(100)), Err(mpsc::RecvTimeoutError::Timeout));
            });
        });
        assert_eq!(finding.recv(), Ok(false));
        assert_eq!(rig.open.ask(Open("a"), LONG).await, Ok((2, 1)), "made anew afterwards");
    });
}

#[test]
fn threads_find_the_actor_that_is_there() {
    testing::run(1, |kernel| async move {
        let rig = rig(kernel);
        // Spawning wants the thread of the kernel: the first one is made here, then others race to find it.
        let first = rig.family.member_or_new(&"a");
        std::thread::scope(|threads| {
            for _ in 0..4 {
                threads.spawn(|| rig.family.member_or_new(&"a").tell(Open("a")).unwrap());
            }
        });
        assert_eq!(first.ask(Look("a"), LONG).await, Ok((1, 4)));
        assert_eq!(rig.made.load(Ordering::Relaxed), 1);
    });
}
