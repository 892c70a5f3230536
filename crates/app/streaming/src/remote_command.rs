//! exec and attach over WebSocket `v5.channel.k8s.io`, ended here and carried on over SPDY (interfaces 3.7).
//!
//! A message is a channel's number and bytes of it: 0 stdin, 1 stdout, 2 stderr, 3 the status at the end, 4 sizes of the
//! terminal; 255 and a number half-close that channel.

use std::pin::Pin;
use std::time::Duration;

use axum::http::{HeaderMap, HeaderValue, Method, header};
use bytes::{Bytes, BytesMut};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use spdy::headers::Headers;
use spdy::{Connection, ConnectionError, Receiver, Sender, StreamError};

use crate::backend::Backend;
use crate::deps::Settings;
use crate::handshake::Answer;
use crate::options::StreamOptions;
use crate::relay;
use crate::splice::Activity;
use crate::status::Outcome;
use crate::websocket::{self, Role, Sink, Source};

pub(crate) const STDIN: u8 = 0;
pub(crate) const STDOUT: u8 = 1;
pub(crate) const STDERR: u8 = 2;
pub(crate) const STATUS: u8 = 3;
pub(crate) const RESIZE: u8 = 4;
pub(crate) const CLOSE: u8 = 255;

/// Time between pings, towards both sides.
const PING: Duration = Duration::from_secs(5);
/// How long a client may take to receive its status.
const LAST_WORD: Duration = Duration::from_secs(10);
/// Status that is read from the runtime; it has some hundred bytes.
pub(crate) const MAX_STATUS: usize = 64 << 10;
/// The newest protocol that runtimes speak over SPDY.
const V4: &str = "v4.channel.k8s.io";

type Io = TokioIo<Upgraded>;

/// The runtime's side: its streams, and what moves their bytes.
type Runtime = (Streams, Pin<Box<dyn Future<Output = Result<(), ConnectionError>> + Send>>);

/// Serves one client to the end. The runtime is asked while the client's connection switches: neither waits for the other.
pub(crate) async fn serve(mut client: OnUpgrade, backend: Backend, wanted: StreamOptions, settings: Settings) {
    let mut starting = std::pin::pin!(start(&backend, &wanted, &settings));
    let mut early = None;
    let client = loop {
        // Cancel-safe: both are kept across turns.
        tokio::select! {
            client = &mut client => match client {
                Ok(client) => break client,
                Err(_) => return,
            },
            runtime = &mut starting, if early.is_none() => early = Some(runtime),
        }
    };
    let (mut sink, mut source) = websocket::socket(TokioIo::new(client), Role::Server);
    let first = if wanted.stdout {
        STDOUT
    } else if wanted.stderr {
        STDERR
    } else {
        STATUS
    };
    if sink.send(&[first], &[]).await.is_err() {
        return;
    }
    let runtime = match early {
        Some(runtime) => runtime,
        // Cancel-safe: what `gone` has read is kept.
        None => tokio::select! {
            runtime = &mut starting => runtime,
            () = source.gone() => return,
        },
    };
    let outcome = match runtime {
        Ok(runtime) => run(&mut sink, &mut source, runtime, &settings).await,
        Err(why) => Some(Outcome::Failed(why)),
    };
    let last_word = async {
        if let Some(outcome) = outcome {
            let _ = sink.send(&[STATUS], &outcome.to_json()).await;
        }
        let _ = sink.close().await;
        // The client's own close comes before the connection goes, so that nothing sent is lost by a reset.
        while source.next().await.is_some() {}
    };
    let _ = tokio::time::timeout(LAST_WORD, last_word).await;
}

/// Connects to the runtime and opens the streams that it waits for.
async fn start(backend: &Backend, wanted: &StreamOptions, settings: &Settings) -> Result<Runtime, String> {
    let io = open(backend, settings).await?;
    let options = spdy::Options { ping_every: Some(PING), ..spdy::Options::default() };
    let (connection, driver) = spdy::connect(io, &options);
    let mut driver: Pin<Box<dyn Future<Output = _> + Send>> = Box::pin(driver);
    // Cancel-safe: a connection that ends takes its streams along, which the other arm would find out, too.
    let streams = tokio::select! {
        streams = tokio::time::timeout(settings.answer_timeout, Streams::open(&connection, wanted)) => {
            streams.unwrap_or_else(|_| Err("the runtime did not accept them in time".to_owned()))
        }
        end = &mut driver => Err(end.err().map_or_else(|| "the connection was closed".to_owned(), |e| chain(&e))),
    };
    drop(connection);
    streams.map(|streams| (streams, driver)).map_err(|why| format!("unable to open streams: {why}"))
}

/// `None` when the client is gone and nobody is left to be told.
async fn run(
    sink: &mut Sink<Io>,
    source: &mut Source<Io>,
    (streams, mut driver): Runtime,
    settings: &Settings,
) -> Option<Outcome> {
    let Streams { status, stdin, stdout, stderr, resize } = streams;
    let activity = Activity::default();
    let input = Input { stdin, resize, activity: &activity };
    let output = Output { stdout, stderr, status, activity: &activity };
    let mut input = std::pin::pin!(input.run(source));
    let mut output = std::pin::pin!(output.run(sink));
    let mut driven = false;
    loop {
        // Cancel-safe: all four are kept across turns.
        tokio::select! {
            outcome = &mut output => return outcome,
            () = &mut input => return None,
            _ = &mut driver, if !driven => driven = true, // what its streams still hold is delivered
            () = activity.idle(settings.idle_timeout) => return Some(Outcome::Failed("the stream was idle for too long".to_owned())),
        }
    }
}

/// Asks the runtime for SPDY.
async fn open(backend: &Backend, settings: &Settings) -> Result<Io, String> {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("SPDY/3.1"));
    headers.insert("x-stream-protocol-version", HeaderValue::from_static(V4));
    match relay::connect(settings, backend, Method::POST, headers).await? {
        Answer::Switched(parts, io) => match parts.headers.get("x-stream-protocol-version") {
            Some(version) if version == V4 => Ok(io),
            other => Err(format!("unable to upgrade connection: the runtime chose protocol {other:?}")),
        },
        Answer::Refused(parts, _) if parts.status.is_redirection() => Err("redirect not allowed".to_owned()),
        Answer::Refused(_, body) => {
            Err(format!("unable to upgrade connection: {}", String::from_utf8_lossy(&body).trim_end()))
        }
    }
}

/// The streams that the runtime waits for.
struct Streams {
    status: (Sender, Receiver),
    stdin: Option<(Sender, Receiver)>,
    stdout: Option<(Sender, Receiver)>,
    stderr: Option<(Sender, Receiver)>,
    resize: Option<(Sender, Receiver)>,
}

impl Streams {
    async fn open(connection: &Connection, wanted: &StreamOptions) -> Result<Self, String> {
        let open = async |kind: &str, wanted: bool| {
            if !wanted {
                return Ok(None);
            }
            let headers = Headers::from([("streamtype".to_owned(), kind.to_owned())]);
            connection.open(headers).await.map(|s| Some(s.split())).map_err(|e| e.to_string())
        };
        let (status, stdin, stdout, stderr, resize) = futures::try_join!(
            open("error", true),
            open("stdin", wanted.stdin),
            open("stdout", wanted.stdout),
            open("stderr", wanted.stderr),
            open("resize", wanted.tty),
        )?;
        let status = status.ok_or_else(|| "no status".to_owned())?;
        Ok(Self { status, stdin, stdout, stderr, resize })
    }
}

/// From the client to the runtime.
struct Input<'a> {
    stdin: Option<(Sender, Receiver)>,
    resize: Option<(Sender, Receiver)>,
    activity: &'a Activity,
}

impl Input<'_> {
    /// Returns when the client is gone. A runtime that is gone is noticed by the output.
    async fn run(mut self, source: &mut Source<Io>) {
        let (mut channel, mut at_start) = (STATUS, false);
        while let Some(piece) = source.next().await {
            self.activity.moved();
            let mut bytes = piece.bytes;
            if piece.first {
                (channel, at_start) = (bytes.split_to(1)[0], true);
            }
            if bytes.is_empty() {
                continue;
            }
            let target = match channel {
                STDIN => self.stdin.as_mut(),
                RESIZE => self.resize.as_mut(),
                CLOSE if at_start && bytes[0] == STDIN => {
                    if let Some((stdin, _)) = &mut self.stdin {
                        let _ = stdin.finish().await;
                    }
                    None
                }
                _ => None,
            };
            at_start = false;
            if let Some((target, _)) = target {
                // A command that has closed its stdin does not end the stream: its output may still come.
                let _ = target.send(bytes).await;
            }
        }
    }
}

/// From the runtime to the client.
struct Output<'a> {
    stdout: Option<(Sender, Receiver)>,
    stderr: Option<(Sender, Receiver)>,
    status: (Sender, Receiver),
    activity: &'a Activity,
}

impl Output<'_> {
    /// Returns what the command's end was, after all its output; `None` when the client is gone.
    async fn run(mut self, sink: &mut Sink<Io>) -> Option<Outcome> {
        let mut pings = tokio::time::interval_at(tokio::time::Instant::now() + PING, PING);
        pings.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut told = BytesMut::new();
        let mut status_open = true;
        let mut lost = false;
        while status_open || self.stdout.is_some() || self.stderr.is_some() {
            // Cancel-safe: `next`, `tick` and `pinged` lose nothing.
            let (channel, piece) = tokio::select! {
                piece = piece(&mut self.stdout) => (STDOUT, piece),
                piece = piece(&mut self.stderr) => (STDERR, piece),
                piece = self.status.1.next(), if status_open => (STATUS, piece),
                _ = pings.tick() => {
                    sink.ping().await.ok()?;
                    continue;
                }
                () = sink.pinged() => {
                    sink.flush().await.ok()?;
                    continue;
                }
            };
            match (channel, piece) {
                (STATUS, Some(Ok(bytes))) if told.len() + bytes.len() <= MAX_STATUS => told.extend_from_slice(&bytes),
                (STATUS, Some(Ok(_))) => {}
                (STATUS, end) => {
                    status_open = false;
                    lost = end == Some(Err(StreamError::Lost));
                }
                (channel, Some(Ok(bytes))) => {
                    self.activity.moved();
                    sink.send(&[channel], &bytes).await.ok()?;
                }
                (STDOUT, _) => self.stdout = None,
                _ => self.stderr = None,
            }
        }
        Some(if told.is_empty() && lost {
            Outcome::Failed("error reading from error stream: the connection was lost".to_owned())
        } else {
            Outcome::parse(&told)
        })
    }
}

async fn piece(stream: &mut Option<(Sender, Receiver)>) -> Option<Result<Bytes, StreamError>> {
    match stream {
        Some((_, receiver)) => receiver.next().await,
        None => std::future::pending().await,
    }
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(e) = source {
        text = format!("{text}: {e}");
        source = e.source();
    }
    text
}
