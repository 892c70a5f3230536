//! A pass over all but memory: looked at, measured, tidied up, and one pod goes. Before that all go that are over their own limits.

use std::time::Duration;

use actor::Ctx;
use contract::eviction::PressureView;
use contract::stats::StatsError;
use eviction::{LONGEST, SHORTEST};
use tokio::time::Instant;

use crate::actor::EvictionManager;
use crate::evict;
use crate::lane::Lane;
use crate::measure::{self, Measured};
use crate::observe::{OthersLook, look_at_others};
use crate::orders::Found;
use crate::reclaim;
use crate::view;

/// What pods use of their own limits is asked for at most so often: their volumes are measured once a minute.
const LOCAL_PERIOD: Duration = Duration::from_secs(10);

impl EvictionManager {
    pub(crate) fn begin_others(&mut self, ctx: &mut Ctx<Self>) {
        let (deps, config, effects) = (self.deps.clone(), self.config.clone(), ctx.effects());
        let (places, disks) = (self.places.clone(), self.disks.clone());
        let work = async move { look_at_others(deps, config, places, disks, &effects).await };
        ctx.run(work, |act: &mut Self, seen, ctx| act.on_others(seen, ctx));
    }

    fn on_others(&mut self, seen: OthersLook, ctx: &mut Ctx<Self>) {
        ctx.fault_point("looked");
        if self.places != seen.places {
            self.places = seen.places;
            self.thresholds = eviction::for_layout(&self.config.thresholds, self.layout());
        }
        self.unseen[1].observe(seen.missed).tell();
        let due = self.observe(Lane::Others, seen.signals, ctx);
        if due.is_empty() && !self.limits_are_due(ctx.clock().now()) {
            return self.done(Lane::Others, LONGEST, ctx);
        }
        let (crew, effects, clock) = (self.crew.clone(), ctx.effects(), ctx.clock().clone());
        let known = self.config.measures_volumes.then(|| self.unmeasured.clone());
        let found = Found { due, seen: self.seen.clone(), at: Self::wall(ctx) };
        let resource = found.due.first().map(|t| t.signal.resource());
        let work = async move {
            effects.hit("measure").await;
            measure::all(&crew, &clock, resource, known).await
        };
        ctx.run(work, move |act: &mut Self, measured, ctx| act.on_measured(measured, found, ctx));
    }

    /// Whether some pod's own limits are to be compared with what it uses.
    fn limits_are_due(&self, now: Instant) -> bool {
        let is_early = self.limits_at.is_some_and(|at| now.saturating_duration_since(at) < LOCAL_PERIOD);
        let is_limited = || evict::active(&self.crew).iter().any(|pod| eviction::has_local_limit(pod));
        self.config.local_storage && !is_early && is_limited()
    }

    fn on_measured(&mut self, measured: Result<Measured, StatsError>, found: Found, ctx: &mut Ctx<Self>) {
        let Measured { summary, unmeasured } = match measured {
            Ok(measured) => measured,
            Err(e) => {
                tracing::warn!(error = %e, "what pods use is not known: none is evicted");
                return self.done(Lane::Others, LONGEST, ctx);
            }
        };
        if let Some(unmeasured) = unmeasured {
            self.unmeasured = unmeasured;
        }
        if self.is_ordering {
            // Somebody is told to end for memory: a moment later it is known who.
            return self.done(Lane::Others, SHORTEST, ctx);
        }
        if self.config.local_storage && self.places.is_some() {
            self.limits_at = Some(ctx.clock().now());
            let orders = evict::over_limits(&self.active(), &summary, self.layout());
            if !orders.is_empty() {
                return self.evict_all(orders, ctx);
            }
        }
        let Some(threshold) = found.due.first().copied() else { return self.done(Lane::Others, LONGEST, ctx) };
        if self.is_memorys_turn() {
            return self.put_off(ctx);
        }
        self.tell_short(&found);
        let steps = eviction::reclaim(threshold.signal, self.layout());
        if steps.is_empty() {
            return self.evict_one(Lane::Others, &summary, &found, ctx);
        }
        let (crew, effects) = (self.crew.clone(), ctx.effects());
        let (deps, config) = (self.deps.clone(), self.config.clone());
        let (places, disks) = (self.places.clone(), self.disks.clone());
        let work = async move {
            let freed = reclaim::run(&crew, steps, &effects).await;
            (freed, look_at_others(deps, config, places, disks, &effects).await)
        };
        ctx.run(work, move |act: &mut Self, (freed, after), ctx| {
            let enough = act.is_enough(&after);
            let reclaim = Some(view::reclaimed(Self::wall(ctx), threshold.signal, freed, enough));
            act.view.publish(PressureView { reclaim, ..(*act.view.get()).clone() });
            if enough {
                let resource = threshold.signal.resource().as_str();
                tracing::info!(resource, "enough was tidied up: no pod has to go");
                return act.done(Lane::Others, LONGEST, ctx);
            }
            if act.is_ordering || act.is_memorys_turn() {
                return act.put_off(ctx);
            }
            act.evict_one(Lane::Others, &summary, &found, ctx);
        });
    }

    /// Whether nothing is short any more after something was tidied up: memory counts as it was seen last.
    fn is_enough(&self, after: &OthersLook) -> bool {
        let memory = self.seen.iter().filter(|(signal, _)| Lane::of(**signal) == Lane::Memory);
        let mut seen = after.signals.clone();
        seen.extend(memory.map(|(signal, seen)| (*signal, *seen)));
        // What cannot be seen may be short as ever.
        let is_seen = |t: &eviction::Threshold| !self.seen.contains_key(&t.signal) || seen.contains_key(&t.signal);
        self.thresholds.iter().all(is_seen) && eviction::is_relieved(&self.thresholds, &seen)
    }

    /// Memory has its turn first; this pass is taken up again when it had it.
    fn put_off(&mut self, ctx: &mut Ctx<Self>) {
        self.is_put_off = true;
        self.done(Lane::Others, LONGEST, ctx);
    }

    /// Memory is not short, or not any more.
    pub(crate) fn go_on_with_others(&mut self, ctx: &mut Ctx<Self>) {
        if std::mem::take(&mut self.is_put_off) {
            self.look(Lane::Others, ctx);
        }
    }
}
