//! Logs of real containers: what a runtime writes, also while its files are rotated.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use serde_json::json;
use testbed::{BosunOptions, wait_until};

use crate::node::{Node, SOON, shell};

/// The body of `GET /containerLogs/default/<pod>-bed/main`, read to its end.
fn logs(node: &Node, pod: &str, query: &str) -> String {
    let mut stream = UnixStream::connect(node.bosun.socket()).expect("the daemon listens");
    // HTTP/1.0: the body ends with the connection, without chunks.
    write!(stream, "GET /containerLogs/default/{pod}-bed/main{query} HTTP/1.0\r\n\r\n").expect("sent");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("an answer with an end");
    let answer = String::from_utf8(answer).expect("text");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    assert!(head.contains(" 200 "), "{answer}");
    body.to_owned()
}

fn find(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            find(&path, found);
        } else {
            found.push(path);
        }
    }
}

#[test]
fn a_follower_sees_every_line_once_over_rotations() {
    let config = json!({
        "containerLogMaxSize": "64Ki",
        "containerLogMaxFiles": 3,
        "containerLogMonitorInterval": "3s",
    });
    let node = Node::with(BosunOptions { config, ..BosunOptions::default() });
    let script = "i=0; while [ $i -lt 12000 ]; do echo \"$i of many lines that fill a log\"; i=$((i+1)); \
        [ $((i % 100)) -eq 0 ] && sleep 0.1; done; exit 0";
    node.put("talker", &format!("  restartPolicy: Never\n  containers:\n{}", shell("main", script, "")));
    node.wait_running("talker");
    // Ends by itself, with the container.
    let text = logs(&node, "talker", "?follow=true");
    let numbers: Vec<u32> = text.lines().filter_map(|l| l.split(' ').next()?.parse().ok()).collect();
    assert_eq!(numbers.len(), text.lines().count(), "nothing but lines");
    let expected: Vec<u32> = (0..12_000).collect();
    let wrong = numbers.iter().zip(&expected).position(|(a, b)| a != b);
    assert!(numbers == expected, "{} lines, wrong from {wrong:?}", numbers.len());

    let mut files = Vec::new();
    find(&node.bed.dir().join("logs"), &mut files);
    let of_container = |f: &&PathBuf| f.to_string_lossy().contains("/main/0.log");
    let files: Vec<&PathBuf> = files.iter().filter(of_container).collect();
    assert!((2..=3).contains(&files.len()), "{files:?}");
    let compressed = files.iter().filter(|f| f.extension().is_some_and(|e| e == "gz")).count();
    assert_eq!(compressed, files.len() - 2, "the newest rotated file is plain: {files:?}");
}

#[test]
fn the_log_before_the_last_restart_can_be_read() {
    let node = Node::start();
    let traces = node.traces();
    let script = "echo try >> /traces/trace; n=$(wc -l < /traces/trace); echo \"life $n\"; [ $n -ge 2 ] && exec sleep 1000; exit 1";
    let spec = format!(
        "  containers:\n{}  volumes:\n  - name: t\n    hostPath: {{path: {}}}\n",
        shell("main", script, "    volumeMounts: [{name: t, mountPath: /traces}]\n"),
        traces.display(),
    );
    node.put("crasher", &spec);
    wait_until("the second life", SOON, || {
        let pod = node.bosun.pod("crasher").map_err(|e| e.to_string())?.ok_or("no pod")?;
        let status = &pod["status"]["containerStatuses"][0];
        let ready = status["restartCount"] == 1 && status["state"]["running"].is_object();
        if ready { Ok(()) } else { Err(format!("{status}\n{}", node.bosun.log())) }
    })
    .unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(logs(&node, "crasher", ""), "life 2\n");
    assert_eq!(logs(&node, "crasher", "?previous=true"), "life 1\n");
    let stamped = logs(&node, "crasher", "?timestamps=true&tailLines=1");
    let (time, text) = stamped.split_once(' ').expect("a time");
    assert!(text == "life 2\n" && time.len() >= 30 && time.contains('.'), "{stamped}");
}
