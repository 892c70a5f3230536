//! How a source gives PodManager its complete set: one hand-over at a time, the latest set wins, and it is tried until it
//! works.

use std::time::Duration;

use actor::{Ctx, Managed};
use contract::config_sources::SourcesView;
use contract::pod_manager::{PodManagerHandle, SetPods};
use contract::view::Published;

/// PodManager only takes the set in; it answers at once or is in trouble.
const DEADLINE: Duration = Duration::from_secs(5);
/// Pause before the set is handed over again after a failure.
const RETRY: Duration = Duration::from_millis(100);

/// State of a source's hand-over.
#[derive(Debug, Default)]
pub(crate) struct HandOver {
    busy: bool,
    again: bool,
}

/// A source with a set to give.
pub(crate) trait Giver: Managed + Sized {
    fn hand_over_state(&mut self) -> &mut HandOver;
    fn pod_manager(&self) -> &PodManagerHandle;
    fn set(&self) -> SetPods;
    /// PodManager has taken a set.
    fn delivered(&mut self);
}

/// Hands the set of now over.
pub(crate) fn hand_over<A: Giver>(giver: &mut A, ctx: &mut Ctx<A>) {
    let state = giver.hand_over_state();
    if std::mem::replace(&mut state.busy, true) {
        state.again = true;
        return;
    }
    state.again = false;
    let (set, route, faults) = (giver.set(), giver.pod_manager().set_pods.clone(), ctx.faults());
    let work = async move {
        faults.hit("hand-over").await;
        route.ask(set, DEADLINE).await
    };
    ctx.run(work, |giver: &mut A, answer, ctx| {
        let state = giver.hand_over_state();
        state.busy = false;
        let again = state.again;
        match answer {
            Ok(()) => {
                giver.delivered();
                if again {
                    hand_over(giver, ctx);
                }
            }
            Err(error) => {
                tracing::warn!(%error, "PodManager did not take the pods; trying again");
                ctx.after(RETRY, |giver, ctx| hand_over(giver, ctx));
            }
        }
    });
}

/// Says on the view that a set was delivered.
pub(crate) fn mark_delivered(view: &Published<SourcesView>) {
    let old = view.get();
    if !old.delivered {
        view.publish(SourcesView { delivered: true, ..(*old).clone() });
    }
}
