//! Against a server on loopback that answers from a list.

use std::net::SocketAddr;

use actor::{Kernel, KernelConfig};
use ports::fetch::Fetch;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::UrlFetch;

/// Answers one connection after the other; gives the requests.
async fn server(answers: Vec<String>) -> (SocketAddr, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let task = tokio::spawn(async move {
        let mut seen = Vec::new();
        for answer in answers {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                if stream.read(&mut byte).await.unwrap() == 0 {
                    break;
                }
                request.push(byte[0]);
            }
            seen.push(String::from_utf8(request).unwrap());
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
        seen
    });
    (address, task)
}

fn answer(head: &str, body: &str) -> String {
    format!("HTTP/1.1 {head}\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

fn fetch() -> UrlFetch {
    UrlFetch::new("kubelet/v1", Kernel::new(KernelConfig::default()).effects("fetch"))
}

#[tokio::test]
async fn a_document_is_read_with_the_headers_that_were_asked_for() {
    let (at, task) = server(vec![answer("200 OK", "hello")]).await;
    let headers = [("X-One".to_owned(), "1".to_owned()), ("X-One".to_owned(), "2".to_owned())];
    let fetched = fetch().get(&format!("http://{at}/a?b=c#d"), &headers, 100).await.unwrap();
    assert_eq!((fetched.code, &fetched.body[..]), (200, &b"hello"[..]));
    let request = task.await.unwrap().remove(0).to_lowercase();
    assert!(request.starts_with("get /a?b=c http/1.1\r\n"), "{request}");
    for line in ["x-one: 1", "x-one: 2", "user-agent: kubelet/v1", &format!("host: {at}")] {
        assert!(request.contains(&format!("{line}\r\n")), "{line}: {request}");
    }
}

#[tokio::test]
async fn a_body_that_is_too_long_is_cut_one_byte_behind_the_limit() {
    let (at, _task) = server(vec![answer("200 OK", &"x".repeat(50_000))]).await;
    let fetched = fetch().get(&format!("http://{at}/"), &[], 1000).await.unwrap();
    assert_eq!(fetched.body.len(), 1001);
}

#[tokio::test]
async fn failures_are_answers_and_redirects_are_followed() {
    let (at, task) = server(vec![
        answer("302 Found\r\nLocation: /b", ""),
        answer("301 Moved\r\nLocation: c", ""),
        answer("404 Not Found", "no"),
    ])
    .await;
    let fetched = fetch().get(&format!("http://{at}/a"), &[], 100).await.unwrap();
    assert_eq!((fetched.code, &fetched.body[..]), (404, &b"no"[..]));
    let paths: Vec<String> = task.await.unwrap().iter().map(|r| r.split(' ').nth(1).unwrap().to_owned()).collect();
    assert_eq!(paths, ["/a", "/b", "/c"]);
}

#[tokio::test]
async fn a_redirect_to_another_host_takes_no_secrets_along() {
    let (there, task) = server(vec![answer("200 OK", "")]).await;
    let elsewhere = format!("302 Found\r\nLocation: http://localhost:{}/", there.port());
    let (at, _first) = server(vec![answer(&elsewhere, "")]).await;
    let headers = [("Authorization".to_owned(), "s3cret".to_owned()), ("X-Keep".to_owned(), "1".to_owned())];
    fetch().get(&format!("http://{at}/"), &headers, 100).await.unwrap();
    let request = task.await.unwrap().remove(0).to_lowercase();
    assert!(!request.contains("s3cret") && request.contains("x-keep: 1"), "{request}");
}

#[tokio::test]
async fn what_cannot_be_got_is_said() {
    let endless = vec![answer("302 Found\r\nLocation: /", ""); 11];
    let (at, _task) = server(endless).await;
    let cut = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nx".to_owned();
    let (short, _short) = server(vec![cut]).await;
    let rows = [
        ("ftp://x/".to_owned(), "not an http or https URL"),
        ("http://127.0.0.1:1/".to_owned(), "refused"),
        (format!("http://{at}/"), "stopped after 10 redirects"),
        (format!("http://{short}/"), "while reading the body"),
    ];
    for (url, reason) in rows {
        let error = fetch().get(&url, &[], 100).await.unwrap_err();
        assert!(error.contains(reason), "{error}");
    }
    let bad = [("a b".to_owned(), "x".to_owned())];
    assert!(fetch().get("http://127.0.0.1:1/", &bad, 1).await.unwrap_err().contains("is no name of a header"));
}

#[tokio::test]
async fn a_server_without_tls_is_refused_on_https() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(answer("400 Bad Request", "").as_bytes()).await.unwrap();
    });
    let error = fetch().get(&format!("https://127.0.0.1:{port}/"), &[], 1).await.unwrap_err();
    assert!(error.starts_with(&format!("GET https://127.0.0.1:{port}/: ")), "{error}");
}
