//! Against a collector that is a real server of the published service.

use std::net::SocketAddr;
use std::sync::Mutex;
use std::time::Duration;

use metrics::trace::{LOST_FULL, LOST_REFUSED, LOST_UNSENT, SPANS_LOST, SPANS_SENT};
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{TraceService, TraceServiceServer};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTracePartialSuccess, ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::any_value::Value as Theirs;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use prost_types::{Any, Duration as Delay};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_stream::wrappers::{TcpListenerStream, UnixListenerStream};
use tonic::transport::Server;
use tonic::{Request, Response};
use trace::{Kind, Limits, Sampler};

use super::*;

type Answer = Result<ExportTraceServiceResponse, Status>;

/// Tells of each request, and answers as it was told before, or that all is well.
struct Collector {
    came: mpsc::Sender<ExportTraceServiceRequest>,
    answers: Mutex<Vec<Answer>>,
}

#[tonic::async_trait]
impl TraceService for Collector {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        self.came.try_send(request.into_inner()).expect("the test listens");
        let answer = self.answers.lock().unwrap().pop();
        answer.unwrap_or_else(|| Ok(ExportTraceServiceResponse::default())).map(Response::new)
    }
}

struct Listening {
    came: mpsc::Receiver<ExportTraceServiceRequest>,
    task: JoinHandle<()>,
}

impl Listening {
    fn service(answers: Vec<Answer>) -> (TraceServiceServer<Collector>, mpsc::Receiver<ExportTraceServiceRequest>) {
        let (tx, came) = mpsc::channel(100);
        let answers = Mutex::new(answers.into_iter().rev().collect());
        (TraceServiceServer::new(Collector { came: tx, answers }), came)
    }

    async fn at(address: SocketAddr, answers: Vec<Answer>) -> (Self, SocketAddr) {
        let (service, came) = Self::service(answers);
        let listener = TcpListener::bind(address).await.unwrap();
        let bound = listener.local_addr().unwrap();
        let serve = Server::builder().add_service(service).serve_with_incoming(TcpListenerStream::new(listener));
        (Self { came, task: tokio::spawn(async { serve.await.unwrap() }) }, bound)
    }

    /// Names of the spans of the next request.
    async fn names(&mut self) -> Vec<String> {
        let request = self.came.recv().await.expect("a request");
        let spans = request.resource_spans.into_iter().flat_map(|r| r.scope_spans).flat_map(|s| s.spans);
        spans.map(|s| s.name).collect()
    }
}

fn loopback() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

const SOON: Patience = Patience {
    attempt: Duration::from_millis(300),
    pause: Duration::from_millis(20),
    batch: Duration::from_millis(600),
    asked: Duration::from_millis(900),
};

/// All spans of this process, to that collector. Each test is a process of its own.
fn traced(endpoint: Endpoint, queue: usize) -> JoinHandle<()> {
    let limits = Limits { queue, batch: 4, gather: Duration::from_millis(10) };
    let queue = Arc::new(Queue::new(limits));
    assert!(
        trace::install(Sampler::per_million(1_000_000), queue.clone(), Arc::new(|| 1)),
        "one test to a process (nextest)"
    );
    let resource = vec![("service.name", "kubelet".to_owned()), ("host.name", "n1".to_owned())];
    tokio::spawn(run(queue, Options { endpoint, resource, patience: SOON }))
}

fn tcp(address: SocketAddr) -> Endpoint {
    Endpoint::Tcp(address.ip().to_string(), address.port())
}

fn end(name: &'static str) {
    drop(trace::root(|| name.into(), Kind::Internal, None));
}

async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let waited = tokio::time::timeout(Duration::from_secs(20), async {
        while !holds() {
            tokio::task::yield_now().await;
        }
    });
    assert!(waited.await.is_ok(), "{what}");
}

fn text(attributes: &[KeyValue], key: &str) -> Option<String> {
    let value = attributes.iter().find(|a| a.key == key)?.value.clone();
    match value {
        Some(AnyValue { value: Some(Theirs::StringValue(text)) }) => Some(text),
        Some(AnyValue { value: Some(Theirs::IntValue(number)) }) => Some(number.to_string()),
        _ => None,
    }
}

#[tokio::test]
async fn a_collector_reads_what_a_span_is() {
    let (mut collector, address) = Listening::at(loopback(), vec![]).await;
    traced(tcp(address), 100);
    let remote = trace::Context::parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
    let mut parent = trace::root(|| "parent".into(), Kind::Server, remote);
    parent.set("number", || 7);
    let mut child = parent.run(async { trace::span(|| "child".into(), Kind::Client) }).await;
    child.set("word", || "x");
    child.fail(|| "why".to_owned());
    drop(child);
    drop(parent);
    let mut request = collector.came.recv().await.unwrap();
    let source = request.resource_spans.remove(0);
    let resource = source.resource.unwrap().attributes;
    assert_eq!(
        (text(&resource, "service.name"), text(&resource, "host.name")),
        (Some("kubelet".into()), Some("n1".into()))
    );
    let scope = &source.scope_spans[0];
    assert_eq!(scope.scope.as_ref().unwrap().name, "bosun");
    let [child, parent] = &scope.spans[..] else { panic!("{scope:?}") };
    assert_eq!((&*parent.name, parent.kind, &*child.name, child.kind), ("parent", 2, "child", 3));
    assert_eq!(parent.trace_id, 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736_u128.to_be_bytes());
    assert_eq!(parent.parent_span_id, 0x00f0_67aa_0ba9_02b7_u64.to_be_bytes());
    assert_eq!((&child.trace_id, &child.parent_span_id), (&parent.trace_id, &parent.span_id));
    assert_eq!(
        (text(&parent.attributes, "number"), text(&child.attributes, "word")),
        (Some("7".into()), Some("x".into()))
    );
    assert_eq!(child.status.as_ref().map(|s| (s.code, &*s.message)), Some((2, "why")));
    assert_eq!((parent.status.as_ref(), parent.flags, child.flags), (None, 0x301, 0x101));
    assert!(parent.start_time_unix_nano <= child.start_time_unix_nano);
    assert!(child.end_time_unix_nano <= parent.end_time_unix_nano && child.start_time_unix_nano > 0);
}

#[tokio::test]
async fn sockets_without_an_address_are_collectors_too() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("otel.sock");
    let (service, came) = Listening::service(vec![]);
    let incoming = UnixListenerStream::new(UnixListener::bind(&path).unwrap());
    let task =
        tokio::spawn(async { Server::builder().add_service(service).serve_with_incoming(incoming).await.unwrap() });
    let mut collector = Listening { came, task };
    traced(Endpoint::Unix(path), 100);
    end("a");
    assert_eq!(collector.names().await, ["a"]);
}

#[tokio::test]
async fn a_collector_that_goes_and_comes_back_is_found_again() {
    let (mut collector, address) = Listening::at(loopback(), vec![]).await;
    traced(tcp(address), 100);
    end("before");
    assert_eq!(collector.names().await, ["before"]);
    until("it was sent", || SPANS_SENT.get() == 1).await;
    collector.task.abort();
    // Its connections go with it.
    let _aborted = (&mut collector.task).await;
    drop(collector);
    end("meanwhile");
    until("it is lost in the end", || SPANS_LOST.with_label_values(&[LOST_UNSENT]).get() == 1).await;
    let (mut collector, _) = Listening::at(address, vec![]).await;
    end("after");
    assert_eq!(collector.names().await, ["after"]);
}

#[tokio::test]
async fn what_a_collector_says_decides_whether_it_is_asked_again() {
    let rejected = ExportTracePartialSuccess { rejected_spans: 1, error_message: "one too many".to_owned() };
    let answers = vec![
        Err(Status::unavailable("not yet")),
        Ok(ExportTraceServiceResponse::default()),
        Err(Status::invalid_argument("no")),
        Ok(ExportTraceServiceResponse { partial_success: Some(rejected) }),
    ];
    let (mut collector, address) = Listening::at(loopback(), answers).await;
    traced(tcp(address), 100);
    end("a");
    assert_eq!(collector.names().await, ["a"]);
    assert_eq!(collector.names().await, ["a"], "once more");
    end("b");
    assert_eq!(collector.names().await, ["b"]);
    until("b is refused", || SPANS_LOST.with_label_values(&[LOST_REFUSED]).get() == 1).await;
    end("c");
    assert_eq!(collector.names().await, ["c"], "b is not asked for again");
    until("c is refused", || SPANS_LOST.with_label_values(&[LOST_REFUSED]).get() == 2).await;
    assert_eq!(SPANS_SENT.get(), 1);
}

/// As a server writes it: `google.rpc.Status` with a detail of another kind before it.
fn asks_for(code: tonic::Code, delay: Duration) -> Status {
    let delay =
        Delay { seconds: i64::try_from(delay.as_secs()).unwrap(), nanos: i32::try_from(delay.subsec_nanos()).unwrap() };
    let any = |kind: &str, value| Any { type_url: format!("type.googleapis.com/google.rpc.{kind}"), value };
    let info = RetryInfo { retry_delay: Some(delay) }.encode_to_vec();
    let details = RpcStatus { details: vec![any("DebugInfo", vec![1, 2, 3]), any("RetryInfo", info)] };
    Status::with_details(code, "slower", details.encode_to_vec().into())
}

#[tokio::test]
async fn a_collector_that_names_a_time_is_asked_again_then_and_not_before() {
    let (pause, too_long) = (Duration::from_millis(250), Duration::from_secs(3600));
    let answers = vec![
        Err(asks_for(tonic::Code::Unavailable, pause)),
        Ok(ExportTraceServiceResponse::default()),
        Err(asks_for(tonic::Code::ResourceExhausted, pause)),
        Ok(ExportTraceServiceResponse::default()),
        Err(Status::resource_exhausted("who knows until when")),
        Err(asks_for(tonic::Code::Unavailable, too_long)),
    ];
    let (mut collector, address) = Listening::at(loopback(), answers).await;
    traced(tcp(address), 100);
    for name in ["a", "b"] {
        end(name);
        assert_eq!(collector.names().await, [name]);
        let asked = std::time::Instant::now();
        assert_eq!(collector.names().await, [name], "again");
        assert!(asked.elapsed() >= pause - Duration::from_millis(20), "{name} after {:?}", asked.elapsed());
    }
    end("c");
    assert_eq!(collector.names().await, ["c"]);
    until("without a time it is for good", || SPANS_LOST.with_label_values(&[LOST_REFUSED]).get() == 1).await;
    end("d");
    assert_eq!(collector.names().await, ["d"]);
    let asked = std::time::Instant::now();
    until("this batch cannot wait so long", || SPANS_LOST.with_label_values(&[LOST_UNSENT]).get() == 1).await;
    end("e");
    assert_eq!(collector.names().await, ["e"]);
    let waited = asked.elapsed();
    assert!(waited >= SOON.asked - Duration::from_millis(20), "the next one waits as long as is bearable: {waited:?}");
}

#[test]
fn what_is_no_time_to_wait_is_none() {
    let status = |any: Option<Any>| RpcStatus { details: any.into_iter().collect() }.encode_to_vec();
    let info = |delay| Any {
        type_url: "type.googleapis.com/google.rpc.RetryInfo".to_owned(),
        value: RetryInfo { retry_delay: delay }.encode_to_vec(),
    };
    let garbled = Any { value: vec![0xff], ..info(None) };
    let most = Delay { seconds: i64::MAX, nanos: 999_999_999 };
    let table = [
        (Vec::new(), None),
        (vec![0xff, 0xff], None),
        (status(None), None),
        (status(Some(garbled)), None),
        (status(Some(info(None))), Some(Duration::ZERO)),
        (status(Some(info(Some(Delay { seconds: 1, nanos: 5 })))), Some(Duration::new(1, 5))),
        (status(Some(info(Some(Delay { seconds: -1, nanos: 0 })))), None),
        (status(Some(info(Some(Delay { seconds: 0, nanos: -1 })))), None),
        (status(Some(info(Some(most)))), Some(Duration::new(i64::MAX.unsigned_abs(), 999_999_999))),
    ];
    for (details, expected) in table {
        assert_eq!(retry_delay(&details), expected, "{details:?}");
    }
}

/// It takes connections and never says a word.
#[tokio::test]
async fn a_collector_that_hangs_costs_spans_and_nothing_else() {
    let listener = TcpListener::bind(loopback()).await.unwrap();
    traced(tcp(listener.local_addr().unwrap()), 6);
    let began = std::time::Instant::now();
    (0..1000).for_each(|_| end("a"));
    assert!(began.elapsed() < Duration::from_secs(5), "nobody waits");
    assert_eq!(SPANS_LOST.with_label_values(&[LOST_FULL]).get(), 994, "there is room for six");
    until("each batch is given up", || SPANS_LOST.with_label_values(&[LOST_UNSENT]).get() == 6).await;
    assert_eq!(SPANS_SENT.get(), 0);
}
