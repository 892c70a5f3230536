//! A manager that breaks the rule that its second argument names.

#![forbid(unsafe_code)]

use std::pin::Pin;

use across::stub::manager_server::{Manager, ManagerServer};
use contract::{ProbeManager, Role};
use futures::{Stream, StreamExt, stream};
use seam::v1::from_manager::What;
use seam::v1::{
    Answer, Call, DescribeRequest, Description, Family, FromManager, Keep, Kind, Label, Line, MetricsAnswer,
    MetricsRequest, Pong, Ready, Row, Rows, Series, ToManager, answer, keep, to_manager,
};
use tokio::net::UnixListener;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::{Request, Response, Status, Streaming};

struct Liar(String);

fn row(board: &str, key: &str, value: &str) -> What {
    let rows = vec![Row { key: key.as_bytes().to_vec(), value: Some(value.as_bytes().to_vec()) }];
    What::Rows(Rows { board: board.to_owned(), number: 1, rows, ..Rows::default() })
}

fn call(message: &str, body: &str) -> What {
    What::Call(Call { id: 9, message: message.to_owned(), body: body.as_bytes().to_vec(), ..Call::default() })
}

/// What it says once it is asked something.
fn lies(how: &str) -> Vec<What> {
    let probes = r#"{"verdicts":{},"probes":{}}"#;
    match how {
        "rows" => vec![
            row("PodProbes", "\"stranger\"", probes),
            row("StatusEntry", "\"u1\"", "{}"),
            row("DesiredPod", "\"u1\"", "{}"),
            row("PodProbes", "\"u1\"", "]"),
            row("PodProbes", "7", probes),
        ],
        "calls" => vec![
            call("StartContainer", r#"{"uid":"u1","container":"c"}"#),
            call("KillPod", "{}"),
            call("ExecSync", "{"),
        ],
        "answers" => vec![
            What::Answer(Answer { id: 4711, what: Some(answer::What::Body(b"null".to_vec())) }),
            What::Answer(Answer { id: 0, what: None }),
        ],
        "keys" => vec![
            What::Keep(Keep { id: 1, what: Some(keep::What::Load("object/secret".to_owned())) }),
            What::Keep(Keep {
                id: 0,
                what: Some(keep::What::PutSoon(Line { key: "worker/u1".to_owned(), value: None })),
            }),
            What::Keep(Keep { id: 2, what: Some(keep::What::Keys(String::new())) }),
            What::Keep(Keep { id: 3, what: None }),
        ],
        "oversized" => vec![row("PodProbes", "\"u1\"", &" ".repeat(2 * seam::MAX_FRAME))],
        // All rows of its own, of which there are none.
        "forgets" => {
            vec![What::Rows(Rows { board: "PodProbes".to_owned(), number: 1, whole: true, ..Rows::default() })]
        }
        "flood" => (0..50_000).map(|_| row("PodProbes", "\"stranger\"", probes)).collect(),
        _ => Vec::new(),
    }
}

/// Families that are another role's, of another form, less than nothing, and no family at all; the last one is its own.
fn numbers() -> Vec<Family> {
    let families = [
        ("kubelet_evictions", Kind::Counter, "eviction_signal", 1.0),
        ("prober_probe_total", Kind::Counter, "why", 1.0),
        ("acme_lies_total", Kind::Counter, "how", -1.0),
        ("acme lies", Kind::Gauge, "how", 1.0),
        ("acme_gauge", Kind::Unspecified, "how", 1.0),
        ("acme_truths", Kind::Gauge, "how", 1.0),
    ];
    let family = |(name, kind, label, value): (&str, Kind, &str, f64)| {
        let labels = vec![Label { name: label.to_owned(), value: "x".to_owned() }];
        let series = vec![Series { labels, value, distribution: None }];
        Family { name: name.to_owned(), help: "h".to_owned(), kind: kind.into(), series }
    };
    families.map(family).into()
}

#[tonic::async_trait]
impl Manager for Liar {
    async fn describe(&self, _: Request<DescribeRequest>) -> Result<Response<Description>, Status> {
        let mut said = Description {
            role: ProbeManager::NAME.to_owned(),
            hash: contract::seam::hash(&ProbeManager::DECLARATION),
            version: "6.6.6".to_owned(),
            program: "lies".to_owned(),
        };
        match self.0.as_str() {
            "hash" => said.hash = "0".repeat(32),
            "role" => said.role = "VolumeManager".to_owned(),
            "silent" => std::future::pending().await,
            _ => {}
        }
        Ok(Response::new(said))
    }

    async fn metrics(&self, _: Request<MetricsRequest>) -> Result<Response<MetricsAnswer>, Status> {
        match self.0.as_str() {
            "numbers" => Ok(Response::new(MetricsAnswer { families: numbers() })),
            "deaf" => std::future::pending().await,
            _ => Err(Status::unimplemented("it counts nothing")),
        }
    }

    type ServeStream = Pin<Box<dyn Stream<Item = Result<FromManager, Status>> + Send>>;

    async fn serve(&self, request: Request<Streaming<ToManager>>) -> Result<Response<Self::ServeStream>, Status> {
        let how = self.0.clone();
        let said = request.into_inner().flat_map(move |heard| {
            let what = match heard.ok().and_then(|frame| frame.what) {
                Some(to_manager::What::Begin(_)) if how == "premature" => vec![What::Ready(Ready {})],
                Some(to_manager::What::Ping(ping)) if how != "deaf" => vec![What::Pong(Pong { number: ping.number })],
                Some(to_manager::What::Start(_)) => vec![What::Ready(Ready {})],
                // "unreadable" and all others: the answer to a message without content is `null`.
                Some(to_manager::What::Call(call)) => {
                    let body = if how == "unreadable" { b"{{{".to_vec() } else { b"null".to_vec() };
                    let answer = What::Answer(Answer { id: call.id, what: Some(answer::What::Body(body)) });
                    lies(&how).into_iter().chain([answer]).collect()
                }
                _ => Vec::new(),
            };
            stream::iter(what.into_iter().map(|what| Ok(FromManager { what: Some(what) })))
        });
        Ok(Response::new(Box::pin(said)))
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let (socket, how) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let listener = UnixListener::bind(&socket)?;
    if how == "garbage" {
        loop {
            let (mut stream, _) = listener.accept().await?;
            tokio::io::AsyncWriteExt::write_all(&mut stream, &[0xff; 4096]).await?;
        }
    }
    let server = tonic::transport::Server::builder().add_service(ManagerServer::new(Liar(how)));
    server.serve_with_incoming(UnixListenerStream::new(listener)).await?;
    Ok(())
}
