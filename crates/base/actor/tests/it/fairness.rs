//! Nobody starves his neighbours.

use crate::crew::{Add, Bomb, LONG, Log, Worker};
use actor::{Actor, AsyncContext, Ctx, Handler, Spec, message, supervised, testing};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// How the flooder keeps itself busy for ever.
#[derive(Clone, Copy, Debug)]
enum Way {
    Tell,
    Notify,
    After,
    Run,
    Wait,
}

struct Flooder(Arc<AtomicU64>);
impl Actor for Flooder {
    type Context = Ctx<Self>;
}
supervised!(Flooder);

struct More(Way);
message!(More => ());

impl Handler<More> for Flooder {
    type Result = ();
    fn handle(&mut self, More(way): More, ctx: &mut Ctx<Self>) {
        self.flood(way, ctx);
    }
}

impl Flooder {
    fn flood(&mut self, way: Way, ctx: &mut Ctx<Self>) {
        self.0.fetch_add(1, Relaxed);
        match way {
            Way::Tell => ctx.this().tell(More(way)).unwrap(),
            Way::Notify => ctx.notify(More(way)),
            Way::After => drop(ctx.after(Duration::ZERO, move |me, ctx| me.flood(way, ctx))),
            Way::Run => drop(ctx.run(async {}, move |me, (), ctx| me.flood(way, ctx))),
            Way::Wait => {
                let again = actor::WrapFuture::into_actor(async {}, self);
                ctx.wait(actor::ActorFutureExt::map(again, move |(), me: &mut Flooder, ctx: &mut Ctx<Flooder>| {
                    me.flood(way, ctx);
                }));
            }
        }
    }
}

#[test]
fn a_self_flooding_actor_leaves_turns_to_its_neighbour() {
    for way in [Way::Tell, Way::Notify, Way::After, Way::Run, Way::Wait] {
        testing::run(1, |kernel| async move {
            let count = Arc::new(AtomicU64::new(0));
            let seen = count.clone();
            let flooder = kernel.spawn(Spec::new("flooder"), move |_| Flooder(seen.clone()));
            let neighbour = kernel.spawn(Spec::new("neighbour"), Worker::factory(Bomb::None, &Log::default()));
            flooder.tell(More(way)).unwrap();
            for n in 1..=10 {
                assert_eq!(neighbour.ask(Add(1), LONG).await, Ok((0, n)), "{way:?}");
            }
            let turns = count.load(Relaxed);
            assert!(turns > 10, "{way:?}: the flood went on: {turns}");
            assert!(turns < 20_000, "{way:?}: the neighbour waited {turns} turns for ten answers");
        });
    }
}

#[test]
fn a_flooded_actor_takes_a_few_messages_at_a_time() {
    testing::run(1, |kernel| async move {
        let log = Log::default();
        let a = kernel.spawn(Spec::new("a").mailbox(1000), Worker::factory(Bomb::None, &log));
        let b = kernel.spawn(Spec::new("b"), Worker::factory(Bomb::None, &log));
        b.ask(Add(0), LONG).await.unwrap();
        for _ in 0..1000 {
            a.tell(Add(1)).unwrap();
        }
        b.ask(Add(2), LONG).await.unwrap();
        let before = log.lines().iter().take_while(|l| *l != "add 2").filter(|l| *l == "add 1").count();
        assert_eq!(before, 16, "b was served after that many of a's thousand messages");
    });
}

#[test]
fn a_flooded_actor_still_runs_its_timers() {
    testing::run(1, |kernel| async move {
        let count = Arc::new(AtomicU64::new(0));
        let seen = count.clone();
        let flooder = kernel.spawn(Spec::new("flooder"), move |_| Flooder(seen.clone()));
        flooder.tell(More(Way::Tell)).unwrap();
        flooder.tell(More(Way::After)).unwrap();
        for _ in 0..1000 {
            tokio::task::yield_now().await;
        }
        assert!(flooder.info().turns > flooder.info().mailbox_depth as u64);
        flooder.stop();
    });
}
