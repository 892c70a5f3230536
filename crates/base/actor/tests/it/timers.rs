//! after, every, watch, run, rng, clock.

use crate::crew::{Add, LONG, Log};
use actor::{
    Actor, ActorRef, AsyncContext, Ctx, Handler, Kernel, SpawnHandle, Spec, message, supervised, testing, watch,
};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

type Setup = Box<dyn FnMut(&mut Host, &mut Ctx<Host>) + Send>;

/// An actor that does in `started` what the test wants.
struct Host {
    setup: std::sync::Arc<std::sync::Mutex<Setup>>,
    handle: Option<SpawnHandle>,
}

impl Actor for Host {
    type Context = Ctx<Self>;
    fn started(&mut self, ctx: &mut Self::Context) {
        let setup = self.setup.clone();
        (setup.lock().unwrap())(self, ctx);
    }
}

supervised!(Host);

impl Handler<Add> for Host {
    type Result = actor::MessageResult<Add>;
    fn handle(&mut self, Add(n): Add, _: &mut Ctx<Self>) -> Self::Result {
        actor::MessageResult((0, n))
    }
}

/// Blocks the actor (not the thread) for the time.
struct Busy(Duration);
message!(Busy => ());

impl Handler<Busy> for Host {
    type Result = ();
    fn handle(&mut self, Busy(d): Busy, ctx: &mut Ctx<Self>) {
        ctx.wait(actor::WrapFuture::into_actor(tokio::time::sleep(d), self));
    }
}

/// Cancels what `handle` holds, and panics in the same turn.
struct CancelAndPanic;
message!(CancelAndPanic => ());

impl Handler<CancelAndPanic> for Host {
    type Result = ();
    fn handle(&mut self, _: CancelAndPanic, ctx: &mut Ctx<Self>) {
        ctx.cancel_future(self.handle.unwrap());
        panic!("after a cancellation");
    }
}

fn host(kernel: &Kernel, setup: impl FnMut(&mut Host, &mut Ctx<Host>) + Send + 'static) -> ActorRef<Host> {
    let setup: std::sync::Arc<std::sync::Mutex<Setup>> = std::sync::Arc::new(std::sync::Mutex::new(Box::new(setup)));
    kernel.spawn(Spec::new("host"), move |_| Host { setup: setup.clone(), handle: None })
}

fn stamp(log: &Log, start: i64, ctx: &Ctx<Host>) {
    log.add(format!("{}s", (ctx.clock().unix_nanos() - start) / 1_000_000_000));
}

#[test]
fn calls_after_the_delay_once() {
    testing::run(1, |kernel| async move {
        let (log, start) = (Log::default(), kernel.clock().unix_nanos());
        let inner = log.clone();
        host(&kernel, move |_, ctx| {
            let log = inner.clone();
            ctx.after(5 * SECOND, move |_, ctx| stamp(&log, start, ctx));
        });
        tokio::time::sleep(60 * SECOND).await;
        assert_eq!(log.lines(), ["5s"]);
    });
}

#[test]
fn ticks_and_does_not_replay_missed_ticks() {
    testing::run(1, |kernel| async move {
        let (log, start) = (Log::default(), kernel.clock().unix_nanos());
        let inner = log.clone();
        let host = host(&kernel, move |_, ctx| {
            let log = inner.clone();
            ctx.every(10 * SECOND, move |_, ctx| stamp(&log, start, ctx));
        });
        tokio::time::sleep(25 * SECOND).await;
        host.tell(Busy(40 * SECOND)).unwrap();
        tokio::time::sleep(65 * SECOND).await;
        assert_eq!(log.lines(), ["10s", "20s", "65s", "75s", "85s"]);
    });
}

#[test]
fn cancels_a_timer() {
    testing::run(1, |kernel| async move {
        let log = Log::default();
        let inner = log.clone();
        host(&kernel, move |_, ctx| {
            let log = inner.clone();
            let handle = ctx.every(SECOND, move |_, _| log.add("tick"));
            ctx.after(Duration::from_millis(2500), move |_, ctx| assert!(ctx.cancel_future(handle)));
        });
        tokio::time::sleep(60 * SECOND).await;
        assert_eq!(log.lines(), ["tick", "tick"]);
    });
}

#[test]
fn of_timers_that_are_due_at_once_the_first_can_cancel_another() {
    testing::run(1, |kernel| async move {
        let log = Log::default();
        let inner = log.clone();
        host(&kernel, move |host, ctx| {
            let (first, second, third) = (inner.clone(), inner.clone(), inner.clone());
            ctx.after(SECOND, move |host: &mut Host, ctx| {
                first.add("first");
                ctx.cancel_future(host.handle.unwrap());
            });
            host.handle = Some(ctx.after(SECOND, move |_, _| second.add("second")));
            ctx.after(SECOND, move |_, _| third.add("third"));
        });
        tokio::time::sleep(60 * SECOND).await;
        assert_eq!(log.lines(), ["first", "third"]);
    });
}

#[test]
fn a_cancellation_of_the_crashed_turn_does_not_hit_the_next_generation() {
    testing::run(1, |kernel| async move {
        let log = Log::default();
        let inner = log.clone();
        let host = host(&kernel, move |host, ctx| {
            let log = inner.clone();
            host.handle =
                Some(ctx.after(5 * SECOND, move |_, ctx| log.add(format!("generation {}", ctx.generation()))));
        });
        host.tell(CancelAndPanic).unwrap();
        tokio::time::sleep(60 * SECOND).await;
        assert_eq!(log.lines(), ["generation 1"]);
    });
}

#[test]
fn timers_of_a_crashed_generation_do_not_fire() {
    testing::run(1, |kernel| async move {
        let log = Log::default();
        let inner = log.clone();
        let host = host(&kernel, move |_, ctx| {
            if ctx.generation() == 0 {
                let log = inner.clone();
                ctx.every(5 * SECOND, move |_, _| log.add("tick"));
            }
        });
        tokio::time::sleep(6 * SECOND).await;
        host.kill();
        tokio::time::sleep(60 * SECOND).await;
        assert_eq!(log.lines(), ["tick"]);
    });
}

#[test]
fn watches_the_current_value_first_and_then_the_latest() {
    testing::run(1, |kernel| async move {
        let log = Log::default();
        let (tx, rx) = watch::channel(1);
        tx.send_replace(2);
        let inner = log.clone();
        let host = host(&kernel, move |_, ctx| {
            let log = inner.clone();
            ctx.watch(rx.clone(), move |_, n, ctx| log.add(format!("{}: {n}", ctx.generation())));
        });
        testing::settle().await;
        tx.send_replace(3);
        tx.send_replace(4);
        testing::settle().await;
        host.kill();
        testing::settle().await;
        drop(tx);
        assert_eq!(host.ask(Add(1), LONG).await, Ok((0, 1)), "the end of the sender harms nobody");
        assert_eq!(log.lines(), ["0: 2", "0: 4", "1: 4"]);
    });
}

#[test]
fn watches_the_last_value_of_a_sender_that_is_gone() {
    testing::run(1, |kernel| async move {
        let log = Log::default();
        let rx = watch::channel("last").1;
        let inner = log.clone();
        host(&kernel, move |_, ctx| {
            let log = inner.clone();
            ctx.watch(rx.clone(), move |_, v, _| log.add(v));
        });
        testing::settle().await;
        assert_eq!(log.lines(), ["last"]);
    });
}

#[test]
fn runs_an_effect_and_hands_its_output_over() {
    testing::run(1, |kernel| async move {
        let log = Log::default();
        let inner = log.clone();
        host(&kernel, move |_, ctx| {
            let log = inner.clone();
            let effect = async {
                tokio::time::sleep(SECOND).await;
                42
            };
            ctx.run(effect, move |_, n, _| log.add(format!("got {n}")));
        });
        tokio::time::sleep(2 * SECOND).await;
        assert_eq!(log.lines(), ["got 42"]);
    });
}

#[test]
fn an_effect_is_cancelled_by_the_restart() {
    testing::run(1, |kernel| async move {
        let log = Log::default();
        let inner = log.clone();
        let host = host(&kernel, move |_, ctx| {
            let (log, generation) = (inner.clone(), ctx.generation());
            ctx.run(tokio::time::sleep(5 * SECOND), move |_, (), _| log.add(format!("done {generation}")));
        });
        tokio::time::sleep(SECOND).await;
        host.kill();
        tokio::time::sleep(60 * SECOND).await;
        assert_eq!(log.lines(), ["done 1"]);
    });
}

#[test]
fn randomness_follows_from_seed_name_and_generation() {
    let draw = |seed, name: &'static str| {
        testing::run(seed, |kernel| async move {
            let log = Log::default();
            let inner = log.clone();
            let host = std::sync::Arc::new(std::sync::Mutex::new(Box::new(move |_: &mut Host, ctx: &mut Ctx<Host>| {
                let n = ctx.rng().u64(..);
                inner.add(n.to_string());
            }) as Setup));
            let host = kernel.spawn(Spec::new(name), move |_| Host { setup: host.clone(), handle: None });
            host.ask(Add(0), LONG).await.unwrap();
            host.kill();
            testing::settle().await;
            log.lines()
        })
    };
    let first = draw(1, "a");
    assert_eq!(first, draw(1, "a"));
    assert_ne!(first[0], first[1], "another generation");
    assert_ne!(first, draw(2, "a"), "another seed");
    assert_ne!(first, draw(1, "b"), "another name");
}

#[test]
fn wall_time_is_virtual() {
    let read = || {
        testing::run(1, |kernel| async move {
            let before = kernel.clock().unix_nanos();
            tokio::time::sleep(LONG).await;
            (before, kernel.clock().unix_nanos() - before)
        })
    };
    assert_eq!(read(), read());
    assert_eq!(read(), (1_767_225_600_000_000_000, 3_600_000_000_000));
}

fn again(_: &mut Host, ctx: &mut Ctx<Host>) {
    ctx.after(Duration::ZERO, again);
}

#[test]
fn an_actor_that_is_busy_for_ever_ends_the_run_with_a_word() {
    let run = || {
        testing::run(1, |kernel| async move {
            let _busy = host(&kernel, again);
            tokio::time::sleep(SECOND).await;
        })
    };
    let told = std::panic::catch_unwind(run).expect_err("it has no end");
    let told = told.downcast_ref::<String>().expect("words");
    assert!(told.starts_with("time stands still: somebody is busy for ever; the most turns have host ("), "{told}");
}
