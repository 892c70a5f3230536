//! Families of metrics that the parts of the node count into: names, labels and buckets of a kubelet (interfaces 5.1),
//! and our own `bosun_*`.
//!
//! Owns the counters and three registries: [`MAIN`] (`/metrics`), [`PROBES`] (`/metrics/probes`) and [`SLIS`]
//! (`/metrics/slis`). Never speaks HTTP, never encodes, and holds nothing that can be read off the boards at a scrape:
//! that is computed by `metrics-endpoint`.
//!
//! Families are process-wide statics, unlike everything else here: a counter must not fall when the actor that counts is
//! rebuilt, must be reachable from adapters that know no actor, and two nodes in one process exist in tests only. They are
//! no state that anybody decides by.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

#[macro_use]
mod family;

pub mod actors;
pub mod auth;
pub mod certificates;
pub mod cgroups;
pub mod credentials;
pub mod elsewhere;
pub mod eviction;
pub mod http;
pub mod images;
pub mod lifecycle;
pub mod log;
pub mod memory_qos;
pub mod node;
pub mod pleg;
pub mod pods;
pub mod probes;
pub mod rest_client;
pub mod runtime;
pub mod slis;
mod stopwatch;
pub mod trace;
pub mod volumes;

pub use stopwatch::Stopwatch;

pub use family::{Declared, Families, Kind, MAIN, PROBES, SLIS, buckets, stability};
/// The library that the families are made with, for its plain types (`proto::MetricFamily`).
pub use prometheus;

/// Registers all families. Without it a family that nobody has counted into yet is missing, also one that must show 0.
pub fn declare() {
    actors::declare();
    auth::declare();
    certificates::declare();
    cgroups::declare();
    credentials::declare();
    eviction::declare();
    http::declare();
    images::declare();
    lifecycle::declare();
    log::declare();
    node::declare();
    pleg::declare();
    pods::declare();
    probes::declare();
    rest_client::declare();
    runtime::declare();
    slis::declare();
    trace::declare();
    volumes::declare();
}

/// All that this process has counted, also into families that it has itself in `prometheus`'s own registry: what a manager
/// in a process of its own tells its node.
#[must_use]
pub fn counted() -> Vec<prometheus::proto::MetricFamily> {
    [MAIN.gather(), PROBES.gather(), prometheus::gather()].concat()
}

#[cfg(test)]
mod tests;
