//! HTTP over the local socket.

use std::path::Path;

use anyhow::{Context, Result};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;

/// Longest text of a refusal that is read.
const REFUSAL_BYTES: usize = 64 << 10;

/// The daemon says no. Display: its own text.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub(crate) struct Refused {
    pub(crate) status: StatusCode,
    pub(crate) text: String,
}

impl Refused {
    pub(crate) fn new(status: StatusCode, path: &str, body: &[u8]) -> Self {
        let text = String::from_utf8_lossy(body).trim().to_owned();
        if !text.is_empty() {
            return Self { status, text };
        }
        let path = path.split('?').next().unwrap_or_default();
        let text = if status == StatusCode::NOT_FOUND {
            format!("the daemon does not serve {path} (is it of another version, or are its debugging handlers off?)")
        } else {
            format!("the daemon answers {status} for {path}")
        };
        Self { status, text }
    }
}

/// Opens a connection to the daemon.
pub(crate) async fn dial(socket: &Path) -> Result<UnixStream> {
    UnixStream::connect(socket).await.with_context(|| match std::fs::metadata(socket) {
        Ok(_) => format!("{}: nobody answers (is the daemon running, are you root?)", socket.display()),
        Err(e) if e.kind() == std::io::ErrorKind::PermissionDenied => {
            format!("{}: only root may ask the daemon", socket.display())
        }
        Err(_) => {
            format!("{}: no such socket; start the daemon with `bosun run` or name its --socket", socket.display())
        }
    })
}

/// Sends one request; answers with the head and the open body of a good answer.
///
/// A refusal is an error that [`Refused`] can be had of.
pub(crate) async fn open(socket: &Path, method: Method, path: &str, body: String) -> Result<Response<Incoming>> {
    let stream = dial(socket).await?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let request =
        Request::builder().method(method).uri(path).header("host", "bosun").body(Full::new(Bytes::from(body)))?;
    let response = sender.send_request(request).await.context("the daemon closed the connection")?;
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    let body = http_body_util::Limited::new(response.into_body(), REFUSAL_BYTES);
    let text = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    Err(Refused::new(status, path, &text).into())
}

/// Sends one request to the daemon and answers with the body of a good answer.
pub(crate) async fn call(socket: &Path, method: Method, path: &str, body: String) -> Result<Bytes> {
    let response = open(socket, method, path, body).await?;
    Ok(response.into_body().collect().await.context("the daemon broke off its answer")?.to_bytes())
}

/// GET and decode.
pub(crate) async fn get<T: serde::de::DeserializeOwned>(socket: &Path, path: &str) -> Result<T> {
    let bytes = call(socket, Method::GET, path, String::new()).await?;
    serde_json::from_slice(&bytes).context("the daemon's answer is not understood (is it of another version?)")
}

/// A path segment or a query value with everything escaped that is not plain.
pub(crate) fn segment(text: &str) -> String {
    text.bytes()
        .map(|b| match b {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' => char::from(b).to_string(),
            _ => format!("%{b:02X}"),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slashes_in_names_are_escaped() {
        assert_eq!(segment("default/web-1.x"), "default%2Fweb-1.x");
    }

    #[test]
    fn a_refusal_without_words_says_what_may_be_wrong() {
        let table = [
            (404, "pod \"web\" does not exist\n", "pod \"web\" does not exist"),
            (404, "", "does not serve /exec/web (is it of another version"),
            (500, "", "answers 500 Internal Server Error for /exec/web"),
        ];
        for (status, body, expected) in table {
            let refused = Refused::new(StatusCode::from_u16(status).unwrap(), "/exec/web?a=b", body.as_bytes());
            assert!(refused.to_string().contains(expected), "{refused}");
        }
    }
}
