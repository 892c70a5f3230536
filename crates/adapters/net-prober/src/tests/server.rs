//! Servers of a few lines.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// An HTTP/1 server that answers by path with canned bytes, and remembers each request's head.
#[derive(Clone)]
pub(super) struct Canned {
    pub(super) port: u16,
    pub(super) heads: Arc<Mutex<Vec<String>>>,
}

impl Canned {
    pub(super) async fn start(answer: impl Fn(&str) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let heads: Arc<Mutex<Vec<String>>> = Arc::default();
        let seen = Arc::clone(&heads);
        let answer = Arc::new(answer);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (seen, answer) = (Arc::clone(&seen), Arc::clone(&answer));
                tokio::spawn(async move {
                    let mut head = Vec::new();
                    while !head.ends_with(b"\r\n\r\n") {
                        match stream.read_u8().await {
                            Ok(b) => head.push(b),
                            Err(_) => return,
                        }
                    }
                    let head = String::from_utf8(head).unwrap();
                    let path = head.split(' ').nth(1).unwrap().to_owned();
                    seen.lock().unwrap().push(head);
                    let reply = answer(&path);
                    tokio::time::sleep(reply.before).await;
                    let _peer_may_be_gone = stream.write_all(&reply.head).await;
                    tokio::time::sleep(reply.between).await;
                    let _peer_may_be_gone = stream.write_all(&reply.rest).await;
                    if reply.hold {
                        std::future::pending::<()>().await;
                    }
                });
            }
        });
        Self { port, heads }
    }
}

/// What a canned server sends, and when.
#[derive(Default)]
pub(super) struct Reply {
    pub(super) before: Duration,
    pub(super) head: Vec<u8>,
    pub(super) between: Duration,
    pub(super) rest: Vec<u8>,
    pub(super) hold: bool,
}

pub(super) fn status(code: u16, body: &str) -> Reply {
    let head = format!("HTTP/1.1 {code} X\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    Reply { head: head.into_bytes(), ..Reply::default() }
}

pub(super) fn redirect(code: u16, location: &str) -> Reply {
    let head = format!("HTTP/1.1 {code} X\r\nLocation: {location}\r\nContent-Length: 5\r\n\r\nmoved");
    Reply { head: head.into_bytes(), ..Reply::default() }
}
