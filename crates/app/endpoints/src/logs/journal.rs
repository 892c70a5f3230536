//! Logs of services (interfaces 3.6): the journal's, else their files below the log folder.

use std::io::Write;
use std::process::Stdio;
use std::time::Duration;

use actor::{Class, Effects};
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures::stream;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::timeout;

use super::files::{self, Roots};
use super::options::Query;
use super::served::Served;
use crate::deps::Settings;
use crate::respond::plain;

/// For everything that one request does.
const DEADLINE: Duration = Duration::from_secs(30);
/// Requests that read the journal at a time; more of them wait for their turn, within their deadline.
static READERS: Semaphore = Semaphore::const_new(4);
/// Read at a time.
const CHUNK: usize = 32 * 1024;
/// Far beyond the units of any host.
const MAX_UNITS: u64 = 4 << 20;

/// Answers as the logs come in. The program is killed when the client leaves or the time is over.
pub(super) async fn answer(effects: &Effects, settings: &Settings, query: Query, headers: &HeaderMap) -> Response {
    let (tx, rx) = mpsc::channel(2);
    let (effects, settings) = (effects.clone(), settings.clone());
    tokio::spawn(async move {
        let work = async {
            let Ok(_turn) = READERS.acquire().await else { return };
            copy(&effects, &settings, &query, &tx).await;
        };
        // A client that left ends the work too: a program without output would run on otherwise.
        tokio::select! {
            () = work => {}
            () = tx.closed() => {}
            () = tokio::time::sleep(DEADLINE) => tracing::warn!("a query of the system's logs did not end in time"),
        }
    });
    if headers.get(header::ACCEPT_ENCODING).is_some_and(|v| v == "gzip") {
        let mut response = plain(gzipped(rx));
        response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        return response;
    }
    let next =
        |mut rx: Output| async move { rx.recv().await.map(|chunk| (Ok::<_, std::convert::Infallible>(chunk), rx)) };
    plain(Body::from_stream(stream::unfold(rx, next)))
}

type Output = mpsc::Receiver<Bytes>;
type Sink = mpsc::Sender<Bytes>;

/// Each chunk is compressed and handed on at once.
fn gzipped(rx: Output) -> Body {
    let encoder = GzEncoder::new(Vec::new(), Compression::fast());
    let next = |state: Option<(Output, GzEncoder<Vec<u8>>)>| async move {
        let Some((mut rx, mut encoder)) = state else { return Ok::<_, std::io::Error>(None) };
        match rx.recv().await {
            Some(chunk) => {
                encoder.write_all(&chunk)?;
                encoder.flush()?;
                let out = std::mem::take(encoder.get_mut());
                Ok(Some((Bytes::from(out), Some((rx, encoder)))))
            }
            None => Ok(Some((Bytes::from(encoder.finish()?), None))),
        }
    };
    Body::from_stream(stream::try_unfold(Some((rx, encoder)), next))
}

async fn copy(effects: &Effects, settings: &Settings, query: &Query, tx: &Sink) {
    let units = units(settings).await;
    let known = |service: &String| units.contains(&format!("{service}.service"));
    let (native, other): (Vec<String>, Vec<String>) = query.services.iter().cloned().partition(known);
    if !native.is_empty() {
        from_journal(settings, &arguments(query, &native), tx).await;
    }
    if other.is_empty() {
        return;
    }
    if query.has_options() {
        let text = format!("options cannot be applied to the log files of {}, leave them out\n", other.join(", "));
        let _ = tx.send(text.into()).await;
        return;
    }
    for service in other {
        from_files(effects, settings, &service, tx).await;
    }
}

/// Units that the journal knows; empty when there is no journal.
async fn units(settings: &Settings) -> String {
    let child = Command::new(&settings.journalctl)
        .args(["--field", "_SYSTEMD_UNIT"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn();
    let mut text = Vec::new();
    let read = async {
        let mut child = child.ok()?;
        child.stdout.take()?.take(MAX_UNITS).read_to_end(&mut text).await.ok()
    };
    let _ = timeout(DEADLINE, read).await;
    String::from_utf8_lossy(&text).into_owned()
}

/// One word per argument, no shell: nothing in a query can become another option.
pub(super) fn arguments(query: &Query, services: &[String]) -> Vec<String> {
    let mut args: Vec<String> = ["--utc", "--no-pager", "--output=short-precise"].map(str::to_owned).to_vec();
    let at = |t: jiff::Timestamp| t.strftime("%Y-%m-%d %H:%M:%S UTC").to_string();
    args.extend(query.since.map(|t| format!("--since={}", at(t))));
    args.extend(query.until.map(|t| format!("--until={}", at(t))));
    args.extend(query.tail.map(|n| format!("--lines={n}")));
    args.extend(services.iter().map(|s| format!("--unit={s}")));
    args.extend(query.pattern.iter().map(|p| format!("--grep={p}")));
    args.extend(query.boot.map(|n| format!("--boot={n}")));
    args
}

async fn from_journal(settings: &Settings, args: &[String], tx: &Sink) {
    let child = Command::new(&settings.journalctl)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn();
    let Ok(mut child) = child else {
        let _ = tx.send(Bytes::from_static(b"error: journal output not available\n")).await;
        return;
    };
    // Dropping the pipes of a client that left lets the program end; else it is killed with the request.
    futures::join!(pump(child.stdout.take(), tx), pump(child.stderr.take(), tx));
    let _ = child.wait().await;
}

async fn pump(pipe: Option<impl AsyncRead + Unpin>, tx: &Sink) {
    let Some(mut pipe) = pipe else { return };
    loop {
        let mut chunk = Vec::with_capacity(CHUNK);
        match pipe.read_buf(&mut chunk).await {
            Ok(n) if n > 0 => {}
            _ => return,
        }
        if tx.send(chunk.into()).await.is_err() {
            return;
        }
    }
}

/// The first of the usual places that has a file. No thread is held while a slow client reads.
async fn from_files(effects: &Effects, settings: &Settings, service: &str, tx: &Sink) {
    let roots: Roots = [settings.system_log_dir.clone(), settings.pod_logs_dir.clone()];
    let places = [service.to_owned(), format!("{service}.log"), format!("{service}/{service}.log")];
    let open = move || {
        let open = |place: &String| files::open(&roots, &roots[0].join(place)).ok().filter(|(_, m)| m.is_file());
        places.iter().find_map(open)
    };
    let Ok(Some((file, meta))) = effects.attempt(Class::ServedFiles, open).await else {
        let _ = tx.send(format!("error: no logs of service {service}\n").into()).await;
        return;
    };
    // Its size as it was: a file that is written to has no end otherwise.
    let (file, size) = (Served::new(file, effects), meta.len());
    let mut at = 0;
    while let Ok(chunk) = file.read(at, size - at).await {
        at += u64::try_from(chunk.len()).unwrap_or(0);
        if chunk.is_empty() || tx.send(chunk.into()).await.is_err() {
            return;
        }
    }
}
