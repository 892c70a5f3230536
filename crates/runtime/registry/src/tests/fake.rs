//! A registry on loopback.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures::{StreamExt, stream};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, LOCATION, RANGE, WWW_AUTHENTICATE};
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use image_store::Digest;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;

use super::{Made, OCI_MANIFEST};

type Body = UnsyncBoxBody<Bytes, std::io::Error>;

/// What it does instead of answering well.
#[derive(Debug, Clone)]
pub(super) enum Act {
    /// Refuses.
    Status(u16, &'static str),
    /// Refuses, with a header.
    Header(u16, &'static str, String),
    /// Answers with other content.
    Content(Vec<u8>),
    /// Breaks off after so many bytes.
    Cut(usize),
    /// Says nothing any more after so many bytes; `None`: not even that it heard.
    Stall(Option<usize>),
    /// Does not know `Range`.
    Whole,
    /// Goes on at another place than was asked for.
    Elsewhere,
    /// Sends so many bytes more than there are.
    More(usize),
    /// Takes its time.
    Late(Duration),
}

/// A request.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) headers: BTreeMap<String, String>,
    pub(super) body: String,
}

/// How it wants to know who asks.
#[derive(Debug, Clone, Default)]
pub(super) enum Lock {
    #[default]
    Open,
    Basic(String, String),
    /// A token, which its server at `/token` gives to that user, or to anybody.
    Token {
        realm: String,
        token: String,
        user: Option<(String, String)>,
        refresh: Option<String>,
        life: u64,
    },
}

#[derive(Default)]
pub(super) struct State {
    pub(super) contents: BTreeMap<String, (String, Vec<u8>)>,
    /// For requests whose line has that text; how often.
    pub(super) faults: Vec<(String, u32, Act)>,
    pub(super) seen: Vec<Seen>,
    pub(super) lock: Lock,
    /// Whether it says what digest a manifest has.
    pub(super) silent: bool,
    pub(super) at_once: usize,
    pub(super) most_at_once: usize,
}

#[derive(Clone)]
pub(super) struct Fake {
    pub(super) address: SocketAddr,
    state: Arc<Mutex<State>>,
}

impl Fake {
    pub(super) async fn start() -> Self {
        Self::listen(None).await
    }

    pub(super) async fn start_tls(config: ServerConfig) -> Self {
        Self::listen(Some(TlsAcceptor::from(Arc::new(config)))).await
    }

    async fn listen(tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let fake = Self { address: listener.local_addr().unwrap(), state: Arc::default() };
        let serving = fake.clone();
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (fake, tls) = (serving.clone(), tls.clone());
                tokio::spawn(async move {
                    match tls {
                        None => fake.serve(stream).await,
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                fake.serve(stream).await;
                            }
                        }
                    }
                });
            }
        });
        fake
    }

    /// With an image under that name and tag.
    pub(super) async fn with(made: &Made) -> Self {
        let fake = Self::start().await;
        fake.put(made, "team/app", "1");
        fake
    }

    pub(super) fn put(&self, made: &Made, repository: &str, tag: &str) {
        for blob in made.layers.iter().chain([&made.config]) {
            self.put_blob(repository, blob);
        }
        self.put_manifest(repository, tag, OCI_MANIFEST, &made.manifest);
    }

    pub(super) fn put_blob(&self, repository: &str, blob: &[u8]) {
        let path = format!("/v2/{repository}/blobs/{}", Digest::of(blob));
        self.state().contents.insert(path, ("application/octet-stream".to_owned(), blob.to_vec()));
    }

    pub(super) fn put_manifest(&self, repository: &str, tag: &str, kind: &str, text: &[u8]) {
        for reference in [tag.to_owned(), Digest::of(text).to_string()] {
            let path = format!("/v2/{repository}/manifests/{reference}");
            self.state().contents.insert(path, (kind.to_owned(), text.to_vec()));
        }
    }

    /// Next time, or so many times, that a request has this text in its line.
    pub(super) fn fault(&self, request: &str, times: u32, act: Act) {
        self.state().faults.push((request.to_owned(), times, act));
    }

    pub(super) fn name(&self, image: &str) -> String {
        format!("{}/{image}", self.address)
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Method and path of each request so far that has this text.
    pub(super) fn lines(&self, part: &str) -> Vec<String> {
        let line = |s: &Seen| format!("{} {}", s.method, s.path);
        self.state().seen.iter().map(line).filter(|l| l.contains(part)).collect()
    }

    pub(super) fn header(&self, part: &str, name: &str) -> Vec<Option<String>> {
        let state = self.state();
        let fitting = state.seen.iter().filter(|s| format!("{} {}", s.method, s.path).contains(part));
        fitting.map(|s| s.headers.get(name).cloned()).collect()
    }

    async fn serve(&self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        let service = service_fn(|request| async { Ok::<_, Infallible>(self.answer(request).await) });
        drop(hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await);
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        let (head, body) = request.into_parts();
        let headers = head.headers.iter().map(|(n, v)| (n.to_string(), v.to_str().unwrap_or_default().to_owned()));
        let seen = Seen {
            method: head.method.to_string(),
            path: head.uri.to_string(),
            headers: headers.collect(),
            body: String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap(),
        };
        let line = format!("{} {}", seen.method, seen.path);
        let act = {
            let mut state = self.state();
            state.seen.push(seen.clone());
            state.at_once += 1;
            state.most_at_once = state.most_at_once.max(state.at_once);
            let fault = state.faults.iter_mut().find(|(part, left, _)| *left > 0 && line.contains(part.as_str()));
            fault.map(|(_, left, act)| {
                *left -= 1;
                act.clone()
            })
        };
        if let Some(Act::Late(late)) = &act {
            tokio::time::sleep(*late).await;
        }
        if matches!(act, Some(Act::Stall(None))) {
            std::future::pending::<()>().await;
        }
        let answer = self.decide(&seen, act, head.method == Method::HEAD);
        self.state().at_once -= 1;
        answer
    }

    fn decide(&self, seen: &Seen, act: Option<Act>, is_head: bool) -> Response<Body> {
        match &act {
            Some(Act::Status(status, said)) => return plain(*status, said.as_bytes()),
            Some(Act::Header(status, name, value)) => {
                let mut answer = plain(*status, b"");
                answer.headers_mut().insert(*name, value.parse().unwrap());
                return answer;
            }
            _ => {}
        }
        let state = self.state();
        if seen.path.starts_with("/token") {
            return token(&state.lock, seen);
        }
        if let Some(refusal) = locked(&state.lock, seen) {
            return refusal;
        }
        let path = seen.path.split('?').next().unwrap_or_default();
        let Some((kind, content)) = state.contents.get(path) else {
            return plain(404, br#"{"errors":[{"code":"NAME_UNKNOWN","message":"nothing here"}]}"#);
        };
        let silent = state.silent || path.contains("/blobs/");
        give(kind, content, seen, act.as_ref(), (is_head, silent))
    }
}

fn plain(status: u16, text: &[u8]) -> Response<Body> {
    let mut answer = Response::new(whole(text.to_vec()));
    *answer.status_mut() = status.try_into().unwrap();
    answer
}

fn whole(bytes: Vec<u8>) -> Body {
    http_body_util::Full::new(Bytes::from(bytes)).map_err(|e: Infallible| match e {}).boxed_unsync()
}

fn give(kind: &str, content: &[u8], seen: &Seen, act: Option<&Act>, (is_head, silent): (bool, bool)) -> Response<Body> {
    let content = if let Some(Act::Content(other)) = act { other.clone() } else { content.to_vec() };
    let range = seen.headers.get(RANGE.as_str()).filter(|_| !matches!(act, Some(Act::Whole)));
    let from: usize = range.map_or(0, |r| r["bytes=".len()..].trim_end_matches('-').parse().unwrap());
    if from > 0 && from >= content.len() {
        return plain(416, b"");
    }
    let mut rest = content[from..].to_vec();
    let (status, told) = if range.is_some() { (206, from) } else { (200, 0) };
    if let Some(Act::More(more)) = act {
        rest.extend(vec![0; *more]);
    }
    let length = rest.len();
    let body = match act {
        _ if is_head => whole(Vec::new()),
        Some(Act::Cut(at)) => {
            let first = Ok(Frame::data(Bytes::from(rest[..*at].to_vec())));
            // What was given is sent before the connection breaks.
            let end = async {
                tokio::time::sleep(Duration::from_millis(30)).await;
                Err(std::io::Error::other("cut"))
            };
            StreamBody::new(stream::iter([first]).chain(stream::once(end))).boxed_unsync()
        }
        Some(Act::Stall(Some(at))) => {
            let first = Ok(Frame::data(Bytes::from(rest[..*at].to_vec())));
            StreamBody::new(stream::iter([first]).chain(stream::pending())).boxed_unsync()
        }
        _ => whole(rest),
    };
    let mut answer = Response::builder().status(status).header(CONTENT_TYPE, kind).header(CONTENT_LENGTH, length);
    if status == 206 {
        let told = if matches!(act, Some(Act::Elsewhere)) { told + 1 } else { told };
        answer = answer.header(CONTENT_RANGE, format!("bytes {told}-{}/{}", content.len() - 1, content.len()));
    }
    if !silent {
        answer = answer.header("Docker-Content-Digest", Digest::of(&content).to_string());
    }
    answer.body(body).unwrap()
}

fn basic(user: &str, password: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))
}

/// Why it does not answer.
fn locked(lock: &Lock, seen: &Seen) -> Option<Response<Body>> {
    let shown = seen.headers.get(AUTHORIZATION.as_str()).cloned().unwrap_or_default();
    let (wanted, challenge) = match lock {
        Lock::Open => return None,
        Lock::Basic(user, password) => (basic(user, password), "Basic realm=\"x\"".to_owned()),
        Lock::Token { realm, token, .. } => {
            let scope = "repository:team/app:pull,push";
            (format!("Bearer {token}"), format!("Bearer realm=\"{realm}\",service=\"fake\",scope=\"{scope}\""))
        }
    };
    (shown != wanted).then(|| {
        let mut answer = plain(401, br#"{"errors":[{"code":"UNAUTHORIZED","message":"who is there"}]}"#);
        answer.headers_mut().insert(WWW_AUTHENTICATE, challenge.parse().unwrap());
        answer
    })
}

/// The server of tokens.
fn token(lock: &Lock, seen: &Seen) -> Response<Body> {
    let Lock::Token { token, user, refresh, life, .. } = lock else { return plain(404, b"") };
    let shown = seen.headers.get(AUTHORIZATION.as_str());
    let known = match (user, refresh) {
        (Some((user, password)), _) => shown == Some(&basic(user, password)),
        (None, Some(refresh)) => seen.body.contains(&format!("refresh_token={refresh}&")),
        (None, None) => true,
    };
    if !known {
        return plain(401, br#"{"details":"incorrect username or password"}"#);
    }
    let name = if refresh.is_some() { "access_token" } else { "token" };
    plain(200, format!(r#"{{"{name}":"{token}","expires_in":{life}}}"#).as_bytes())
}

/// Where a redirect leads.
pub(super) fn redirect(to: String) -> Act {
    Act::Header(307, LOCATION.as_str().to_owned().leak(), to)
}
