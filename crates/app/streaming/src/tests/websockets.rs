//! exec and attach over WebSocket v5, with a runtime that speaks SPDY.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use futures::{SinkExt, StreamExt};
use spdy::Stream;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::Role;

use super::bed::{Bed, SWITCHING, settings, soon};
use crate::Outcome;
use crate::client::{self, ClientError, Session};

const EXIT_3: &str = r#"{"metadata":{},"status":"Failure","message":"x","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"3"}]}}"#;

type Streams = BTreeMap<String, Stream>;

/// A bed whose runtime takes as many streams as `count`, and hands them over by kind.
async fn bed(count: usize) -> (Bed, mpsc::Receiver<Streams>) {
    let (give, take) = mpsc::channel(8);
    let bed = Bed::start(move |mut stream, head| {
        let give = give.clone();
        async move {
            assert!(head.starts_with("POST /stream/TOKEN "), "{head}");
            let answer = format!("{SWITCHING}X-Stream-Protocol-Version: v4.channel.k8s.io\r\n\r\n");
            stream.write_all(answer.as_bytes()).await.expect("taken");
            let (mut incoming, driver) = spdy::serve(stream, &spdy::Options::default());
            let driver = tokio::spawn(driver);
            let mut streams = Streams::new();
            while streams.len() < count {
                let (headers, stream) = incoming.next().await.expect("more streams");
                streams.insert(headers["streamtype"].clone(), stream);
            }
            give.send(streams).await.expect("the test waits");
            let _ = driver.await;
        }
    })
    .await;
    (bed, take)
}

async fn session(bed: &Bed, query: &str) -> Result<Session, ClientError> {
    soon(client::exec(bed.connect().await, &format!("/exec/shop/web/main?{query}"))).await
}

async fn text(output: &mut mpsc::Receiver<Bytes>) -> String {
    let mut got = Vec::new();
    while let Some(piece) = soon(output.recv()).await {
        got.extend_from_slice(&piece);
    }
    String::from_utf8(got).expect("text")
}

async fn say(streams: &mut Streams, kind: &str, text: &str) {
    let stream = streams.get_mut(kind).expect("asked for");
    stream.send(Bytes::copy_from_slice(text.as_bytes())).await.expect("open");
    stream.finish().await.expect("open");
}

#[tokio::test]
async fn output_comes_on_its_channels_and_the_exit_code_last() {
    let (bed, mut runtime) = bed(3).await;
    let mut session = session(&bed, "output=1&error=1&command=x").await.expect("accepted");
    let mut streams = soon(runtime.recv()).await.expect("asked");
    assert_eq!(streams.keys().collect::<Vec<_>>(), ["error", "stderr", "stdout"]);
    say(&mut streams, "error", EXIT_3).await;
    say(&mut streams, "stdout", "out").await;
    say(&mut streams, "stderr", "err").await;
    assert_eq!(text(&mut session.stdout).await, "out");
    assert_eq!(text(&mut session.stderr).await, "err");
    assert_eq!(soon(session.exit.wait()).await, Outcome::Exit(3));
    soon(bed.streams.wait_for(0)).await;
}

#[tokio::test]
async fn streams_that_end_by_a_reset_are_ends_too() {
    let (bed, mut runtime) = bed(2).await;
    let mut session = session(&bed, "output=1").await.expect("accepted");
    let mut streams = soon(runtime.recv()).await.expect("asked");
    let error = streams.get_mut("error").expect("always");
    error.send(Bytes::from_static(br#"{"status":"Success"}"#)).await.expect("open");
    streams.get_mut("stdout").expect("asked for").send(Bytes::from_static(b"last words")).await.expect("open");
    drop(streams);
    assert_eq!(text(&mut session.stdout).await, "last words");
    assert_eq!(soon(session.exit.wait()).await, Outcome::Success);
}

#[tokio::test]
async fn a_client_that_half_closes_gets_the_rest_of_the_output() {
    let (bed, mut runtime) = bed(3).await;
    let mut session = session(&bed, "input=1&output=1").await.expect("accepted");
    let mut streams = soon(runtime.recv()).await.expect("asked");
    let cat = tokio::spawn(async move {
        let mut stdin = streams.remove("stdin").expect("asked for");
        let mut got = Vec::new();
        while let Some(piece) = stdin.next().await {
            got.extend_from_slice(&piece.expect("an orderly end"));
        }
        let text = format!("{} bytes", got.len());
        say(&mut streams, "stdout", &text).await;
        say(&mut streams, "error", r#"{"status":"Success"}"#).await;
    });
    for _ in 0..10 {
        assert!(session.stdin.send(Bytes::from(vec![1; 100_000])).await);
    }
    session.stdin.finish().await;
    assert_eq!(text(&mut session.stdout).await, "1000000 bytes");
    assert_eq!(soon(session.exit.wait()).await, Outcome::Success);
    cat.await.expect("no panic");
}

#[tokio::test]
async fn sizes_of_the_terminal_reach_the_runtime() {
    let (bed, mut runtime) = bed(4).await;
    let session = session(&bed, "input=1&output=1&error=1&tty=1").await.expect("accepted");
    let mut streams = soon(runtime.recv()).await.expect("asked");
    assert_eq!(streams.keys().collect::<Vec<_>>(), ["error", "resize", "stdin", "stdout"]);
    assert!(session.resize.set(120, 40).await);
    let size = soon(streams.get_mut("resize").expect("asked for").next()).await.expect("open").expect("open");
    assert_eq!(&size[..], b"{\"Width\":120,\"Height\":40}\n");
}

/// A WebSocket whose messages the test writes itself.
async fn raw(bed: &Bed, query: &str) -> WebSocketStream<TcpStream> {
    let headers = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                   Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
                   Sec-WebSocket-Protocol: v5.channel.k8s.io, v4.channel.k8s.io\r\n";
    let (stream, head) = bed.ask(&format!("GET /exec/shop/web/main?{query}"), headers).await;
    let head = head.to_ascii_lowercase();
    assert!(head.starts_with("http/1.1 101 "), "{head}");
    assert!(head.contains("sec-websocket-protocol: v5.channel.k8s.io\r\n"), "{head}");
    assert!(head.contains("sec-websocket-accept: s3pplmbitxaq9kygzzhzrbk+xoo=\r\n"), "{head}");
    WebSocketStream::from_raw_socket(stream, Role::Client, None).await
}

#[tokio::test]
async fn an_empty_message_on_the_lowest_channel_comes_first() {
    let (bed, _runtime) = bed(9).await;
    for (query, channel) in [("output=1&error=1", 1), ("error=1", 2), ("input=1", 3)] {
        let mut socket = raw(&bed, query).await;
        let first = soon(socket.next()).await.expect("open").expect("a message");
        assert_eq!(first, Message::Binary(Bytes::copy_from_slice(&[channel])), "{query}");
    }
}

#[tokio::test]
async fn messages_without_sense_are_ignored() {
    let (bed, mut runtime) = bed(3).await;
    let mut socket = raw(&bed, "input=1&output=1").await;
    let mut streams = soon(runtime.recv()).await.expect("asked");
    for nonsense in
        [&[][..], &[0], &[1, 9], &[3, 9], &[4, 9], &[77, 9], &[255], &[255, 1], &[255, 77], &[0, b'o', b'k']]
    {
        socket.send(Message::Binary(Bytes::copy_from_slice(nonsense))).await.expect("taken");
    }
    socket.send(Message::Binary(Bytes::from_static(&[255, 0]))).await.expect("taken");
    let stdin = streams.get_mut("stdin").expect("asked for");
    assert_eq!(soon(stdin.next()).await, Some(Ok(Bytes::from_static(b"ok"))));
    assert_eq!(soon(stdin.next()).await, None);
}

#[tokio::test]
async fn a_message_that_is_too_long_ends_the_stream_and_not_the_daemon() {
    let (bed, mut runtime) = bed(3).await;
    let socket = raw(&bed, "input=1&output=1").await;
    let mut streams = soon(runtime.recv()).await.expect("asked");
    let mut stream = socket.into_inner();
    // The head of a masked binary frame of 1 TiB.
    stream.write_all(&[0x82, 0xff, 0, 0, 1, 0, 0, 0, 0, 0, 1, 2, 3, 4]).await.expect("taken");
    let end = soon(streams.get_mut("stdin").expect("asked for").next()).await;
    assert!(matches!(end, Some(Err(_))), "{end:?}");
    soon(bed.streams.wait_for(0)).await;
}

/// Long messages are no way around the bound: none of them is held whole, and none is taken that the command does not read.
#[tokio::test]
async fn long_messages_to_a_command_that_does_not_read_fill_no_memory() {
    let (bed, mut runtime) = bed(3).await;
    let mut socket = raw(&bed, "input=1&output=1").await;
    let _streams = soon(runtime.recv()).await.expect("asked");
    let message = Bytes::from(vec![0; 8 << 20]);
    let mut taken = 0;
    while let Ok(sent) =
        tokio::time::timeout(Duration::from_millis(500), socket.send(Message::Binary(message.clone()))).await
    {
        sent.expect("open");
        taken += message.len();
        // What is taken lies in the buffers of four sockets.
        assert!(taken < 48 << 20, "{taken} bytes were taken from a client whose command does not read");
    }
}

#[tokio::test]
async fn a_client_that_vanishes_while_the_runtime_hangs_is_noticed() {
    let (give, mut take) = mpsc::channel(1);
    let settings = crate::Settings { answer_timeout: Duration::from_secs(60), ..settings() };
    let bed = Bed::with(settings, move |stream, _| {
        let give = give.clone();
        async move { give.send(stream).await.expect("the test waits") }
    })
    .await;
    let socket = raw(&bed, "output=1").await;
    let mut runtime = soon(take.recv()).await.expect("asked");
    drop(socket);
    let mut rest = Vec::new();
    soon(tokio::io::AsyncReadExt::read_to_end(&mut runtime, &mut rest)).await.expect("closed");
    soon(bed.streams.wait_for(0)).await;
}

#[tokio::test]
async fn a_client_that_vanishes_takes_the_runtimes_stream_along() {
    let (bed, mut runtime) = bed(3).await;
    let session = session(&bed, "input=1&output=1").await.expect("accepted");
    let mut streams = soon(runtime.recv()).await.expect("asked");
    drop(session);
    let end = soon(streams.get_mut("stdin").expect("asked for").next()).await;
    assert!(matches!(end, Some(Err(_))), "{end:?}");
    soon(bed.streams.wait_for(0)).await;
}

#[tokio::test]
async fn a_client_that_sleeps_stops_the_command() {
    let (bed, mut runtime) = bed(2).await;
    let session = session(&bed, "output=1").await.expect("accepted");
    let mut streams = soon(runtime.recv()).await.expect("asked");
    let stdout = streams.get_mut("stdout").expect("asked for");
    let mut taken = 0;
    let piece = Bytes::from(vec![0; 32 << 10]);
    while tokio::time::timeout(Duration::from_millis(500), stdout.send(piece.clone())).await.is_ok() {
        taken += piece.len();
        assert!(taken < 64 << 20, "{taken} bytes were taken from a command whose client sleeps");
    }
    drop(session);
}

#[tokio::test]
async fn a_runtime_that_is_lost_is_a_failure_and_no_success() {
    let (bed, mut runtime) = bed(2).await;
    let session = session(&bed, "output=1").await.expect("accepted");
    drop(soon(runtime.recv()).await.expect("asked"));
    // All streams were reset without a word: clients take that for success, as they always have.
    assert_eq!(soon(session.exit.wait()).await, Outcome::Success);
    for (answer, why) in [
        (
            format!(
                "{SWITCHING}X-Stream-Protocol-Version: v4.channel.k8s.io\r\n\r\nHTTP is no SPDY, and this is neither"
            ),
            "unable to open streams: the connection ended within a frame",
        ),
        (format!("{SWITCHING}X-Stream-Protocol-Version: v4.channel.k8s.io\r\n\r\n"), "unable to open streams"),
        (format!("{SWITCHING}\r\n"), "the runtime chose protocol None"),
        (
            "HTTP/1.1 404 Not Found\r\nContent-Length: 13\r\n\r\ninvalid token".to_owned(),
            "unable to upgrade connection: invalid token",
        ),
        (
            "HTTP/1.1 307 Temporary Redirect\r\nLocation: /\r\nContent-Length: 0\r\n\r\n".to_owned(),
            "redirect not allowed",
        ),
    ] {
        let bed = Bed::start(move |mut stream, _| {
            let answer = answer.clone();
            async move {
                let _ = stream.write_all(answer.as_bytes()).await;
                let _ = stream.shutdown().await;
            }
        })
        .await;
        let session = soon(client::exec(bed.connect().await, "/exec/shop/web/main?output=1")).await.expect("accepted");
        let outcome = soon(session.exit.wait()).await;
        let Outcome::Failed(text) = &outcome else { panic!("{outcome:?}") };
        assert!(text.starts_with("Internal error occurred: ") && text.contains(why), "{text}");
        soon(bed.streams.wait_for(0)).await;
    }
}

#[tokio::test]
async fn a_runtime_that_accepts_no_stream_is_not_waited_for_for_ever() {
    let settings = crate::Settings { answer_timeout: Duration::from_millis(300), ..settings() };
    let bed = Bed::with(settings, |mut stream, _| async move {
        let answer = format!("{SWITCHING}X-Stream-Protocol-Version: v4.channel.k8s.io\r\n\r\n");
        stream.write_all(answer.as_bytes()).await.expect("taken");
        std::future::pending::<()>().await;
    })
    .await;
    let session = session(&bed, "output=1").await.expect("accepted");
    let outcome = soon(session.exit.wait()).await;
    let why = "Internal error occurred: unable to open streams: the runtime did not accept them in time";
    assert_eq!(outcome, Outcome::Failed(why.to_owned()));
}

#[tokio::test]
async fn a_session_on_which_nothing_moves_is_closed_with_a_reason() {
    let settings = crate::Settings { idle_timeout: Duration::from_millis(300), ..settings() };
    let bed = Bed::with(settings, |mut stream, _| async move {
        let answer = format!("{SWITCHING}X-Stream-Protocol-Version: v4.channel.k8s.io\r\n\r\n");
        stream.write_all(answer.as_bytes()).await.expect("taken");
        let (mut incoming, driver) = spdy::serve(stream, &spdy::Options::default());
        let mut held = Vec::new();
        let accept = async {
            while let Some(stream) = incoming.next().await {
                held.push(stream);
            }
        };
        let _ = tokio::join!(accept, driver);
    })
    .await;
    let session = session(&bed, "output=1").await.expect("accepted");
    let outcome = soon(session.exit.wait()).await;
    assert_eq!(outcome, Outcome::Failed("Internal error occurred: the stream was idle for too long".to_owned()));
}

#[tokio::test]
async fn a_refusal_reaches_the_client_with_its_words() {
    let (bed, _runtime) = bed(2).await;
    let refused = session(&bed, "stdout=1").await.map(drop);
    let Err(ClientError::Refused { status, body }) = refused else { panic!("{refused:?}") };
    assert_eq!((status, body.as_str()), (400, "you must specify at least 1 of stdin, stdout, stderr"));
}
