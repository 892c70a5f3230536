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
    let data = match connect(namespace, port).await {
        Ok(stream) => {
            splice(stream, data).await;
            None
        }
        Err(e) => {
            let words = format!("failed to connect to localhost:{port} inside of the pod: {e}");
            // The client may be gone.
            let _ = error.send(Bytes::from(words)).await;
            Some(data)
        }
    };
    let _ = error.finish().await;
    // A stream that is dropped before its client has ended it is reset, and its last words with it.
    let ended = async { while error.next().await.is_some() {} };
    let _ = tokio::time::timeout(LAST_WORD, ended).await;
    drop(data);
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

async fn splice(stream: TcpStream, data: Stream) {
    let (mut from, mut to) = stream.into_split();
    let (mut sender, mut receiver): (Sender, Receiver) = data.split();
    let up = async {
        while let Some(Ok(bytes)) = receiver.next().await {
            if to.write_all(&bytes).await.is_err() {
                return;
            }
        }
        let _ = to.shutdown().await;
    };
    let down = async {
        let mut piece = vec![0; PIECE];
        while let Ok(count) = from.read(&mut piece).await {
            if count == 0 || sender.send(Bytes::copy_from_slice(&piece[..count])).await.is_err() {
                break;
            }
        }
        let _ = sender.finish().await;
    };
    tokio::join!(up, down);
}
