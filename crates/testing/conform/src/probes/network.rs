//! Probes over the network, to listeners of the case on loopback.

use std::sync::{Arc, Mutex, PoisonError};

use contract::ProbeManager;
use model::probe::ProbeKind::{Liveness, Readiness};
use model::probe::ProbeVerdict::{Failure, Success};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::bed::{Bed, case, container, seconds};
use crate::case::Case;
use crate::outcome::{Broken, Outcome, demand};
use crate::watch::until;

pub(super) fn cases() -> Vec<Case<ProbeManager>> {
    [
        case(
            "tcp",
            "pod-lifecycle 8.3",
            "a TCP probe succeeds where somebody listens and fails where nobody does",
            tcp,
        )
        .core(),
        case(
            "http-status",
            "pod-lifecycle 8.3",
            "200 is a success, 404 a failure that is told with its code",
            http_status,
        ),
        case(
            "http-request",
            "pod-lifecycle 8.3",
            "a GET of the path, with User-Agent kube-probe/*, Accept */* and the headers of the probe",
            http_request,
        ),
        case(
            "http-redirect",
            "pod-lifecycle 15, 72",
            "a redirect to another host is a success and an event ProbeWarning",
            http_redirect,
        ),
        case(
            "http-silent",
            "pod-lifecycle 8.3",
            "a server that does not answer within timeoutSeconds fails",
            http_silent,
        ),
        case("http-long-body", "pod-lifecycle 15, 77", "a body of 1 MiB is a success", http_long_body),
        case("named-port", "pod-lifecycle 8.3", "a port by name is that of the container", named_port),
        case(
            "bad-port",
            "pod-lifecycle 8.3",
            "a port that is none is an error: it is told and counts as nothing",
            bad_port,
        ),
    ]
    .map(Case::in_real_time)
    .into()
}

/// A server that gives everybody the same answer.
struct Web {
    port: u16,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Web {
    /// `None`: it says nothing.
    async fn new(answer: Option<Vec<u8>>) -> Outcome<Self> {
        let failed = |e: std::io::Error| Broken(format!("a listener of the case: {e}"));
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        let requests: Arc<Mutex<Vec<String>>> = Arc::default();
        let seen = requests.clone();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (answer, seen) = (answer.clone(), seen.clone());
                tokio::spawn(async move {
                    let mut request = vec![0; 4096];
                    let length = stream.read(&mut request).await.unwrap_or(0);
                    let request = String::from_utf8_lossy(&request[..length]).into_owned();
                    seen.lock().unwrap_or_else(PoisonError::into_inner).push(request);
                    match answer {
                        Some(answer) => drop(stream.write_all(&answer).await),
                        None => std::future::pending().await,
                    }
                });
            }
        });
        Ok(Web { port, requests })
    }

    async fn answering(status: &str, headers: &str, body: &[u8]) -> Outcome<Self> {
        let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n{headers}\r\n", body.len());
        Self::new(Some([head.as_bytes(), body].concat())).await
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn get(port: &Value, fields: Value) -> Value {
    let mut get = fields;
    get["port"] = port.clone();
    json!({"httpGet": get, "periodSeconds": 1, "failureThreshold": 1})
}

async fn ready_by(bed: &Bed, probe: Value) -> Outcome<Arc<model::core::Pod>> {
    bed.running_pod("a", json!({"readinessProbe": probe})).await
}

async fn tcp(bed: Bed) -> Outcome {
    let listener = TcpListener::bind("127.0.0.1:0").await.map_err(|e| Broken(e.to_string()))?;
    let port = listener.local_addr().map_err(|e| Broken(e.to_string()))?.port();
    let pod = ready_by(&bed, json!({"tcpSocket": {"port": port}, "periodSeconds": 1, "failureThreshold": 1})).await?;
    bed.turns(&pod, ("c1", Readiness), Success, seconds(2.5)).await?;
    drop(listener);
    bed.turns(&pod, ("c1", Readiness), Failure, seconds(2.5)).await
}

async fn http_status(bed: Bed) -> Outcome {
    let good = Web::answering("200 OK", "", b"fine").await?;
    let pod = ready_by(&bed, get(&json!(good.port), json!({"path": "/"}))).await?;
    bed.turns(&pod, ("c1", Readiness), Success, seconds(2.5)).await?;
    bed.stop(&pod, false).await?;
    let bad = Web::answering("404 Not Found", "", b"").await?;
    let probes = json!({"livenessProbe": get(&json!(bad.port), json!({"path": "/"}))});
    let pod = bed.running_pod("b", probes).await?;
    bed.turns(&pod, ("c1", Liveness), Failure, seconds(2.5)).await?;
    let told = bed.told();
    let is_so = told.first().is_some_and(|t| t == "Liveness probe failed: HTTP probe failed with statuscode: 404");
    demand(is_so, || format!("told was {told:?}"))
}

async fn http_request(bed: Bed) -> Outcome {
    let web = Web::answering("200 OK", "", b"").await?;
    let fields = json!({"path": "/healthz?deep=1", "httpHeaders": [{"name": "X-Who", "value": "me"}]});
    ready_by(&bed, get(&json!(web.port), fields)).await?;
    until("it is asked", seconds(2.5), || !web.requests().is_empty()).await?;
    let request = web.requests().remove(0).to_lowercase();
    for part in [
        "get /healthz?deep=1 http/1.1\r\n",
        "\r\nuser-agent: kube-probe/1.",
        "\r\naccept: */*\r\n",
        "\r\nx-who: me\r\n",
    ] {
        demand(request.contains(part), || format!("{part:?} is not in the request {request:?}"))?;
    }
    Ok(())
}

async fn http_redirect(bed: Bed) -> Outcome {
    let web = Web::answering("302 Found", "Location: http://elsewhere.invalid/\r\n", b"").await?;
    let pod = ready_by(&bed, get(&json!(web.port), json!({"path": "/"}))).await?;
    bed.turns(&pod, ("c1", Readiness), Success, seconds(2.5)).await?;
    let reasons: Vec<_> = bed.events.all().into_iter().map(|event| event.reason).collect();
    demand(reasons.first().is_some_and(|r| r == "ProbeWarning"), || format!("told was {:?}", bed.told()))
}

async fn http_silent(bed: Bed) -> Outcome {
    let web = Web::new(None).await?;
    let probes = json!({"livenessProbe": get(&json!(web.port), json!({"path": "/"}))});
    let pod = bed.running_pod("a", probes).await?;
    bed.turns(&pod, ("c1", Liveness), Failure, seconds(3.9)).await
}

async fn http_long_body(bed: Bed) -> Outcome {
    let web = Web::answering("200 OK", "", &vec![b'x'; 1 << 20]).await?;
    let pod = ready_by(&bed, get(&json!(web.port), json!({"path": "/"}))).await?;
    bed.turns(&pod, ("c1", Readiness), Success, seconds(2.5)).await?;
    demand(bed.told().is_empty(), || format!("told was {:?}", bed.told()))
}

async fn named_port(bed: Bed) -> Outcome {
    let web = Web::answering("200 OK", "", b"").await?;
    let fields = json!({
        "ports": [{"name": "web", "containerPort": web.port}],
        "readinessProbe": get(&json!("web"), json!({"path": "healthz"})),
    });
    let pod = bed.pod("a", json!({"containers": [container("m", fields)]}));
    bed.runs(&pod);
    bed.start(&pod).await?;
    bed.turns(&pod, ("c1", Readiness), Success, seconds(2.5)).await?;
    let request = web.requests().remove(0);
    demand(request.starts_with("GET /healthz HTTP/1.1"), || format!("the request was {request:?}"))
}

async fn bad_port(bed: Bed) -> Outcome {
    let probes = json!({"livenessProbe": get(&json!("nobody"), json!({"path": "/"}))});
    let pod = bed.running_pod("a", probes).await?;
    until("it is told", seconds(2.5), || !bed.told().is_empty()).await?;
    let told = bed.told().remove(0);
    demand(told.starts_with("Liveness probe errored"), || format!("told was {told:?}"))?;
    bed.stands(&pod, ("c1", Liveness), Some(Success))
}
