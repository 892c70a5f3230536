//! Orders to end pods: given one after the other, noted before and counted after, and waited for until the pods are gone.
//!
//! What is noted outlives this actor (`PressureView::ordered`): should it die between an order and its answer, the next one finds by the
//! workers' board whether the order was taken, and tells and counts it then. So each victim is told and counted once.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use actor::{Ctx, watch};
use contract::eviction::PressureView;
use contract::pod_worker::{WorkerPhase, WorkerState};
use eviction::{LONGEST, SHORTEST, Signals, Threshold};
use futures::future::join_all;
use model::core::Pod;
use model::event::{EventObject, EventType, NodeEvent};
use model::stats::Summary;
use model::{Timestamp, pod};
use tokio::time::timeout;

use crate::actor::EvictionManager;
use crate::evict::{self, Answer, Order, TAKEN_LIMIT};
use crate::lane::Lane;
use crate::view;

/// How long a pass waits for pods that it ended to be gone, once they have stopped.
const CLEANED_LIMIT: Duration = Duration::from_secs(30);

/// What a pass acts on.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    /// Thresholds of the lane that pods go for, the most urgent first.
    pub(crate) due: Vec<Threshold>,
    /// All that was seen by then.
    pub(crate) seen: Signals,
    pub(crate) at: Timestamp,
}

/// Which of those that may be evicted go.
#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    /// The first that somebody can end.
    FirstOf,
    AllOf,
}

/// Orders of one pass.
struct Batch {
    lane: Lane,
    how: How,
    left: VecDeque<Order>,
    given: Vec<Order>,
    /// What a look had to do with it.
    due: Vec<Threshold>,
    looked_at: Timestamp,
}

impl EvictionManager {
    pub(crate) fn tell_short(&self, found: &Found) {
        let Some(threshold) = found.due.first() else { return };
        let message = format!("Attempting to reclaim {}", threshold.signal.resource().as_str());
        let (kind, object) = (EventType::Warning, EventObject::Node);
        self.crew.emit(NodeEvent { kind, reason: "EvictionThresholdMet".into(), message, object });
    }

    /// Pods that may have to go, without those that were told just now.
    pub(crate) fn active(&self) -> Vec<Arc<Pod>> {
        let mut pods = evict::active(&self.crew);
        let goes = |pod: &Pod| [&self.memory, &self.others].iter().any(|pass| pass.victims().contains(&pod::uid(pod)));
        pods.retain(|pod| !goes(pod));
        pods
    }

    /// One pod goes: the first that somebody can end.
    pub(crate) fn evict_one(&mut self, lane: Lane, summary: &Summary, found: &Found, ctx: &mut Ctx<Self>) {
        let Found { due, seen, at } = found;
        let orders = evict::for_threshold(&self.active(), summary, self.layout(), due, seen, self.config.max_pod_grace);
        let batch =
            Batch { lane, how: How::FirstOf, left: orders.into(), given: Vec::new(), due: due.clone(), looked_at: *at };
        self.give(batch, ctx);
    }

    /// Pods go that are over limits of their own.
    pub(crate) fn evict_all(&mut self, orders: Vec<Order>, ctx: &mut Ctx<Self>) {
        let (how, left, given) = (How::AllOf, orders.into(), Vec::new());
        let looked_at = Self::wall(ctx);
        self.give(Batch { lane: Lane::Others, how, left, given, due: Vec::new(), looked_at }, ctx);
    }

    fn give(&mut self, mut batch: Batch, ctx: &mut Ctx<Self>) {
        let Some(order) = batch.left.pop_front() else { return self.given(batch, ctx) };
        self.is_ordering = true;
        let noted = view::ordered(Self::wall(ctx), &order, &batch.due, batch.looked_at);
        self.view.publish(PressureView { ordered: Some(noted), ..(*self.view.get()).clone() });
        let (crew, effects) = (self.crew.clone(), ctx.effects());
        let work = async move {
            effects.hit("evict").await;
            (evict::give(&crew, &order).await, order)
        };
        ctx.run(work, move |act: &mut Self, (answer, order), ctx| match answer {
            Answer::Taken => {
                act.settle(true, ctx);
                act.follow(&mut batch, order);
                act.give(batch, ctx);
            }
            Answer::Nobody => {
                act.settle(false, ctx);
                act.give(batch, ctx);
            }
            // It may go all the same: no other one goes before that is known.
            Answer::Unknown => {
                ctx.after(TAKEN_LIMIT, move |act, ctx| {
                    batch.left.clear();
                    if act.settle_by_row(ctx) {
                        act.follow(&mut batch, order);
                    }
                    act.is_ordering = false;
                    act.await_gone(batch.lane, batch.given, ctx);
                });
            }
        });
    }

    fn follow(&mut self, batch: &mut Batch, order: Order) {
        self.pass(batch.lane).add_victim(pod::uid(&order.pod));
        batch.given.push(order);
        if batch.how == How::FirstOf {
            batch.left.clear();
        }
    }

    fn given(&mut self, batch: Batch, ctx: &mut Ctx<Self>) {
        self.is_ordering = false;
        if !batch.given.is_empty() {
            return self.await_gone(batch.lane, batch.given, ctx);
        }
        tracing::warn!("something runs short and no pod could be evicted");
        if batch.lane == Lane::Memory {
            self.deaf_until = Some(ctx.clock().now() + LONGEST);
        }
        self.done(batch.lane, LONGEST, ctx);
    }

    /// What became of the order that is noted: told and counted if it was taken.
    fn settle(&mut self, is_taken: bool, ctx: &mut Ctx<Self>) {
        let mut view = (*self.view.get()).clone();
        let Some(order) = view.ordered.take() else { return };
        if is_taken {
            evict::tell_evicted(&self.crew, &order);
            let age = Self::wall(ctx).nanos_since(order.looked_at);
            let age = Duration::from_nanos(u64::try_from(age).unwrap_or(0)).as_secs_f64();
            for signal in &order.due {
                metrics::eviction::STATS_AGE.with_label_values(&[signal.as_str()]).observe(age);
            }
            view.victim = Some(order.victim);
        }
        self.view.publish(view);
    }

    /// The same where nobody answered, as whoever was to answer or to be answered died. Answers whether it was taken.
    pub(crate) fn settle_by_row(&mut self, ctx: &mut Ctx<Self>) -> bool {
        let noted = self.view.get();
        let Some(order) = &noted.ordered else { return false };
        let is_taken = self.workers.get(&order.uid).is_some_and(|row| evict::knows(&row));
        self.settle(is_taken, ctx);
        is_taken
    }

    /// Waits for pods that were ended; then looks at once.
    pub(crate) fn await_gone(&mut self, lane: Lane, orders: Vec<Order>, ctx: &mut Ctx<Self>) {
        orders.iter().for_each(|order| self.pass(lane).add_victim(pod::uid(&order.pod)));
        let limit = orders.iter().map(Order::stop_limit).max().unwrap_or_default();
        let gone = self.gone(&orders);
        ctx.run(timeout(limit, gone), move |act: &mut Self, gone, ctx| match gone {
            Ok(()) => act.done(lane, SHORTEST, ctx),
            Err(_) => act.await_late(lane, orders, ctx),
        });
    }

    /// They take too long, which is told.
    fn await_late(&mut self, lane: Lane, mut late: Vec<Order>, ctx: &mut Ctx<Self>) {
        self.pass(lane).forget_victims();
        late.retain(|order| self.is_before(order, WorkerPhase::Finished));
        let running = late.iter().filter(|order| self.is_before(order, WorkerPhase::Terminated));
        running.for_each(|order| evict::tell_late(&self.crew, &order.pod));
        let gone = self.gone(&late);
        ctx.run(timeout(CLEANED_LIMIT, gone), move |act: &mut Self, _, ctx| {
            for order in late.iter().filter(|order| act.is_before(order, WorkerPhase::Finished)) {
                tracing::warn!(pod = %pod::describe(&order.pod), "an evicted pod is not gone yet: the next pass does not wait for it");
            }
            act.done(lane, SHORTEST, ctx);
        });
    }

    fn is_before(&self, order: &Order, phase: WorkerPhase) -> bool {
        self.workers.get(&pod::uid(&order.pod)).is_some_and(|row| row.phase < phase)
    }

    /// Until the workers of all these have nothing left to do.
    fn gone(&self, orders: &[Order]) -> impl Future<Output = ()> + use<> {
        let rows = orders.iter().map(|order| self.workers.subscribe(pod::uid(&order.pod)));
        let all = join_all(rows.map(finished).collect::<Vec<_>>());
        async move { drop(all.await) }
    }
}

async fn finished(mut row: watch::Receiver<Option<Arc<WorkerState>>>) {
    let is_gone = |row: &Option<Arc<WorkerState>>| row.as_ref().is_none_or(|row| row.phase >= WorkerPhase::Finished);
    // A board that is gone has nobody left who ends.
    let _gone = row.wait_for(is_gone).await;
}
