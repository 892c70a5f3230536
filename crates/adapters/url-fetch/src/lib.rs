//! Gets documents over HTTP and HTTPS, a connection each: [`ports::fetch::Fetch`].
//!
//! Owns redirects. Servers are verified against the machine's own authorities, read anew for
//! each connection. Never keeps a connection, never uses a proxy, never reads more than it is asked for.

#![forbid(unsafe_code)]

mod tls;

#[cfg(test)]
mod tests;

use actor::Effects;
use async_trait::async_trait;
use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, CONNECTION, HOST, HeaderMap, HeaderName, HeaderValue, LOCATION, USER_AGENT};
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use model::url::Url;
use ports::fetch::{Fetch, Fetched};
use resolver::Resolver;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

/// Redirects that are followed.
const MAX_REDIRECTS: usize = 10;
/// Redirects lose these when they lead to another host.
const SECRET: [&str; 4] = ["authorization", "www-authenticate", "cookie", "cookie2"];

/// Gets URLs.
#[derive(Clone, Debug)]
pub struct UrlFetch {
    user_agent: String,
    effects: Effects,
}

impl UrlFetch {
    /// With this `User-Agent`, unless the caller's headers name another. `effects` read the machine's authorities.
    #[must_use]
    pub fn new(user_agent: impl Into<String>, effects: Effects) -> Self {
        Self { user_agent: user_agent.into(), effects }
    }
}

#[async_trait]
impl Fetch for UrlFetch {
    async fn get(&self, url: &str, headers: &[(String, String)], limit: usize) -> Result<Fetched, String> {
        let mut at = Url::parse(url).ok_or_else(|| format!("{url}: not an http or https URL"))?;
        let first_host = at.host.clone();
        let mut headers = self.headers(headers)?;
        for _ in 0..=MAX_REDIRECTS {
            let answer =
                exchange(&self.effects, &at, &headers, limit).await.map_err(|why| format!("GET {at}: {why}"))?;
            let leads = matches!(answer.code, 301 | 302 | 303 | 307 | 308);
            let Some(location) = answer.location.filter(|l| leads && !l.is_empty()) else {
                return Ok(Fetched { code: answer.code, body: answer.body });
            };
            at = at.join(&location).ok_or_else(|| format!("GET {at}: leads to {location}, which is no URL"))?;
            if !at.host.eq_ignore_ascii_case(&first_host) {
                SECRET.iter().for_each(|name| drop(headers.remove(*name)));
            }
        }
        Err(format!("GET {url}: stopped after {MAX_REDIRECTS} redirects"))
    }
}

impl UrlFetch {
    fn headers(&self, given: &[(String, String)]) -> Result<HeaderMap, String> {
        let mut map = HeaderMap::new();
        for (name, value) in given {
            let value = HeaderValue::from_str(value).map_err(|_| format!("value of header {name} cannot be sent"))?;
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| format!("{name} is no name of a header"))?;
            map.append(name, value);
        }
        if !map.contains_key(USER_AGENT)
            && let Ok(agent) = HeaderValue::from_str(&self.user_agent)
        {
            map.insert(USER_AGENT, agent);
        }
        map.entry(ACCEPT).or_insert(HeaderValue::from_static("*/*"));
        Ok(map)
    }
}

struct Answer {
    code: u16,
    location: Option<String>,
    body: Bytes,
}

async fn exchange(effects: &Effects, url: &Url, headers: &HeaderMap, limit: usize) -> Result<Answer, String> {
    let mut request =
        Request::builder().method(Method::GET).uri(&url.path).body(Empty::new()).map_err(|e| e.to_string())?;
    *request.headers_mut() = headers.clone();
    if !headers.contains_key(HOST) {
        let host = HeaderValue::from_str(&url.host_header()).map_err(|e| e.to_string())?;
        request.headers_mut().insert(HOST, host);
    }
    request.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    let places = Resolver::new().places(&url.host, url.port()).await?;
    let stream = TcpStream::connect(&*places).await.map_err(|e| e.to_string())?;
    if url.tls {
        converse(tls::wrap(effects, &url.host, stream).await?, request, limit).await
    } else {
        converse(stream, request, limit).await
    }
}

async fn converse<S>(stream: S, request: Request<Empty<Bytes>>, limit: usize) -> Result<Answer, String>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(|e| e.to_string())?;
    let talk = async {
        let response = sender.send_request(request).await.map_err(|e| e.to_string())?;
        read(response, limit).await
    };
    tokio::pin!(talk);
    tokio::pin!(connection);
    tokio::select! {
        answer = &mut talk => answer,
        // All that the server sent is in the body's channel by now.
        _ = &mut connection => talk.await,
    }
}

async fn read(response: Response<Incoming>, limit: usize) -> Result<Answer, String> {
    let code = response.status().as_u16();
    let location = response.headers().get(LOCATION).and_then(|v| v.to_str().ok()).map(str::to_owned);
    let mut body = response.into_body();
    let mut text = Vec::new();
    while text.len() <= limit {
        let Some(frame) = body.frame().await else { break };
        if let Some(data) = frame.map_err(|e| format!("while reading the body: {e}"))?.data_ref() {
            text.extend_from_slice(&data[..data.len().min(limit + 1 - text.len())]);
        }
    }
    Ok(Answer { code, location, body: text.into() })
}
