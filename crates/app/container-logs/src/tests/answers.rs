//! What is answered to whom.

use std::os::unix::fs::symlink;

use model::runtime::ContainerState;

use super::rig::{Rig, container, line, whole};

#[tokio::test]
async fn refusals_have_the_codes_and_texts_of_the_book() {
    let rig = Rig::new().await;
    let rows = [
        ("GET", "/containerLogs/shop//app", 400, r#"{"message": "Missing podID."}"#),
        ("GET", "/containerLogs//web/app", 400, r#"{"message": "Missing podNamespace."}"#),
        ("GET", "/containerLogs/shop/web/", 400, r#"{"message": "Missing container name."}"#),
        ("GET", "/containerLogs/shop/web/app?tailLines=abc", 400, r#"{"message": "Unable to decode query."}"#),
        ("GET", "/containerLogs/shop/web/app?tailLines=-1", 422, r#"{"message": "Invalid request."}"#),
        ("GET", "/containerLogs/shop/none/app", 404, r#"pod "none" does not exist"#),
        ("GET", "/containerLogs/other/web/app", 404, r#"pod "web" does not exist"#),
        ("GET", "/containerLogs/shop/web/none", 404, r#"container "none" not found in pod "web""#),
        ("GET", "/containerLogs/shop/web/new", 400, r#"container "new" in pod "web" is not available"#),
        ("GET", "/containerLogs/shop/web", 404, "404: Page Not Found"),
        ("GET", "/containerLogs/shop/web/app/more", 404, "404: Page Not Found"),
        ("GET", "/containerLogs/shop/web/app/..%2f..%2fetc", 404, "404: Page Not Found"),
        ("GET", "/containerLogs/shop/web/%zz", 404, "404: Page Not Found"),
        ("POST", "/containerLogs/shop/web/app", 405, "405: Method Not Allowed"),
        ("HEAD", "/containerLogs/shop/web/app", 405, ""),
    ];
    for (method, path, code, body) in rows {
        assert_eq!(whole(rig.request(method, path).await).await, (code, body.to_owned()), "{method} {path}");
    }
    rig.status(r#""state":{"waiting":{"reason":"ImagePullBackOff"}}"#);
    let text = r#"container "app" in pod "web" is waiting to start: trying and failing to pull image"#;
    assert_eq!(rig.get("").await, (400, text.to_owned()));
    rig.status(r#""containerID":"fake://now","state":{"running":{}}"#);
    let text = r#"previous terminated container "app" in pod "web" not found"#;
    assert_eq!(rig.get("?previous=true").await, (400, text.to_owned()));
}

#[tokio::test]
async fn options_choose_what_is_read() {
    let rig = Rig::new().await;
    std::fs::write(rig.previous_log(), line("before")).unwrap();
    for (time, text) in [
        ("00:00:01", "stdout F one"),
        ("00:00:02", "stderr P tw"),
        ("00:00:03", "stderr F o"),
        ("00:00:04", "stdout F three"),
    ] {
        rig.write(&format!("2026-01-01T{time}Z {text}\n"));
    }
    let rows = [
        ("", "one\ntwo\nthree\n"),
        ("?previous", "before\n"),
        ("?tailLines=1", "three\n"),
        ("?tailLines=2", "o\nthree\n"),
        ("?tailLines=0", ""),
        ("?tail=all", "one\ntwo\nthree\n"),
        ("?sinceTime=2026-01-01T00:00:03Z", "o\nthree\n"),
        ("?sinceTime=2026-01-01T00:00:04Z&tailLines=3", "three\n"),
        ("?sinceTime=2026-01-01T00:00:01Z&tailLines=1", "three\n"),
        ("?sinceSeconds=1", ""),
        ("?limitBytes=6", "one\ntw"),
        ("?limitBytes=5&timestamps=true", "2026-"),
        ("?timestamps&tailLines=1", "2026-01-01T00:00:04.000000000Z three\n"),
        ("?stream=Stderr", "two\n"),
        ("?stream=Stdout&timestamps=1&limitBytes=34", "2026-01-01T00:00:01.000000000Z one"),
    ];
    for (query, text) in rows {
        assert_eq!(rig.get(query).await, (200, text.to_owned()), "{query}");
    }
    let text = rig.get("?follow&limitBytes=6").await;
    assert_eq!(text, (200, "one\ntw".to_owned()), "a limit ends a follow too");
}

#[tokio::test]
async fn the_answer_is_chunked_and_untyped() {
    let rig = Rig::new().await;
    rig.write(&line("one"));
    let answer = rig.ask("").await;
    assert_eq!(answer.headers()["transfer-encoding"], "chunked");
    assert!(!answer.headers().contains_key("content-type"));
}

#[tokio::test]
async fn a_log_longer_than_any_buffer_comes_whole() {
    let rig = Rig::new().await;
    let (mut log, mut written) = (String::new(), String::new());
    for n in 0..6000_usize {
        let text = format!("{n} {}", "x".repeat(n * 7919 % 300));
        if n % 3 == 0 {
            // Longer than a runtime makes them, too.
            let long = "y".repeat(if n % 600 == 0 { 90_000 } else { 10 });
            log += &format!("2026-01-01T00:00:00Z stdout P {long}\n");
            written += &long;
        }
        log += &line(&text);
        written += &text;
        written += "\n";
    }
    rig.write(&log);
    rig.write("2026-01-01T00:00:00Z stdout F no end");
    let (code, body) = rig.get("").await;
    assert!(code == 200 && body == written + "no end", "{code} {}", body.len());
    let (_, tail) = rig.get("?tailLines=5000").await;
    let ended = body.strip_suffix("no end").unwrap();
    assert!(
        tail.lines().count() > 2000 && ended.ends_with(&tail),
        "a line that is not ended is none of the last lines"
    );
}

/// The head is out by then: errors are part of the body.
#[tokio::test]
async fn what_fails_after_the_head_is_told_in_the_body() {
    let rig = Rig::new().await;
    let log = rig.log().display().to_string();
    let text = format!("failed to try resolving symlinks in path \"{log}\": lstat {log}: no such file or directory");
    assert_eq!(rig.get("").await, (200, text));

    std::fs::create_dir(rig.log()).unwrap();
    let (code, body) = rig.get("").await;
    assert_eq!((code, body.contains("failed to open log file")), (200, true), "{body}");
    std::fs::remove_dir(rig.log()).unwrap();

    std::fs::write(rig.log(), "hello\n").unwrap();
    let text = "failed to get parse function: unsupported log format: \"hello\\n\"";
    assert_eq!(rig.get("").await, (200, text.to_owned()));

    rig.observe_containers(Vec::new());
    let text = "unable to retrieve container logs for fake://now";
    assert_eq!(rig.get("").await, (200, text.to_owned()), "neither board nor runtime know the container");
}

#[tokio::test]
async fn a_log_may_be_reached_through_a_link() {
    let rig = Rig::new().await;
    let real = rig.dir.path().join("docker-json.log");
    std::fs::write(&real, "{\"log\":\"hello\\n\",\"stream\":\"stdout\",\"time\":\"2026-01-01T00:00:00Z\"}\n").unwrap();
    symlink(&real, rig.log()).unwrap();
    assert_eq!(rig.get("?timestamps").await, (200, "2026-01-01T00:00:00.000000000Z hello\n".to_owned()));
}

#[tokio::test]
async fn the_runtime_is_asked_where_the_log_is_when_the_board_does_not_say() {
    let rig = Rig::new().await;
    rig.observe_containers(vec![container("now", ContainerState::Running, String::new())]);
    assert_eq!(rig.get("").await.1, "unable to retrieve container logs for fake://now");
    assert_eq!(rig.fake.count("ContainerStatus"), 1);
}
