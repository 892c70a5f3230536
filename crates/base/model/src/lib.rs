//! Plain data that every layer speaks: ids, pods, quantities, observed containers, reasons.
//!
//! No tokio, no I/O, no clock. Pod objects are the API's own types (`k8s_openapi`), shared as `Arc<Pod>`; this crate adds
//! what the node needs to know about them.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod allocation;
pub mod cgroup;
pub mod event;
pub mod expansion;
pub mod fared;
pub mod fnv;
pub mod go_duration;
pub mod go_json;
pub mod history;
pub mod ids;
pub mod json;
pub mod node;
pub mod node_selector;
pub mod object;
pub mod pod;
pub mod probe;
pub mod quantity;
pub mod reading;
pub mod resources;
pub mod restart;
pub mod runtime;
pub mod stats;
pub mod strategic_merge;
pub mod time;
pub mod tolerant;
pub mod unix_address;
pub mod url;
pub mod userns;

pub use ids::{ContainerId, PodUid, SandboxId};
pub use k8s_openapi;
/// The core/v1 API types under a short name.
pub use k8s_openapi::api::core::v1 as core;
pub use time::Timestamp;
