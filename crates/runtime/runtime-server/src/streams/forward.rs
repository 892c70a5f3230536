//! Ports of a pod (`portforward.k8s.io`): each connection is a pair of streams, data and error.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use pod_supervisor::NAMESPACES;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use spdy::{Incoming, Receiver, Sender, Stream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::task::JoinSet;

use crate::runtime::Runtime;
use crate::sessions::{Forward, LAST_WORD};

/// Connections of one client at a time.
const MAX_PAIRS: usize = 256;
const CONNECT: Duration = Duration::from_secs(10);
const PIECE: usize = 32 << 10;

/// Serves one client until it goes.
pub(super) async fn serve(rt: &Arc<Runtime>, forward: &Forward, mut incoming: Incoming) {
    let namespace = match rt.pod(&forward.pod) {
        Ok(pod) if pod.record().host_network() => None,
        Ok(_) => Some(rt.options.pod_run(&forward.pod).join(NAMESPACES).join("net")),
        Err(_) => return,
    };
    let mut halves: BTreeMap<String, (Option<Stream>, Option<Stream>)> = BTreeMap::new();
    let mut running = JoinSet::new();
    while let Some((headers, stream)) = incoming.next().await {
        while running.try_join_next().is_some() {}
        if halves.len() + running.len() >= MAX_PAIRS {
            continue; // dropped, which is a reset
        }
        let field = |name: &str| headers.get(name).cloned().unwrap_or_default();
        let (Ok(port), id) = (field("port").parse::<u16>(), field("requestid")) else { continue };
        let pair = halves.entry(id.clone()).or_default();
        match field("streamtype").as_str() {
            "error" => pair.0 = Some(stream),
            "data" => pair.1 = Some(stream),
            _ => continue,
        }
        if let (Some(_), Some(_)) = pair
            && let Some((Some(error), Some(data))) = halves.remove(&id)
        {
            running.spawn(one(namespace.clone(), port, error, data));
        }
    }
}

async fn one(namespace: Option<PathBuf>, port: u16, mut error: Stream, data: Stream) {
    let (mut sender, receiver) = data.split();
    let unread = match connect(namespace, port).await {
        Ok(stream) => {
            let (from, to) = stream.into_split();
            // Where the pod ends the connection, kubectl keeps its own side until the errors end, too.
            let down = async {
                carry_down(from, &mut sender).await;
                // The client may be gone.
                let _ = error.finish().await;
            };
            tokio::join!(carry_up(receiver, to), down);
            None
        }
        Err(e) => {
            let words = format!("failed to connect to localhost:{port} inside of the pod: {e}");
            let _ = error.send(Bytes::from(words)).await;
            let _ = error.finish().await;
            Some(receiver)
        }
    };
    // A stream that is dropped before its client has ended it is reset, and its last words with it.
    let ended = async { while error.next().await.is_some() {} };
    let _ = tokio::time::timeout(LAST_WORD, ended).await;
    drop((sender, unread));
}

/// Connects in a network namespace: on a thread of its own, which is left there and ends.
async fn connect(namespace: Option<PathBuf>, port: u16) -> io::Result<TcpStream> {
    let (tell, told) = tokio::sync::oneshot::channel();
    let thread = std::thread::Builder::new().name("port-forward".into());
    // Whoever waits may be gone.
    thread.spawn(move || drop(tell.send(connect_here(namespace.as_deref(), port))))?;
    let stream = told.await.map_err(|_| io::Error::other("the thread has ended"))??;
    stream.set_nonblocking(true)?;
    TcpStream::from_std(stream)
}

fn connect_here(namespace: Option<&Path>, port: u16) -> io::Result<std::net::TcpStream> {
    if let Some(path) = namespace {
        let file = File::open(path)?;
        move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))?;
    }
    let at = |ip: IpAddr| std::net::TcpStream::connect_timeout(&SocketAddr::new(ip, port), CONNECT);
    at(Ipv4Addr::LOCALHOST.into()).or_else(|e| at(Ipv6Addr::LOCALHOST.into()).map_err(|_| e))
}

/// To the pod. What comes after it takes no more is thrown away, as nobody has the receiver then: other connections go on.
async fn carry_up(mut receiver: Receiver, mut to: OwnedWriteHalf) {
    while let Some(Ok(bytes)) = receiver.next().await {
        if to.write_all(&bytes).await.is_err() {
            return;
        }
    }
    let _ = to.shutdown().await;
}

/// From the pod, until that ends the connection.
async fn carry_down(mut from: OwnedReadHalf, sender: &mut Sender) {
    let mut piece = vec![0; PIECE];
    while let Ok(count) = from.read(&mut piece).await {
        if count == 0 || sender.send(Bytes::copy_from_slice(&piece[..count])).await.is_err() {
            break;
        }
    }
    let _ = sender.finish().await;
}

#[cfg(test)]
mod tests {
    use spdy::headers::Headers;
    use spdy::{Connection, Options};
    use tokio::net::TcpListener;

    use super::*;

    /// Longer than anything here takes; before that the test has failed.
    const LIMIT: Duration = Duration::from_secs(20);

    /// A program of a pod, which is told each connection; answers its port.
    async fn listen<F: Future<Output = ()> + Send>(talk: impl Fn(TcpStream) -> F + Send + 'static) -> u16 {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
        let port = listener.local_addr().expect("bound").port();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                talk(stream).await;
            }
        });
        port
    }

    /// A client and what it comes to.
    fn connection() -> (Connection, Incoming) {
        let (near, far) = tokio::io::duplex(1 << 16);
        let (client, driver) = spdy::connect(near, &Options::default());
        let (incoming, served) = spdy::serve(far, &Options::default());
        tokio::spawn(driver);
        tokio::spawn(served);
        (client, incoming)
    }

    /// One more connection: its streams of errors and data.
    async fn open(client: &Connection, incoming: &mut Incoming, port: u16) -> [Stream; 2] {
        let ours = async { [client.open(Headers::new()).await, client.open(Headers::new()).await] };
        let theirs = async { [incoming.next().await, incoming.next().await].map(|came| came.expect("a stream").1) };
        let (ours, [error, data]) = tokio::join!(ours, theirs);
        tokio::spawn(one(None, port, error, data));
        ours.map(|opened| opened.expect("accepted"))
    }

    async fn all(stream: &mut Stream) -> Vec<u8> {
        let mut found = Vec::new();
        let ended = async {
            while let Some(piece) = stream.next().await {
                found.extend_from_slice(&piece.expect("it ends by itself"));
            }
        };
        tokio::time::timeout(LIMIT, ended).await.expect("it ends");
        found
    }

    #[tokio::test]
    async fn where_the_pod_ends_a_connection_its_client_is_told_though_that_has_not_ended_its_own_side() {
        let port = listen(|mut stream| async move { stream.write_all(b"all").await.expect("written") }).await;
        let (client, mut incoming) = connection();
        let [mut error, mut data] = open(&client, &mut incoming, port).await;
        assert_eq!(all(&mut data).await, b"all");
        assert_eq!(all(&mut error).await, b"", "kubectl waits for this end before it closes its own side");
    }

    #[tokio::test]
    async fn what_the_pod_takes_no_more_holds_up_no_other_connection() {
        let closed = listen(|stream| async move { drop(stream) }).await;
        let says = listen(|mut stream| async move { stream.write_all(b"hello").await.expect("written") }).await;
        let (client, mut incoming) = connection();
        let [_error, mut data] = open(&client, &mut incoming, closed).await;
        let much = async {
            for _ in 0..200 {
                // It may be reset meanwhile.
                let _ = data.send(Bytes::from(vec![7; PIECE])).await;
            }
        };
        tokio::time::timeout(LIMIT, much).await.expect("the connection takes all of it");
        let [_, mut other] = open(&client, &mut incoming, says).await;
        assert_eq!(all(&mut other).await, b"hello");
    }
}
