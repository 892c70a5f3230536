//! Bytes passed on unseen.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;

use super::bed::{Bed, SPDY, SWITCHING, head, read, settings, soon, taken_until_stopped};

/// A bed that hands the streaming server's side of each stream to the test, after the 101.
async fn bed() -> (Bed, mpsc::Receiver<TcpStream>) {
    let (give, take) = mpsc::channel(8);
    let bed = Bed::start(move |mut stream, _| {
        let give = give.clone();
        async move {
            stream.write_all(format!("{SWITCHING}\r\n").as_bytes()).await.expect("taken");
            give.send(stream).await.expect("the test waits");
        }
    })
    .await;
    (bed, take)
}

async fn stream(bed: &Bed, runtime: &mut mpsc::Receiver<TcpStream>) -> (TcpStream, TcpStream) {
    let (client, head) = bed.ask("POST /exec/shop/web/main?output=1", SPDY).await;
    assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
    (client, soon(runtime.recv()).await.expect("asked"))
}

#[tokio::test]
async fn the_request_is_replayed_and_early_bytes_of_both_sides_are_kept() {
    let seen = Arc::new(Mutex::new(String::new()));
    let note = Arc::clone(&seen);
    let bed = Bed::start(move |mut runtime, head| {
        *note.lock().expect("no panic") = head;
        async move {
            let answer =
                format!("{SWITCHING}X-Stream-Protocol-Version: v4.channel.k8s.io\r\n\r\nearly from the runtime");
            runtime.write_all(answer.as_bytes()).await.expect("taken");
            let got = read(&mut runtime, 21).await;
            runtime.write_all(got.to_uppercase().as_bytes()).await.expect("taken");
        }
    })
    .await;
    let mut client = bed.connect().await;
    let request = format!(
        "POST /exec/shop/web/any/main?command=ls&output=1 HTTP/1.1\r\nHost: node:10250\r\n{SPDY}\
         X-Stream-Protocol-Version: v4.channel.k8s.io\r\nX-Stream-Protocol-Version: v3.channel.k8s.io\r\n\
         X-Forwarded-For: 10.0.0.1\r\nAuthorization: Bearer secret\r\n\r\nearly from the client"
    );
    client.write_all(request.as_bytes()).await.expect("taken");
    let answer = head(&mut client).await;
    assert!(answer.starts_with("HTTP/1.1 101 "), "{answer}");
    assert!(answer.to_ascii_lowercase().contains("x-stream-protocol-version: v4.channel.k8s.io"), "{answer}");
    assert_eq!(soon(read(&mut client, 22)).await, "early from the runtime");
    assert_eq!(soon(read(&mut client, 21)).await, "EARLY FROM THE CLIENT");
    let head = seen.lock().expect("no panic").to_ascii_lowercase();
    assert!(head.starts_with("post /stream/token http/1.1\r\n"), "{head}");
    for line in [
        "host: node:10250",
        "connection: upgrade",
        "upgrade: spdy/3.1",
        "x-forwarded-for: 10.0.0.1, 127.0.0.1",
        "x-stream-protocol-version: v4.channel.k8s.io",
        "x-stream-protocol-version: v3.channel.k8s.io",
    ] {
        assert!(head.contains(&format!("\r\n{line}\r\n")), "{line} is missing: {head}");
    }
    assert!(!head.contains("secret"), "{head}");
    let asked = bed.asked().join("");
    for part in ["container_id: \"id-main\"", "cmd: [\"ls\"]", "stdout: true", "stderr: false", "tty: false"] {
        assert!(asked.contains(part), "{part}: {asked}");
    }
}

#[tokio::test]
async fn an_attach_has_the_terminal_of_its_container_whatever_is_asked_for() {
    let (bed, _runtime) = bed().await;
    for (container, query, parts) in [
        ("shell", "output=1&error=1", ["tty: true", "stderr: false"]),
        ("main", "output=1&tty=1", ["tty: false", "stderr: false"]),
        ("main", "output=1&error=1", ["tty: false", "stderr: true"]),
    ] {
        let (_client, head) = bed.ask(&format!("POST /attach/shop/web/{container}?{query}"), SPDY).await;
        assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
        let asked = bed.asked().pop().expect("asked");
        for part in parts {
            assert!(asked.contains(part), "{part}: {asked}");
        }
    }
}

#[tokio::test]
async fn websockets_of_other_protocols_are_relayed_as_they_are() {
    let (bed, mut runtime) = bed().await;
    let headers = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                   Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: v4.channel.k8s.io\r\n";
    let (_client, head) = bed.ask("GET /exec/shop/web/main?output=1", headers).await;
    assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
    soon(runtime.recv()).await.expect("asked");
    let (_client, head) = bed.ask("GET /portForward/shop/web?port=80,81", headers).await;
    assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
    let asked = bed.asked().pop().expect("asked");
    assert!(asked.contains("pod_sandbox_id: \"s1\"") && asked.contains("port: [80, 81]"), "{asked}");
}

#[tokio::test]
async fn each_side_may_finish_while_the_other_goes_on() {
    let (bed, mut runtime) = bed().await;
    for client_first in [true, false] {
        let (client, runtime) = stream(&bed, &mut runtime).await;
        let (mut first, mut second) = if client_first { (client, runtime) } else { (runtime, client) };
        first.write_all(b"question").await.expect("taken");
        first.shutdown().await.expect("open");
        let mut got = String::new();
        soon(second.read_to_string(&mut got)).await.expect("readable");
        assert_eq!(got, "question");
        second.write_all(b"answer").await.expect("the other direction is open");
        second.shutdown().await.expect("open");
        got.clear();
        soon(first.read_to_string(&mut got)).await.expect("readable");
        assert_eq!(got, "answer");
        soon(bed.streams.wait_for(0)).await;
    }
}

#[tokio::test]
async fn a_gibibyte_would_pass_and_every_byte_of_it_is_the_right_one() {
    let (bed, mut runtime) = bed().await;
    let (mut client, mut runtime) = stream(&bed, &mut runtime).await;
    // 64 MiB are as good as 1 GiB here; the whole of it is measured, not tested.
    let total = 64_usize << 20;
    let sending = tokio::spawn(async move {
        let piece: Vec<u8> = (0..=250_u8).cycle().take(251 * 1024).collect();
        let mut left = total;
        while left > 0 {
            let n = left.min(piece.len());
            runtime.write_all(&piece[..n]).await.expect("taken");
            left -= n;
        }
    });
    let (mut got, mut buffer) = (0_usize, vec![0; 1 << 16]);
    loop {
        let n = soon(client.read(&mut buffer)).await.expect("readable");
        if n == 0 {
            break;
        }
        let right = buffer[..n].iter().enumerate().all(|(i, b)| usize::from(*b) == (got + i) % 251);
        assert!(right, "wrong bytes after {got}");
        got += n;
    }
    assert_eq!(got, total);
    sending.await.expect("no panic");
}

#[tokio::test]
async fn a_reader_that_sleeps_stops_the_writer() {
    let (bed, mut runtime) = bed().await;
    let (mut client, mut server) = stream(&bed, &mut runtime).await;
    // What is taken lies in the buffers of four sockets; ours is 32 KiB of it.
    taken_until_stopped(&mut server, 64 << 20).await;
    taken_until_stopped(&mut client, 64 << 20).await;
}

#[tokio::test]
async fn whoever_goes_takes_the_other_along() {
    let (bed, mut runtime) = bed().await;
    let (client, mut server) = stream(&bed, &mut runtime).await;
    drop(client);
    let mut rest = Vec::new();
    soon(server.read_to_end(&mut rest)).await.expect("an end");
    drop(server);
    soon(bed.streams.wait_for(0)).await;
    let (mut client, server) = stream(&bed, &mut runtime).await;
    drop(server);
    soon(client.read_to_end(&mut rest)).await.expect("an end");
    drop(client);
    soon(bed.streams.wait_for(0)).await;
    assert!(rest.is_empty());
}

#[tokio::test]
async fn a_client_that_breaks_off_in_mid_stream_ends_a_runtime_that_writes_on() {
    let (bed, mut runtime) = bed().await;
    let (client, mut server) = stream(&bed, &mut runtime).await;
    let writing = tokio::spawn(async move {
        let piece = vec![0; 64 << 10];
        while server.write_all(&piece).await.is_ok() {}
    });
    client.readable().await.expect("data");
    drop(client); // unread data: a reset
    soon(writing).await.expect("no panic");
    soon(bed.streams.wait_for(0)).await;
}

#[tokio::test]
async fn a_stream_on_which_nothing_moves_is_closed_and_one_that_moves_is_not() {
    let settings = crate::Settings { idle_timeout: Duration::from_millis(400), ..settings() };
    let bed = Bed::with(settings, |mut stream, _| async move {
        stream.write_all(format!("{SWITCHING}\r\n").as_bytes()).await.expect("taken");
        let mut buffer = [0; 16];
        while let Ok(n @ 1..) = stream.read(&mut buffer).await {
            stream.write_all(&buffer[..n]).await.expect("taken");
        }
    })
    .await;
    let (mut client, _) = bed.ask("POST /exec/shop/web/main?output=1", SPDY).await;
    // One that is younger is closed, so this one had the time to be.
    let (mut still, _) = bed.ask("POST /exec/shop/web/main?output=1", SPDY).await;
    let mut closed = std::pin::pin!(soon(still.read_u8()));
    while futures::poll!(&mut closed).is_pending() {
        client.write_all(b"x").await.expect("open");
        assert_eq!(soon(read(&mut client, 1)).await, "x");
    }
    let mut rest = Vec::new();
    soon(client.read_to_end(&mut rest)).await.expect("closed");
    soon(bed.streams.wait_for(0)).await;
}

#[tokio::test]
async fn streams_end_with_the_daemon() {
    let (bed, mut runtime) = bed().await;
    let (mut client, mut server) = stream(&bed, &mut runtime).await;
    assert_eq!(bed.streams.open(), 1);
    soon(bed.streams.close()).await;
    assert_eq!(bed.streams.open(), 0);
    let mut rest = Vec::new();
    soon(client.read_to_end(&mut rest)).await.expect("closed");
    soon(server.read_to_end(&mut rest)).await.expect("closed");
    let (mut late, _) = bed.ask("POST /exec/shop/web/main?output=1", SPDY).await;
    soon(late.read_to_end(&mut rest)).await.expect("closed at once");
}
