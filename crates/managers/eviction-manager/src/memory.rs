//! A pass over memory: looked at, measured, and one pod goes. It waits for no disk and no other pass.

use std::sync::Arc;
use std::time::Duration;

use actor::Ctx;
use contract::pod_worker::{WorkerPhase, WorkerState};
use contract::stats::StatsError;
use eviction::{LONGEST, SHORTEST, Signals, Threshold, next_look};
use model::stats::Summary;
use tokio::time::Instant;

use crate::actor::EvictionManager;
use crate::evict;
use crate::lane::Lane;
use crate::measure;
use crate::observe::{MemoryLook, look_at_memory};
use crate::orders::Found;

impl EvictionManager {
    pub(crate) fn begin_memory(&mut self, ctx: &mut Ctx<Self>) {
        let (deps, config, effects) = (self.deps.clone(), self.config.clone(), ctx.effects());
        let work = async move { look_at_memory(deps, config, &effects).await };
        ctx.run(work, |act: &mut Self, seen, ctx| match seen {
            Some(seen) => act.on_memory(seen, ctx),
            None => {
                tracing::warn!("the machine does not answer: nobody knows whether memory runs short");
                act.done(Lane::Memory, LONGEST, ctx);
            }
        });
    }

    /// The kernel said that memory runs short.
    pub(crate) fn look_soon(&mut self, ctx: &mut Ctx<Self>) {
        let now = ctx.clock().now();
        if self.deaf_until.is_some_and(|until| now < until) {
            return;
        }
        let ago = self.last.as_ref().map(|(at, _)| now.saturating_duration_since(*at));
        match ago.and_then(|ago| SHORTEST.checked_sub(ago)).filter(|left| !left.is_zero()) {
            Some(left) if !self.memory.is_running() => self.look_in(Lane::Memory, left, ctx),
            _ => self.look(Lane::Memory, ctx),
        }
    }

    fn on_memory(&mut self, seen: MemoryLook, ctx: &mut Ctx<Self>) {
        ctx.fault_point("looked");
        self.unseen[0].observe(seen.missed.clone()).tell();
        self.set_notifications(&seen, ctx);
        let now = ctx.clock().now();
        let pause = self.next_memory(&seen.signals, now);
        self.last = Some((now, seen.signals.clone()));
        let due = self.observe(Lane::Memory, seen.signals, ctx);
        if due.is_empty() {
            self.done(Lane::Memory, pause, ctx);
            return self.go_on_with_others(ctx);
        }
        if self.is_ordering {
            // Somebody is told to end at this moment, and is known to end a moment later.
            return self.done(Lane::Memory, SHORTEST, ctx);
        }
        let (crew, effects) = (self.crew.clone(), ctx.effects());
        let found = Found { due, seen: self.seen.clone(), at: Self::wall(ctx) };
        let work = async move {
            effects.hit("measure").await;
            measure::memory(&crew).await
        };
        ctx.run(work, move |act: &mut Self, summary, ctx| act.on_used(summary, found, pause, ctx));
    }

    /// When to look again if nothing happens.
    fn next_memory(&self, seen: &Signals, now: Instant) -> Duration {
        let before = self.last.as_ref().map(|(at, seen)| (now.saturating_duration_since(*at), seen));
        next_look(&self.thresholds, before.filter(|_| self.config.early_looks), seen, self.longest)
    }

    fn on_used(
        &mut self,
        summary: Result<Arc<Summary>, StatsError>,
        found: Found,
        pause: Duration,
        ctx: &mut Ctx<Self>,
    ) {
        let summary = match summary {
            Ok(summary) => summary,
            Err(e) => {
                tracing::warn!(error = %e, "what pods use is not known: none is evicted");
                return self.done(Lane::Memory, pause, ctx);
            }
        };
        if self.is_ordering || eviction::would_relieve(&found.due, &found.seen, self.comes_free(&summary)) {
            return self.done(Lane::Memory, SHORTEST, ctx);
        }
        self.tell_short(&found);
        self.evict_one(Lane::Memory, &summary, &found, ctx);
    }

    /// Memory of pods that end already, for something else that ran short.
    fn comes_free(&self, summary: &Summary) -> u64 {
        let stats = evict::by_uid(summary);
        let ends = |row: Arc<WorkerState>| row.phase < WorkerPhase::Terminated;
        let ending = self.others.victims().iter().filter(|uid| self.workers.get(uid).is_some_and(ends));
        let memory = ending.filter_map(|uid| stats.get(uid.as_str())?.memory?.working_set_bytes);
        memory.fold(0, u64::saturating_add)
    }

    /// Whether memory has its turn: as in a kubelet, nobody goes for anything else before.
    pub(crate) fn is_memorys_turn(&self) -> bool {
        let is_due = |t: &Threshold| Lane::of(t.signal) == Lane::Memory && self.ledger.is_due(t);
        !self.memory.victims().is_empty() || self.thresholds.iter().any(is_due)
    }
}
