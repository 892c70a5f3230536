//! The runtime's streaming server: where it is, and a connection to it.

use std::time::Duration;

use axum::http::Uri;
use resolver::Resolver;
use thiserror::Error;
use tokio::net::TcpStream;

/// Why there is no connection.
#[derive(Debug, Error)]
pub(crate) enum DialError {
    #[error("error dialing backend: the runtime's URL {0:?} cannot be used: {1}")]
    Url(String, &'static str),
    #[error("error dialing backend: dial tcp: {0}")]
    Name(String),
    #[error("error dialing backend: dial tcp {0}: {1}")]
    Connect(String, std::io::Error),
    #[error("error dialing backend: dial tcp {0}: i/o timeout")]
    Timeout(String),
}

/// An address of the runtime's streaming server, valid for one stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Backend {
    /// Name or address, without brackets.
    host: String,
    port: u16,
    /// Path and query, which hold the token.
    pub(crate) target: String,
}

impl Backend {
    /// Reads the URL that the runtime gave. Runtimes serve plain HTTP on loopback.
    pub(crate) fn parse(url: &str) -> Result<Self, DialError> {
        let bad = |why| DialError::Url(url.to_owned(), why);
        let uri: Uri = url.parse().map_err(|_| bad("no URL"))?;
        match uri.scheme_str() {
            Some("http") => {}
            Some("https") => return Err(bad("a streaming server with TLS is not supported")),
            _ => return Err(bad("not http")),
        }
        let host = uri.host().filter(|h| !h.is_empty()).ok_or_else(|| bad("no host"))?;
        let target = uri.path_and_query().map_or("/", |p| p.as_str());
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        Ok(Self { host, port: uri.port_u16().unwrap_or(80), target: target.to_owned() })
    }

    pub(crate) async fn dial(&self, limit: Duration) -> Result<TcpStream, DialError> {
        let connect = async {
            let places = Resolver::new().places(&self.host, self.port).await.map_err(DialError::Name)?;
            let stream = TcpStream::connect(&*places).await.map_err(|e| DialError::Connect(self.address(), e))?;
            // Keystrokes must not wait for each other; a failure costs latency only.
            let _ = stream.set_nodelay(true);
            Ok(stream)
        };
        tokio::time::timeout(limit, connect).await.unwrap_or_else(|_| Err(DialError::Timeout(self.address())))
    }

    /// `host:port`.
    pub(crate) fn address(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_runtimes_are_read() {
        for (url, want) in [
            ("http://127.0.0.1:4711/exec/TOKEN", Some(("127.0.0.1:4711", "/exec/TOKEN"))),
            ("http://[::]:10010/attach/x?y=1", Some(("[::]:10010", "/attach/x?y=1"))),
            ("http://localhost", Some(("localhost:80", "/"))),
            ("https://127.0.0.1:1/x", None),
            ("unix:///run/x.sock", None),
            ("/exec/TOKEN", None),
            ("", None),
        ] {
            let got = Backend::parse(url).ok();
            let got = got.map(|b| (b.address(), b.target));
            assert_eq!(got, want.map(|(a, t)| (a.to_owned(), t.to_owned())), "{url}");
        }
    }
}
