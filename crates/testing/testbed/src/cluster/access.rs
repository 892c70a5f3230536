//! A small blocking client of the API server: one connection per request, JSON in and out.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, ClientConnection, StreamOwned};

use super::authority::KeyPairFiles;
use super::watch::{self, Stream, Watch};
use crate::BedError;
use crate::error::file;

/// What the API server answered.
#[derive(Debug, Clone)]
pub struct Answer {
    /// HTTP status code.
    pub code: u16,
    /// The body; a string when it is no JSON.
    pub body: Value,
}

impl Answer {
    /// Whether the code is 2xx.
    #[must_use]
    pub fn good(&self) -> bool {
        (200..300).contains(&self.code)
    }
}

/// Somebody who may talk to the API server. Clones are cheap.
#[derive(Clone)]
pub struct Access {
    address: String,
    port: u16,
    tls: Arc<ClientConfig>,
    token: Option<String>,
}

impl Access {
    pub(super) fn new(
        address: &str,
        authority: &str,
        certificate: Option<&KeyPairFiles>,
        token: Option<&str>,
    ) -> Result<Self, BedError> {
        let wrong = |e: String| BedError::Answer { from: "the TLS library".into(), detail: e };
        let roots = ::tls::authorities(authority.as_bytes()).map_err(|e| wrong(e.to_string()))?;
        let config = ::tls::client(::tls::Trust::Authorities(roots));
        let tls = match certificate {
            None => config.with_no_client_auth(),
            Some(files) => {
                let read = |path| file("read", path, std::fs::read(path));
                let (chain, key) = (read(&files.certificate)?, read(&files.key)?);
                let chain = ::tls::certificates(&chain).map_err(|e| wrong(e.to_string()))?;
                let key = ::tls::key(&key).map_err(|e| wrong(e.to_string()))?;
                config.with_client_auth_cert(chain, key).map_err(|e| wrong(e.to_string()))?
            }
        };
        Ok(Access { address: address.to_owned(), port: 443, tls: Arc::new(tls), token: token.map(str::to_owned) })
    }

    /// The same caller at another server of the cluster: a node.
    #[must_use]
    pub fn at(&self, address: &str, port: u16) -> Self {
        Access { address: address.to_owned(), port, ..self.clone() }
    }

    /// Opens a connection and sends one request. 1.0: the answer ends with the connection and is not chunked.
    pub(super) fn open(&self, method: &str, path: &str, kind: &str, body: &str) -> std::io::Result<Stream> {
        let invalid = |e: String| std::io::Error::new(std::io::ErrorKind::InvalidInput, e);
        let name = ServerName::try_from(self.address.clone()).map_err(|e| invalid(e.to_string()))?;
        let connection = ClientConnection::new(Arc::clone(&self.tls), name).map_err(|e| invalid(e.to_string()))?;
        let target: std::net::IpAddr = self.address.parse().map_err(|_| invalid(self.address.clone()))?;
        let socket = TcpStream::connect_timeout(&(target, self.port).into(), Duration::from_secs(5))?;
        socket.set_read_timeout(Some(Duration::from_secs(60)))?;
        socket.set_nodelay(true)?;
        let mut stream = StreamOwned::new(connection, socket);
        let token = self.token.as_ref().map_or(String::new(), |t| format!("Authorization: Bearer {t}\r\n"));
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.0\r\nHost: {}\r\nUser-Agent: bed\r\nAccept: application/json\r\n{token}\
             Content-Type: {kind}\r\nContent-Length: {length}\r\n\r\n{body}",
            self.address
        )?;
        stream.flush()?;
        Ok(stream)
    }

    /// Sends a request and answers whatever comes back. A PATCH is a strategic merge.
    ///
    /// # Errors
    /// When nobody answers, or not with HTTP.
    pub fn request(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Answer, BedError> {
        let kind = if method == "PATCH" { "application/strategic-merge-patch+json" } else { "application/json" };
        let fail = |detail: String| BedError::Answer { from: format!("kube-apiserver ({method} {path})"), detail };
        let text = body.map_or(String::new(), Value::to_string);
        let mut answer = Vec::new();
        let exchange = self.open(method, path, kind, &text).and_then(|mut s| match s.read_to_end(&mut answer) {
            // The server may close without saying so in TLS.
            Err(e) if e.kind() == std::io::ErrorKind::UnexpectedEof && !answer.is_empty() => Ok(0),
            other => other,
        });
        exchange.map_err(|e| fail(e.to_string()))?;
        let text = String::from_utf8_lossy(&answer);
        let (head, body) = text.split_once("\r\n\r\n").ok_or_else(|| fail(format!("no HTTP: {text}")))?;
        let code = head.split_whitespace().nth(1).and_then(|c| c.parse().ok()).unwrap_or(0);
        let body = serde_json::from_str(body).unwrap_or_else(|_| Value::from(body));
        Ok(Answer { code, body })
    }

    fn good(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value, BedError> {
        let answer = self.request(method, path, body)?;
        if answer.good() {
            return Ok(answer.body);
        }
        let message = answer.body["message"].as_str().map_or_else(|| answer.body.to_string(), str::to_owned);
        let from = format!("kube-apiserver ({method} {path})");
        Err(BedError::Answer { from, detail: format!("{}: {message}", answer.code) })
    }

    /// GET.
    ///
    /// # Errors
    /// When the answer is not 2xx.
    pub fn get(&self, path: &str) -> Result<Value, BedError> {
        self.good("GET", path, None)
    }

    /// POST.
    ///
    /// # Errors
    /// When the answer is not 2xx.
    pub fn create(&self, path: &str, object: &Value) -> Result<Value, BedError> {
        self.good("POST", path, Some(object))
    }

    /// PATCH with a strategic merge.
    ///
    /// # Errors
    /// When the answer is not 2xx.
    pub fn patch(&self, path: &str, patch: &Value) -> Result<Value, BedError> {
        self.good("PATCH", path, Some(patch))
    }

    /// PUT.
    ///
    /// # Errors
    /// When the answer is not 2xx.
    pub fn replace(&self, path: &str, object: &Value) -> Result<Value, BedError> {
        self.good("PUT", path, Some(object))
    }

    /// DELETE.
    ///
    /// # Errors
    /// When the answer is not 2xx.
    pub fn delete(&self, path: &str) -> Result<Value, BedError> {
        self.good("DELETE", path, None)
    }

    /// Items of a list.
    ///
    /// # Errors
    /// As [`Access::get`].
    pub fn list(&self, path: &str) -> Result<Vec<Value>, BedError> {
        match self.get(path)?["items"].take() {
            Value::Array(items) => Ok(items),
            _ => Ok(Vec::new()),
        }
    }

    /// Items of a list, and a watch of all that happens to it after that: nothing falls between the two.
    ///
    /// # Errors
    /// As [`Access::get`] and [`Access::watch`].
    pub fn follow(&self, path: &str) -> Result<(Vec<Value>, Watch), BedError> {
        self.follow_after(path, || ())
    }

    /// As [`Access::follow`]; `meanwhile` runs when the list is read and the watch has not begun.
    ///
    /// # Errors
    /// As [`Access::follow`].
    pub fn follow_after(&self, path: &str, meanwhile: impl FnOnce()) -> Result<(Vec<Value>, Watch), BedError> {
        let mut list = self.get(path)?;
        let version = list["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned();
        meanwhile();
        let items = if let Value::Array(items) = list["items"].take() { items } else { Vec::new() };
        Ok((items, self.watch_after(path, &version)?))
    }

    /// Watches a list from now on: what is there comes first, as additions.
    ///
    /// A list and a watch from its version: without a version a current server (1.36) waits for its cache to be as new as etcd,
    /// which an etcd before 3.4.25 cannot tell it, and ends the watch with an error.
    ///
    /// # Errors
    /// As [`Access::follow`].
    pub fn watch(&self, path: &str) -> Result<Watch, BedError> {
        let (items, watch) = self.follow(path)?;
        watch.began_with(items);
        Ok(watch)
    }

    fn watch_after(&self, path: &str, version: &str) -> Result<Watch, BedError> {
        let fail = |e: std::io::Error| watch::failed(path, e.to_string());
        let join = if path.contains('?') { '&' } else { '?' };
        let whole = format!("{path}{join}watch=1&resourceVersion={version}");
        let stream = self.open("GET", &whole, "application/json", "").map_err(fail)?;
        Watch::begin(stream, path)
    }
}
