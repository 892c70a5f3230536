//! kubectl port-forward: many connections, much data, bounded memory.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use super::Running;
use crate::node::{create, pod, shell, start, wait_running};
use serde_json::json;
use testbed::ClusterNode;

/// Sent through each direction in one connection.
const MUCH: u64 = 1 << 30;

/// Echo on 7, a sink that tells what it took on 9, a source on 19.
const SERVES: &str = "nc -ll -p 7 -e cat & nc -ll -p 9 -e sh -c 'wc -c' & \
                      nc -ll -p 19 -e head -c 1073741824 /dev/zero & trap 'kill %1 %2 %3; exit 0' TERM; wait";

/// `Forwarding from 127.0.0.1:PORT -> N`: the port, by N.
fn forwarded(text: &str, target: &str) -> u16 {
    let line =
        text.lines().find(|l| l.starts_with("Forwarding from 127.0.0.1:") && l.ends_with(&format!("-> {target}")));
    let port = line.and_then(|l| l.trim_start_matches("Forwarding from 127.0.0.1:").split(' ').next());
    port.and_then(|p| p.parse().ok()).unwrap_or_else(|| panic!("no port for {target}: {text}"))
}

fn resident_kib(node: &ClusterNode) -> u64 {
    let pid = node.bosun.pid().expect("it runs");
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("readable");
    let line = status.lines().find(|l| l.starts_with("VmRSS:")).expect("a line");
    line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).expect("a number")
}

fn connect(port: u16) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", port)).expect("kubectl listens");
    stream.set_read_timeout(Some(Duration::from_secs(120))).expect("set");
    stream
}

fn echo(port: u16, n: usize) {
    let mut stream = connect(port);
    let sent: Vec<u8> = (0..200_000).map(|i| ((i * 7 + n) % 251) as u8).collect();
    let mut write_half = stream.try_clone().expect("cloned");
    let out = sent.clone();
    let writer = std::thread::spawn(move || {
        write_half.write_all(&out).expect("written");
        write_half.shutdown(Shutdown::Write).expect("half closed");
    });
    let mut back = Vec::new();
    stream.read_to_end(&mut back).expect("read");
    writer.join().expect("no panic");
    assert!(back == sent, "connection {n}: {} of {} bytes came back", back.len(), sent.len());
}

#[test]
fn port_forward_carries_fifty_connections_and_a_gigabyte_each_way() {
    let node = start();
    create(&node, &pod("serves", json!({"containers": [shell("main", SERVES, json!({}))]})));
    wait_running(&node, "serves");
    let mut forward = Running::start(&node, &["port-forward", "pod/serves", ":7", ":9", ":19"]);
    let mut said = forward.read_until("-> 7\n");
    for target in ["-> 9\n", "-> 19\n"] {
        if !said.contains(target) {
            said.push_str(&forward.read_until(target));
        }
    }
    let (echoes, sink, source) = (forwarded(&said, "7"), forwarded(&said, "9"), forwarded(&said, "19"));
    std::thread::scope(|scope| {
        for n in 0..50 {
            scope.spawn(move || echo(echoes, n));
        }
    });

    let before = resident_kib(&node);
    let mut stream = connect(source);
    let (mut took, mut buffer) = (0, vec![0; 1 << 16]);
    loop {
        match stream.read(&mut buffer).expect("read") {
            0 => break,
            n => took += n as u64,
        }
    }
    assert_eq!(took, MUCH, "from the pod");
    let mut stream = connect(sink);
    for _ in 0..MUCH / (1 << 16) {
        stream.write_all(&buffer).expect("written");
    }
    stream.shutdown(Shutdown::Write).expect("half closed");
    let mut counted = String::new();
    stream.read_to_string(&mut counted).expect("read");
    assert_eq!(counted.trim(), MUCH.to_string(), "to the pod");
    let after = resident_kib(&node);
    println!("resident before {before} KiB, after {after} KiB");
    assert!(after < before + 8 * 1024, "grew from {before} to {after} KiB");
}
