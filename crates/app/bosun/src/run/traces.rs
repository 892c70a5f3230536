//! Spans of this daemon, on their way to a collector (`tracing` of the configuration).

use std::sync::Arc;

use node_config::{Tracing, TracingEndpoint};
use otlp::{Endpoint, Options, Patience};
use tokio::runtime::Handle;
use trace::{Limits, Queue, Sampler};

/// What a kubelet calls itself: whoever looks for the kubelet of a node finds it.
const SERVICE: &str = "kubelet";

/// Traces from now on, if that was asked for. Sent from `apart`: no actor waits while spans are encoded.
pub(super) fn start(tracing: Option<&Tracing>, node_name: &str, clock: actor::Clock, apart: &Handle) {
    let Some(tracing) = tracing else { return };
    let queue = Arc::new(Queue::new(Limits::default()));
    let sampler = Sampler::per_million(tracing.sampling_rate_per_million);
    if !trace::install(sampler, queue.clone(), Arc::new(move || clock.unix_nanos())) {
        return;
    }
    tracing::info!(endpoint = %tracing.endpoint, rate = tracing.sampling_rate_per_million, "traces are sent");
    let resource = vec![("service.name", SERVICE.to_owned()), ("host.name", node_name.to_owned())];
    let endpoint = endpoint(&tracing.endpoint);
    apart.spawn(otlp::run(queue, Options { endpoint, resource, patience: Patience::default() }));
}

fn endpoint(endpoint: &TracingEndpoint) -> Endpoint {
    match endpoint.clone() {
        TracingEndpoint::Tcp(host, port) => Endpoint::Tcp(host, port),
        TracingEndpoint::Unix(path) => Endpoint::Unix(path),
        TracingEndpoint::Abstract(name) => Endpoint::Abstract(name),
    }
}
