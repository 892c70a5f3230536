//! One pass: look, decide, register or report.

use std::sync::Arc;
use std::time::Duration;

use actor::Ctx;
use metrics::node as startup;
use model::core::Node;
use model::node::Pressure;
use node_status::{Facts, Machine, aggregate, initial, ready_errors, updated};
use ports::api::{ApiResult, ApiServer};
use tokio::time::{Instant, timeout};

use crate::actor::{NodeManager, RETRY_MOST};
use crate::calls::{Call, Registered, Report};
use crate::health;
use crate::look::{Seen, look};

/// A look at the host that takes longer is given up; what was seen before stands.
const LOOK_LIMIT: Duration = Duration::from_secs(10);
/// How long images and addresses are good for.
const SLOW_PERIOD: Duration = Duration::from_secs(30);
/// How long a daemon that has just begun waits for the runtime's first word before it makes its Node.
const FIRST_WORD: Duration = Duration::from_secs(2);
/// How long it leaves `Ready=True` on a Node that has it while its own parts still come up.
const PATIENCE: Duration = Duration::from_secs(10);
/// Between looks while it waits.
const AGAIN: Duration = Duration::from_millis(200);

impl NodeManager {
    /// Begins a pass, or one after that which is under way.
    pub(crate) fn pass(&mut self, ctx: &mut Ctx<Self>) {
        if self.busy {
            self.again = true;
            return;
        }
        self.busy = true;
        let now = ctx.clock().now();
        let fresh = self.seen.as_ref().filter(|(_, at)| now.saturating_duration_since(*at) < SLOW_PERIOD);
        let slow = fresh.map(|(seen, _)| seen.slow.clone());
        let anew = slow.is_none();
        let (deps, config, effects) = (self.deps.clone(), self.config.clone(), ctx.effects());
        let work = async move {
            effects.hit("before-look").await;
            timeout(LOOK_LIMIT, look(deps, config, slow, &effects)).await.ok()
        };
        ctx.run(work, move |act: &mut Self, seen, ctx| {
            ctx.fault_point("after-look");
            act.looked(seen, anew, ctx);
        });
    }

    fn looked(&mut self, seen: Option<Seen>, anew: bool, ctx: &mut Ctx<Self>) {
        match seen {
            Some(seen) => {
                let at = self.seen.as_ref().filter(|_| !anew).map_or(ctx.clock().now(), |(_, at)| *at);
                self.seen = Some((seen, at));
            }
            None => tracing::warn!("the machine does not answer, the Node tells what was seen before"),
        }
        let Some((seen, _)) = self.seen.clone() else { return self.done(ctx) };
        if let Some(Err(why)) = &seen.slow.addresses {
            tracing::error!(error = %why, "addresses of the node are left as they are");
        }
        let facts = self.facts(&seen, ctx);
        self.was_ready |= facts.not_ready.is_empty();
        self.ready = Some(match aggregate(&facts.not_ready) {
            None => (true, String::new()),
            Some(why) => (false, why),
        });
        if facts.not_ready.is_empty()
            && let Some(made) = self.made_at.take()
        {
            startup::POST_REGISTRATION.set(ctx.clock().now().saturating_duration_since(made).as_secs_f64());
        }
        match self.deps.api.clone() {
            None => self.stand_alone(&facts, ctx),
            Some(api) => {
                if self.node.is_none() {
                    let local = initial(&self.config.plan, &facts, Self::wall(ctx));
                    if self.local.as_ref().is_none_or(|old| node_status::changed(old, &local)) {
                        self.local = Some(Arc::new(local));
                    }
                }
                self.publish();
                self.tell(api, facts, ctx);
            }
        }
    }

    fn facts(&mut self, seen: &Seen, ctx: &Ctx<Self>) -> Facts {
        let info = self.runtime_info.get();
        let now = ctx.clock().now();
        let mut not_ready = ready_errors(&self.runtime.health(&info, now, Self::wall(ctx)));
        if !ctx.kernel().is_healthy() {
            not_ready.push("the supervisor has given up on a group of actors".to_owned());
        }
        self.pressure = self.observe(seen, now);
        Facts {
            addresses: seen.slow.addresses.clone(),
            machine: Some(Machine {
                machine_id: seen.identity.machine_id.clone(),
                system_uuid: seen.identity.system_uuid.clone(),
                boot_id: seen.identity.boot_id.clone(),
                swap_bytes: self.config.swap_bytes,
                capacity: self.config.capacity.clone(),
                allocatable: self.config.allocatable.clone(),
            }),
            kernel_version: seen.identity.kernel_version.clone(),
            os_image: seen.identity.os_image.clone(),
            runtime: health::version(&info),
            images: seen.slow.images.clone(),
            runtime_handlers: health::version(&info).map(|_| info.handlers.iter().map(health::handler).collect()),
            supplemental_groups_policy: info.supplemental_groups_policy,
            pressures: self.pressure.clone(),
            not_ready,
        }
    }

    fn observe(&mut self, seen: &Seen, now: Instant) -> Vec<Pressure> {
        let since = self.since_start(now);
        self.pressures.observe(&self.config.thresholds, &seen.signals, since, self.config.pressure_transition)
    }

    fn since_start(&self, now: Instant) -> Duration {
        self.started.map_or(Duration::ZERO, |at| now.saturating_duration_since(at))
    }

    /// Without an API server the Node is ours alone.
    fn stand_alone(&mut self, facts: &Facts, ctx: &mut Ctx<Self>) {
        let now = Self::wall(ctx);
        match &self.local {
            None => self.local = Some(Arc::new(initial(&self.config.plan, facts, now))),
            Some(old) => {
                let (node, events) = updated(&self.config.plan, old, facts, now);
                if node_status::changed(old, &node) {
                    self.local = Some(Arc::new(node));
                    self.emit(events);
                }
            }
        }
        self.done(ctx);
    }

    fn tell(&mut self, api: Arc<dyn ApiServer>, facts: Facts, ctx: &mut Ctx<Self>) {
        if self.too_early(&facts, ctx) {
            self.pass_after(AGAIN, ctx);
            return self.done(ctx);
        }
        if self.pausing {
            return self.done(ctx);
        }
        let call = Call { api, config: self.config.clone(), facts, now: Self::wall(ctx) };
        let faults = ctx.faults();
        if self.registered {
            let due = self.reporting.is_due(self.since_start(ctx.clock().now()));
            let (known, before) = (self.node.clone(), self.sent.clone());
            let work = async move {
                faults.hit("before-report").await;
                let out = call.report(known, before, due).await;
                faults.hit("after-report").await;
                out
            };
            ctx.run(work, Self::reported);
        } else {
            self.first_try.get_or_insert(ctx.clock().now());
            let known = self.node.clone();
            let work = async move {
                faults.hit("before-register").await;
                let out = call.register(known).await;
                faults.hit("after-register").await;
                out
            };
            ctx.run(work, Self::register_answered);
        }
    }

    /// A daemon that has just begun knows too little to say that the node is not ready.
    fn too_early(&self, facts: &Facts, ctx: &Ctx<Self>) -> bool {
        let age = self.since_start(ctx.clock().now());
        if facts.not_ready.is_empty() || self.was_ready {
            return false;
        }
        if !self.registered {
            return age < FIRST_WORD && !health::has_spoken(&self.runtime_info.get());
        }
        age < PATIENCE && self.node.as_deref().is_none_or(is_ready)
    }

    fn register_answered(&mut self, out: ApiResult<Registered>, ctx: &mut Ctx<Self>) {
        ctx.fault_point("note-register");
        match out {
            Ok(Registered { node, created, events }) => {
                tracing::info!(node = %self.config.plan.name, created, "the node is registered");
                self.registered = true;
                self.error = None;
                if created {
                    self.note_startup(ctx.clock().now());
                    let now = self.since_start(ctx.clock().now());
                    self.reporting.reported(now, true, ctx.rng().f64());
                }
                self.emit(events);
                self.take(Arc::new(node));
                // One that was there has an old status.
                self.again |= !created;
            }
            Err(e) => {
                if self.error.is_none() {
                    tracing::warn!(error = %e, "the node cannot be registered, trying again");
                }
                self.error = Some(format!("registration: {e}"));
                let wait = self.register_retry;
                self.register_retry = (wait * 2).min(RETRY_MOST);
                self.pausing = true;
                self.pass_after(wait, ctx);
            }
        }
        self.done(ctx);
    }

    /// Parts of the start of a node that is new to the cluster.
    fn note_startup(&mut self, now: Instant) {
        let (Some(started), Some(tried)) = (self.started, self.first_try) else { return };
        startup::PRE_REGISTRATION.set(tried.saturating_duration_since(started).as_secs_f64());
        startup::REGISTRATION.set(now.saturating_duration_since(tried).as_secs_f64());
        self.made_at = Some(now);
    }

    fn reported(&mut self, out: ApiResult<Report>, ctx: &mut Ctx<Self>) {
        ctx.fault_point("note-report");
        match out {
            Ok(Report::Quiet) => self.error = None,
            Ok(Report::Sent { sent, changed, events }) => {
                self.error = None;
                let now = self.since_start(ctx.clock().now());
                self.reporting.reported(now, changed, ctx.rng().f64());
                self.emit(events);
                let node = Arc::new(sent.answered.clone());
                self.sent = Some(Arc::from(sent));
                self.take(node);
            }
            Err(e) => {
                if self.error.is_none() {
                    tracing::warn!(error = %e, "the node status cannot be reported");
                }
                self.error = Some(format!("node status: {e}"));
            }
        }
        self.done(ctx);
    }

    fn done(&mut self, ctx: &mut Ctx<Self>) {
        self.busy = false;
        self.publish();
        if std::mem::take(&mut self.again) {
            self.pass(ctx);
        }
    }
}

fn is_ready(node: &Node) -> bool {
    let conditions = node.status.as_ref().and_then(|s| s.conditions.as_deref()).unwrap_or_default();
    conditions.iter().any(|c| c.type_ == "Ready" && c.status == "True")
}
