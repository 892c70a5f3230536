//! Sends spans to a collector: OTLP over gRPC without TLS, as a kubelet does.
//!
//! One task takes batches from the queue and sends one at a time. A collector that is away, refuses or does not answer costs
//! the spans that find no room meanwhile, and nothing else: nobody waits for this task.
//!
//! The messages are those of `opentelemetry-proto` 1.x, as far as they are used here; tests read them with the published types.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod convert;
mod endpoint;
mod exporter;
mod messages;

pub use endpoint::Endpoint;
pub use exporter::{Options, Patience, run};
