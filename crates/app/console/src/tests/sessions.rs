//! exec, attach and port-forward against a daemon that speaks their protocols.

use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::{SinkExt, StreamExt};
use hyper_util::rt::TokioIo;
use streaming::client::Outcome;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixListener};
use tokio::sync::Notify;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;

use super::{parse, web};
use crate::Command;
use crate::exec::{Ended, LocalStreams, carry};
use crate::port_forward::Forward;

type Socket = WebSocketStream<TokioIo<hyper::upgrade::Upgraded>>;

/// What is heard of the daemon's side.
#[derive(Clone, Default)]
pub(super) struct Heard {
    /// The client has gone.
    pub(super) gone: Arc<Notify>,
    /// Lose a connection now.
    pub(super) cut: Arc<Notify>,
}

pub(super) fn daemon(path: &Path) -> Heard {
    let heard = Heard::default();
    let listener = UnixListener::bind(path).unwrap();
    let router = Router::new().fallback(answer).with_state(heard.clone());
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    heard
}

async fn answer(State(heard): State<Heard>, mut request: Request) -> Response {
    let path = request.uri().path().to_owned();
    match path.as_str() {
        "/v1/pods/web" => return web(),
        "/exec/shop/web/x" => {
            return (StatusCode::INTERNAL_SERVER_ERROR, "container not found (\"x\")").into_response();
        }
        "/exec/shop/web/app" | "/portForward/shop/web" => {}
        _ => return (StatusCode::NOT_FOUND, "pod does not exist").into_response(),
    }
    let get = |name: header::HeaderName| request.headers().get(name).unwrap().clone();
    let key = derive_accept_key(get(header::SEC_WEBSOCKET_KEY).as_bytes());
    let protocol = get(header::SEC_WEBSOCKET_PROTOCOL);
    let query = request.uri().query().unwrap_or_default().to_owned();
    let upgrade = hyper::upgrade::on(&mut request);
    tokio::spawn(async move {
        let io = TokioIo::new(upgrade.await.unwrap());
        let socket = WebSocketStream::from_raw_socket(io, Role::Server, None).await;
        if path.starts_with("/exec") { command(socket, &query, heard).await } else { tunnel(socket, heard).await }
    });
    let headers = [
        (header::CONNECTION, "Upgrade".to_owned()),
        (header::UPGRADE, "websocket".to_owned()),
        (header::SEC_WEBSOCKET_ACCEPT, key),
        (header::SEC_WEBSOCKET_PROTOCOL, protocol.to_str().unwrap().to_owned()),
    ];
    (StatusCode::SWITCHING_PROTOCOLS, headers).into_response()
}

fn status(code: u8) -> Vec<u8> {
    let text = if code == 0 {
        r#"{"status":"Success"}"#.to_owned()
    } else {
        format!(
            r#"{{"status":"Failure","reason":"NonZeroExitCode","details":{{"causes":[{{"reason":"ExitCode","message":"{code}"}}]}}}}"#
        )
    };
    [&[3], text.as_bytes()].concat()
}

/// `cat`: what comes in goes out, the end of input is exit code 7. `shell`: sizes go out too, Ctrl-D ends it likewise.
/// `sizes`: ends with the first. `yes`: output without end.
async fn command(mut socket: Socket, query: &str, heard: Heard) {
    if query.contains("command=yes") {
        let mut piece = vec![1];
        piece.resize(32 << 10, b'y');
        while socket.send(Message::Binary(piece.clone().into())).await.is_ok() {}
        heard.gone.notify_one();
        return;
    }
    let shell = query.contains("command=shell");
    loop {
        let message = tokio::select! {
            message = socket.next() => message,
            () = heard.cut.notified() => return,
        };
        let Some(Ok(message)) = message else { break };
        let Message::Binary(bytes) = message else { continue };
        let (channel, rest) = (bytes[0], &bytes[1..]);
        let answers = match channel {
            0 if shell && rest == b"\x04" => vec![status(7)],
            4 if shell => vec![[&[1], rest].concat()],
            0 => vec![[&[1], rest].concat()],
            4 => vec![[&[1], rest].concat(), status(0)],
            255 => vec![b"\x02the end".to_vec(), status(7)],
            _ => Vec::new(),
        };
        for answer in answers {
            if socket.send(Message::Binary(answer.into())).await.is_err() {
                break;
            }
        }
    }
    heard.gone.notify_one();
}

/// A pod whose port 80 echoes and whose other ports are closed.
async fn tunnel(socket: Socket, heard: Heard) {
    let (near, far) = tokio::io::duplex(64 << 10);
    let (mut incoming, driver) = spdy::serve(near, &spdy::Options::default());
    let (mut sink, mut source) = socket.split();
    let (mut read, mut write) = tokio::io::split(far);
    let upward = async {
        let mut buffer = vec![0; 16 << 10];
        while let Ok(n @ 1..) = read.read(&mut buffer).await {
            if sink.send(Message::Binary(Bytes::copy_from_slice(&buffer[..n]))).await.is_err() {
                break;
            }
        }
    };
    let downward = async {
        while let Some(Ok(message)) = source.next().await {
            if let Message::Binary(bytes) = message {
                write.write_all(&bytes).await.unwrap();
            }
        }
    };
    let serve = async {
        let mut errors = std::collections::BTreeMap::new();
        while let Some((headers, mut stream)) = incoming.next().await {
            let get = |name: &str| headers.iter().find(|(n, _)| *n == name).map(|(_, v)| v.to_string()).unwrap();
            let request = get("requestid");
            if get("streamtype") == "error" {
                errors.insert(request, stream);
                continue;
            }
            let mut error = errors.remove(&request).unwrap();
            if get("port") != "80" {
                error.send(Bytes::from_static(b"connection refused in the pod")).await.unwrap();
                error.finish().await.unwrap();
                stream.finish().await.unwrap();
                continue;
            }
            tokio::spawn(async move {
                let _gone = error.finish().await;
                while let Some(Ok(piece)) = stream.next().await {
                    if stream.send(piece).await.is_err() {
                        return;
                    }
                }
                let _gone = stream.finish().await;
            });
        }
    };
    tokio::select! {
        () = async { tokio::join!(upward, downward, serve, async { drop(driver.await) }); } => {}
        () = heard.cut.notified() => {}
    }
}

async fn session(socket: &Path, path: &str) -> streaming::client::Session {
    let stream = tokio::net::UnixStream::connect(socket).await.unwrap();
    streaming::client::exec(stream, path).await.unwrap()
}

/// Local streams: what is typed, and pipes that can be read afterwards.
fn local(typed: &'static str) -> (LocalStreams, impl Read, impl Read) {
    let (out, stdout) = io::pipe().unwrap();
    let (err, stderr) = io::pipe().unwrap();
    let stdin = Some(terminal::read(typed.as_bytes()));
    (LocalStreams { stdin, stdout: terminal::write(stdout), stderr: terminal::write(stderr) }, out, err)
}

fn text(mut from: impl Read) -> String {
    let mut text = String::new();
    from.read_to_string(&mut text).unwrap();
    text
}

#[tokio::test]
async fn input_and_its_end_reach_the_command_and_its_output_and_exit_code_come_back() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("s");
    let _heard = daemon(&socket);
    let session = session(&socket, "/exec/shop/web/app?command=cat&input=1&output=1&error=1").await;
    let (local, out, err) = local("typed here");
    assert_eq!(carry(session, local).await, Ended::Told(Outcome::Exit(7)));
    assert_eq!((text(out), text(err)), ("typed here".to_owned(), "the end".to_owned()));
}

#[tokio::test]
async fn a_size_reaches_the_command() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("s");
    let _heard = daemon(&socket);
    let session = session(&socket, "/exec/shop/web/app?command=sizes&input=1&output=1&tty=1").await;
    let (mut local, out, _) = local("");
    local.stdin = None;
    session.resize.set(80, 24).await;
    assert_eq!(carry(session, local).await, Ended::Told(Outcome::Success));
    let size: serde_json::Value = serde_json::from_str(&text(out)).unwrap();
    assert_eq!((&size["Width"], &size["Height"]), (&80.into(), &24.into()));
}

#[tokio::test]
async fn a_reader_that_has_gone_ends_the_session_on_the_other_side_too() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("s");
    let heard = daemon(&socket);
    let session = session(&socket, "/exec/shop/web/app?command=yes&output=1&error=1").await;
    let (mut local, mut out, _err) = local("");
    local.stdin = None;
    let reader = std::thread::spawn(move || {
        let mut some = [0; 10_000];
        out.read_exact(&mut some).unwrap();
    });
    let ended = carry(session, local).await;
    assert!(matches!(ended, Ended::Broken(io::ErrorKind::BrokenPipe, _)), "{ended:?}");
    reader.join().unwrap();
    tokio::time::timeout(Duration::from_secs(20), heard.gone.notified()).await.expect("the daemon sees it");
}

#[tokio::test]
async fn a_daemon_that_dies_before_it_answers_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("s");
    let listener = UnixListener::bind(&socket).unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
    });
    let stream = tokio::net::UnixStream::connect(&socket).await.unwrap();
    let refused = streaming::client::exec(stream, "/exec/shop/web/app?command=a").await.map(|_| ()).unwrap_err();
    assert!(refused.to_string().contains("no answer"), "{refused}");
}

#[tokio::test]
async fn an_unknown_container_is_told_with_those_that_there_are() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("s");
    let _heard = daemon(&socket);
    let Command::Exec(args) = parse("exec web -c x -- ls", &socket) else { panic!() };
    let e = crate::exec::exec(&args).await.unwrap_err();
    assert_eq!(e.to_string(), "container not found (\"x\"); containers of shop/web: app, proxy, setup (init)");
    let Command::Attach(args) = parse("attach web -c app -q", &socket) else { panic!() };
    let e = crate::exec::attach(&args).await.unwrap_err();
    assert_eq!(e.to_string(), "pod does not exist");
}

async fn forward(words: &str, socket: &Path) -> anyhow::Result<Forward> {
    let Command::PortForward(args) = parse(words, socket) else { panic!("{words}") };
    Forward::start(&args).await
}

async fn echo(forward: &Forward, at: usize, text: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(forward.open[at].0).await?;
    stream.write_all(text.as_bytes()).await?;
    stream.shutdown().await?;
    let mut back = String::new();
    stream.read_to_string(&mut back).await?;
    Ok(back)
}

#[tokio::test]
async fn many_connections_at_once_each_get_their_own_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("s");
    let _heard = daemon(&socket);
    let forward = forward("port-forward web :80", &socket).await.unwrap();
    // Opened one by one, as the fake accepts few at a time; then all at work together.
    let mut open = Vec::new();
    for n in 0..50u8 {
        let mut stream = TcpStream::connect(forward.open[0].0).await.unwrap();
        stream.write_all(&[n]).await.unwrap();
        assert_eq!(stream.read_u8().await.unwrap(), n);
        open.push((stream, vec![n; 100_000]));
    }
    let all = open.into_iter().map(|(mut stream, sent)| async move {
        let (mut read, mut write) = stream.split();
        let mut back = Vec::new();
        let send = async {
            write.write_all(&sent).await.unwrap();
            write.shutdown().await.unwrap();
        };
        tokio::join!(send, async { read.read_to_end(&mut back).await.unwrap() });
        assert!(back == sent, "bytes of another connection, or too few: {}", back.len());
    });
    futures::future::join_all(all).await;
}

#[tokio::test]
async fn a_connection_that_fails_does_not_end_the_others() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("s");
    let _heard = daemon(&socket);
    let forward = forward("port-forward web :80 :81 --address 127.0.0.1", &socket).await.unwrap();
    assert_eq!(forward.open.iter().map(|(_, remote)| *remote).collect::<Vec<_>>(), [80, 81]);
    assert_eq!(echo(&forward, 1, "nobody listens").await.unwrap_or_default(), "");
    assert_eq!(echo(&forward, 0, "somebody does").await.unwrap(), "somebody does");
}

#[tokio::test]
async fn a_tunnel_that_broke_is_of_no_concern_to_the_next_connection() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("s");
    let heard = daemon(&socket);
    let forward = forward("port-forward web :80 --address 127.0.0.1", &socket).await.unwrap();
    assert_eq!(echo(&forward, 0, "before").await.unwrap(), "before");
    heard.cut.notify_one();
    // The cut is noticed by the first connection at the latest, which may fail for it.
    let back = async {
        loop {
            if let Ok(back) = echo(&forward, 0, "after").await
                && !back.is_empty()
            {
                return back;
            }
        }
    };
    assert_eq!(tokio::time::timeout(Duration::from_secs(20), back).await.unwrap(), "after");
}

#[tokio::test]
async fn a_pod_that_has_gone_ends_it_and_a_daemon_that_has_gone_only_the_connection() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("s");
    let heard = daemon(&socket);
    let mut forward = forward("port-forward web :80 --address 127.0.0.1", &socket).await.unwrap();
    std::fs::remove_file(&socket).unwrap();
    heard.cut.notify_one();
    let closed = async { while echo(&forward, 0, "x").await.is_ok_and(|back| !back.is_empty()) {} };
    tokio::time::timeout(Duration::from_secs(20), closed).await.unwrap();
    // Another daemon, which does not know the pod.
    let listener = UnixListener::bind(&socket).unwrap();
    let router = Router::new().fallback(|| async { (StatusCode::NOT_FOUND, "pod does not exist") });
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    assert_eq!(echo(&forward, 0, "x").await.unwrap_or_default(), "");
    assert_eq!(format!("{:#}", forward.lost().await), "lost connection to pod: pod does not exist");
}

#[tokio::test]
async fn what_cannot_be_listened_on_or_looked_up_is_told_before_it_starts() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("s");
    let _heard = daemon(&socket);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let table = [
        (format!("port-forward web {port}:80 --address 127.0.0.1"), format!("unable to listen on port {port}")),
        ("port-forward web :80 --address example".to_owned(), "allowed are IP addresses and `localhost`".to_owned()),
        ("port-forward web https".to_owned(), "no port named \"https\"; ports of its spec: http".to_owned()),
        ("port-forward none 80".to_owned(), "pod does not exist".to_owned()),
    ];
    for (words, expected) in table {
        let e = forward(&words, &socket).await.map(|_| ()).unwrap_err();
        assert!(format!("{e:#}").contains(&expected), "{words}: {e:#}");
    }
}
