use std::time::Duration;

use bytes::Bytes;
use futures::{SinkExt, StreamExt};
use tokio::io::{AsyncWriteExt, DuplexStream};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::Frame as TheirFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};

use super::{MAX_MESSAGE, Role, Sink, Source, socket};

async fn with(theirs: Role) -> (WebSocketStream<DuplexStream>, Sink<DuplexStream>, Source<DuplexStream>) {
    let (near, far) = tokio::io::duplex(4096);
    let ours = if theirs == Role::Client { Role::Server } else { Role::Client };
    let (sink, source) = socket(near, ours);
    (WebSocketStream::from_raw_socket(far, theirs, None).await, sink, source)
}

/// Bytes of the next message, and how many pieces they came in.
async fn message(source: &mut Source<DuplexStream>) -> Option<(Vec<u8>, usize)> {
    let (mut all, mut pieces) = (Vec::new(), 0);
    loop {
        let piece = source.next().await?;
        assert_eq!(piece.first, pieces == 0);
        assert!(!piece.bytes.is_empty());
        all.extend_from_slice(&piece.bytes);
        pieces += 1;
        if piece.last {
            return Some((all, pieces));
        }
    }
}

fn pattern(len: usize) -> Vec<u8> {
    (0..=250_u8).cycle().take(len).collect()
}

#[tokio::test]
async fn messages_of_any_length_go_both_ways_between_us_and_others() {
    for theirs in [Role::Client, Role::Server] {
        let (mut other, mut sink, mut source) = with(theirs).await;
        let lengths = [1, 2, 3, 125, 126, 127, 65_535, 65_536, 300_001];
        let sending = tokio::spawn(async move {
            for len in lengths {
                other.send(Message::Binary(pattern(len).into())).await.expect("taken");
            }
            let mut got = Vec::new();
            while let Some(Ok(Message::Binary(bytes))) = other.next().await {
                got.push(bytes);
            }
            got
        });
        for len in lengths {
            let (bytes, pieces) = message(&mut source).await.expect("a message");
            assert!(bytes == pattern(len), "{len}");
            assert!(len < 65_536 || pieces > 1, "never held whole");
        }
        for len in lengths {
            sink.send(&[9], &pattern(len)).await.expect("taken");
        }
        sink.close().await.expect("taken");
        let got = sending.await.expect("no panic");
        assert_eq!(got.len(), lengths.len());
        for (len, bytes) in lengths.into_iter().zip(got) {
            assert!(bytes[0] == 9 && bytes[1..] == pattern(len), "{len}");
        }
    }
}

/// Why there is a decoder of our own (decision 0010): were the library to hand out what it has, this would fail.
#[tokio::test]
async fn the_library_waits_for_the_end_of_a_message_and_we_do_not() {
    // The head of a masked binary frame of 1 MiB, and its first 1000 bytes.
    let head = [&[0x82, 0xff][..], &(1_u64 << 20).to_be_bytes(), &[0; 4]].concat();
    let begun = [head, pattern(1000)].concat();
    let (mut client, server) = tokio::io::duplex(4096);
    let mut library = WebSocketStream::from_raw_socket(server, Role::Server, None).await;
    client.write_all(&begun).await.unwrap();
    let waits = tokio::time::timeout(Duration::from_millis(200), library.next()).await;
    assert!(waits.is_err(), "{waits:?}");
    let (mut client, server) = tokio::io::duplex(4096);
    let (_sink, mut source) = socket(server, Role::Server);
    client.write_all(&begun).await.unwrap();
    let piece = source.next().await.expect("a piece");
    assert_eq!((piece.first, piece.last, &piece.bytes[..]), (true, false, &pattern(1000)[..]));
}

#[tokio::test]
async fn fragments_make_one_message_and_pings_between_them_are_answered() {
    let (mut other, mut sink, mut source) = with(Role::Client).await;
    let frame = |text: &'static str, code, fin| Message::Frame(TheirFrame::message(text, OpCode::Data(code), fin));
    let sending = tokio::spawn(async move {
        other.send(frame("one ", Data::Binary, false)).await.expect("taken");
        other.send(Message::Ping(Bytes::from_static(b"alive?"))).await.expect("taken");
        other.send(frame("", Data::Continue, false)).await.expect("taken");
        other.send(frame("two", Data::Continue, true)).await.expect("taken");
        other.send(Message::Binary(Bytes::from_static(b"next"))).await.expect("taken");
        other.next().await.expect("open").expect("a message")
    });
    assert_eq!(message(&mut source).await.expect("a message").0, b"one two");
    assert_eq!(message(&mut source).await.expect("a message").0, b"next");
    sink.pinged().await;
    sink.flush().await.expect("taken");
    assert_eq!(sending.await.expect("no panic"), Message::Pong(Bytes::from_static(b"alive?")));
}

#[tokio::test]
async fn a_send_that_is_dropped_half_way_is_ended_by_the_next() {
    let (mut other, mut sink, _source) = with(Role::Client).await;
    // More than the transport holds.
    let half = tokio::time::timeout(Duration::from_millis(20), sink.send(&[1], &pattern(20_000))).await;
    assert!(half.is_err());
    let reading = tokio::spawn(async move { [other.next().await, other.next().await] });
    sink.send(&[3], b"end").await.expect("taken");
    let [one, two] = reading.await.expect("no panic").map(|m| m.expect("open").expect("a message").into_data());
    assert!(one[0] == 1 && one[1..] == pattern(20_000));
    assert_eq!(&two[..], b"\x03end");
}

#[tokio::test]
async fn who_breaks_the_protocol_is_gone() {
    let long = (MAX_MESSAGE + 1).to_be_bytes();
    let too_long = [&[0x82, 0xff][..], &long, &[0; 4]].concat();
    let most = MAX_MESSAGE.to_be_bytes();
    for (what, bytes) in [
        ("not masked", vec![0x82, 1, b'x']),
        ("a reserved bit", vec![0xc2, 0x81, 0, 0, 0, 0, b'x']),
        ("an unknown code", vec![0x83, 0x81, 0, 0, 0, 0, b'x']),
        ("too long", too_long),
        ("a length of 2^64", vec![0x82, 0xff, 255, 255, 255, 255, 255, 255, 255, 255, 0, 0, 0, 0]),
        ("a continuation of nothing", vec![0x80, 0x81, 0, 0, 0, 0, b'x']),
        ("a ping in parts", vec![0x09, 0x80, 0, 0, 0, 0]),
        ("a long ping", vec![0x89, 0xfe, 0, 126, 0, 0, 0, 0]),
        ("a close", vec![0x88, 0x80, 0, 0, 0, 0]),
        ("nothing", vec![]),
        ("half a head", vec![0x82]),
    ] {
        let (near, mut far) = tokio::io::duplex(4096);
        let (_sink, mut source) = socket(near, Role::Server);
        far.write_all(&bytes).await.expect("room");
        far.shutdown().await.expect("open");
        assert_eq!(source.next().await, None, "{what}");
    }
    // Parts that are too long together.
    let (near, mut far) = tokio::io::duplex(4096);
    let (_sink, mut source) = socket(near, Role::Server);
    let rest = [&[0x00, 0xff][..], &most, &[0; 4]].concat();
    far.write_all(&[&[0x02, 0x81, 0, 0, 0, 0, b'x'][..], &rest].concat()).await.expect("room");
    assert_eq!(source.next().await.map(|p| (p.first, p.last)), Some((true, false)));
    assert_eq!(source.next().await, None);
}

#[tokio::test]
async fn noise_ends_or_waits_but_never_panics() {
    let mut rng = fastrand::Rng::with_seed(4);
    for _ in 0..2000 {
        let (near, mut far) = tokio::io::duplex(4096);
        let (_sink, mut source) = socket(near, Role::Server);
        let mut bytes = vec![0; rng.usize(..200)];
        rng.fill(&mut bytes);
        if let Some([one, two, ..]) = bytes.get_mut(..2).map(|b| b as &mut [u8]) {
            // Often enough a frame that is accepted.
            (*one, *two) = (*one & 0x8f, *two | 0x80);
        }
        far.write_all(&bytes).await.expect("room");
        drop(far);
        while source.next().await.is_some() {}
    }
}

#[tokio::test]
async fn a_peer_that_has_gone_is_noticed_before_its_bytes_are_wanted() {
    let (mut other, _sink, mut source) = with(Role::Client).await;
    other.send(Message::Binary(Bytes::from_static(b"kept"))).await.expect("taken");
    drop(other);
    source.gone().await;
    assert_eq!(message(&mut source).await.expect("a message").0, b"kept");
    assert_eq!(source.next().await, None);
}

#[tokio::test]
async fn a_close_is_seen_as_one() {
    let (mut other, mut sink, mut source) = with(Role::Client).await;
    sink.close().await.expect("taken");
    let Some(Ok(Message::Close(Some(said)))) = other.next().await else { panic!("a close with a code") };
    assert_eq!(u16::from(said.code), 1000);
    drop(other);
    assert_eq!(source.next().await, None);
}
