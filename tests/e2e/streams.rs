//! exec, attach and port-forward through the daemon's socket to the real streaming server: over WebSocket, as our own
//! command line speaks, and over SPDY relayed as it is, as an API server speaks.

use std::collections::BTreeMap;

use bytes::Bytes;
use spdy::headers::Headers;
use streaming::Outcome;
use streaming::client::{self, ForwardError, Session};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::mpsc;

use crate::node::{Node, SOON, block, shell};

async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(SOON, what).await.expect("in time")
}

async fn dial(node: &Node) -> UnixStream {
    UnixStream::connect(node.bosun.socket()).await.expect("the daemon's socket")
}

/// Percent-encodes what a query needs encoded.
fn command(words: &[&str]) -> String {
    let word = |word: &&str| word.bytes().map(|b| format!("%{b:02X}")).collect::<String>();
    words.iter().map(|w| format!("&command={}", word(w))).collect()
}

async fn exec(node: &Node, streams: &str, words: &[&str]) -> Session {
    let path = format!("/exec/default/web-bed/main?{streams}{}", command(words));
    soon(client::exec(dial(node).await, &path)).await.expect("accepted")
}

async fn text(output: &mut mpsc::Receiver<Bytes>) -> String {
    let mut got = Vec::new();
    while let Some(piece) = soon(output.recv()).await {
        got.extend_from_slice(&piece);
    }
    String::from_utf8_lossy(&got).into_owned()
}

/// Reads until `end` is there.
async fn until(output: &mut mpsc::Receiver<Bytes>, end: &str) -> String {
    let mut got = String::new();
    while !got.contains(end) {
        let piece = soon(output.recv()).await;
        got.push_str(&String::from_utf8_lossy(&piece.unwrap_or_else(|| panic!("ended with {got:?}"))));
    }
    got
}

fn node(script: &str, extra: &str) -> Node {
    let node = Node::start();
    node.put("web", &format!("  terminationGracePeriodSeconds: 1\n  containers:\n{}", shell("main", script, extra)));
    node.wait_running("web");
    node
}

#[test]
fn exec_has_its_streams_its_terminal_and_its_exit_code() {
    let node = node("exec sleep 1000", "");
    block(async {
        let mut session = exec(&node, "output=1&error=1", &["sh", "-c", "echo out; echo err >&2; exit 7"]).await;
        assert_eq!(text(&mut session.stdout).await, "out\n");
        assert_eq!(text(&mut session.stderr).await, "err\n");
        assert_eq!(soon(session.exit.wait()).await, Outcome::Exit(7));

        let mut session = exec(&node, "output=1", &["true"]).await;
        assert_eq!(text(&mut session.stdout).await, "");
        assert_eq!(soon(session.exit.wait()).await, Outcome::Success);

        let mut session = exec(&node, "input=1&output=1", &["sh", "-c", "wc -c; echo after"]).await;
        for _ in 0..32 {
            assert!(session.stdin.send(Bytes::from(vec![b'x'; 32 << 10])).await);
        }
        session.stdin.finish().await;
        assert_eq!(text(&mut session.stdout).await, "1048576\nafter\n");
        assert_eq!(soon(session.exit.wait()).await, Outcome::Success);

        let wait = "while [ \"$(stty size)\" != '33 101' ]; do sleep 0.1; done; echo right; read x; exit 5";
        let mut session = exec(&node, "input=1&output=1&tty=1", &["sh", "-c", wait]).await;
        assert!(session.resize.set(101, 33).await);
        until(&mut session.stdout, "right").await;
        assert!(session.stdin.send(Bytes::from_static(b"go on\n")).await);
        text(&mut session.stdout).await;
        assert_eq!(soon(session.exit.wait()).await, Outcome::Exit(5));

        let session = exec(&node, "output=1", &["/no/such/program"]).await;
        let outcome = soon(session.exit.wait()).await;
        assert!(matches!(&outcome, Outcome::Failed(why) if why.contains("no such file")), "{outcome:?}");
    });
}

#[test]
fn spdy_is_relayed_as_it_is() {
    let node = node("exec sleep 1000", "");
    block(async {
        let words = command(&["sh", "-c", "read x; echo got $x; exit 3"]);
        let path = format!("/exec/default/web-bed/main?input=1&output=1{words}");
        let stream = switched(dial(&node).await, &path).await;
        let (connection, driver) = spdy::connect(stream, &spdy::Options::default());
        let driver = tokio::spawn(driver);
        let open = async |kind: &str| {
            let headers = Headers::from([("streamtype".to_owned(), kind.to_owned())]);
            soon(connection.open(headers)).await.expect("accepted")
        };
        let (mut error, mut stdin, mut stdout) = (open("error").await, open("stdin").await, open("stdout").await);
        stdin.send(Bytes::from_static(b"it\n")).await.expect("open");
        assert_eq!(&soon(stdout.next()).await.expect("open").expect("open")[..], b"got it\n");
        let mut status = Vec::new();
        while let Some(Ok(piece)) = soon(error.next()).await {
            status.extend_from_slice(&piece);
        }
        assert_eq!(Outcome::parse(&status), Outcome::Exit(3));
        drop((connection, error, stdin, stdout));
        let _ = soon(driver).await;
    });
}

/// Asks for SPDY as an API server does.
async fn switched<T: AsyncRead + AsyncWrite + Unpin>(mut stream: T, path: &str) -> T {
    let request = format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\
         X-Stream-Protocol-Version: v4.channel.k8s.io\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.expect("taken");
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(soon(stream.read_u8()).await.expect("an answer"));
    }
    let head = String::from_utf8_lossy(&head).to_ascii_lowercase();
    assert!(head.starts_with("http/1.1 101 "), "{head}");
    assert!(head.contains("x-stream-protocol-version: v4.channel.k8s.io"), "{head}");
    stream
}

/// Runs a command without input to its end.
async fn run_over_spdy<T: AsyncRead + AsyncWrite + Unpin + Send + 'static>(stream: T, path: &str) -> Outcome {
    let (connection, driver) = spdy::connect(switched(stream, path).await, &spdy::Options::default());
    let ended = async {
        let open = async |kind: &str| {
            let headers = Headers::from([("streamtype".to_owned(), kind.to_owned())]);
            soon(connection.open(headers)).await.expect("accepted")
        };
        let (mut error, _stdout) = (open("error").await, open("stdout").await);
        let mut status = Vec::new();
        while let Some(Ok(piece)) = soon(error.next()).await {
            status.extend_from_slice(&piece);
        }
        Outcome::parse(&status)
    };
    let mut ended = std::pin::pin!(ended);
    // Cancel-safe: a connection that ends takes its streams along.
    tokio::select! {
        outcome = &mut ended => outcome,
        _ = driver => ended.await,
    }
}

/// How often the daemon called the runtime so far, by operation.
async fn calls(node: &Node) -> BTreeMap<String, u64> {
    let mut stream = dial(node).await;
    let request = b"GET /metrics HTTP/1.1\r\nHost: node\r\nConnection: close\r\n\r\n";
    soon(stream.write_all(request)).await.expect("written");
    let mut text = String::new();
    soon(stream.read_to_string(&mut text)).await.expect("text");
    assert!(text.starts_with("HTTP/1.1 200 "), "{text}");
    let counts = text.lines().filter_map(|line| {
        let (operation, count) =
            line.strip_prefix("kubelet_runtime_operations_total{operation_type=\"")?.split_once("\"} ")?;
        Some((operation.to_owned(), count.parse().expect("a count")))
    });
    counts.collect()
}

/// What that takes in time, beside the streaming server itself, is measured by `cargo xtask bench --only face`.
#[test]
fn an_exec_is_one_call_of_the_runtime_by_either_protocol() {
    const EACH: u64 = 10;
    let node = node("exec sleep 1000", "");
    block(async {
        let before = calls(&node).await;
        for _ in 0..EACH {
            let stream = dial(&node).await;
            let path = format!("/exec/default/web-bed/main?output=1{}", command(&["true"]));
            assert_eq!(run_over_spdy(stream, &path).await, Outcome::Success);
            let mut session = exec(&node, "output=1", &["true"]).await;
            assert_eq!(text(&mut session.stdout).await, "");
            assert_eq!(soon(session.exit.wait()).await, Outcome::Success);
        }
        let mut more = calls(&node).await;
        more.retain(|operation, count| {
            *count -= before.get(operation).copied().unwrap_or_default();
            // Looks at the runtime as a whole come with time, whoever asks for what: a list for each exec would not be seen here.
            *count > 0
                && !operation.starts_with("list_")
                && !["version", "status", "runtime_config"].contains(&&**operation)
        });
        assert_eq!(more, BTreeMap::from([("exec".to_owned(), 2 * EACH)]));
    });
}

#[test]
fn an_attach_speaks_to_the_containers_own_process() {
    let node = node("while read x; do echo got $x; done", "    stdin: true\n");
    block(async {
        let path = "/attach/default/web-bed/main?input=1&output=1&error=1";
        let mut session = soon(client::exec(dial(&node).await, path)).await.expect("accepted");
        assert!(session.stdin.send(Bytes::from_static(b"this\n")).await);
        until(&mut session.stdout, "got this\n").await;
        drop(session);
        let mut again = soon(client::exec(dial(&node).await, path)).await.expect("accepted");
        assert!(again.stdin.send(Bytes::from_static(b"that\n")).await);
        until(&mut again.stdout, "got that\n").await;
    });
}

#[test]
fn a_port_is_forwarded_for_fifty_connections_and_much_data_without_growth() {
    // One server for each connection: busybox's listens with a backlog of one.
    let servers = "for p in $(seq 8000 8050); do nc -ll -p $p -e cat & done; \
                   until [ $(netstat -ltn | grep -c ':80') -ge 51 ]; do usleep 50000; done; echo listening; wait";
    let node = node(servers, "");
    let listening = || match node.bosun.cli(&["logs", "web-bed"]) {
        Ok(text) if text.contains("listening") => Ok(()),
        other => Err(format!("{other:?}")),
    };
    testbed::wait_until("the servers to listen", SOON, listening).unwrap_or_else(|e| panic!("{e}"));
    block(async {
        let forward =
            soon(client::port_forward(dial(&node).await, "/portForward/default/web-bed")).await.expect("accepted");
        echo(&forward, 8000, 100_000).await;
        let mut jobs = tokio::task::JoinSet::new();
        for n in 1..=50 {
            let forward = forward.clone();
            jobs.spawn(async move { echo(&forward, 8000 + n, 100_000).await });
        }
        while let Some(done) = soon(jobs.join_next()).await {
            done.expect("no panic");
        }
        let before = resident(&node);
        let megabytes = std::env::var("STREAM_MIB").ok().and_then(|m| m.parse().ok()).unwrap_or(64);
        let started = std::time::Instant::now();
        echo(&forward, 8000, megabytes << 20).await;
        let (after, took) = (resident(&node), started.elapsed());
        println!("{megabytes} MiB there and back in {took:?}; resident {before} -> {after} KiB");
        assert!(after < before + (16 << 10), "{before} KiB have become {after}");

        let (_near, far) = tokio::io::duplex(64);
        let refused = soon(forward.forward(9, far)).await;
        assert!(matches!(&refused, Err(ForwardError::Remote(why)) if why.contains("refused")), "{refused:?}");
    });
}

/// Sends so many bytes and reads as many. The end is said after the last byte has come back: containerd waits for one
/// second after a half-close, whatever is under way.
async fn echo(forward: &client::PortForward, port: u16, bytes: usize) {
    let (near, far) = tokio::io::duplex(64 << 10);
    let forward = forward.clone();
    let carried = tokio::spawn(async move { forward.forward(port, far).await });
    let (mut read, mut write) = tokio::io::split(near);
    let sending = async {
        let piece = vec![b'x'; 64 << 10];
        let mut left = bytes;
        while left > 0 {
            let n = left.min(piece.len());
            write.write_all(&piece[..n]).await.expect("taken");
            left -= n;
        }
    };
    let receiving = async {
        let (mut got, mut buffer) = (0, vec![0; 64 << 10]);
        while got < bytes {
            match soon(read.read(&mut buffer)).await.expect("readable") {
                0 => break,
                n => got += n,
            }
        }
        got
    };
    let ((), got) = tokio::join!(sending, receiving);
    write.shutdown().await.expect("open");
    let ended = soon(carried).await.expect("no panic");
    assert_eq!((got, ended.map_err(|e| e.to_string())), (bytes, Ok(())));
}

/// Memory of the daemon, in KiB.
fn resident(node: &Node) -> usize {
    let pid = node.bosun.pid().expect("it runs");
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find(|l| l.starts_with("VmRSS:")).expect("a line");
    line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).expect("a number")
}
