//! HTTP over the local socket.

use std::path::Path;

use anyhow::{Context, Result, bail};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;

/// Sends one request to the daemon and answers with the body of a good answer.
pub(crate) async fn call(socket: &Path, method: Method, path: &str, body: String) -> Result<Bytes> {
    let stream = tokio::net::UnixStream::connect(socket).await.with_context(|| match std::fs::metadata(socket) {
        Ok(_) => format!("{}: nobody answers (is the daemon running, are you root?)", socket.display()),
        Err(_) => {
            format!("{}: no such socket; start the daemon with `bosun run` or name its --socket", socket.display())
        }
    })?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let driver = tokio::spawn(connection);
    let request =
        Request::builder().method(method).uri(path).header("host", "bosun").body(Full::new(Bytes::from(body)))?;
    let response = sender.send_request(request).await.context("the daemon closed the connection")?;
    let status = response.status();
    let bytes = response.into_body().collect().await?.to_bytes();
    driver.abort();
    if status.is_success() {
        return Ok(bytes);
    }
    bail!("{}", String::from_utf8_lossy(&bytes).trim_end());
}

/// GET and decode.
pub(crate) async fn get<T: serde::de::DeserializeOwned>(socket: &Path, path: &str) -> Result<T> {
    let bytes = call(socket, Method::GET, path, String::new()).await?;
    serde_json::from_slice(&bytes).context("the daemon's answer is not understood (is it of another version?)")
}

/// A path segment with everything escaped that is not plain.
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
    #[test]
    fn slashes_in_names_are_escaped() {
        assert_eq!(super::segment("default/web-1.x"), "default%2Fweb-1.x");
    }
}
