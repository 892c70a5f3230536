//! Port-forward: SPDY within WebSocket.

use std::collections::BTreeMap;

use spdy::Stream;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::bed::{Bed, SWITCHING, soon};
use crate::client::{ClientError, ForwardError, port_forward};

/// A bed whose runtime echoes on every port but 1, on which nobody listens.
async fn bed() -> Bed {
    Bed::start(|mut stream, head| async move {
        let head = head.to_ascii_lowercase();
        assert!(head.starts_with("post /stream/token "), "{head}");
        assert!(head.contains("upgrade: spdy/3.1\r\n") && !head.contains("websocket"), "{head}");
        assert!(head.contains("x-stream-protocol-version: portforward.k8s.io\r\n"), "{head}");
        let answer = format!("{SWITCHING}X-Stream-Protocol-Version: portforward.k8s.io\r\n\r\n");
        stream.write_all(answer.as_bytes()).await.expect("taken");
        let (mut incoming, driver) = spdy::serve(stream, &spdy::Options::default());
        let driver = tokio::spawn(driver);
        let mut errors = BTreeMap::new();
        while let Some((headers, stream)) = incoming.next().await {
            if headers["streamtype"] == "error" {
                errors.insert(headers["requestid"].clone(), stream);
            } else {
                let error = errors.remove(&headers["requestid"]).expect("the error stream comes first");
                tokio::spawn(echo(headers["port"].clone(), stream, error));
            }
        }
        let _ = driver.await;
    })
    .await
}

async fn echo(port: String, mut data: Stream, mut error: Stream) {
    if port == "1" {
        error.send("connection refused".into()).await.expect("open");
        error.finish().await.expect("open");
        return;
    }
    while let Some(Ok(piece)) = data.next().await {
        data.send(piece).await.expect("open");
    }
    data.finish().await.expect("open");
    error.finish().await.expect("open");
}

#[tokio::test]
async fn fifty_connections_share_a_tunnel_and_do_not_mix() {
    let bed = bed().await;
    let forward = soon(port_forward(bed.connect().await, "/portForward/shop/web")).await.expect("accepted");
    let mut jobs = tokio::task::JoinSet::new();
    for n in 0..50_u8 {
        let forward = forward.clone();
        jobs.spawn(async move {
            let (mut near, far) = tokio::io::duplex(8 << 10);
            let carried = tokio::spawn(async move { forward.forward(8080, far).await });
            let body = vec![n; 200_000];
            let (mut read, mut write) = tokio::io::split(&mut near);
            let mut got = Vec::new();
            let (sent, received) = tokio::join!(
                async {
                    write.write_all(&body).await?;
                    write.shutdown().await
                },
                read.read_to_end(&mut got)
            );
            sent.expect("taken");
            received.expect("an orderly end");
            assert!(got == body, "connection {n}: {} bytes", got.len());
            carried.await.expect("no panic").expect("an orderly end");
        });
    }
    while let Some(done) = soon(jobs.join_next()).await {
        done.expect("no panic");
    }
    assert!(!forward.is_closed());
    drop(forward);
    soon(bed.streams.wait_for(0)).await;
}

#[tokio::test]
async fn a_port_on_which_nobody_listens_fails_alone() {
    let bed = bed().await;
    let forward = soon(port_forward(bed.connect().await, "/portForward/shop/web/u1")).await.expect("accepted");
    let (_near, far) = tokio::io::duplex(64);
    let refused = soon(forward.forward(1, far)).await;
    assert!(matches!(&refused, Err(ForwardError::Remote(text)) if text == "connection refused"), "{refused:?}");
    let (mut near, far) = tokio::io::duplex(64);
    let carried = tokio::spawn(async move { forward.forward(2, far).await });
    near.write_all(b"still here").await.expect("taken");
    let mut got = [0; 10];
    soon(near.read_exact(&mut got)).await.expect("echoed");
    near.shutdown().await.expect("open");
    soon(carried).await.expect("no panic").expect("an orderly end");
}

#[tokio::test]
async fn a_tunnel_whose_runtime_is_gone_is_lost() {
    let bed = Bed::start(|mut stream, _| async move {
        let answer = format!("{SWITCHING}X-Stream-Protocol-Version: portforward.k8s.io\r\n\r\n");
        let _ = stream.write_all(answer.as_bytes()).await;
    })
    .await;
    let forward = soon(port_forward(bed.connect().await, "/portForward/shop/web")).await.expect("accepted");
    let (_near, far) = tokio::io::duplex(64);
    let lost = soon(forward.forward(80, far)).await;
    assert!(matches!(lost, Err(ForwardError::Open(_) | ForwardError::Lost)), "{lost:?}");
    soon(bed.streams.wait_for(0)).await;
}

#[tokio::test]
async fn refusals_are_those_of_the_runtime() {
    let bed = Bed::start(|mut stream, _| async move {
        let _ = stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 7\r\n\r\nexpired").await;
    })
    .await;
    let refused = soon(port_forward(bed.connect().await, "/portForward/shop/web")).await.map(drop);
    assert!(matches!(&refused, Err(ClientError::Refused { status: 404, body }) if body == "expired"), "{refused:?}");
    let bed = Bed::start(|mut stream, _| async move {
        let _ = stream
            .write_all(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n")
            .await;
    })
    .await;
    let refused = soon(port_forward(bed.connect().await, "/portForward/shop/web")).await.map(drop);
    assert!(matches!(&refused, Err(ClientError::Refused { status: 500, .. })), "{refused:?}");
}
