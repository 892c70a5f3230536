//! One GET, redirects on the same host followed.

use std::error::Error as _;
use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use futures::future::{Either, select};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::{CONNECTION, HOST, HeaderName, HeaderValue, LOCATION};
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use model::url::{Url, is_absolute};
use resolver::io_text;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, timeout_at};

use crate::connect::Connector;

/// How much of a body is read, in bytes.
const MAX_BODY: usize = 10 * 1024;
/// Redirects that are followed.
const MAX_REDIRECTS: usize = 10;

/// What to get.
#[derive(Clone, Debug)]
pub(crate) struct Get {
    pub(crate) url: Url,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) host_header: Option<String>,
}

/// How it ended.
#[derive(Debug)]
pub(crate) enum Exchange {
    /// A whole answer; the body is cut at 10 KiB.
    Answer { status: u16, body: String },
    /// No answer; reads as Go's error.
    Failed(String),
    /// An answer whose body broke off.
    BodyFailed(String),
    /// The request cannot be made.
    BadRequest(String),
}

/// What stopped one exchange.
enum Stop {
    Bad(String),
    Transport(String),
    Body(String),
}

/// One answer before its meaning is known.
struct Answer {
    status: u16,
    location: Option<String>,
    body: String,
}

/// `timeout` covers everything, redirects and body included.
pub(crate) async fn get(connector: &Connector, mut get: Get, timeout: Duration) -> Exchange {
    let until = Instant::now() + timeout;
    let first_host = get.url.host.clone();
    for redirects in 0.. {
        let url = get.url.to_string();
        let mut headers_seen = false;
        let one = timeout_at(until, exchange(connector, &get, &mut headers_seen)).await;
        let answer = match one {
            Ok(Ok(answer)) => answer,
            Ok(Err(Stop::Bad(why))) => return Exchange::BadRequest(why),
            Ok(Err(Stop::Transport(why))) => return Exchange::Failed(format!("Get {url:?}: {why}")),
            Ok(Err(Stop::Body(why))) => return Exchange::BodyFailed(why),
            Err(_) if headers_seen => {
                let why = "context deadline exceeded (Client.Timeout or context cancellation while reading body)";
                return Exchange::BodyFailed(why.to_owned());
            }
            Err(_) => {
                let why = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)";
                return Exchange::Failed(format!("Get {url:?}: {why}"));
            }
        };
        let followed = matches!(answer.status, 301 | 302 | 303 | 307 | 308);
        let Some(location) = answer.location.filter(|l| followed && !l.is_empty()) else {
            return Exchange::Answer { status: answer.status, body: answer.body };
        };
        let Some(next) = get.url.join(&location) else {
            return Exchange::Failed(format!("Get {location:?}: unsupported protocol scheme or bad URL"));
        };
        if !next.host.eq_ignore_ascii_case(&first_host) {
            return Exchange::Answer { status: answer.status, body: answer.body };
        }
        if redirects >= MAX_REDIRECTS {
            return Exchange::Failed(format!("Get \"{next}\": stopped after {MAX_REDIRECTS} redirects"));
        }
        if is_absolute(&location) {
            get.host_header = None;
        }
        get.url = next;
    }
    unreachable!("the loop ends by its redirect limit")
}

async fn exchange(connector: &Connector, get: &Get, headers_seen: &mut bool) -> Result<Answer, Stop> {
    let request = request(get).map_err(Stop::Bad)?;
    let stream = connector.dial(&get.url.host, get.url.port()).await.map_err(Stop::Transport)?;
    if get.url.tls {
        let stream = connector.wrap(&get.url.host, stream).await.map_err(Stop::Transport)?;
        converse(stream, request, headers_seen).await
    } else {
        converse(stream, request, headers_seen).await
    }
}

fn request(get: &Get) -> Result<Request<Empty<Bytes>>, String> {
    let (path, own) = (&get.url.path, get.url.host_header());
    let host_value = get.host_header.as_deref().unwrap_or(&own);
    let mut request = Request::builder()
        .method(Method::GET)
        .uri(path)
        .body(Empty::new())
        .map_err(|e| format!("parse {path:?}: {e}"))?;
    let headers = request.headers_mut();
    headers.insert(HOST, HeaderValue::from_str(host_value).map_err(|e| format!("host {host_value:?}: {e}"))?);
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    for (name, value) in &get.headers {
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|e| format!("header {name:?}: {e}"))?;
        let value = HeaderValue::from_str(value).map_err(|e| format!("value of header {name}: {e}"))?;
        headers.append(name, value);
    }
    Ok(request)
}

/// Sends the request and reads the answer, while the connection is driven beside it.
async fn converse<S>(stream: S, request: Request<Empty<Bytes>>, headers_seen: &mut bool) -> Result<Answer, Stop>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(|e| Stop::Transport(hyper_text(&e)))?;
    let dialogue = pin!(async {
        let response = sender.send_request(request).await.map_err(|e| Stop::Transport(hyper_text(&e)))?;
        *headers_seen = true;
        read(response).await
    });
    match select(dialogue, pin!(connection)).await {
        Either::Left((answer, _)) => answer,
        // All that the peer sent is in the body's channel by now.
        Either::Right((_, dialogue)) => dialogue.await,
    }
}

async fn read(response: Response<Incoming>) -> Result<Answer, Stop> {
    let status = response.status().as_u16();
    let location = response.headers().get(LOCATION).map(|v| String::from_utf8_lossy(v.as_bytes()).into_owned());
    let mut body = response.into_body();
    let mut text = Vec::new();
    while text.len() < MAX_BODY {
        match body.frame().await {
            None => break,
            Some(Ok(frame)) => {
                if let Some(data) = frame.data_ref() {
                    text.extend_from_slice(&data[..data.len().min(MAX_BODY - text.len())]);
                }
            }
            Some(Err(e)) => return Err(Stop::Body(hyper_text(&e))),
        }
    }
    Ok(Answer { status, location, body: String::from_utf8_lossy(&text).into_owned() })
}

/// Hyper's words, with the system's below them.
fn hyper_text(e: &hyper::Error) -> String {
    if e.is_incomplete_message() {
        return "EOF".to_owned();
    }
    match e.source() {
        Some(cause) => match cause.downcast_ref::<std::io::Error>() {
            Some(io) => io_text(io),
            None => format!("{e}: {cause}"),
        },
        None => e.to_string(),
    }
}
