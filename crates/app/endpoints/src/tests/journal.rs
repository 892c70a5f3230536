//! `/logs/?query=`.

use std::fs;
use std::io::Read;
use std::time::Duration;

use axum::body::Body;
use http_body_util::BodyExt;
use tower::ServiceExt;

use super::fixture::{Node, request};

/// A journal that knows `kubelet` and prints what it is asked.
const JOURNAL: &str =
    "if [ \"$1\" = --field ]; then echo kubelet.service; exit; fi\nfor a in \"$@\"; do echo \"[$a]\"; done";

fn node() -> Node {
    let node = Node::new().with(|s| s.enable_system_log_query = true);
    fs::write(node.log_dir().join("messages"), "file").unwrap();
    node
}

#[tokio::test]
async fn a_service_is_looked_up_in_the_journal() {
    let node = node();
    node.journal(JOURNAL);
    let answer = node.get("/logs/?query=kubelet&tailLines=3&pattern=a%20b%3B%24(x)").await;
    assert_eq!((answer.code, answer.header("content-type")), (200, "text/plain; charset=utf-8"));
    let expected =
        "[--utc]\n[--no-pager]\n[--output=short-precise]\n[--lines=3]\n[--unit=kubelet]\n[--grep=a b;$(x)]\n";
    assert_eq!(answer.text(), expected);
}

#[tokio::test]
async fn a_service_that_the_journal_does_not_know_has_files() {
    let node = node();
    node.journal(JOURNAL);
    fs::write(node.log_dir().join("a.log"), "one\n").unwrap();
    fs::create_dir(node.log_dir().join("b")).unwrap();
    fs::write(node.log_dir().join("b/b.log"), "two\n").unwrap();
    assert_eq!(node.get("/logs/?query=a&query=b").await.text(), "one\ntwo\n");
    assert_eq!(node.get("/logs/?query=c").await.text(), "error: no logs of service c\n");
    assert_eq!(node.get("/logs/?query=..").await.text(), "error: no logs of service ..\n");
    assert!(node.get("/logs/?query=a&tailLines=1").await.text().starts_with("options cannot be applied"));
}

#[tokio::test]
async fn a_host_without_a_journal_has_files_only() {
    let node = node();
    fs::write(node.log_dir().join("a.log"), "one\n").unwrap();
    assert_eq!(node.get("/logs/?query=a").await.text(), "one\n");
}

#[tokio::test]
async fn without_the_switch_a_query_means_nothing() {
    let node = node().with(|s| s.enable_system_log_query = false);
    assert!(node.get("/logs/?query=kubelet").await.text().contains("<pre>"));
}

#[tokio::test]
async fn a_query_without_a_service_is_a_file() {
    let node = node();
    assert_eq!(node.get("/logs/?query=/messages").await.text(), "file");
    assert_eq!(node.get("/logs/messages").await.text(), "file");
    assert_eq!(node.get("/logs/?query=/../../etc/passwd").await.code, 404);
    let answer = node.get("/logs/?query=/messages&tailLines=3").await;
    assert_eq!(answer.code, 406);
    assert!(answer.text().contains("cannot specify file with options"));
    assert_eq!(node.get("/logs/?query=a&tailLines=x").await.code, 400);
}

#[tokio::test]
async fn logs_are_compressed_for_those_who_ask_for_exactly_that() {
    let node = node();
    node.journal(JOURNAL);
    let answer = node.get_with("/logs/?query=kubelet", &[("accept-encoding", "gzip")]).await;
    assert_eq!(answer.header("content-encoding"), "gzip");
    let mut text = String::new();
    flate2::read::GzDecoder::new(answer.body.as_slice()).read_to_string(&mut text).unwrap();
    assert!(text.contains("[--unit=kubelet]"), "{text}");
    let plain = node.get_with("/logs/?query=kubelet", &[("accept-encoding", "gzip, br")]).await;
    assert_eq!(plain.header("content-encoding"), "");
}

/// Waits until no process has this id any more.
async fn ended(pid: &str) {
    let proc = std::path::PathBuf::from("/proc").join(pid);
    // A zombie that nobody waited for has no command line.
    let running = || fs::read(proc.join("cmdline")).is_ok_and(|line| !line.is_empty());
    tokio::time::timeout(Duration::from_secs(20), async {
        while running() {
            tokio::task::yield_now().await;
        }
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn a_client_that_leaves_ends_the_journal_s_program() {
    let node = node();
    node.journal("if [ \"$1\" = --field ]; then echo kubelet.service; exit; fi\necho $$\nexec sleep 1000");
    let response = node.router().oneshot(request("GET", "/logs/?query=kubelet", &[], "")).await.unwrap();
    let mut body: Body = response.into_body();
    let first = body.frame().await.unwrap().unwrap().into_data().unwrap();
    let pid = String::from_utf8(first.to_vec()).unwrap().trim().to_owned();
    drop(body);
    ended(&pid).await;
}

#[tokio::test]
async fn a_journal_never_runs_far_ahead_of_its_reader() {
    let node = node();
    let written = node.dir.path().join("written");
    let script = format!(
        "if [ \"$1\" = --field ]; then echo kubelet.service; exit; fi\nyes | head -c 20000000 | tee {}; echo end",
        written.display()
    );
    node.journal(&script);
    let response = node.router().oneshot(request("GET", "/logs/?query=kubelet", &[], "")).await.unwrap();
    let mut body: Body = response.into_body();
    let mut read = 0;
    let mut last = bytes::Bytes::new();
    while let Some(frame) = body.frame().await {
        last = frame.unwrap().into_data().unwrap();
        read += last.len() as u64;
        // Pipes, and a few chunks of ours.
        let ahead = fs::metadata(&written).unwrap().len().saturating_sub(read);
        assert!(ahead < 1_000_000, "{ahead} bytes ahead of {read}");
    }
    assert_eq!(read, 20_000_004);
    assert!(last.ends_with(b"end\n"));
}
