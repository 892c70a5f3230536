//! One trace per pod start, seen by a collector to which daemon and runtime send.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{TraceService, TraceServiceServer};
use opentelemetry_proto::tonic::collector::trace::v1::{ExportTraceServiceRequest, ExportTraceServiceResponse};
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use serde_json::json;
use testbed::{Bosun, BosunOptions, Options, TestBed, wait_until};
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response, Status};

use crate::node::{Node, SOON, shell};
use crate::users::is_new;

/// Spans by the service that sent them.
type Spans = BTreeMap<String, Vec<Span>>;

#[derive(Clone, Default)]
struct Collector(Arc<Mutex<Spans>>);

fn text<'a>(attributes: &'a [KeyValue], key: &str) -> Option<&'a str> {
    match &attributes.iter().find(|a| a.key == key)?.value.as_ref()?.value {
        Some(Value::StringValue(text)) => Some(text),
        _ => None,
    }
}

#[tonic::async_trait]
impl TraceService for Collector {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        for source in request.into_inner().resource_spans {
            let resource = source.resource.unwrap_or_default();
            let service = text(&resource.attributes, "service.name").unwrap_or_default().to_owned();
            let spans = source.scope_spans.into_iter().flat_map(|s| s.spans);
            self.0.lock().expect("no test has panicked").entry(service).or_default().extend(spans);
        }
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

impl Collector {
    /// Listens until the process ends.
    fn start() -> (Self, SocketAddr) {
        let collector = Self::default();
        let (tx, rx) = std::sync::mpsc::channel();
        let service = TraceServiceServer::new(collector.clone());
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
                tx.send(listener.local_addr().expect("bound")).expect("the test waits");
                let server = tonic::transport::Server::builder().add_service(service);
                server.serve_with_incoming(TcpListenerStream::new(listener)).await.expect("serves");
            });
        });
        (collector, rx.recv().expect("it listens"))
    }

    fn spans(&self, service: &str) -> Vec<Span> {
        self.0.lock().expect("no test has panicked").get(service).cloned().unwrap_or_default()
    }
}

#[test]
fn a_pod_starts_in_one_trace_across_daemon_and_runtime() {
    let (collector, address) = Collector::start();
    let options = Options { collector: Some(format!("http://{address}")), ..Options::default() };
    let mut bed = TestBed::start(options).expect("a bed");
    let config = json!({ "tracing": { "endpoint": address.to_string(), "samplingRatePerMillion": 1_000_000 } });
    let bosun = Bosun::start(&mut bed, BosunOptions { config, ..BosunOptions::default() }).expect("bosun starts");
    let node = Node { bosun, bed };
    node.put(
        "web",
        &format!("  terminationGracePeriodSeconds: 1\n  containers:\n{}", shell("main", "exec sleep 1000", "")),
    );
    node.wait_running("web");

    let (start, calls) = wait_until("the trace of the start", SOON, || {
        let spans = collector.spans("kubelet");
        let of_web = |s: &&Span| s.name == "syncPod" && text(&s.attributes, "k8s.pod") == Some("default/web-bed");
        let start = spans.iter().filter(of_web).find(|s| text(&s.attributes, "k8s.pod.update_type") == Some("create"));
        let start = start.ok_or_else(|| format!("{} spans", spans.len()))?.clone();
        let calls: Vec<Span> = ["RunPodSandbox", "CreateContainer", "StartContainer"]
            .iter()
            .filter_map(|call| {
                let name = format!("runtime.v1.RuntimeService/{call}");
                spans.iter().find(|s| s.name == name && s.trace_id == start.trace_id).cloned()
            })
            .collect();
        if calls.len() == 3 { Ok((start, calls)) } else { Err(format!("{calls:?}")) }
    })
    .unwrap_or_else(|e| panic!("{e}\n{}", node.bosun.log()));
    assert!(start.parent_span_id.is_empty(), "{start:?}");
    for call in &calls {
        assert!(call.start_time_unix_nano >= start.start_time_unix_nano, "{call:?}");
        assert!(call.end_time_unix_nano <= start.end_time_unix_nano, "{call:?}");
    }
    // Debian's 1.6 is built without.
    if !is_new(&node) {
        println!("this runtime sends no spans (`cargo xtask e2e --newer` brings one that does)");
        return;
    }
    wait_until("the runtime's spans of each call", SOON, || {
        let spans = collector.spans("containerd");
        let is_heard =
            |call: &Span| spans.iter().any(|s| s.trace_id == call.trace_id && s.parent_span_id == call.span_id);
        let missing: Vec<&str> = calls.iter().filter(|c| !is_heard(c)).map(|c| &*c.name).collect();
        if missing.is_empty() { Ok(()) } else { Err(format!("{missing:?} of {} spans", spans.len())) }
    })
    .unwrap_or_else(|e| panic!("{e}"));
}
