//! Requests of one pull: kept connections, deadlines, redirects.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{
    CONTENT_LENGTH, HOST, HeaderMap, HeaderName, HeaderValue, LOCATION, RETRY_AFTER, USER_AGENT, WWW_AUTHENTICATE,
};
use hyper::http::response::Parts;
use hyper::{Method, Request, StatusCode};
use model::url::Url;
use resolver::Resolver;
use tokio::time::timeout;
use tokio_rustls::rustls::ClientConfig;

use crate::connect::{Sender, connect, tls_config};
use crate::endpoint::{Endpoint, TlsFiles, same_server};
use crate::error::Failure;
use crate::settings::Deadlines;
use crate::work::blocking;

/// Redirects that are followed.
const REDIRECTS: usize = 10;
/// Connections that are kept though nothing is asked on them.
const IDLE: usize = 8;
/// Bytes of a body that says why something failed.
const REASON: u64 = 64 << 10;
const AGENT: &str = concat!("bosun/", env!("CARGO_PKG_VERSION"));

/// What is asked.
#[derive(Debug, Clone)]
pub(crate) struct Ask {
    pub(crate) method: Method,
    /// Sent wherever a redirect leads.
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Ask {
    pub(crate) fn get() -> Self {
        Self { method: Method::GET, headers: HeaderMap::new(), body: Bytes::new() }
    }

    pub(crate) fn with(mut self, name: HeaderName, value: &str) -> Result<Self, Failure> {
        let value = HeaderValue::from_str(value);
        let value = value.map_err(|_| Failure::Configuration(format!("header {name} cannot be sent")))?;
        self.headers.append(name, value);
        Ok(self)
    }
}

/// Which connections can stand for each other.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Key {
    tls: bool,
    host: String,
    port: u16,
    files: TlsFiles,
    /// Of the host that the files are for: it may see our certificate.
    own: bool,
}

/// Of one pull: connections, and what TLS needs.
#[derive(Debug)]
pub(crate) struct Client {
    resolver: Resolver,
    deadlines: Deadlines,
    idle: Mutex<Vec<(Key, Sender)>>,
    configs: tokio::sync::Mutex<Vec<(TlsFiles, bool, Arc<ClientConfig>)>>,
}

/// An answer whose body is still to come.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) head: Parts,
    /// A redirect led to another server.
    pub(crate) elsewhere: bool,
    body: Incoming,
    connection: Option<(Key, Sender)>,
    client: Arc<Client>,
}

impl Client {
    pub(crate) fn new(deadlines: Deadlines) -> Arc<Self> {
        let (idle, configs) = (Mutex::default(), tokio::sync::Mutex::default());
        Arc::new(Self { resolver: Resolver::new(), deadlines, idle, configs })
    }

    /// Asks, and follows redirects. `secret` headers and those of the endpoint are for the endpoint's own server alone, as is its client certificate:
    /// once a redirect has led elsewhere they are not sent again.
    pub(crate) async fn follow(
        self: &Arc<Self>,
        endpoint: &Endpoint,
        url: &Url,
        ask: &Ask,
        secret: Option<&HeaderValue>,
    ) -> Result<Answer, Failure> {
        let mut at = url.clone();
        let mut elsewhere = !same_server(&at, &endpoint.root);
        for _ in 0..=REDIRECTS {
            let mut headers = ask.headers.clone();
            if !elsewhere {
                for (name, value) in &endpoint.headers {
                    let pair = (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_str(value));
                    let (Ok(name), Ok(value)) = pair else {
                        return Err(Failure::Configuration(format!("header {name} cannot be sent")));
                    };
                    headers.append(name, value);
                }
            }
            // Also to a server of tokens elsewhere, which is asked by name; not where a redirect leads.
            if at == *url || !elsewhere {
                headers.extend(secret.map(|s| (hyper::header::AUTHORIZATION, s.clone())));
            }
            let key = Key {
                tls: at.tls,
                host: at.host.to_ascii_lowercase(),
                port: at.port(),
                files: endpoint.tls.clone(),
                own: !elsewhere,
            };
            let mut answer = self.send(&at, key, ask, headers).await?;
            answer.elsewhere = elsewhere;
            let leads = matches!(answer.head.status.as_u16(), 301 | 302 | 303 | 307 | 308);
            let location = answer.head.headers.get(LOCATION).and_then(|l| l.to_str().ok()).map(str::to_owned);
            // What a form holds is for who was asked.
            let follows = leads && ask.method != Method::POST;
            let Some(location) = location.filter(|_| follows) else { return Ok(answer) };
            answer.discard().await;
            at = at.join(&location).ok_or_else(|| Failure::Protocol(format!("a redirect to {location:?}")))?;
            elsewhere |= !same_server(&at, &endpoint.root);
        }
        Err(Failure::Protocol(format!("more than {REDIRECTS} redirects")))
    }

    async fn send(self: &Arc<Self>, url: &Url, key: Key, ask: &Ask, mut headers: HeaderMap) -> Result<Answer, Failure> {
        let host = HeaderValue::from_str(&url.host_header()).map_err(|e| Failure::Protocol(e.to_string()))?;
        headers.insert(HOST, host);
        headers.entry(USER_AGENT).or_insert(HeaderValue::from_static(AGENT));
        loop {
            let kept = self.kept(&key);
            let is_kept = kept.is_some();
            let mut sender = match kept {
                Some(sender) => sender,
                None => connect(&self.resolver, url, self.config(&key).await?, self.deadlines.connect).await?,
            };
            let request = Request::builder().method(ask.method.clone()).uri(&url.path);
            let request = request.body(Full::new(ask.body.clone())).map_err(|e| Failure::Protocol(e.to_string()))?;
            let (mut parts, body) = request.into_parts();
            parts.headers = headers.clone();
            let sent = async {
                sender.ready().await?;
                sender.send_request(Request::from_parts(parts, body)).await
            };
            let stalled = Failure::Stalled { after: self.deadlines.answer, during: "waiting for its answer" };
            match timeout(self.deadlines.answer, sent).await.map_err(|_| stalled)? {
                Ok(answer) => {
                    let (head, body) = answer.into_parts();
                    let connection = Some((key, sender));
                    return Ok(Answer { head, elsewhere: false, body, connection, client: self.clone() });
                }
                // The host had closed it meanwhile.
                Err(_) if is_kept => {}
                Err(e) => return Err(Failure::Broken(e.to_string())),
            }
        }
    }

    fn kept(&self, key: &Key) -> Option<Sender> {
        let mut idle = self.idle.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        idle.retain(|(_, sender)| !sender.is_closed());
        let at = idle.iter().position(|(k, _)| k == key)?;
        Some(idle.swap_remove(at).1)
    }

    fn keep(&self, key: Key, sender: Sender) {
        let mut idle = self.idle.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if idle.len() < IDLE && !sender.is_closed() {
            idle.push((key, sender));
        }
    }

    async fn config(&self, key: &Key) -> Result<Option<Arc<ClientConfig>>, Failure> {
        if !key.tls {
            return Ok(None);
        }
        let mut configs = self.configs.lock().await;
        if let Some((.., known)) = configs.iter().find(|(files, own, _)| *files == key.files && *own == key.own) {
            return Ok(Some(known.clone()));
        }
        let (files, own) = (key.files.clone(), key.own);
        let read = blocking("registry-tls", move || tls_config(&files, own)).await;
        let config = Arc::new(read.map_err(|e| Failure::Configuration(e.to_string()))??);
        configs.push((key.files.clone(), key.own, config.clone()));
        Ok(Some(config))
    }
}

impl Answer {
    pub(crate) fn status(&self) -> StatusCode {
        self.head.status
    }

    pub(crate) fn text(&self, name: impl hyper::header::AsHeaderName) -> Option<&str> {
        self.head.headers.get(name).and_then(|v| v.to_str().ok())
    }

    /// How the host wants to know who asks.
    pub(crate) fn challenges(&self) -> Vec<String> {
        let lines = self.head.headers.get_all(WWW_AUTHENTICATE).iter();
        lines.filter_map(|v| v.to_str().ok()).map(str::to_owned).collect()
    }

    /// The length that was said.
    pub(crate) fn length(&self) -> Option<u64> {
        self.text(CONTENT_LENGTH).and_then(|l| l.parse().ok())
    }

    /// The next piece of the body. At its end the connection is kept.
    pub(crate) async fn piece(&mut self) -> Result<Option<Bytes>, Failure> {
        let after = self.client.deadlines.progress;
        loop {
            let stalled = Failure::Stalled { after, during: "receiving" };
            let Some(frame) = timeout(after, self.body.frame()).await.map_err(|_| stalled)? else {
                if let Some((key, sender)) = self.connection.take() {
                    self.client.keep(key, sender);
                }
                return Ok(None);
            };
            if let Ok(data) = frame.map_err(|e| Failure::Broken(e.to_string()))?.into_data() {
                return Ok(Some(data));
            }
        }
    }

    /// The whole body, if it is no longer than that.
    pub(crate) async fn whole(&mut self, what: &'static str, limit: u64) -> Result<Vec<u8>, Failure> {
        if self.length().is_some_and(|length| length > limit) {
            return Err(Failure::TooLarge(what, limit));
        }
        let mut text = Vec::new();
        while let Some(piece) = self.piece().await? {
            if (text.len() + piece.len()) as u64 > limit {
                return Err(Failure::TooLarge(what, limit));
            }
            text.extend_from_slice(&piece);
        }
        Ok(text)
    }

    /// Reads what is left if it is little, so that the connection can be kept.
    async fn discard(mut self) {
        // What it says is of no interest, nor is why it ends.
        drop(self.whole("an answer", REASON).await);
    }

    /// Why the host refused.
    pub(crate) async fn refusal(mut self) -> Failure {
        let status = self.status().as_u16();
        let retry_after = self.text(RETRY_AFTER).and_then(|t| t.trim().parse().ok()).map(Duration::from_secs);
        let text = if self.head.status.is_success() {
            Vec::new()
        } else {
            self.whole("a reason", REASON).await.unwrap_or_default()
        };
        Failure::Status { status, said: reason(&text), retry_after }
    }
}

/// The words of a registry's error document, or none: what else comes, such as a page, says nothing.
fn reason(text: &[u8]) -> String {
    let document: serde_json::Value = serde_json::from_slice(text).unwrap_or_default();
    let all = document.get("errors").and_then(|e| e.as_array()).into_iter().flatten();
    let message = |e: &serde_json::Value| {
        let field = |name| e.get(name).and_then(serde_json::Value::as_str).unwrap_or_default().to_owned();
        [field("message"), field("code")].into_iter().find(|t| !t.is_empty())
    };
    let told = document.get("details").and_then(|d| d.as_str()).map(str::to_owned);
    let words: Vec<String> = all.filter_map(message).chain(told).take(3).collect();
    words.join(", ").chars().filter(|c| !c.is_control()).take(300).collect()
}
