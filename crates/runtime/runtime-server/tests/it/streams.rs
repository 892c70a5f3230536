//! exec, attach and port-forward as a kubelet comes for them.

use std::fs::File;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use cri_api::v1;
use spdy::{Connection, Receiver, Sender};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::bed::Bed;
use crate::on_runc::{Client, container, remove_pod, run_pod, running, stop_pod};

const COMMAND: &str = "v4.channel.k8s.io";
const PATIENCE: Duration = Duration::from_secs(60);

/// Connects in a network namespace.
fn connect(address: String, network: PathBuf) -> TcpStream {
    let connected = std::thread::spawn(move || {
        let namespace = File::open(network).expect("namespace");
        rustix::thread::move_into_link_name_space(namespace.as_fd(), None).expect("entered");
        std::net::TcpStream::connect(address).expect("connect")
    });
    let stream = connected.join().expect("connected");
    stream.set_nonblocking(true).expect("mode");
    TcpStream::from_std(stream).expect("stream")
}

/// Comes for a stream; answers the head of the answer and the connection.
async fn come(network: &Path, url: &str, protocol: &str) -> (String, TcpStream) {
    let (address, path) = url.strip_prefix("http://").and_then(|u| u.split_once('/')).expect("url");
    let mut stream = connect(address.to_owned(), network.to_owned());
    let head = format!(
        "POST /{path} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\
         X-Stream-Protocol-Version: {protocol}\r\nContent-Length: 0\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.expect("written");
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        answer.push(stream.read_u8().await.expect("an answer"));
    }
    (String::from_utf8_lossy(&answer).into_owned(), stream)
}

async fn upgraded(network: &Path, url: &str, protocol: &str) -> Connection {
    let (head, stream) = come(network, url, protocol).await;
    assert!(head.starts_with("HTTP/1.1 101") && head.to_lowercase().contains(protocol), "{head}");
    let (connection, driver) = spdy::connect(stream, &spdy::Options::default());
    tokio::spawn(driver);
    connection
}

async fn open(connection: &Connection, headers: &[(&str, &str)]) -> (Sender, Receiver) {
    let headers = headers.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    connection.open(headers).await.expect("a stream").split()
}

/// All that comes, to the end.
async fn all(receiver: &mut Receiver) -> String {
    let mut text = Vec::new();
    let reading = async {
        while let Some(piece) = receiver.next().await {
            text.extend(piece.expect("whole"));
        }
    };
    tokio::time::timeout(PATIENCE, reading).await.expect("an end");
    String::from_utf8(text).expect("text")
}

/// Until something was said.
async fn said(receiver: &mut Receiver, what: &str) {
    let mut text = String::new();
    let reading = async {
        while !text.contains(what) {
            // A stream that was reset is told of on the other one.
            let Some(Ok(piece)) = receiver.next().await else { return std::future::pending().await };
            text.push_str(&String::from_utf8_lossy(&piece));
        }
    };
    tokio::time::timeout(PATIENCE, reading).await.unwrap_or_else(|_| panic!("not said: {what}"));
}

async fn exec(client: &mut Client, id: &str, script: &str, tty: bool) -> String {
    let request = v1::ExecRequest {
        container_id: id.into(),
        cmd: ["/bin/sh", "-c", script].map(str::to_owned).to_vec(),
        tty,
        stdin: true,
        stdout: true,
        stderr: !tty,
    };
    client.exec(request).await.expect("url").into_inner().url
}

#[tokio::test]
async fn a_thousand_connections_that_say_nothing_keep_nobody_out() {
    let bed = Bed::new();
    let mut client = bed.client().await;
    let pod = run_pod(&mut client, bed.pod("p")).await.expect("sandbox");
    let id = running(&mut client, &pod, container("main", "exec sleep 1000")).await;
    let url = exec(&mut client, &id, "echo heard", false).await;
    let (address, _) = url.strip_prefix("http://").and_then(|u| u.split_once('/')).expect("url");
    let silent: Vec<TcpStream> = (0..1000).map(|_| connect(address.to_owned(), bed.network())).collect();
    let connection = upgraded(&bed.network(), &url, COMMAND).await;
    let (_error, mut status) = open(&connection, &[("streamtype", "error")]).await;
    let (mut stdin, _in) = open(&connection, &[("streamtype", "stdin")]).await;
    let (_out, mut stdout) = open(&connection, &[("streamtype", "stdout")]).await;
    let (_err, _stderr) = open(&connection, &[("streamtype", "stderr")]).await;
    stdin.finish().await.expect("the end of the input");
    // More who say nothing do not end one that was let in.
    let more: Vec<TcpStream> = (0..300).map(|_| connect(address.to_owned(), bed.network())).collect();
    assert_eq!(all(&mut stdout).await, "heard\n");
    assert!(all(&mut status).await.contains("Success"));
    drop((silent, more));
    stop_pod(&mut client, &pod).await.expect("stopped");
    remove_pod(&mut client, &pod).await.expect("removed");
}

#[tokio::test]
async fn commands_and_terminals_are_carried_to_clients() {
    let bed = Bed::new();
    let mut client = bed.client().await;
    let pod = run_pod(&mut client, bed.pod("p")).await.expect("sandbox");
    let id = running(&mut client, &pod, container("main", "exec sleep 1000")).await;

    let url = exec(&mut client, &id, "cat; echo err >&2; exit 3", false).await;
    let connection = upgraded(&bed.network(), &url, COMMAND).await;
    let (_error, mut status) = open(&connection, &[("streamtype", "error")]).await;
    let (mut stdin, _in) = open(&connection, &[("streamtype", "stdin")]).await;
    let (_out, mut stdout) = open(&connection, &[("streamtype", "stdout")]).await;
    let (_err, mut stderr) = open(&connection, &[("streamtype", "stderr")]).await;
    stdin.send(Bytes::from_static(b"through\n")).await.expect("sent");
    stdin.finish().await.expect("finished");
    assert_eq!((all(&mut stdout).await.as_str(), all(&mut stderr).await.as_str()), ("through\n", "err\n"));
    let status = all(&mut status).await;
    assert!(status.contains("NonZeroExitCode") && status.contains("\"3\""), "{status}");
    drop((connection, stdin));
    // A URL is good once.
    assert!(come(&bed.network(), &url, COMMAND).await.0.starts_with("HTTP/1.1 404"));

    let url = exec(&mut client, &id, "read x; stty size; echo got $x", true).await;
    let connection = upgraded(&bed.network(), &url, COMMAND).await;
    let (_error, mut status) = open(&connection, &[("streamtype", "error")]).await;
    let (mut stdin, _in) = open(&connection, &[("streamtype", "stdin")]).await;
    let (_out, mut stdout) = open(&connection, &[("streamtype", "stdout")]).await;
    let (mut resize, _size) = open(&connection, &[("streamtype", "resize")]).await;
    resize.send(Bytes::from_static(b"{\"Width\":91,\"Height\":17}")).await.expect("sent");
    // The size takes another way than the words: they are sent until it has come.
    stdin.send(Bytes::from_static(b"word\n")).await.expect("sent");
    let text = all(&mut stdout).await;
    assert!(text.contains("got word\r\n"), "{text}");
    assert!(all(&mut status).await.contains("Success"));
    drop(connection);

    // Another protocol, another program: refused, and told.
    let url = exec(&mut client, &id, "true", false).await;
    assert!(come(&bed.network(), &url, "channel.k8s.io").await.0.starts_with("HTTP/1.1 403"));
    let both = v1::ExecRequest {
        container_id: id,
        cmd: vec!["x".into()],
        tty: true,
        stdin: false,
        stdout: true,
        stderr: true,
    };
    assert!(client.exec(both).await.is_err());
    stop_pod(&mut client, &pod).await.expect("stopped");
    remove_pod(&mut client, &pod).await.expect("removed");
    assert_eq!(bed.remains(), Vec::<String>::new());
}

#[tokio::test]
async fn who_attaches_speaks_with_the_container_itself() {
    let bed = Bed::new();
    let mut client = bed.client().await;
    let pod = run_pod(&mut client, bed.pod("p")).await.expect("sandbox");
    let mut config = container("main", "while read x; do echo you say $x; done; echo bye");
    (config.stdin, config.stdin_once) = (true, true);
    let id = running(&mut client, &pod, config).await;
    let request = v1::AttachRequest { container_id: id, stdin: true, tty: false, stdout: true, stderr: true };
    let url = client.attach(request).await.expect("url").into_inner().url;
    let connection = upgraded(&bed.network(), &url, COMMAND).await;
    let (_error, mut status) = open(&connection, &[("streamtype", "error")]).await;
    let (mut stdin, _in) = open(&connection, &[("streamtype", "stdin")]).await;
    let (_out, mut stdout) = open(&connection, &[("streamtype", "stdout")]).await;
    let (_err, _stderr) = open(&connection, &[("streamtype", "stderr")]).await;
    stdin.send(Bytes::from_static(b"hello\n")).await.expect("sent");
    said(&mut stdout, "you say hello\n").await;
    stdin.finish().await.expect("finished");
    assert_eq!(all(&mut stdout).await, "bye\n");
    assert!(all(&mut status).await.contains("Success"));
    assert_eq!(bed.lines("p", "main"), ["stdout F you say hello", "stdout F bye"]);
}

/// Speaks with port 8080 of a pod, which says everything again, and with one that nobody listens on.
pub(crate) async fn a_port_is_forwarded(bed: &Bed, client: &mut Client, pod: &str) {
    let request = v1::PortForwardRequest { pod_sandbox_id: pod.into(), port: vec![8080] };
    let url = client.port_forward(request).await.expect("url").into_inner().url;
    let connection = upgraded(&bed.network(), &url, "portforward.k8s.io").await;
    let pair = async |port: &str, id: &str| {
        let (mut unused, error) =
            open(&connection, &[("streamtype", "error"), ("port", port), ("requestid", id)]).await;
        unused.finish().await.expect("finished");
        (error, open(&connection, &[("streamtype", "data"), ("port", port), ("requestid", id)]).await)
    };
    let (mut error, (mut to, mut from)) = pair("8080", "0").await;
    to.send(Bytes::from_static(b"hello")).await.expect("sent");
    tokio::select! {
        () = said(&mut from, "hello") => {}
        why = all(&mut error) => panic!("{why}"),
    }
    to.finish().await.expect("finished");
    assert_eq!((all(&mut from).await.as_str(), all(&mut error).await.as_str()), ("", ""));
    let (mut error, _data) = pair("9", "1").await;
    assert!(all(&mut error).await.contains("failed to connect to localhost:9"));
}
