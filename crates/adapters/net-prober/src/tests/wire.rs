use std::time::Duration;

use model::probe::ProbeOutcome;
use ports::hook::{HookHttp, HookRequest};
use ports::probe::{NetAttempt, NetProber, NetTarget};
use tokio::net::TcpListener;
use tonic::transport::Server;
use tonic::{Request, Response, Status};

use super::server::{Canned, Reply, redirect, status};
use crate::Prober;
use crate::grpc::{HealthCheckRequest, HealthCheckResponse};

const SECOND: Duration = Duration::from_secs(1);

fn target(port: u16, path: &str) -> NetTarget {
    NetTarget::Http {
        tls: false,
        host: "127.0.0.1".into(),
        port,
        path: path.into(),
        headers: vec![("User-Agent".into(), "kube-probe/1.36".into()), ("Accept".into(), "*/*".into())],
        host_header: None,
    }
}

async fn get(port: u16, path: &str) -> NetAttempt {
    Prober::new().probe(target(port, path), SECOND).await
}

fn is(outcome: ProbeOutcome, output: &str) -> NetAttempt {
    NetAttempt { outcome, output: output.into() }
}

/// A port on which nobody listens.
async fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port()
}

#[tokio::test]
async fn http_is_judged_by_its_status() {
    let server = Canned::start(|path| status(path[1..].parse().unwrap(), "body")).await;
    let rows = [
        (200, is(ProbeOutcome::Success, "body")),
        (299, is(ProbeOutcome::Success, "body")),
        (300, is(ProbeOutcome::Warning, "Probe terminated redirects, Response body: body")),
        (302, is(ProbeOutcome::Warning, "Probe terminated redirects, Response body: body")),
        (399, is(ProbeOutcome::Warning, "Probe terminated redirects, Response body: body")),
        (400, is(ProbeOutcome::Failure, "HTTP probe failed with statuscode: 400")),
        (503, is(ProbeOutcome::Failure, "HTTP probe failed with statuscode: 503")),
    ];
    for (code, want) in rows {
        assert_eq!(get(server.port, &format!("/{code}")).await, want, "{code}");
    }
}

#[tokio::test]
async fn the_request_looks_like_a_kubelets() {
    let server = Canned::start(|_| status(200, "")).await;
    get(server.port, "/healthz?x=1").await;
    let mut named = target(server.port, "/");
    if let NetTarget::Http { headers, host_header, .. } = &mut named {
        headers.push(("X-Twice".into(), "1".into()));
        headers.push(("X-Twice".into(), "2".into()));
        *host_header = Some("web.example".into());
    }
    Prober::new().probe(named, SECOND).await;
    let heads = server.heads.lock().unwrap();
    let first = heads[0].to_lowercase();
    assert!(first.starts_with("get /healthz?x=1 http/1.1\r\n"));
    assert!(first.contains(&format!("host: 127.0.0.1:{}\r\n", server.port)));
    assert!(first.contains("user-agent: kube-probe/1.36\r\n") && first.contains("accept: */*\r\n"));
    assert!(first.contains("connection: close\r\n") && !first.contains("accept-encoding"));
    let second = heads[1].to_lowercase();
    assert!(second.contains("host: web.example\r\n"));
    assert!(second.contains("x-twice: 1\r\n") && second.contains("x-twice: 2\r\n"));
}

#[tokio::test]
async fn redirects_are_followed_on_the_same_host_only() {
    let server = Canned::start(|path| match path {
        "/one" => redirect(302, "/two"),
        "/two" => redirect(308, "fine"),
        "/away" => redirect(302, "http://example.org/"),
        "/ftp" => redirect(302, "ftp://127.0.0.1/"),
        "/round" => redirect(301, "/round"),
        _ => status(200, path),
    })
    .await;
    assert_eq!(get(server.port, "/one").await, is(ProbeOutcome::Success, "/fine"));
    assert_eq!(
        get(server.port, "/away").await,
        is(ProbeOutcome::Warning, "Probe terminated redirects, Response body: moved"),
        "edge 72"
    );
    assert_eq!(get(server.port, "/ftp").await.outcome, ProbeOutcome::Failure);
    server.heads.lock().unwrap().clear();
    let round = get(server.port, "/round").await;
    assert_eq!(round.outcome, ProbeOutcome::Failure);
    assert!(round.output.ends_with("stopped after 10 redirects"), "{}", round.output);
    assert_eq!(server.heads.lock().unwrap().len(), 11);
}

#[tokio::test]
async fn a_host_header_stays_on_a_relative_redirect() {
    let server = Canned::start(|path| if path == "/a" { redirect(302, "/b") } else { status(200, "") }).await;
    let mut named = target(server.port, "/a");
    if let NetTarget::Http { host_header, .. } = &mut named {
        *host_header = Some("web.example".into());
    }
    assert_eq!(Prober::new().probe(named, SECOND).await.outcome, ProbeOutcome::Success);
    assert!(server.heads.lock().unwrap()[1].to_lowercase().contains("host: web.example\r\n"));
}

#[tokio::test]
async fn a_large_body_is_cut() {
    let server = Canned::start(|_| status(200, &"x".repeat(1 << 20))).await;
    let got = get(server.port, "/").await;
    assert_eq!((got.outcome, got.output.len()), (ProbeOutcome::Success, 10 * 1024), "edge 77");
}

#[tokio::test]
async fn a_body_without_length_ends_with_the_connection() {
    let server =
        Canned::start(|_| Reply { head: b"HTTP/1.1 200 OK\r\n\r\nto the end".to_vec(), ..Reply::default() }).await;
    assert_eq!(get(server.port, "/").await, is(ProbeOutcome::Success, "to the end"));
}

#[tokio::test]
async fn a_body_that_breaks_off_says_nothing() {
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort".to_vec();
    let cut = head.clone();
    let server = Canned::start(move |_| Reply { head: cut.clone(), ..Reply::default() }).await;
    assert_eq!(get(server.port, "/").await.outcome, ProbeOutcome::Error);
    let server = Canned::start(move |_| Reply { head: head.clone(), hold: true, ..Reply::default() }).await;
    let got = Prober::new().probe(target(server.port, "/"), Duration::from_millis(200)).await;
    assert_eq!(got.outcome, ProbeOutcome::Error);
    assert!(got.output.contains("while reading body"), "{}", got.output);
}

#[tokio::test]
async fn nobody_listening_is_a_failure() {
    let port = free_port().await;
    let refused = format!("dial tcp 127.0.0.1:{port}: connect: connection refused");
    assert_eq!(
        get(port, "/x").await,
        is(ProbeOutcome::Failure, &format!("Get \"http://127.0.0.1:{port}/x\": {refused}"))
    );
    let tcp = NetTarget::Tcp { host: "127.0.0.1".into(), port };
    assert_eq!(Prober::new().probe(tcp, SECOND).await, is(ProbeOutcome::Failure, &refused));
    let grpc = grpc_target(port, "");
    let got = Prober::new().probe(grpc, SECOND).await;
    assert_eq!(got.outcome, ProbeOutcome::Failure);
    assert!(got.output.starts_with("error: failed to connect service at") && got.output.ends_with(&refused));
}

#[tokio::test]
async fn a_server_that_never_answers_is_a_failure_in_time() {
    let server = Canned::start(|_| Reply { before: Duration::from_secs(60), ..Reply::default() }).await;
    let began = std::time::Instant::now();
    let got = Prober::new().probe(target(server.port, "/"), Duration::from_millis(200)).await;
    assert!(began.elapsed() < SECOND);
    assert_eq!(got.outcome, ProbeOutcome::Failure);
    assert!(got.output.ends_with("(Client.Timeout exceeded while awaiting headers)"), "{}", got.output);
}

#[tokio::test]
async fn a_server_that_hangs_up_is_a_failure() {
    let server = Canned::start(|_| Reply::default()).await;
    let got = get(server.port, "/").await;
    assert_eq!(got.outcome, ProbeOutcome::Failure);
    assert!(got.output.ends_with(": EOF"), "{}", got.output);
}

#[tokio::test]
async fn a_request_that_cannot_be_made_says_nothing() {
    assert_eq!(get(free_port().await, "/a b").await.outcome, ProbeOutcome::Error);
}

#[tokio::test]
async fn tls_to_a_plain_server_is_a_failure() {
    let server = Canned::start(|_| status(200, "")).await;
    let mut t = target(server.port, "/");
    if let NetTarget::Http { tls, .. } = &mut t {
        *tls = true;
    }
    let got = Prober::new().probe(t, Duration::from_millis(500)).await;
    assert_eq!(got.outcome, ProbeOutcome::Failure);
}

#[tokio::test]
async fn tcp_needs_a_listener_only() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let tcp = |host: &str| NetTarget::Tcp { host: host.into(), port };
    assert_eq!(Prober::new().probe(tcp("127.0.0.1"), SECOND).await, is(ProbeOutcome::Success, ""));
    let lost = Prober::new().probe(tcp("no-such-host.invalid"), SECOND).await;
    assert_eq!(lost.outcome, ProbeOutcome::Failure);
}

fn grpc_target(port: u16, service: &str) -> NetTarget {
    NetTarget::Grpc { host: "127.0.0.1".into(), port, service: service.into(), user_agent: "kube-probe/1.36".into() }
}

/// `grpc.health.v1.Health` by hand: the answer depends on the service asked for.
#[derive(Clone)]
struct Health;

impl tonic::server::NamedService for Health {
    const NAME: &'static str = "grpc.health.v1.Health";
}

impl tonic::server::UnaryService<HealthCheckRequest> for Health {
    type Response = HealthCheckResponse;
    type Future = std::pin::Pin<Box<dyn Future<Output = Result<Response<HealthCheckResponse>, Status>> + Send>>;

    fn call(&mut self, request: Request<HealthCheckRequest>) -> Self::Future {
        let agent = request.metadata().get("user-agent").unwrap().to_str().unwrap().to_owned();
        Box::pin(async move {
            match request.into_inner().service.as_str() {
                "" if agent.starts_with("kube-probe/1.36") => Ok(Response::new(HealthCheckResponse { status: 1 })),
                "down" => Ok(Response::new(HealthCheckResponse { status: 2 })),
                "slow" => std::future::pending().await,
                other => Err(Status::not_found(other)),
            }
        })
    }
}

impl tower::Service<hyper::http::Request<tonic::body::Body>> for Health {
    type Response = hyper::http::Response<tonic::body::Body>;
    type Error = std::convert::Infallible;
    type Future = std::pin::Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), Self::Error>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: hyper::http::Request<tonic::body::Body>) -> Self::Future {
        Box::pin(async move {
            let codec: tonic_prost::ProstCodec<HealthCheckResponse, HealthCheckRequest> = Default::default();
            Ok(tonic::server::Grpc::new(codec).unary(Health, request).await)
        })
    }
}

#[derive(Clone)]
struct Other;

impl tonic::server::NamedService for Other {
    const NAME: &'static str = "other";
}

impl tower::Service<hyper::http::Request<tonic::body::Body>> for Other {
    type Response = hyper::http::Response<tonic::body::Body>;
    type Error = std::convert::Infallible;
    type Future = std::future::Ready<Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), Self::Error>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: hyper::http::Request<tonic::body::Body>) -> Self::Future {
        std::future::ready(Ok(Status::unimplemented("").into_http()))
    }
}

#[tokio::test]
async fn grpc_asks_the_health_service() {
    let port = free_port().await;
    let at = ([127, 0, 0, 1], port).into();
    tokio::spawn(Server::builder().add_service(Health).serve(at));
    let prober = Prober::new();
    let ask = |service: &'static str| prober.probe(grpc_target(port, service), SECOND);
    while ask("").await.output.contains("connection refused") {
        tokio::task::yield_now().await;
    }
    assert_eq!(ask("").await, is(ProbeOutcome::Success, "service healthy"));
    assert_eq!(ask("down").await, is(ProbeOutcome::Failure, "service unhealthy (responded with \"NOT_SERVING\")"));
    let lost = is(ProbeOutcome::Failure, "error: health rpc probe failed: rpc error: code = NotFound desc = gone");
    assert_eq!(ask("gone").await, lost);
    assert_eq!(ask("slow").await, is(ProbeOutcome::Failure, "timeout: health rpc did not complete within 1s"));
}

#[tokio::test]
async fn a_grpc_server_without_health_service_is_a_failure() {
    let port = free_port().await;
    let at = ([127, 0, 0, 1], port).into();
    tokio::spawn(Server::builder().add_service(Other).serve(at));
    let prober = Prober::new();
    let ask = || prober.probe(grpc_target(port, ""), SECOND);
    while ask().await.output.contains("connection refused") {
        tokio::task::yield_now().await;
    }
    let got = ask().await;
    assert_eq!(got.outcome, ProbeOutcome::Failure);
    assert!(got.output.starts_with("error: this server does not implement the grpc health protocol"), "{}", got.output);
}

#[tokio::test]
async fn a_hook_succeeds_with_any_status() {
    let server = Canned::start(|_| status(500, "oops")).await;
    let hook = |port| HookRequest {
        scheme: "HTTP".into(),
        host: "127.0.0.1".into(),
        port,
        path: "stop".into(),
        headers: vec![("Host".into(), "web.example".into()), ("Accept".into(), String::new())],
    };
    assert_eq!(HookHttp::get(&Prober::new(), hook(server.port)).await, Ok(()), "edge 61");
    let head = server.heads.lock().unwrap()[0].to_lowercase();
    assert!(head.starts_with("get /stop ") && head.contains("host: web.example\r\n") && !head.contains("accept"));
    assert!(HookHttp::get(&Prober::new(), hook(free_port().await)).await.is_err());
}

/// A server may answer before it has read what it takes for rubbish, or after.
#[tokio::test]
async fn https_to_a_server_of_plain_http_is_told_as_such() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let answers: [(bool, &[u8]); 2] = [
        (false, b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent a TLS request"),
        (true, b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"),
    ];
    for (reads, answer) in answers {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            if reads {
                assert!(stream.read(&mut [0; 64]).await.unwrap() > 0);
            }
            stream.write_all(answer).await.unwrap();
            // Open until the client has read it.
            std::future::pending::<()>().await;
        });
        let (scheme, host) = ("https".to_owned(), "127.0.0.1".to_owned());
        let hook = HookRequest { scheme, host, port, path: "/".into(), headers: Vec::new() };
        let why = HookHttp::get(&Prober::new(), hook).await.unwrap_err();
        assert_eq!(ports::hook::HTTP_TO_HTTPS, "http: server gave HTTP response to HTTPS client");
        assert!(why.ends_with(ports::hook::HTTP_TO_HTTPS), "{why}");
    }
}
