//! Two ends of a connection in one process.

use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::task::JoinHandle;

use crate::headers::Headers;
use crate::{Closed, Connection, ConnectionError, Incoming, OpenError, Options, Stream, StreamError, connect, serve};

type Driver = JoinHandle<Result<(), ConnectionError>>;

fn options() -> Options {
    Options { ping_every: None, ..Options::default() }
}

fn pair(transport: usize) -> (Connection, Incoming, Driver, Driver) {
    let (near, far) = tokio::io::duplex(transport);
    let (client, client_driver) = connect(near, &options());
    let (server, server_driver) = serve(far, &options());
    (client, server, tokio::spawn(client_driver), tokio::spawn(server_driver))
}

fn client(transport: usize) -> (Connection, Driver, DuplexStream) {
    let (near, far) = tokio::io::duplex(transport);
    let (client, driver) = connect(near, &options());
    (client, tokio::spawn(driver), far)
}

fn kind(name: &str) -> Headers {
    Headers::from([("streamtype".to_owned(), name.to_owned())])
}

async fn both(client: &Connection, server: &mut Incoming) -> (Stream, Stream) {
    let (near, far) = tokio::join!(client.open(kind("data")), server.next());
    (near.expect("accepted"), far.expect("a stream").1)
}

async fn all(stream: &mut Stream) -> (Vec<u8>, Option<StreamError>) {
    let mut got = Vec::new();
    loop {
        match stream.next().await {
            Some(Ok(piece)) => got.extend_from_slice(&piece),
            Some(Err(e)) => return (got, Some(e)),
            None => return (got, None),
        }
    }
}

#[tokio::test]
async fn data_flows_both_ways_and_each_side_finishes_alone() {
    let (client, mut server, _a, _b) = pair(4096);
    let (mut near, mut far) = both(&client, &mut server).await;
    near.send(Bytes::from_static(b"question")).await.expect("open");
    near.finish().await.expect("open");
    assert_eq!(all(&mut far).await, (b"question".to_vec(), None));
    far.send(Bytes::from_static(b"answer")).await.expect("the other direction is open");
    far.finish().await.expect("open");
    assert_eq!(all(&mut near).await, (b"answer".to_vec(), None));
    assert_eq!(near.send(Bytes::from_static(b"late")).await, Err(Closed));
    assert!(client.handle.shared.table().streams.is_empty(), "streams that are over are forgotten");
}

#[tokio::test]
async fn streams_carry_their_headers_and_do_not_mix() {
    let (client, mut server, _a, _b) = pair(64 << 10);
    let echo = tokio::spawn(async move {
        let mut jobs = tokio::task::JoinSet::new();
        while let Some((headers, mut stream)) = server.next().await {
            jobs.spawn(async move {
                stream.send(Bytes::from(headers["streamtype"].clone())).await.expect("open");
                while let Some(Ok(piece)) = stream.next().await {
                    stream.send(piece).await.expect("open");
                }
                stream.finish().await.expect("open");
            });
        }
        while let Some(done) = jobs.join_next().await {
            done.expect("no panic");
        }
    });
    let mut jobs = tokio::task::JoinSet::new();
    for n in 0..100_u8 {
        let client = client.clone();
        jobs.spawn(async move {
            let name = format!("s{n:03}");
            let (mut send, mut receive) = client.open(kind(&name)).await.expect("accepted").split();
            let body = vec![n; 100_000];
            let (sent, got) = tokio::join!(
                async {
                    send.send(Bytes::from(body.clone())).await?;
                    send.finish().await
                },
                async {
                    let mut got = Vec::new();
                    while let Some(Ok(piece)) = receive.next().await {
                        got.extend_from_slice(&piece);
                    }
                    got
                }
            );
            sent.expect("open");
            assert_eq!(got[..4], *name.as_bytes());
            assert!(got[4..] == body[..], "{name}");
        });
    }
    while let Some(done) = jobs.join_next().await {
        done.expect("no panic");
    }
    drop(client);
    echo.await.expect("ends when the connection does");
}

#[tokio::test]
async fn who_does_not_read_stops_the_sender_before_much_is_kept() {
    let (client, mut server, _a, _b) = pair(64 << 10);
    let (near, mut far) = both(&client, &mut server).await;
    let mut accepted = 0_usize;
    let piece = Bytes::from(vec![7; 16 << 10]);
    // The time out is the proof that it stopped: it is far longer than a piece takes.
    while tokio::time::timeout(std::time::Duration::from_millis(300), far.send(piece.clone())).await.is_ok() {
        accepted += piece.len();
        assert!(accepted < 1 << 20, "a reader that reads nothing has made us keep {accepted} bytes");
    }
    assert!(accepted > 64 << 10, "{accepted}");
    drop(far);
    let (_, mut receive) = near.split();
    let mut got = 0;
    while let Some(Ok(piece)) = receive.next().await {
        got += piece.len();
    }
    assert!(got >= accepted, "{got} of {accepted}");
}

#[tokio::test]
async fn a_stream_that_nobody_holds_is_reset() {
    let (client, mut server, _a, _b) = pair(4096);
    let (mut near, mut far) = both(&client, &mut server).await;
    near.send(Bytes::from_static(b"before")).await.expect("open");
    drop(near);
    assert_eq!(all(&mut far).await, (b"before".to_vec(), Some(StreamError::Reset)));
    assert_eq!(far.send(Bytes::from_static(b"late")).await, Err(Closed));
}

#[tokio::test]
async fn a_connection_that_nobody_holds_says_goodbye() {
    let (client, mut server, near, _far) = pair(4096);
    let (stream, mut other) = both(&client, &mut server).await;
    drop((client, stream));
    near.await.expect("no panic").expect("an orderly end");
    assert_eq!(all(&mut other).await.1, Some(StreamError::Reset));
    assert!(server.next().await.is_none());
}

#[tokio::test]
async fn a_lost_connection_is_no_orderly_end_of_its_streams() {
    let (client, mut server, _near, far) = pair(4096);
    let (mut near, stream) = both(&client, &mut server).await;
    far.abort();
    assert_eq!(all(&mut near).await.1, Some(StreamError::Lost));
    assert_eq!(client.open(kind("data")).await.map(drop), Err(OpenError::Closed));
    drop(stream);
}

#[tokio::test]
async fn garbage_ends_the_connection_with_an_error() {
    for garbage in [
        &b"HTTP/1.1 400 Bad Request\r\n\r\nnever SPDY"[..],
        &[0x80, 3, 0, 2, 0, 0, 0, 8, 0, 0, 0, 1, 1, 2, 3, 4],
        &[0x80, 3, 0, 6, 0, 0, 0, 0],
        &[0xff; 64],
    ] {
        let (_client, driver, mut peer) = client(4096);
        peer.write_all(garbage).await.expect("taken");
        drop(peer);
        let end = driver.await.expect("no panic");
        assert!(end.is_err(), "{garbage:?}");
    }
}

#[tokio::test]
async fn a_frame_may_be_as_long_as_the_format_allows_and_is_not_kept_whole() {
    let (client, driver, mut peer) = client(64 << 10);
    let opening = tokio::spawn(async move { client.open(kind("data")).await.expect("accepted") });
    let mut asked = [0; 8];
    peer.read_exact(&mut asked).await.expect("a SYN_STREAM");
    let mut block = vec![0; usize::from(asked[6]) << 8 | usize::from(asked[7])];
    peer.read_exact(&mut block).await.expect("whole");
    let mut out = bytes::BytesMut::new();
    let reply = crate::headers::Encoder::default().encode(&Headers::new()).expect("empty");
    crate::frame::put_syn_reply(&mut out, 1, &reply);
    crate::frame::put_data_head(&mut out, 1, false, 0); // an empty frame is no end
    crate::frame::put_data_head(&mut out, 1, true, crate::frame::MAX_DATA);
    peer.write_all(&out).await.expect("taken");
    let sending = tokio::spawn(async move {
        let body = vec![9; crate::frame::MAX_DATA];
        peer.write_all(&body).await.expect("taken");
        peer
    });
    let mut stream = opening.await.expect("no panic");
    let mut got = 0;
    while let Some(Ok(piece)) = stream.next().await {
        assert!(piece.len() <= 32 << 10, "{}", piece.len());
        got += piece.len();
    }
    assert_eq!(got, crate::frame::MAX_DATA);
    drop(stream);
    let mut peer = sending.await.expect("no panic");
    let goodbye = tokio::spawn(async move { peer.read_to_end(&mut Vec::new()).await });
    driver.await.expect("no panic").expect("an orderly end");
    assert!(goodbye.await.expect("no panic").expect("readable") > 0);
}

#[tokio::test]
async fn pings_are_answered_and_sent() {
    let (near, mut peer) = tokio::io::duplex(4096);
    let every = std::time::Duration::from_millis(20);
    let (_client, driver) = connect(near, &Options { ping_every: Some(every), ..Options::default() });
    let _driver = tokio::spawn(driver);
    let mut out = bytes::BytesMut::new();
    crate::frame::put_ping(&mut out, 2);
    peer.write_all(&out).await.expect("taken");
    let mut seen = std::collections::BTreeSet::new();
    while seen.len() < 3 {
        let mut frame = [0; 12];
        peer.read_exact(&mut frame).await.expect("a ping");
        assert_eq!(frame[..8], [0x80, 3, 0, 6, 0, 0, 0, 4]);
        seen.insert(frame[11]);
    }
    assert!(seen.contains(&2) && seen.contains(&1) && seen.contains(&3), "{seen:?}");
}

#[tokio::test]
async fn a_flood_of_pings_without_reading_the_answers_ends_the_connection() {
    let (_client, driver, mut peer) = client(256);
    let flood = tokio::spawn(async move {
        let mut out = bytes::BytesMut::new();
        for _ in 0..10_000 {
            crate::frame::put_ping(&mut out, 2);
        }
        let _ = peer.write_all(&out).await;
        peer
    });
    let end = driver.await.expect("no panic");
    assert!(matches!(end, Err(ConnectionError::Flood)), "{end:?}");
    drop(flood.await);
}

#[tokio::test]
async fn a_refused_stream_and_a_peer_that_goes_away_are_told_apart() {
    let (client, _driver, mut peer) = client(4096);
    let mut out = bytes::BytesMut::new();
    crate::frame::put_reset(&mut out, 1, crate::frame::REFUSED);
    let refused = tokio::spawn({
        let client = client.clone();
        async move { client.open(kind("data")).await.map(drop) }
    });
    let mut asked = [0; 8];
    peer.read_exact(&mut asked).await.expect("a SYN_STREAM");
    peer.write_all(&out).await.expect("taken");
    assert_eq!(refused.await.expect("no panic"), Err(OpenError::Refused(3)));
    out.clear();
    crate::frame::put_go_away(&mut out, 0);
    crate::frame::put_ping(&mut out, 2);
    peer.write_all(&out).await.expect("taken");
    let mut pong = [0; 12];
    let mut rest = vec![0; usize::from(asked[7])];
    peer.read_exact(&mut rest).await.expect("the block");
    peer.read_exact(&mut pong).await.expect("seen, so the GOAWAY before it is too");
    assert_eq!(client.open(kind("data")).await.map(drop), Err(OpenError::GoingAway));
}

#[tokio::test]
async fn more_streams_than_allowed_are_refused_on_either_side() {
    let (near, far) = tokio::io::duplex(4096);
    let (client, driver) = connect(near, &Options { max_streams: 3, ping_every: None, ..Options::default() });
    let (mut server, server_driver) = serve(far, &Options { max_streams: 2, ping_every: None, ..Options::default() });
    let _drivers = (tokio::spawn(driver), tokio::spawn(server_driver));
    let mut held = Vec::new();
    for _ in 0..2 {
        held.push(both(&client, &mut server).await);
    }
    assert_eq!(client.open(kind("data")).await.map(drop), Err(OpenError::Refused(3)));
}
