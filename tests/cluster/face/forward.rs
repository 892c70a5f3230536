//! kubectl port-forward: many connections, much data, bounded memory.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use super::Running;
use crate::node::{LASTS, create, pod, shell, start, wait_running};
use serde_json::json;
use testbed::ClusterNode;

/// Sent through each direction in one connection.
const MUCH: u64 = 1 << 30;

/// A server in this process; a pod in the host's network has it on its own loopback. Answers its port.
fn serve(talk: impl Fn(TcpStream) + Send + Clone + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let talk = talk.clone();
            std::thread::spawn(move || talk(stream));
        }
    });
    port.to_string()
}

/// What comes goes back.
fn echoes(stream: TcpStream) {
    let mut out = stream.try_clone().expect("cloned");
    let mut input = stream;
    let _until_somebody_leaves = std::io::copy(&mut input, &mut out);
}

/// Takes [`MUCH`], then tells how much that was.
fn takes(stream: TcpStream) {
    let mut out = stream.try_clone().expect("cloned");
    let taken = std::io::copy(&mut stream.take(MUCH), &mut std::io::sink()).unwrap_or(0);
    let _told = write!(out, "{taken}");
}

/// Gives [`MUCH`].
fn gives(mut stream: TcpStream) {
    let _given = std::io::copy(&mut std::io::repeat(7).take(MUCH), &mut stream);
}

/// `Forwarding from 127.0.0.1:PORT -> N`: the port, by N.
fn forwarded(text: &str, target: &str) -> u16 {
    let line =
        text.lines().find(|l| l.starts_with("Forwarding from 127.0.0.1:") && l.ends_with(&format!("-> {target}")));
    let port = line.and_then(|l| l.trim_start_matches("Forwarding from 127.0.0.1:").split(' ').next());
    port.and_then(|p| p.parse().ok()).unwrap_or_else(|| panic!("no port for {target}: {text}"))
}

fn resident_kib(node: &ClusterNode) -> u64 {
    testbed::usage(node.bosun.pid().expect("it runs")).expect("it still runs").rss_kib
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
    let writer = std::thread::spawn(move || write_half.write_all(&out).expect("written"));
    // Not until the end: whether an end in one direction is passed on is the runtime's affair (containerd 1.6 does not).
    let mut back = vec![0; sent.len()];
    let read = stream.read_exact(&mut back);
    assert!(read.is_ok(), "connection {n}: {read:?}");
    writer.join().expect("no panic");
    assert!(back == sent, "connection {n}: other bytes came back");
}

#[test]
fn port_forward_carries_fifty_connections_and_a_gigabyte_each_way() {
    let node = start();
    create(&node, &pod("serves", json!({"hostNetwork": true, "containers": [shell("main", LASTS, json!({}))]})));
    wait_running(&node, "serves");
    let targets = [serve(echoes), serve(takes), serve(gives)];
    let ports = targets.each_ref().map(|t| format!(":{t}"));
    let mut forward = Running::start(&node, &["port-forward", "pod/serves", &ports[0], &ports[1], &ports[2]]);
    let mut said = String::new();
    for target in &targets {
        let line = format!("-> {target}\n");
        if !said.contains(&line) {
            said.push_str(&forward.read_until(&line));
        }
    }
    let [echoes, sink, source] = targets.each_ref().map(|t| forwarded(&said, t));
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
    let mut counted = String::new();
    stream.read_to_string(&mut counted).expect("read");
    assert_eq!(counted.trim(), MUCH.to_string(), "to the pod");
    let after = resident_kib(&node);
    println!("resident before {before} KiB, after {after} KiB");
    assert!(after < before + 8 * 1024, "grew from {before} to {after} KiB");
}
