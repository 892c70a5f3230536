//! The task that sends.

use std::sync::Arc;
use std::time::Duration;

use grpc::{Channel, Gate};
use hyper::Uri;
use hyper::http::uri::PathAndQuery;
use metrics::trace::{LOST_REFUSED, LOST_UNSENT, SPANS_LOST, SPANS_SENT};
use ports::grpc::Code;
use resolver::Resolver;
use tokio::time::{Instant, sleep, timeout};
use tonic::client::Grpc;
use tonic::{Request, Status};
use tonic_prost::ProstCodec;
use trace::Queue;

use crate::convert;
use crate::endpoint::Endpoint;
use crate::messages::{ExportRequest, ExportResponse};

const METHOD: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";
/// A pause grows by this, in tenths.
const GROWTH_TENTHS: u32 = 15;

/// How long a batch is tried.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Patience {
    /// For one try, from dialling to the answer.
    pub attempt: Duration,
    /// The first pause between two tries; each is half as long again as the one before.
    pub pause: Duration,
    /// For all of them: then the batch is lost.
    pub batch: Duration,
}

impl Default for Patience {
    /// The figures of a kubelet's libraries, which have one try end with the batch.
    fn default() -> Self {
        let s = Duration::from_secs;
        Self { attempt: s(10), pause: s(5), batch: s(30) }
    }
}

/// Where to, and in whose name.
#[derive(Clone, Debug)]
pub struct Options {
    /// The collector.
    pub endpoint: Endpoint,
    /// Attributes of the source of all spans.
    pub resource: Vec<(&'static str, String)>,
    /// How long it is waited for.
    pub patience: Patience,
}

/// Sends what comes into the queue, as long as it is polled. Must run inside a tokio runtime, on which the connection lives.
pub async fn run(queue: Arc<Queue>, options: Options) {
    let mut exporter = Exporter { resolver: Resolver::new(), channel: None, is_failing: false, options };
    loop {
        let batch = queue.batch().await;
        let count = u64::try_from(batch.len()).unwrap_or(u64::MAX);
        let request = convert::request(&exporter.options.resource, batch);
        exporter.deliver(&request, count).await;
    }
}

struct Exporter {
    resolver: Resolver,
    channel: Option<Channel>,
    /// It was told that spans are lost.
    is_failing: bool,
    options: Options,
}

impl Exporter {
    async fn deliver(&mut self, request: &ExportRequest, count: u64) {
        let lost = |why: &str, n: u64| SPANS_LOST.with_label_values(&[why]).inc_by(n);
        match self.tries(request).await {
            Ok(answer) => {
                let partial = answer.partial_success.filter(|p| p.rejected_spans > 0);
                let rejected = partial.as_ref().map_or(0, |p| u64::try_from(p.rejected_spans).unwrap_or(0).min(count));
                SPANS_SENT.inc_by(count - rejected);
                lost(LOST_REFUSED, rejected);
                self.tell(partial.map(|p| p.error_message));
            }
            Err(Failed { is_final, why }) => {
                lost(if is_final { LOST_REFUSED } else { LOST_UNSENT }, count);
                self.tell(Some(why));
            }
        }
    }

    /// Once when it begins to fail, and once when it works again.
    fn tell(&mut self, failed: Option<String>) {
        let was_failing = std::mem::replace(&mut self.is_failing, failed.is_some());
        let endpoint = &self.options.endpoint;
        match failed {
            Some(error) if !was_failing => tracing::warn!(?endpoint, error, "spans do not come to the collector"),
            None if was_failing => tracing::info!(?endpoint, "spans come to the collector again"),
            _ => {}
        }
    }

    async fn tries(&mut self, request: &ExportRequest) -> Result<ExportResponse, Failed> {
        let Patience { attempt, mut pause, batch } = self.options.patience;
        let until = Instant::now() + batch;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let answer = timeout(attempt.min(left), self.send(request)).await;
            let failed = match answer {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(status)) => Failed::of(&status),
                Err(_) => Failed { is_final: false, why: format!("no answer within {attempt:?}") },
            };
            // Whatever hung or broke is not used again.
            self.channel = None;
            if failed.is_final || Instant::now() + pause >= until {
                return Err(failed);
            }
            sleep(pause).await;
            pause = pause * GROWTH_TENTHS / 10;
        }
    }

    async fn send(&mut self, request: &ExportRequest) -> Result<ExportResponse, Status> {
        let (endpoint, resolver) = (&self.options.endpoint, &self.resolver);
        let channel = self.channel.get_or_insert_with(|| Channel::new(Gate::new(endpoint.connector(resolver), 0)));
        let mut client = Grpc::with_origin(channel.clone(), Uri::from_static("http://collector"));
        client.ready().await.map_err(|e| Status::unavailable(e.to_string()))?;
        let codec: ProstCodec<ExportRequest, ExportResponse> = ProstCodec::default();
        let answer = client.unary(Request::new(request.clone()), PathAndQuery::from_static(METHOD), codec).await?;
        Ok(answer.into_inner())
    }
}

struct Failed {
    /// Another try would end in the same way.
    is_final: bool,
    why: String,
}

impl Failed {
    /// Which ones may be tried again is said by the protocol (OTLP 1.x, "OTLP/gRPC response").
    fn of(status: &Status) -> Self {
        let (code, why) = grpc::read(status);
        let may_help = matches!(
            code,
            Code::Cancelled
                | Code::DeadlineExceeded
                | Code::Aborted
                | Code::OutOfRange
                | Code::Unavailable
                | Code::DataLoss
        );
        Self { is_final: !may_help, why: format!("{code:?}: {why}") }
    }
}

#[cfg(test)]
mod tests;
