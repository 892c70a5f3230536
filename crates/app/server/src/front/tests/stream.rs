//! Upgrades, panics, bodies.

use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{ConnectInfo, Request};
use axum::http::{Response, StatusCode};
use axum::routing::{get, post};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::bed::Bed;

/// Waits for as long as the server lets a connection be that says nothing; what was there before has rested for longer.
async fn outlive_an_idle_one(bed: &Bed, alpn: &[u8]) {
    let mut idle = bed.tls(alpn, Some(&bed.alice())).await.unwrap();
    let mut rest = Vec::new();
    let ended = idle.read_to_end(&mut rest);
    let _reset_is_an_end_too = tokio::time::timeout(Duration::from_secs(10), ended).await.expect("it is ended");
}

/// Answers 101 and then says everything twice.
pub(super) async fn twice(mut request: Request) -> Response<Body> {
    let upgrade = hyper::upgrade::on(&mut request);
    tokio::spawn(async move {
        let mut stream = TokioIo::new(upgrade.await.unwrap());
        let mut byte = [0];
        while stream.read_exact(&mut byte).await.is_ok() {
            stream.write_all(&[byte[0], byte[0]]).await.unwrap();
        }
    });
    let response = Response::builder().status(StatusCode::SWITCHING_PROTOCOLS);
    response.header("connection", "upgrade").header("upgrade", "twice").body(Body::empty()).unwrap()
}

#[tokio::test]
async fn upgraded_streams_live_on_and_are_free_of_the_idle_limit() {
    let settings = |front: &mut crate::front::Front| front.limits.idle = Duration::from_millis(100);
    let bed = Bed::with(settings, Router::new().route("/exec/ns/pod/c", get(twice))).await;
    let mut stream = bed.tls(b"http/1.1", Some(&bed.alice())).await.unwrap();
    let head = b"GET /exec/ns/pod/c HTTP/1.1\r\nHost: n\r\nConnection: Upgrade\r\nUpgrade: twice\r\n\r\n";
    // The first bytes of the stream come together with the head.
    stream.write_all(&[head.as_slice(), b"ab"].concat()).await.unwrap();
    let mut got = Vec::new();
    while !got.ends_with(b"aabb") {
        assert!(stream.read_buf(&mut got).await.unwrap() > 0, "{:?}", String::from_utf8_lossy(&got));
    }
    assert!(got.starts_with(b"HTTP/1.1 101 "));
    outlive_an_idle_one(&bed, b"http/1.1").await;
    stream.write_all(b"c").await.unwrap();
    let mut more = [0; 2];
    stream.read_exact(&mut more).await.unwrap();
    assert_eq!(&more, b"cc");
}

#[tokio::test]
async fn a_handler_that_panics_is_500_and_hurts_nobody_else() {
    let routes = Router::new().route("/pods/panic", get(|| async { panic!("on purpose") as String }));
    let bed = Bed::with(|_| {}, routes).await;
    let alice = bed.alice();
    for mut client in [bed.h1(Some(&alice)).await, bed.h2(Some(&alice)).await] {
        for _ in 0..2 {
            assert_eq!(client.get("/pods/panic").await, (500, "Internal Server Error".to_owned()));
            assert_eq!(client.get("/pods").await.0, 200);
        }
    }
    assert_eq!(bed.counted().panics, 4);
}

#[tokio::test]
async fn bodies_are_bounded() {
    let routes = Router::new()
        .route("/run/x", post(|body: Bytes| async move { body.len().to_string() }))
        .layer(axum::extract::DefaultBodyLimit::disable());
    let bed = Bed::with(|front| front.limits.body_bytes = 100_000, routes).await;
    let alice = bed.alice();
    let post = |size| Request::post("/run/x").body(Body::from(vec![0; size])).unwrap();
    let mut client = bed.h2(Some(&alice)).await;
    assert_eq!(client.send(post(100_000)).await.unwrap().body, "100000");
    assert_eq!(client.send(post(100_001)).await.unwrap().code, 413);
}

#[tokio::test]
async fn handlers_learn_the_address_of_the_caller() {
    let route = get(|ConnectInfo(peer): ConnectInfo<std::net::SocketAddr>| async move { peer.ip().to_string() });
    let bed = Bed::with(|_| {}, Router::new().route("/pods/peer", route)).await;
    assert_eq!(bed.h1(Some(&bed.alice())).await.get("/pods/peer").await, (200, "127.0.0.1".to_owned()));
}

#[tokio::test]
async fn an_answer_that_is_read_late_comes_whole() {
    const SIZE: usize = 32 << 20;
    let settings = |front: &mut crate::front::Front| front.limits.idle = Duration::from_millis(100);
    // In one piece: the handler is done at once, and the rest waits for the reader.
    let routes = Router::new().route("/logs/large", get(|| async { vec![b'a'; SIZE] }));
    let bed = Bed::with(settings, routes).await;
    let mut stream = bed.tls(b"http/1.1", Some(&bed.alice())).await.unwrap();
    stream.write_all(b"GET /logs/large HTTP/1.1\r\nHost: n\r\n\r\n").await.unwrap();
    let mut buffer = vec![0; 1 << 20];
    let (mut got, mut rested) = (0, false);
    while got < SIZE {
        let read = stream.read(&mut buffer).await.unwrap();
        assert!(read > 0, "cut off after {got}");
        got += read;
        if !rested && got > SIZE - (4 << 20) {
            // Many times the life of an idle connection, near the end of the answer.
            rested = true;
            for _ in 0..5 {
                outlive_an_idle_one(&bed, b"http/1.1").await;
            }
        }
    }
}

/// As `kubectl logs -f` of a container that says nothing: neither an idle nor a slow caller, whoever it is.
#[tokio::test]
async fn a_silent_answer_is_free_of_the_idle_limit() {
    let (speak, _) = tokio::sync::watch::channel(false);
    let silent = speak.clone();
    let follow = get(move || async move {
        let mut silent = silent.subscribe();
        Body::from_stream(futures::stream::once(async move {
            silent.wait_for(|spoken| *spoken).await.unwrap();
            Ok::<_, std::io::Error>("late")
        }))
    });
    let settings = |front: &mut crate::front::Front| {
        front.limits.idle = Duration::from_millis(100);
        front.limits.head = Duration::from_millis(100);
        front.authn.anonymous = true;
    };
    let bed = Bed::with(settings, Router::new().route("/containerLogs/ns/pod/c", follow)).await;
    let alice = bed.alice();
    let clients = [bed.h1(Some(&alice)).await, bed.h2(Some(&alice)).await, bed.h1(None).await, bed.h2(None).await];
    let following = clients.map(|mut client| tokio::spawn(async move { client.get("/containerLogs/ns/pod/c").await }));
    while speak.receiver_count() < 4 {
        tokio::task::yield_now().await;
    }
    // Connections that are younger and truly idle are ended, so these had the time to be.
    for alpn in [b"http/1.1".as_slice(), b"h2"] {
        outlive_an_idle_one(&bed, alpn).await;
    }
    speak.send_replace(true);
    for answer in following {
        assert_eq!(answer.await.unwrap(), (200, "late".to_owned()));
    }
}

#[tokio::test]
async fn requests_are_counted_by_what_they_are() {
    let counted = |labels: [&str; 4]| metrics::http::REQUESTS.with_label_values(&labels).get();
    let (cadvisor, other) =
        (["GET", "metrics/cadvisor", "readwrite", "false"], ["other", "other", "readwrite", "false"]);
    let before = (counted(cadvisor), counted(other));
    let bed = Bed::new().await;
    let mut client = bed.h1(Some(&bed.alice())).await;
    client.get("/metrics/cadvisor").await;
    client.ask("BREW", "/coffee", &[]).await;
    // Who is not let in counts as well.
    bed.h1(None).await.ask("BREW", "/coffee", &[]).await;
    assert!(counted(cadvisor) > before.0 && counted(other) >= before.1 + 2);
    assert!(metrics::http::DURATION.with_label_values(&cadvisor).get_sample_count() > 0);
    assert!(metrics::auth::AUTHZ_REQUESTS.with_label_values(&["201"]).get() >= 2);
}
