//! State of the connection, and what the runtime's Status says. Pure.

use std::time::Duration;

use contract::runtime::{RuntimeHandler, RuntimeInfo};
use cri_api::v1;

/// Between attempts to find it again; as the connection's own back-off.
const RETRY_FIRST: Duration = Duration::from_millis(100);
const RETRY_MOST: Duration = Duration::from_secs(3);

/// State of the connection.
#[derive(Debug)]
pub(crate) struct Link {
    up: bool,
    retry: Duration,
    /// A poll is under way.
    pub(crate) polling: bool,
}

impl Default for Link {
    fn default() -> Self {
        Self { up: true, retry: RETRY_FIRST, polling: false }
    }
}

impl Link {
    pub(crate) fn is_up(&self) -> bool {
        self.up
    }

    /// The connection broke; answers whether that is news.
    pub(crate) fn down(&mut self) -> bool {
        self.retry = if self.up { RETRY_FIRST } else { self.retry };
        std::mem::replace(&mut self.up, false)
    }

    /// The runtime answered; answers whether that is news.
    pub(crate) fn up(&mut self) -> bool {
        !std::mem::replace(&mut self.up, true)
    }

    /// How long until the next attempt; `random` is between 0 and 1. Jittered by a fifth, so that many nodes on one machine
    /// do not march in step.
    pub(crate) fn next_retry(&mut self, random: f64) -> Duration {
        let wait = self.retry.mul_f64(0.8 + 0.4 * random);
        self.retry = self.retry.mul_f64(1.6).min(RETRY_MOST);
        wait
    }
}

/// Puts what a Status says into `info`.
pub(crate) fn note_status(info: &mut RuntimeInfo, status: v1::StatusResponse) {
    info.handlers = handlers(status.runtime_handlers);
    info.supplemental_groups_policy = status.features.map(|f| f.supplemental_groups_policy);
    let conditions = status.status.unwrap_or_default().conditions;
    let runtime = condition(&conditions, "RuntimeReady");
    info.ready = runtime.is_ok();
    info.error = runtime.err().map(|why| format!("container runtime not ready: {why}"));
    info.network =
        condition(&conditions, "NetworkReady").map_err(|why| format!("container runtime network not ready: {why}"));
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
