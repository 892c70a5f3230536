//! One pass over the node's status: observe, decide, register or report.

use std::sync::Arc;
use std::time::Duration;

use actor::Ctx;
use metrics::node as startup;
use model::core::Node;
use model::node::Pressure;
use node_status::{Facts, Machine, aggregate, initial, ready_errors, updated};
use ports::api::{ApiResult, ApiServer};
use tokio::time::{Instant, timeout};

use crate::actor::NodeManager;
use crate::health;
use crate::observe::{Observation, observe};
use crate::requests::{NodeRequests, Registered, Report};

/// An observation of the host that takes longer is given up; the one before stands.
const OBSERVE_LIMIT: Duration = Duration::from_secs(10);
/// How long images and addresses are good for.
const SLOW_PERIOD: Duration = Duration::from_secs(30);
/// How long a daemon that has just begun waits for the runtime's first word before it makes its Node.
const FIRST_WORD: Duration = Duration::from_secs(2);
/// How long it leaves `Ready=True` on a Node that has it while its own parts still come up.
const PATIENCE: Duration = Duration::from_secs(10);
/// Why the node is not ready while the machine goes down.
const SHUTTING_DOWN: &str = "node is shutting down";
/// Between passes while it waits.
const AGAIN: Duration = Duration::from_millis(200);

impl NodeManager {
    /// Begins a pass; when one is under way, another follows it.
    pub(crate) fn sync(&mut self, ctx: &mut Ctx<Self>) {
        if self.passes.running {
            self.passes.again = true;
            return;
        }
        self.passes.running = true;
        let now = ctx.clock().now();
        let fresh = self.observed.host.as_ref().filter(|(_, at)| now.saturating_duration_since(*at) < SLOW_PERIOD);
        let slow = fresh.map(|(host, _)| host.slow.clone());
        let slow_read = slow.is_none();
        let (deps, config, effects) = (self.deps.clone(), self.config.clone(), ctx.effects());
        let work = async move {
            effects.hit("before-observe").await;
            timeout(OBSERVE_LIMIT, observe(deps, config, slow, &effects)).await.ok()
        };
        ctx.run(work, move |act: &mut Self, host, ctx| {
            ctx.fault_point("after-observe");
            act.on_observed(host, slow_read, ctx);
        });
    }

    fn on_observed(&mut self, host: Option<Observation>, slow_read: bool, ctx: &mut Ctx<Self>) {
        match host {
            Some(host) => {
                let before = self.observed.host.as_ref().filter(|_| !slow_read);
                let slow_at = before.map_or(ctx.clock().now(), |(_, at)| *at);
                self.observed.host = Some((host, slow_at));
            }
            None => tracing::warn!("the machine does not answer, the Node tells what was observed before"),
        }
        let Some((host, _)) = self.observed.host.clone() else { return self.done(ctx) };
        if let Some(Err(why)) = &host.slow.addresses {
            tracing::error!(error = %why, "addresses of the node are left as they are");
        }
        self.tell_networks(ctx);
        let facts = self.facts(&host, ctx);
        self.conditions.was_ready |= facts.not_ready.is_empty();
        self.conditions.ready = Some(match aggregate(&facts.not_ready) {
            None => (true, String::new()),
            Some(why) => (false, why),
        });
        if facts.not_ready.is_empty()
            && let Some(created) = self.registration.created_at.take()
        {
            startup::POST_REGISTRATION.set(ctx.clock().now().saturating_duration_since(created).as_secs_f64());
        }
        match self.deps.api.clone() {
            None => self.update_standalone(&facts, ctx),
            Some(api) => {
                if self.node.api.is_none() {
                    let local = initial(&self.config.plan, &facts, Self::wall(ctx));
                    if self.node.local.as_ref().is_none_or(|old| node_status::changed(old, &local)) {
                        self.node.local = Some(Arc::new(local));
                    }
                }
                self.publish();
                self.register_or_report(api, facts, ctx);
            }
        }
    }

    fn facts(&mut self, host: &Observation, ctx: &Ctx<Self>) -> Facts {
        let info = self.runtime_info.get();
        let now = ctx.clock().now();
        let mut not_ready = ready_errors(&self.observed.runtime.health(&info, now, Self::wall(ctx)));
        if self.shutdown.get().shutting_down {
            not_ready.push(SHUTTING_DOWN.to_owned());
        }
        not_ready.extend(ctx.kernel().health().err().map(|why| why.to_string()));
        self.conditions.pressure = self.pressure.get().conditions.iter().filter_map(|p| Pressure::parse(p)).collect();
        Facts {
            addresses: host.slow.addresses.clone(),
            machine: Some(Machine {
                machine_id: host.identity.machine_id.clone(),
                system_uuid: host.identity.system_uuid.clone(),
                boot_id: host.identity.boot_id.clone(),
                swap_bytes: self.config.swap_bytes,
                capacity: self.config.capacity.clone(),
                allocatable: self.config.allocatable.clone(),
            }),
            kernel_version: host.identity.kernel_version.clone(),
            os_image: host.identity.os_image.clone(),
            runtime: health::version(&info),
            images: host.slow.images.clone(),
            runtime_handlers: health::version(&info).map(|_| info.handlers.iter().map(health::handler).collect()),
            supplemental_groups_policy: info.supplemental_groups_policy,
            volumes_in_use: self.volumes.get().names.as_ref().map(|names| names.iter().cloned().collect()),
            pressures: self.conditions.pressure.clone(),
            not_ready,
        }
    }

    fn since_start(&self, now: Instant) -> Duration {
        self.started.map_or(Duration::ZERO, |at| now.saturating_duration_since(at))
    }

    /// Without an API server the Node is ours alone.
    fn update_standalone(&mut self, facts: &Facts, ctx: &mut Ctx<Self>) {
        let now = Self::wall(ctx);
        match &self.node.local {
            None => self.node.local = Some(Arc::new(initial(&self.config.plan, facts, now))),
            Some(old) => {
                let (node, events) = updated(&self.config.plan, old, facts, now);
                if node_status::changed(old, &node) {
                    self.node.local = Some(Arc::new(node));
                    self.emit(events);
                }
            }
        }
        self.done(ctx);
    }

    fn register_or_report(&mut self, api: Arc<dyn ApiServer>, facts: Facts, ctx: &mut Ctx<Self>) {
        if self.too_early(&facts, ctx) {
            self.sync_after(AGAIN, ctx);
            return self.done(ctx);
        }
        if self.registration.backing_off {
            return self.done(ctx);
        }
        let requests = NodeRequests { api, config: self.config.clone(), facts, now: Self::wall(ctx) };
        let faults = ctx.faults();
        if self.registration.done {
            let due = self.reports.schedule.is_due(self.since_start(ctx.clock().now()));
            let (known, before) = (self.node.api.clone(), self.reports.last.clone());
            let work = async move {
                faults.hit("before-report").await;
                let out = requests.report(known, before, due).await;
                faults.hit("after-report").await;
                out
            };
            ctx.run(work, Self::reported);
        } else {
            self.registration.first_try.get_or_insert(ctx.clock().now());
            let known = self.node.api.clone();
            let work = async move {
                faults.hit("before-register").await;
                let out = requests.register(known).await;
                faults.hit("after-register").await;
                out
            };
            ctx.run(work, Self::register_answered);
        }
    }

    /// A daemon that has just begun knows too little to say that the node is not ready.
    fn too_early(&self, facts: &Facts, ctx: &Ctx<Self>) -> bool {
        let age = self.since_start(ctx.clock().now());
        if facts.not_ready.is_empty() || self.conditions.was_ready {
            return false;
        }
        if !self.registration.done {
            return age < FIRST_WORD && !health::has_spoken(&self.runtime_info.get());
        }
        age < PATIENCE && self.node.api.as_deref().is_none_or(is_ready)
    }

    fn register_answered(&mut self, out: ApiResult<Registered>, ctx: &mut Ctx<Self>) {
        ctx.fault_point("note-register");
        match out {
            Ok(Registered { node, created, events }) => {
                tracing::info!(node = %self.config.plan.name, created, "the node is registered");
                self.registration.done = true;
                self.reports.error = None;
                if created {
                    self.note_startup(ctx.clock().now());
                    let now = self.since_start(ctx.clock().now());
                    self.reports.schedule.reported(now, true, ctx.rng().f64());
                }
                self.emit(events);
                self.note_node(Arc::new(node));
                // One that was there has an old status.
                self.passes.again |= !created;
            }
            Err(e) => {
                if self.reports.error.is_none() {
                    tracing::warn!(error = %e, "the node cannot be registered, trying again");
                }
                self.reports.error = Some(format!("registration: {e}"));
                let wait = self.registration.failed();
                self.sync_after(wait, ctx);
            }
        }
        self.done(ctx);
    }

    /// Parts of the start of a node that is new to the cluster.
    fn note_startup(&mut self, now: Instant) {
        let (Some(started), Some(tried)) = (self.started, self.registration.first_try) else { return };
        startup::PRE_REGISTRATION.set(tried.saturating_duration_since(started).as_secs_f64());
        startup::REGISTRATION.set(now.saturating_duration_since(tried).as_secs_f64());
        self.registration.created_at = Some(now);
    }

    fn reported(&mut self, out: ApiResult<Report>, ctx: &mut Ctx<Self>) {
        ctx.fault_point("note-report");
        match out {
            Ok(Report::NotNeeded) => self.reports.error = None,
            Ok(Report::Made { report, changed, events }) => {
                self.reports.error = None;
                let now = self.since_start(ctx.clock().now());
                self.reports.schedule.reported(now, changed, ctx.rng().f64());
                self.emit(events);
                let node = Arc::new(report.answered.clone());
                self.reports.last = Some(Arc::from(report));
                self.note_node(node);
            }
            Err(e) => {
                if self.reports.error.is_none() {
                    tracing::warn!(error = %e, "the node status cannot be reported");
                }
                self.reports.error = Some(format!("node status: {e}"));
            }
        }
        self.done(ctx);
    }

    fn done(&mut self, ctx: &mut Ctx<Self>) {
        self.passes.running = false;
        self.publish();
        if std::mem::take(&mut self.passes.again) {
            self.sync(ctx);
        }
    }
}

fn is_ready(node: &Node) -> bool {
    let conditions = node.status.as_ref().and_then(|s| s.conditions.as_deref()).unwrap_or_default();
    conditions.iter().any(|c| c.type_ == "Ready" && c.status == "True")
}
