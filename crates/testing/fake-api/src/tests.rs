//! Watches as they go over the wire.

use std::time::Duration;

use fakes::FakeApi;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::TcpStream;

use crate::FakeApiServer;

const SOON: Duration = Duration::from_secs(20);

async fn watch(server: &FakeApiServer, query: &str) -> Lines<BufReader<TcpStream>> {
    let address = server.url().strip_prefix("http://").unwrap().to_owned();
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET /api/v1/nodes?watch=true&{query} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    BufReader::new(stream).lines()
}

/// The next event as `TYPE name@version`; `None` when the stream ended.
async fn event(lines: &mut Lines<BufReader<TcpStream>>) -> Option<String> {
    loop {
        let line = tokio::time::timeout(SOON, lines.next_line()).await.expect("a line comes soon").unwrap()?;
        // Everything else is heads and sizes of chunks.
        let Ok(event @ Value::Object(_)) = serde_json::from_str::<Value>(&line) else { continue };
        let meta = &event["object"]["metadata"];
        let text = |v: &Value| v.as_str().unwrap_or_default().to_owned();
        let end = if meta["annotations"]["k8s.io/initial-events-end"] == "true" { " end" } else { "" };
        let code = event["object"]["code"].as_u64().map(|c| format!(" {c}")).unwrap_or_default();
        return Some(format!(
            "{} {}@{}{end}{code}",
            text(&event["type"]),
            text(&meta["name"]),
            text(&meta["resourceVersion"])
        ));
    }
}

fn put(server: &FakeApiServer, name: &str) {
    server.api().put_json(&format!("/api/v1/nodes/{name}"), json!({ "metadata": { "name": name } }));
}

async fn server() -> FakeApiServer {
    let server = FakeApiServer::plain(FakeApi::new()).await;
    put(&server, "a");
    put(&server, "b");
    server
}

#[tokio::test]
async fn a_watch_begins_after_its_version_and_ends_with_its_time() {
    let server = server().await;
    let mut lines = watch(&server, "resourceVersion=2&timeoutSeconds=1").await;
    assert_eq!(event(&mut lines).await.as_deref(), Some("ADDED b@3"));
    put(&server, "a");
    assert_eq!(event(&mut lines).await.as_deref(), Some("MODIFIED a@4"));
    server.api().vanish::<model::core::Node>(None, "b");
    assert_eq!(event(&mut lines).await.as_deref(), Some("DELETED b@5"));
    assert_eq!(event(&mut lines).await, None);
}

#[tokio::test]
async fn initial_events_end_with_a_bookmark() {
    let server = server().await;
    let query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut lines = watch(&server, query).await;
    for wanted in ["ADDED a@2", "ADDED b@3", "BOOKMARK @3 end"] {
        assert_eq!(event(&mut lines).await.as_deref(), Some(wanted));
    }
}

#[tokio::test]
async fn a_forgotten_version_has_expired() {
    let server = server().await;
    server.api().store(fakes::api::Store::compact);
    let mut lines = watch(&server, "resourceVersion=2").await;
    assert_eq!(event(&mut lines).await.as_deref(), Some("ERROR @ 410"));
    assert_eq!(event(&mut lines).await, None);
}

#[tokio::test]
async fn bookmarks_come_to_those_who_ask() {
    let server = server().await;
    server.watches(|w| w.bookmark_every = Duration::from_millis(10));
    let mut asked = watch(&server, "resourceVersion=3&allowWatchBookmarks=true").await;
    let mut not = watch(&server, "resourceVersion=3").await;
    assert_eq!(event(&mut asked).await.as_deref(), Some("BOOKMARK @3"));
    assert_eq!(event(&mut asked).await.as_deref(), Some("BOOKMARK @3"));
    put(&server, "c");
    assert_eq!(event(&mut not).await.as_deref(), Some("ADDED c@4"));
}
