//! Whether the runtime is there, and what it says of itself.

use std::time::Duration;

use actor::Ctx;
use contract::runtime::RuntimeHandler;
use cri_api::v1;
use model::runtime::EventTier;
use ports::runtime::{RuntimeCode, RuntimeError, RuntimeResult};
use tokio::time::timeout;

use super::RuntimeClient;

/// A runtime without a good Status for this long is down (interfaces 7.2).
const STATUS_LIMIT: Duration = Duration::from_secs(30);
/// Between attempts to find it again; as the connection's own back-off.
const RETRY_FIRST: Duration = Duration::from_millis(100);
const RETRY_MOST: Duration = Duration::from_secs(3);

/// State of the connection.
#[derive(Debug)]
pub(super) struct Link {
    up: bool,
    retry: Duration,
    polling: bool,
}

impl Default for Link {
    fn default() -> Self {
        Self { up: true, retry: RETRY_FIRST, polling: false }
    }
}

impl Link {
    pub(super) fn is_up(&self) -> bool {
        self.up
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
                self.info.handlers = handlers(status.runtime_handlers);
                self.info.supplemental_groups_policy = status.features.map(|f| f.supplemental_groups_policy);
                let conditions = status.status.unwrap_or_default().conditions;
                let runtime = condition(&conditions, "RuntimeReady");
                self.info.ready = runtime.is_ok();
                self.info.error = runtime.err().map(|why| format!("container runtime not ready: {why}"));
                self.info.network = condition(&conditions, "NetworkReady")
                    .map_err(|why| format!("container runtime network not ready: {why}"));
                self.found(ctx);
            }
            Err(e) => {
                self.info.ready = false;
                self.info.error = Some(e.message.clone());
                if e.is_unavailable() {
                    self.lost(&e, ctx);
                }
                if !self.link.up {
                    self.retry(ctx);
                }
            }
        }
        self.publish();
    }

    /// The connection broke: the view is kept and marked.
    pub(super) fn lost(&mut self, e: &RuntimeError, ctx: &mut Ctx<Self>) {
        if !self.link.up {
            return;
        }
        tracing::warn!(error = %e, "connection to the container runtime lost");
        self.link.up = false;
        self.link.retry = RETRY_FIRST;
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
        // Jittered by a fifth, so that many nodes on one machine do not march in step.
        let jitter = 0.8 + 0.4 * ctx.rng().f64();
        let wait = self.link.retry.mul_f64(jitter);
        self.link.retry = self.link.retry.mul_f64(1.6).min(RETRY_MOST);
        ctx.after(wait, |this, ctx| {
            if !this.link.up {
                this.poll(ctx);
            }
        });
    }

    fn found(&mut self, ctx: &mut Ctx<Self>) {
        if self.link.up {
            return;
        }
        tracing::info!("connection to the container runtime is back");
        self.link.up = true;
        self.wake_all(ctx);
        self.relist(ctx);
        self.subscribe(ctx);
    }
}

fn handlers(told: Vec<v1::RuntimeHandler>) -> Vec<RuntimeHandler> {
    let of = |h: v1::RuntimeHandler| {
        let features = h.features.unwrap_or_default();
        RuntimeHandler {
            name: h.name,
            recursive_read_only_mounts: features.recursive_read_only_mounts,
            user_namespaces: features.user_namespaces,
        }
    };
    let mut all: Vec<_> = told.into_iter().map(of).collect();
    all.sort();
    all
}

/// Whether the runtime reports that condition as true; else the condition as a kubelet prints it.
fn condition(all: &[v1::RuntimeCondition], kind: &str) -> Result<(), String> {
    match all.iter().find(|c| c.r#type == kind) {
        Some(c) if c.status => Ok(()),
        Some(c) => Err(format!("{kind}=false reason:{} message:{}", c.reason, c.message)),
        None => Err(format!("{kind} is not reported")),
    }
}
