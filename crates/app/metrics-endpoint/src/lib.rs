//! `/metrics`, `/metrics/probes` and `/metrics/slis`: what the node counted, and what can be read off it now.
//!
//! Owns the forms in which metrics leave the node (text, OpenMetrics, protobuf; interfaces 5) and the families that
//! are computed at a scrape. Never keeps a number between scrapes, asks nobody but by the functions of its [`Deps`], and knows nothing
//! of authentication. `/metrics/resource` and `/metrics/cadvisor` are another crate's (`stats-endpoint`).

#![forbid(unsafe_code)]

mod collect;
mod deps;
mod encode;
mod families;
mod routes;

use std::sync::Arc;

pub use collect::catalogue;
pub use deps::{
    BuildInfo, ClaimUsage, Deps, Elsewhere, FeatureGate, HealthChecks, LogUsage, Usage, UsageSource, VolumeRows,
    VolumeSource,
};

/// GET `/metrics`, `/metrics/probes`, `/metrics/slis` (DELETE there forgets).
pub fn router(deps: Deps) -> axum::Router {
    metrics::declare();
    routes::router(Arc::new(deps))
}

#[cfg(test)]
mod tests;
