//! Whether the runtime is there, and what it says of itself.

use std::time::Duration;

use actor::{Ctx, Deferred, Handler};
use contract::runtime::{CallError, SetPodNetworks};
use cri_api::v1;
use model::runtime::EventTier;
use ports::runtime::{RuntimeCode, RuntimeError, RuntimeResult};
use tokio::time::timeout;

use super::RuntimeClient;
use crate::error::call_error;
use crate::link::note_status;

/// A runtime without a good Status for this long is down (interfaces 7.2).
const STATUS_LIMIT: Duration = Duration::from_secs(30);

impl Handler<SetPodNetworks> for RuntimeClient {
    type Result = Deferred<Self, Result<(), CallError>>;

    fn handle(&mut self, SetPodNetworks { cidrs }: SetPodNetworks, _: &mut Ctx<Self>) -> Self::Result {
        let runtime = self.deps.runtime.clone();
        let network_config = Some(v1::NetworkConfig { pod_cidr: cidrs });
        let request = v1::UpdateRuntimeConfigRequest { runtime_config: Some(v1::RuntimeConfig { network_config }) };
        Deferred::new(async move { runtime.update_runtime_config(request).await.map_err(call_error) })
    }
}

type Polled = (Option<v1::VersionResponse>, v1::StatusResponse);

impl RuntimeClient {
    /// Asks for Status, and for Version when the last answer is old.
    pub(super) fn poll(&mut self, ctx: &mut Ctx<Self>) {
        if self.link.polling {
            return;
        }
        self.link.polling = true;
        let version_due = self.version_at.is_none_or(|at| ctx.clock().now() - at >= self.deps.config.version);
        let runtime = self.deps.runtime.clone();
        let ask = async move {
            let version = if version_due { Some(runtime.version().await?) } else { None };
            Ok((version, runtime.status(false).await?))
        };
        let ask = async move {
            let late = |_| RuntimeError::new(RuntimeCode::DeadlineExceeded, "container runtime is down");
            timeout(STATUS_LIMIT, ask).await.map_err(late)?
        };
        ctx.run(ask, Self::polled);
    }

    fn polled(&mut self, polled: RuntimeResult<Polled>, ctx: &mut Ctx<Self>) {
        ctx.fault_point("after-poll");
        self.link.polling = false;
        match polled {
            Ok((version, status)) => {
                if let Some(version) = version {
                    self.version_at = Some(ctx.clock().now());
                    self.info.name = version.runtime_name;
                    self.info.version = version.runtime_version;
                }
                note_status(&mut self.info, status);
                self.found(ctx);
            }
            Err(e) => {
                self.info.ready = false;
                self.info.error = Some(e.message.clone());
                if e.is_unavailable() {
                    self.lost(&e, ctx);
                }
                if !self.link.is_up() {
                    self.retry(ctx);
                }
            }
        }
        self.publish();
    }

    /// The connection broke: the view is kept and marked.
    pub(super) fn lost(&mut self, e: &RuntimeError, ctx: &mut Ctx<Self>) {
        if !self.link.down() {
            return;
        }
        tracing::warn!(error = %e, "connection to the container runtime lost");
        self.version_at = None;
        self.info.stale = true;
        self.info.ready = false;
        self.info.error = Some(e.message.clone());
        self.info.tier = EventTier::Relist;
        self.unsubscribe(ctx);
        self.publish();
        self.retry(ctx);
    }

    fn retry(&mut self, ctx: &mut Ctx<Self>) {
        let wait = self.link.next_retry(ctx.rng().f64());
        ctx.after(wait, |this, ctx| {
            if !this.link.is_up() {
                this.poll(ctx);
            }
        });
    }

    fn found(&mut self, ctx: &mut Ctx<Self>) {
        if self.link.up() {
            tracing::info!("connection to the container runtime is back");
            self.wake_all(ctx);
            self.relist(ctx);
            self.subscribe(ctx);
        }
    }
}
