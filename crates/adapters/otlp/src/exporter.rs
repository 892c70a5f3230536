//! The task that sends.

use std::sync::Arc;
use std::time::Duration;

use grpc::{Channel, Gate};
use hyper::Uri;
use hyper::http::uri::PathAndQuery;
use metrics::trace::{LOST_REFUSED, LOST_UNSENT, SPANS_LOST, SPANS_SENT};
use ports::grpc::Code;
use prost::Message as _;
use resolver::Resolver;
use tokio::time::{Instant, sleep_until, timeout};
use tonic::client::Grpc;
use tonic::{Request, Status};
use tonic_prost::ProstCodec;
use trace::Queue;

use crate::convert;
use crate::endpoint::Endpoint;
use crate::messages::{ExportRequest, ExportResponse, RetryInfo, RpcStatus};

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
    /// The longest pause that a collector may ask for. One that a batch cannot wait for costs this batch, and holds back the next.
    pub asked: Duration,
}

impl Default for Patience {
    /// The figures of a kubelet's libraries, which have one try end with the batch, and do not hold back the next one.
    fn default() -> Self {
        let s = Duration::from_secs;
        Self { attempt: s(10), pause: s(5), batch: s(30), asked: s(300) }
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
    let mut exporter =
        Exporter { resolver: Resolver::new(), channel: None, is_failing: false, not_before: None, options };
    loop {
        let batch = queue.batch().await;
        if let Some(at) = exporter.not_before.take() {
            sleep_until(at).await;
        }
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
    /// The collector wants to be left alone until then.
    not_before: Option<Instant>,
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
            Err(Failed { is_final, why, .. }) => {
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
        let Patience { attempt, mut pause, batch, asked } = self.options.patience;
        let until = Instant::now() + batch;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let answer = timeout(attempt.min(left), self.send(request)).await;
            let failed = match answer {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(status)) => Failed::of(&status),
                Err(_) => Failed { is_final: false, why: format!("no answer within {attempt:?}"), asked: None },
            };
            // Whatever hung or broke is not used again.
            self.channel = None;
            let now = Instant::now();
            let rest = failed.asked.map_or(Duration::ZERO, |delay| delay.min(asked));
            let next = now + pause.max(rest);
            if failed.is_final || next >= until {
                self.not_before = Some(now + rest).filter(|at| *at > now);
                return Err(failed);
            }
            sleep_until(next).await;
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
    /// For how long the collector wants not to be asked again.
    asked: Option<Duration>,
}

impl Failed {
    /// Which ones may be tried again, and when, is said by the protocol (OTLP 1.x, "Failures" and "OTLP/gRPC Throttling").
    fn of(status: &Status) -> Self {
        let (code, why) = grpc::read(status);
        let asked = retry_delay(status.details());
        let may_help = match code {
            Code::Cancelled
            | Code::DeadlineExceeded
            | Code::Aborted
            | Code::OutOfRange
            | Code::Unavailable
            | Code::DataLoss => true,
            // It recovers when it says when.
            Code::ResourceExhausted => asked.is_some(),
            _ => false,
        };
        Self { is_final: !may_help, why: format!("{code:?}: {why}"), asked }
    }
}

/// The pause that a server asks for with a status; what cannot be read is none.
fn retry_delay(details: &[u8]) -> Option<Duration> {
    let status = RpcStatus::decode(details).ok()?;
    let any = status.details.into_iter().find(|any| any.type_url.ends_with("/google.rpc.RetryInfo"))?;
    let delay = RetryInfo::decode(&*any.value).ok()?.retry_delay.unwrap_or_default();
    // A negative one is none that one could wait for.
    let (seconds, nanos) = (u64::try_from(delay.seconds).ok()?, u32::try_from(delay.nanos).ok()?);
    Some(Duration::from_secs(seconds).saturating_add(Duration::from_nanos(nanos.into())))
}

#[cfg(test)]
mod tests;
