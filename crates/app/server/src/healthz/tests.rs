use std::sync::atomic::{AtomicBool, Ordering};

use axum::body::Body;
use axum::http::Request;
use http_body_util::BodyExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tower::ServiceExt;

use super::*;

async fn ask(checks: &Checks, path: &str) -> (u16, String) {
    let request = Request::get(path).body(Body::empty()).unwrap();
    let response = router(checks.clone()).oneshot(request).await.unwrap();
    assert!(
        response.status() == 405
            || response.status() == 404
            || response.headers().contains_key("x-content-type-options")
    );
    let code = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (code, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test]
async fn answers_as_the_book_says() {
    let fine = Checks::default().with("log", || Ok(())).with("syncloop", || Ok(()));
    let sick = Checks::default().with("syncloop", || Err("stuck".to_owned()));
    let rows: &[(&Checks, &str, u16, &str)] = &[
        (&fine, "/healthz", 200, "ok"),
        (&fine, "/healthz?verbose", 200, "[+]ping ok\n[+]log ok\n[+]syncloop ok\nhealthz check passed\n"),
        (&fine, "/healthz/ping", 200, "ok"),
        (&fine, "/healthz/log", 200, "ok"),
        (&fine, "/healthz/nope", 404, "404 page not found\n"),
        (&sick, "/healthz", 500, "[+]ping ok\n[-]syncloop failed: reason withheld\nhealthz check failed\n"),
        (&sick, "/healthz/syncloop", 500, "internal server error: stuck\n"),
        (&sick, "/healthz/ping", 200, "ok"),
        (&sick, "/healthz?exclude=syncloop", 200, "ok"),
    ];
    for (checks, path, code, body) in rows {
        assert_eq!(ask(checks, path).await, (*code, (*body).to_owned()), "{path}");
    }
    let (code, body) = ask(&fine, "/healthz?exclude=nope&verbose").await;
    assert!(code == 200 && body.contains("warn: "), "{body}");
    assert_eq!(ask(&fine, "/pods").await.0, 404);
}

#[test]
fn the_watchdog_is_told_the_first_failure() {
    let broken = Arc::new(AtomicBool::new(false));
    let seen = broken.clone();
    let checks = Checks::default()
        .with("syncloop", move || if seen.load(Ordering::Relaxed) { Err("stuck".to_owned()) } else { Ok(()) });
    assert_eq!(checks.first_failure(), None);
    broken.store(true, Ordering::Relaxed);
    assert_eq!(checks.first_failure(), Some(("syncloop", "stuck".to_owned())));
}

async fn listening() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(accept(listener, Checks::default()));
    address
}

async fn raw(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut out = Vec::new();
    let _reset_is_an_answer_too = stream.read_to_end(&mut out).await;
    String::from_utf8_lossy(&out).into_owned()
}

#[tokio::test]
async fn serves_over_tcp() {
    let answer = raw(listening().await, "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("\r\n\r\nok"), "{answer}");
}

#[tokio::test]
async fn a_head_that_is_too_large_is_refused_and_others_are_served() {
    let address = listening().await;
    let many = "a: b\r\n".repeat(HEAD_FIELDS + 10);
    let answer = raw(address, &format!("GET /healthz HTTP/1.1\r\nHost: x\r\n{many}\r\n")).await;
    assert!(!answer.contains("200 OK"), "{answer}");
    let long = "a".repeat(HEAD_BYTES * 2);
    let answer = raw(address, &format!("GET /healthz HTTP/1.1\r\nHost: x\r\nlong: {long}\r\n\r\n")).await;
    assert!(!answer.contains("200 OK"), "{answer}");
    let answer = raw(address, "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await;
    assert!(answer.contains("200 OK"), "{answer}");
}

#[tokio::test]
async fn callers_who_say_nothing_are_sent_away_and_do_not_block_others() {
    let address = listening().await;
    let mut silent = Vec::new();
    for _ in 0..CONNECTIONS - 1 {
        silent.push(TcpStream::connect(address).await.unwrap());
    }
    let answer = raw(address, "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await;
    assert!(answer.contains("200 OK"), "{answer}");
    // One more of the silent ones: now every place is taken, until the time for a head is over.
    silent.push(TcpStream::connect(address).await.unwrap());
    let answer = raw(address, "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await;
    assert!(answer.contains("200 OK"), "{answer}");
}
