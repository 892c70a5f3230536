//! What somebody who watches sees: every event of a list, in order, kept for a test to look at.

use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use serde_json::Value;
use tokio_rustls::rustls::{ClientConnection, StreamOwned};

use crate::BedError;

pub(super) type Stream = StreamOwned<ClientConnection, TcpStream>;

/// An event of a watch.
#[derive(Debug, Clone)]
pub struct Seen {
    /// `ADDED`, `MODIFIED`, `DELETED`, `ERROR`.
    pub kind: String,
    /// The object.
    pub object: Value,
    /// When it came.
    pub at: Instant,
}

/// A running watch; ends when dropped.
pub struct Watch {
    seen: Arc<Mutex<Vec<Seen>>>,
    socket: TcpStream,
    reader: Option<std::thread::JoinHandle<()>>,
}

impl Watch {
    /// Reads from a connection on which a watch was asked for.
    pub(super) fn begin(stream: Stream, path: &str) -> Result<Self, BedError> {
        let fail = |detail: String| failed(path, detail);
        let socket = stream.sock.try_clone().map_err(|e| fail(e.to_string()))?;
        socket.set_read_timeout(None).map_err(|e| fail(e.to_string()))?;
        let mut lines = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if lines.read_line(&mut head).map_err(|e| fail(e.to_string()))? == 0 {
                return Err(fail(head));
            }
        }
        if head.split_whitespace().nth(1) != Some("200") {
            return Err(fail(head));
        }
        let seen = Arc::new(Mutex::new(Vec::new()));
        let store = Arc::clone(&seen);
        let reader = std::thread::spawn(move || read(lines, &store));
        Ok(Watch { seen, socket, reader: Some(reader) })
    }

    /// Puts what was there before it in front of what it has seen.
    pub(super) fn began_with(&self, items: Vec<Value>) {
        let at = Instant::now();
        let added = items.into_iter().map(|object| Seen { kind: "ADDED".to_owned(), object, at });
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).splice(0..0, added);
    }

    /// Everything so far, oldest first.
    #[must_use]
    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Looks at everything so far without a copy of it, for whoever looks often.
    pub fn look<T>(&self, at: impl FnOnce(&[Seen]) -> T) -> T {
        at(&self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Everything so far about the object `name`.
    #[must_use]
    pub fn about(&self, name: &str) -> Vec<Seen> {
        self.seen().into_iter().filter(|e| e.object["metadata"]["name"] == name).collect()
    }

    /// Forgets what came so far.
    pub fn forget(&self) {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Whether the server ended it.
    #[must_use]
    pub fn ended(&self) -> bool {
        self.reader.as_ref().is_none_or(std::thread::JoinHandle::is_finished)
    }
}

fn read(lines: BufReader<Stream>, store: &Mutex<Vec<Seen>>) {
    for line in lines.lines() {
        let Ok(line) = line else { return };
        let Ok(mut event) = serde_json::from_str::<Value>(&line) else { continue };
        let kind = event["type"].as_str().unwrap_or_default().to_owned();
        let seen = Seen { kind, object: event["object"].take(), at: Instant::now() };
        store.lock().unwrap_or_else(PoisonError::into_inner).push(seen);
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.socket.shutdown(std::net::Shutdown::Both);
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}

/// A watch that the server does not accept.
pub(super) fn failed(path: &str, detail: String) -> BedError {
    BedError::Answer { from: format!("kube-apiserver (watch {path})"), detail }
}
