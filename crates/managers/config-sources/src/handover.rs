//! How a source gives PodManager its set: one hand-over at a time, the latest set wins, and it is tried until it works.

use std::time::Duration;

use actor::{AskError, Ctx, Managed};
use contract::pod_manager::{ChangesTaken, SetPods};
use contract::{Asks, Crew, Role};
use futures::FutureExt;
use futures::future::LocalBoxFuture;

/// Pause before the set is handed over again after a failure.
const RETRY: Duration = Duration::from_millis(100);

/// State of a source's hand-over.
#[derive(Debug)]
pub(crate) struct HandOver<R: Role> {
    pub(crate) crew: Crew<R>,
    busy: bool,
    again: bool,
}

impl<R: Role> HandOver<R> {
    pub(crate) fn new(crew: Crew<R>) -> Self {
        Self { crew, busy: false, again: false }
    }
}

/// A source with a set to hand over.
pub(crate) trait PodSource: Managed + Sized {
    type Role: Role + Asks<SetPods>;

    fn hand_over_state(&mut self) -> &mut HandOver<Self::Role>;
    fn set(&self) -> SetPods;
    /// Gives PodManager what it lacks: the complete set, or what changed in the one that it has.
    fn give(&mut self) -> LocalBoxFuture<'static, Result<ChangesTaken, AskError>> {
        let (crew, set) = (self.hand_over_state().crew.clone(), self.set());
        async move { crew.ask(set).await.map(|()| ChangesTaken::Taken) }.boxed_local()
    }
    /// PodManager has taken a set.
    fn delivered(&self) {}
    /// PodManager may have no set, or an older one than was given last.
    fn is_lost(&mut self) {}
}

/// Hands the set of now over.
pub(crate) fn hand_over<A: PodSource>(source: &mut A, ctx: &mut Ctx<A>) {
    let state = source.hand_over_state();
    if std::mem::replace(&mut state.busy, true) {
        state.again = true;
        return;
    }
    state.again = false;
    let (give, faults) = (source.give(), ctx.faults());
    let work = async move {
        faults.hit("hand-over").await;
        give.await
    };
    ctx.run(work, |source: &mut A, answer, ctx| {
        let state = source.hand_over_state();
        state.busy = false;
        let again = state.again;
        match answer {
            Ok(ChangesTaken::Taken) => {
                source.delivered();
                if again {
                    hand_over(source, ctx);
                }
            }
            Ok(ChangesTaken::SetNeeded) => {
                source.is_lost();
                hand_over(source, ctx);
            }
            Err(error) => {
                tracing::warn!(%error, "PodManager did not take the pods; trying again");
                source.is_lost();
                ctx.after(RETRY, |source, ctx| hand_over(source, ctx));
            }
        }
    });
}
