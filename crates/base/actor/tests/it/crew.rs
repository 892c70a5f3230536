//! The actors that the tests torment.

use actor::{
    Actor, ActorContext, AsyncContext, Ctx, Deferred, Detached, Handler, MessageResult, Running, message, supervised,
};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Long enough for every answer that comes at all.
pub(crate) const LONG: Duration = Duration::from_secs(3600);

/// What happened, in order; shared with the test.
#[derive(Clone, Default, Debug)]
pub(crate) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub(crate) fn add(&self, line: impl Into<String>) {
        self.0.lock().unwrap().push(line.into());
    }
    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
    pub(crate) fn count(&self, what: &str) -> usize {
        self.lines().iter().filter(|l| *l == what).count()
    }
}

/// When, outside of its handlers, the actor panics.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Bomb {
    #[default]
    None,
    Constructor(u64),
    Started(u64),
    Drop(u64),
    Stopping,
    Stopped,
}

pub(crate) struct Worker {
    pub(crate) generation: u64,
    pub(crate) sum: u64,
    bomb: Bomb,
    log: Log,
}

impl Worker {
    pub(crate) fn new(generation: u64, bomb: Bomb, log: Log) -> Self {
        log.add(format!("build {generation}"));
        if let Bomb::Constructor(until) = bomb {
            assert!(generation >= until, "constructor bomb");
        }
        Worker { generation, sum: 0, bomb, log }
    }

    pub(crate) fn factory(bomb: Bomb, log: &Log) -> impl FnMut(u64) -> Worker + Send + 'static {
        let log = log.clone();
        move |generation| Worker::new(generation, bomb, log.clone())
    }
}

impl Actor for Worker {
    type Context = Ctx<Self>;

    fn started(&mut self, _: &mut Self::Context) {
        self.log.add(format!("started {}", self.generation));
        if let Bomb::Started(until) = self.bomb {
            assert!(self.generation >= until, "started bomb");
        }
    }

    fn stopping(&mut self, _: &mut Self::Context) -> Running {
        self.log.add("stopping");
        assert!(self.bomb != Bomb::Stopping, "stopping bomb");
        Running::Stop
    }

    fn stopped(&mut self, _: &mut Self::Context) {
        self.log.add("stopped");
        assert!(self.bomb != Bomb::Stopped, "stopped bomb");
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.log.add(format!("drop {}", self.generation));
        assert!(!matches!(self.bomb, Bomb::Drop(g) if g == self.generation), "drop bomb");
    }
}

supervised!(Worker);

/// Adds to the sum, answers (generation, sum).
#[derive(Clone)]
pub(crate) struct Add(pub(crate) u64);
message!(Add => (u64, u64));

impl Handler<Add> for Worker {
    type Result = MessageResult<Add>;
    fn handle(&mut self, Add(n): Add, _: &mut Ctx<Self>) -> Self::Result {
        self.log.add(format!("add {n}"));
        self.sum += n;
        MessageResult((self.generation, self.sum))
    }
}

/// Where a panic comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Site {
    Handler,
    Deferred,
    DeferredLater,
    DeferredThen,
    Run,
    RunDone,
    After,
    Every,
    Watch,
    Wait,
    ActixLater,
    Notify,
    FutureDrop,
}

pub(crate) struct Explode(pub(crate) Site);
message!(Explode => ());

impl Handler<Explode> for Worker {
    type Result = Deferred<Self, ()>;
    fn handle(&mut self, Explode(site): Explode, ctx: &mut Ctx<Self>) -> Self::Result {
        let tick = Duration::from_millis(1);
        match site {
            Site::Handler => panic!("handler"),
            Site::Deferred => return Deferred::new(async { panic!("deferred") }),
            Site::DeferredLater => {
                return Deferred::new(async move {
                    tokio::time::sleep(tick).await;
                    panic!("deferred later")
                });
            }
            Site::DeferredThen => return Deferred::then(async {}, |_, (), _| panic!("deferred then")),
            Site::Run => drop(ctx.run(async { panic!("run") }, |_, (), _| {})),
            Site::RunDone => drop(ctx.run(async {}, |_, (), _| panic!("run done"))),
            Site::After => drop(ctx.after(tick, |_, _| panic!("after"))),
            Site::Every => drop(ctx.every(tick, |_, _| panic!("every"))),
            Site::Watch => ctx.watch(actor::watch::channel(1).1, |_, _, _| panic!("watch")),
            Site::Wait => ctx.wait(actor::WrapFuture::into_actor(async { panic!("wait") }, self)),
            Site::ActixLater => drop(ctx.run_later(tick, |_, _| panic!("actix later"))),
            Site::Notify => ctx.notify(Explode(Site::Handler)),
            Site::FutureDrop => {
                struct Nasty;
                impl Drop for Nasty {
                    fn drop(&mut self) {
                        panic!("drop of a future");
                    }
                }
                let nasty = Nasty;
                ctx.run(
                    async move {
                        let _nasty = nasty;
                        std::future::pending::<()>().await
                    },
                    |_, (), _| {},
                );
                ctx.after(tick, |_, _| panic!("with a nasty future"));
            }
        }
        Deferred::ready(())
    }
}

pub(crate) struct ExplodeDetached;
message!(ExplodeDetached => u64);

impl Handler<ExplodeDetached> for Worker {
    type Result = Detached<u64>;
    fn handle(&mut self, _: ExplodeDetached, _: &mut Ctx<Self>) -> Self::Result {
        Detached::new(async { panic!("detached") })
    }
}

/// Answers after the time, from the pool.
pub(crate) struct SlowDetached(pub(crate) Duration);
message!(SlowDetached => u64);

impl Handler<SlowDetached> for Worker {
    type Result = Detached<u64>;
    fn handle(&mut self, SlowDetached(d): SlowDetached, _: &mut Ctx<Self>) -> Self::Result {
        let generation = self.generation;
        Detached::new(async move {
            tokio::time::sleep(d).await;
            generation
        })
    }
}

/// Answers after the time, from inside of the actor.
pub(crate) struct Slow(pub(crate) Duration);
message!(Slow => u64);

impl Handler<Slow> for Worker {
    type Result = Deferred<Self, u64>;
    fn handle(&mut self, Slow(d): Slow, _: &mut Ctx<Self>) -> Self::Result {
        self.log.add("slow");
        Deferred::then(tokio::time::sleep(d), |worker: &mut Self, (), _| worker.generation)
    }
}

/// Shuts the mailbox for the time.
pub(crate) struct Freeze(pub(crate) Duration);
message!(Freeze => ());

impl Handler<Freeze> for Worker {
    type Result = ();
    fn handle(&mut self, Freeze(d): Freeze, ctx: &mut Ctx<Self>) {
        self.log.add("freeze");
        ctx.wait(actor::WrapFuture::into_actor(tokio::time::sleep(d), self));
    }
}

/// Stops from inside.
pub(crate) struct Quit;
message!(Quit => ());

impl Handler<Quit> for Worker {
    type Result = ();
    fn handle(&mut self, _: Quit, ctx: &mut Ctx<Self>) {
        ctx.stop();
    }
}
