//! Commands against a daemon that is made of canned answers, over a real unix socket.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use clap::Parser;
use hyper::body::Bytes;

use crate::Command;

mod logs;
mod operator;
mod sessions;
mod stands;
mod top;

/// Answers what the function says, and remembers what was asked.
pub(crate) struct Fake {
    dir: tempfile::TempDir,
    asked: Asked,
    server: tokio::task::JoinHandle<()>,
}

type Asked = Arc<Mutex<Vec<String>>>;
type Answer = fn(&str) -> Response;

impl Fake {
    pub(crate) fn start(answer: Answer) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let asked = Asked::default();
        let listener = tokio::net::UnixListener::bind(dir.path().join("s")).unwrap();
        let handler = |State((asked, answer)): State<(Asked, Answer)>, request: Request| async move {
            let path = request.uri().to_string();
            asked.lock().unwrap().push(path.clone());
            answer(&path)
        };
        let router = Router::new().fallback(handler).with_state((asked.clone(), answer));
        let server = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { dir, asked, server }
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.dir.path().join("s")
    }

    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    /// The command of a line of words.
    pub(crate) fn command(&self, words: &str) -> Command {
        parse(words, &self.socket())
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.server.abort();
    }
}

#[derive(Parser)]
struct Line {
    #[command(subcommand)]
    command: Command,
}

pub(crate) fn parse(words: &str, socket: &std::path::Path) -> Command {
    let socket = format!("--socket={}", socket.display());
    let mut all: Vec<&str> = vec!["bosun"];
    let words: Vec<&str> = words.split_whitespace().collect();
    all.push(words[0]);
    all.push(&socket);
    all.extend(&words[1..]);
    Line::try_parse_from(all).unwrap().command
}

/// `GET /v1/pods/{name}` for a pod `shop/web` with containers `app`, `proxy` and init container `setup`.
pub(crate) fn web() -> Response {
    let text = r#"{"pod":{"metadata":{"name":"web","namespace":"shop","uid":"u1"},"spec":{"initContainers":[{"name":"setup"}],
        "containers":[{"name":"app","stdin":true,"tty":true,"ports":[{"name":"http","containerPort":8080}]},{"name":"proxy"}]}},
        "worker":null,"events":[]}"#;
    text.into_response()
}

pub(crate) fn refuse(code: u16, text: &'static str) -> Response {
    (StatusCode::from_u16(code).unwrap(), text).into_response()
}

/// A body that comes in pieces.
pub(crate) fn pieces(pieces: &[&'static str]) -> Response {
    let all: Vec<Result<Bytes, std::io::Error>> = pieces.iter().map(|p| Ok(Bytes::from_static(p.as_bytes()))).collect();
    Response::new(Body::from_stream(futures::stream::iter(all)))
}

#[test]
fn the_command_line_is_consistent() {
    use clap::CommandFactory;
    Line::command().debug_assert();
}
