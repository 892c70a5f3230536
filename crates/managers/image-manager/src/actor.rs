//! The actor: what needs memory, and when room is looked for.

use std::sync::Arc;
use std::time::Duration;

use actor::{Actor, Ctx, Deferred, Detached, Handler, MessageResult, supervised};
use contract::Crew;
use contract::image::{EnsureImage, EnsuredImage, ImageFailure, RemoveUnusedImages};
use contract::runtime::Observed;
use image_pull::Limiter;
use model::Timestamp;
use model::event::{EventObject, EventType, NodeEvent};

use crate::deps::{Config, Deps, Tools};
use crate::gc::{self, Collector, Passed};
use crate::pulls::{NoteImage, NoteOutcome, Pulls, StartPull, TryAcceptPull};
use crate::{ensure, recover};

/// How often room is looked for without an occasion.
const GC_PERIOD: Duration = Duration::from_secs(300);
/// How long after a pull: one look for many pulls.
const GC_AFTER_PULL: Duration = Duration::from_secs(30);

/// The actor.
#[derive(Debug)]
pub struct ImageManager {
    crew: Crew<contract::ImageManager>,
    deps: Arc<Deps>,
    config: Arc<Config>,
    pulls: Pulls,
    collector: Collector,
}

impl Actor for ImageManager {
    type Context = Ctx<Self>;

    fn started(&mut self, ctx: &mut Ctx<Self>) {
        if self.config.verification.is_some() {
            ctx.run(recover::interrupted_pulls(self.tools(ctx)), |_: &mut Self, (), _| {});
        }
        if !self.config.gc.is_off() {
            ctx.after(GC_AFTER_PULL, |act, ctx| act.collect(ctx));
            ctx.every(GC_PERIOD, |act, ctx| act.collect(ctx));
        }
    }
}
supervised!(ImageManager);

impl ImageManager {
    /// A fresh instance.
    #[must_use]
    pub fn new(crew: Crew<contract::ImageManager>, config: Arc<Config>, deps: Arc<Deps>) -> Self {
        // Pulls of former generations go on: this one shows them.
        deps.slots.show_on(crew.publisher());
        let pulls = Pulls::new(Limiter::new(config.registry_qps, config.registry_burst));
        let collector = Collector::new(deps.ages.clone());
        Self { crew, deps, pulls, collector, config }
    }

    /// For ages and delays: time that nobody sets.
    fn steady(&self, ctx: &Ctx<Self>) -> Timestamp {
        self.deps.ages.now(ctx.clock())
    }

    fn tools(&self, ctx: &Ctx<Self>) -> Tools {
        Tools {
            crew: self.crew.clone(),
            deps: self.deps.clone(),
            config: self.config.clone(),
            clock: ctx.clock().clone(),
            effects: ctx.effects(),
        }
    }

    /// Looks whether there is room. One pass at a time.
    fn collect(&mut self, ctx: &mut Ctx<Self>) {
        let (shown, now) = (self.crew.board::<Observed>().snapshot(), self.steady(ctx));
        let regular = !self.config.gc.is_off();
        if let Some(order) = self.collector.begin(regular, |uid| shown.contains_key(uid), now) {
            let pass = trace::whole("Images/GarbageCollect", gc::pass(self.tools(ctx), order));
            ctx.run(pass, |act: &mut Self, passed, ctx| act.collected(passed, ctx));
        }
    }

    fn collected(&mut self, passed: Passed, ctx: &mut Ctx<Self>) {
        let failed_before = self.collector.end(&passed, self.steady(ctx));
        if self.collector.is_wanted() {
            self.collect(ctx);
        }
        let Some(error) = passed.error else { return };
        tracing::warn!(error, "image garbage collection failed");
        // Once is no news: a node that has just started knows too little.
        if failed_before {
            let (kind, object) = (EventType::Warning, EventObject::Node);
            self.crew.emit(NodeEvent { kind, reason: "ImageGCFailed".into(), message: error, object });
        }
    }
}

impl Handler<EnsureImage> for ImageManager {
    type Result = Detached<Result<EnsuredImage, ImageFailure>>;

    // A request lives on the pool, so that neither the asker's nor this actor's end cancels its pull.
    fn handle(&mut self, ask: EnsureImage, ctx: &mut Ctx<Self>) -> Self::Result {
        Detached::new(ensure::run(self.tools(ctx), Arc::new(ctx.this()), ask))
    }
}

impl Handler<StartPull> for ImageManager {
    type Result = MessageResult<StartPull>;

    fn handle(&mut self, start: StartPull, ctx: &mut Ctx<Self>) -> Self::Result {
        MessageResult(self.pulls.start(start, self.steady(ctx)))
    }
}

impl Handler<TryAcceptPull> for ImageManager {
    type Result = bool;

    fn handle(&mut self, _: TryAcceptPull, ctx: &mut Ctx<Self>) -> bool {
        self.pulls.try_accept(self.steady(ctx))
    }
}

impl Handler<NoteOutcome> for ImageManager {
    type Result = ();

    fn handle(&mut self, outcome: NoteOutcome, ctx: &mut Ctx<Self>) {
        self.pulls.ended(outcome, self.steady(ctx));
    }
}

impl Handler<NoteImage> for ImageManager {
    type Result = ();

    fn handle(&mut self, NoteImage { pod, image_ref, pulled }: NoteImage, ctx: &mut Ctx<Self>) {
        self.collector.asked_for(pod, image_ref, self.steady(ctx));
        if pulled && !self.config.gc.is_off() && self.collector.due_soon() {
            ctx.after(GC_AFTER_PULL, |act, ctx| act.collect(ctx));
        }
    }
}

impl Handler<RemoveUnusedImages> for ImageManager {
    type Result = Deferred<Self, Result<u64, ImageFailure>>;

    fn handle(&mut self, _: RemoveUnusedImages, ctx: &mut Ctx<Self>) -> Self::Result {
        let freed = self.collector.want_all();
        self.collect(ctx);
        let failure = |message| ImageFailure { reason: "FreeDiskSpaceFailed".to_owned(), message };
        Deferred::new(async move {
            match freed.await {
                Ok(outcome) => outcome.map_err(failure),
                Err(_) => Err(failure("the pass over images was given up".to_owned())),
            }
        })
    }
}
