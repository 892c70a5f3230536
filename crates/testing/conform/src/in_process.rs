//! A manager in this process.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use actor::{ActorPhase, ActorRef, Clock, Managed};
use contract::{Answers, Crew, Role};
use futures::FutureExt;
use futures::future::LocalBoxFuture;
use ports::journal::Journal;

use crate::outcome::Outcome;
use crate::outside::Outside;
use crate::subject::{Place, Served, Subject};
use crate::watch::until;

/// How long a successor may take.
const BACK: Duration = Duration::from_secs(20);

/// What a manager has beside its crew.
#[derive(Clone)]
pub struct Given {
    /// The node's journal.
    pub journal: Arc<dyn Journal>,
    /// What time it is.
    pub clock: Clock,
    /// The runtime's image service, and files.
    pub outside: Outside,
}

impl std::fmt::Debug for Given {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Given")
    }
}

/// A manager in this process. The closure is a life of its process: it is called for each and gives what makes an actor for each
/// generation, so that what outlives a crash lies in between.
pub struct InProcess<F> {
    name: &'static str,
    life: F,
}

impl<F> std::fmt::Debug for InProcess<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "InProcess({})", self.name)
    }
}

impl<F> InProcess<F> {
    /// A manager that reports call so.
    #[must_use]
    pub fn new(name: &'static str, life: F) -> Self {
        InProcess { name, life }
    }
}

impl<R, A, G, F> Subject<R> for InProcess<F>
where
    R: Role,
    A: Answers<R>,
    G: FnMut(Crew<R>) -> A + Send + 'static,
    F: Fn(&Given) -> G + Send + Sync,
{
    fn name(&self) -> String {
        self.name.to_owned()
    }

    fn is_real(&self) -> bool {
        false
    }

    fn at_once(&self) -> usize {
        4
    }

    fn begin<'a>(&'a self, place: &'a Place) -> LocalBoxFuture<'a, Outcome<Box<dyn Served>>> {
        async move {
            let clock = place.kernel.clock().clone();
            let given = Given { journal: place.journal.clone(), clock, outside: place.outside.clone() };
            let actor = fakes::start::<R, A>(&place.kernel, &place.wiring, (self.life)(&given));
            let _too_many = place.wiring.remind::<R>();
            let here: Box<dyn Served> = Box::new(Here { actor, crashes: Cell::new(0) });
            Ok(here)
        }
        .boxed_local()
    }
}

struct Here<A: Managed> {
    actor: ActorRef<A>,
    /// Those that a case wanted.
    crashes: Cell<u64>,
}

impl<A: Managed> Served for Here<A> {
    fn crash(&self) -> LocalBoxFuture<'_, Outcome> {
        async move {
            // One that is still being built is not killed by that.
            until("the manager runs", BACK, || self.actor.info().state == ActorPhase::Running).await?;
            let before = self.actor.info().generation;
            self.crashes.set(self.crashes.get() + 1);
            self.actor.kill();
            until("the manager is built anew after a crash", BACK, || self.actor.info().generation > before).await
        }
        .boxed_local()
    }

    fn end(&self) -> LocalBoxFuture<'_, ()> {
        async move {
            self.actor.stop();
            let _gone_or_stuck = tokio::time::timeout(BACK, self.actor.stopped()).await;
        }
        .boxed_local()
    }

    fn misdeeds(&self) -> Vec<String> {
        let own = self.actor.info().restarts.saturating_sub(self.crashes.get());
        if own == 0 { Vec::new() } else { vec![format!("it crashed {own} times by itself")] }
    }
}
