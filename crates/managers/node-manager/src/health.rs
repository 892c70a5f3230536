//! From the runtime's view to what speaks for and against `Ready`.

use std::time::Duration;

use contract::runtime::{RuntimeHandler, RuntimeInfo};
use model::Timestamp;
use model::core::{NodeRuntimeHandler, NodeRuntimeHandlerFeatures};
use node_status::{RuntimeHealth, RuntimeVersion};
use tokio::time::Instant;

/// What of the runtime's view matters to the Node: everything but when it was listed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Digest(RuntimeInfo);

impl Digest {
    pub(crate) fn of(info: &RuntimeInfo) -> Self {
        let tier = RuntimeInfo::unknown().tier;
        Self(RuntimeInfo { last_relist: Timestamp::ZERO, divergences: 0, tier, ..info.clone() })
    }
}

/// Follows the runtime.
#[derive(Clone, Debug, Default)]
pub(crate) struct Runtime {
    digest: Option<Digest>,
    away_since: Option<Instant>,
}

impl Runtime {
    /// Notes the runtime's view. Answers whether something changed that matters.
    pub(crate) fn update(&mut self, info: &RuntimeInfo, now: Instant) -> bool {
        let digest = Some(Digest::of(info));
        if self.digest == digest {
            return false;
        }
        self.digest = digest;
        self.away_since = if info.stale { self.away_since.or(Some(now)) } else { None };
        true
    }

    /// Out of reach.
    pub(crate) fn is_away(&self) -> bool {
        self.away_since.is_some()
    }

    pub(crate) fn health(&self, info: &RuntimeInfo, now: Instant, wall: Timestamp) -> RuntimeHealth {
        let spoke = !info.name.is_empty();
        let listed_before = || {
            let nanos = wall.nanos_since(info.last_relist);
            Duration::from_nanos(u64::try_from(nanos).unwrap_or(0))
        };
        RuntimeHealth {
            spoke,
            away: self.away_since.map(|at| now.saturating_duration_since(at)),
            not_ready: info.error.clone().filter(|_| spoke && !info.ready && !info.stale),
            network: info.network.clone().err(),
            listed: info.listed.then(listed_before),
        }
    }
}

/// The runtime has said something, good or bad.
pub(crate) fn has_spoken(info: &RuntimeInfo) -> bool {
    !info.name.is_empty() || info.error.is_some()
}

/// Name and version; `None` before the first handshake.
pub(crate) fn version(info: &RuntimeInfo) -> Option<RuntimeVersion> {
    let known = !info.name.is_empty();
    known.then(|| RuntimeVersion { name: info.name.clone(), version: info.version.clone() })
}

/// As the Node lists it.
pub(crate) fn handler(h: &RuntimeHandler) -> NodeRuntimeHandler {
    NodeRuntimeHandler {
        name: (!h.name.is_empty()).then(|| h.name.clone()),
        features: Some(NodeRuntimeHandlerFeatures {
            recursive_read_only_mounts: Some(h.recursive_read_only_mounts),
            user_namespaces: Some(h.user_namespaces),
        }),
    }
}
