//! `/debug/pprof/` (interfaces 3.2): what this process can say of its CPU time, memory, threads and actors.
//!
//! No stack is ever sampled. A sampling profiler walks stacks inside a signal handler, and the unwinder of libgcc may be
//! interrupted there while a supervised actor panics: the profiled daemon could crash. So the figures are counters that the
//! kernel and the actor system keep anyway, exact and free of risk: CPU time by thread, turn time by actor, resident memory
//! by mapping. In Go's format they open with `go tool pprof`; `?debug=1` gives text.

mod counters;
mod proto;

use std::fmt::Write;
use std::time::Duration;

use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use model::url::Query;
use tokio::sync::Semaphore;

use crate::deps::{Deps, Shared};
use crate::respond::{error, plain};
use counters::{Usage, actors, mappings, threads};
use proto::Builder;

/// One at a time: two clients must not hold twice the counters.
static PROFILING: Semaphore = Semaphore::const_new(1);
/// Go's own.
const DEFAULT_SECONDS: u64 = 30;
const MAX_SECONDS: u64 = 600;

/// Name and what it shows.
const PROFILES: &[(&str, &str)] = &[
    ("cmdline", "the command line of this process"),
    ("goroutine", "actors: state, mailbox, turns"),
    ("heap", "resident memory by mapping"),
    ("profile", "CPU time by thread and turn time by actor over ?seconds=30"),
    ("threadcreate", "threads"),
];

pub(crate) async fn index() -> Response {
    let mut page = String::from(
        "<html>\n<head>\n<title>/debug/pprof/</title>\n</head>\n<body>\n/debug/pprof/\n<p>This is bosun: counters, not \
         samples of stacks. ?debug=1 gives text.</p>\n<table>\n",
    );
    for (name, about) in PROFILES {
        // Writing into a String cannot fail.
        let _ = writeln!(page, "<tr><td><a href='{name}?debug=1'>{name}</a></td><td>{about}</td></tr>");
    }
    page.push_str("</table>\n</body>\n</html>\n");
    Html(page).into_response()
}

pub(crate) async fn named(State(deps): Shared, Path(name): Path<String>, RawQuery(query): RawQuery) -> Response {
    let query = Query::parse(query.as_deref().unwrap_or_default());
    let number = |name| query.first(name).and_then(|v| v.parse::<u64>().ok());
    let text = number("debug").is_some_and(|d| d > 0);
    match name.as_str() {
        "cmdline" => plain(cmdline(std::env::args()).join("\0")),
        "profile" => cpu(&deps, number("seconds").filter(|s| *s > 0).unwrap_or(DEFAULT_SECONDS), text).await,
        "heap" | "allocs" => heap(text),
        "goroutine" => actor_list(&deps, text),
        "threadcreate" => thread_list(text),
        "symbol" => plain("num_symbols: 0\n"),
        "trace" | "block" | "mutex" => {
            error(StatusCode::NOT_FOUND, format!("no {name} profile: bosun samples no stacks"))
        }
        _ => error(StatusCode::NOT_FOUND, "Unknown profile"),
    }
}

/// Arguments without the values of flags that may hold credentials.
fn cmdline(args: impl Iterator<Item = String>) -> Vec<String> {
    const SECRETS: [&str; 2] = ["--manifest-url-header", "--storage-driver-password"];
    let mut next_is_secret = false;
    args.map(|arg| {
        let name = arg.split('=').next().unwrap_or_default().replace('_', "-");
        let secret = SECRETS.contains(&name.as_str());
        let hide = std::mem::replace(&mut next_is_secret, secret && !arg.contains('='));
        match (hide, secret && arg.contains('=')) {
            (true, _) => "<masked>".to_owned(),
            (false, true) => format!("{name}=<masked>"),
            (false, false) => arg,
        }
    })
    .collect()
}

/// In Go's format, compressed.
fn binary(name: &str, profile: &Builder) -> Response {
    let disposition = HeaderValue::from_str(&format!("attachment; filename=\"{name}\""));
    let mut response = profile.gzipped().into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    headers.insert(header::CONTENT_DISPOSITION, disposition.unwrap_or(HeaderValue::from_static("attachment")));
    response
}

async fn cpu(deps: &Deps, seconds: u64, text: bool) -> Response {
    if seconds > MAX_SECONDS {
        return error(StatusCode::BAD_REQUEST, format!("profile duration exceeds {MAX_SECONDS} seconds"));
    }
    let Ok(_permit) = PROFILING.try_acquire() else {
        let text = "Could not enable CPU profiling: cpu profiling already in use";
        return error(StatusCode::INTERNAL_SERVER_ERROR, text);
    };
    let started = jiff::Timestamp::now();
    let before = Usage::now(&deps.kernel);
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    let used = Usage::now(&deps.kernel).since(&before);
    if text {
        let mut page = format!("counters over {seconds} s\n\nCPU time by thread, ms\n");
        for (name, ns) in used.sorted_threads() {
            let _ = writeln!(page, "{:>12}  {name}", milliseconds(ns));
        }
        page.push_str("\ntime in turns by actor, ms (clock time, with waits for a CPU)\n");
        for (name, ns) in used.sorted_actors() {
            let _ = writeln!(page, "{:>12}  {name}", milliseconds(ns));
        }
        return plain(page);
    }
    let mut profile = Builder::new(&[("cpu", "nanoseconds"), ("turns", "nanoseconds")]);
    profile.span(started, Duration::from_secs(seconds));
    for (name, ns) in used.sorted_threads() {
        profile.sample(&[name, "threads"], &[ns, 0]);
    }
    for (name, ns) in used.sorted_actors() {
        profile.sample(&[name, "actors"], &[0, ns]);
    }
    binary("profile", &profile)
}

fn milliseconds(ns: u64) -> String {
    format!("{}.{:03}", ns / 1_000_000, ns / 1_000 % 1_000)
}

/// What the kernel has of this process; the allocator is not asked, it knows of no call sites.
fn heap(text: bool) -> Response {
    if text {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_else(|e| format!("{path}: {e}\n"));
        return plain(format!("{}\n{}", read("/proc/self/smaps_rollup"), read("/proc/self/status")));
    }
    let mut profile = Builder::new(&[("resident", "bytes"), ("private_dirty", "bytes")]);
    for (name, bytes) in mappings(&std::fs::read_to_string("/proc/self/smaps").unwrap_or_default()) {
        profile.sample(&[&name, "mappings"], &[bytes.resident, bytes.private_dirty]);
    }
    binary("heap", &profile)
}

fn actor_list(deps: &Deps, text: bool) -> Response {
    let all = actors(&deps.kernel);
    if text {
        let mut page = format!("actors: total {}\n\n", all.len());
        for a in &all {
            let _ = writeln!(
                page,
                "{} [{:?}] group={} generation={} restarts={} mailbox={}/{} turns={} turn_time_ms={} longest_turn_ms={} last={}",
                a.name,
                a.state,
                a.group,
                a.generation,
                a.restarts,
                a.mailbox_depth,
                a.mailbox_capacity,
                a.turns,
                milliseconds(a.turn_sum_ns),
                milliseconds(a.turn_max_ns),
                a.last_message,
            );
            if let Some(cause) = &a.last_cause {
                let _ = writeln!(page, "    last crash: {cause}");
            }
        }
        return plain(page);
    }
    let mut profile = Builder::new(&[("actors", "count"), ("queued", "count")]);
    for a in &all {
        let queued = u64::try_from(a.mailbox_depth).unwrap_or(u64::MAX);
        profile.sample(&[&a.name, &a.group], &[1, queued]);
    }
    binary("goroutine", &profile)
}

fn thread_list(text: bool) -> Response {
    let all = threads();
    if text {
        let mut page = format!("threads: total {}\n\n", all.len());
        for t in &all {
            let _ = writeln!(page, "{:>8} {:>14} ms  {}", t.id, milliseconds(t.cpu_ns), t.name);
        }
        return plain(page);
    }
    let mut profile = Builder::new(&[("threads", "count")]);
    for t in &all {
        profile.sample(&[&t.name], &[1]);
    }
    binary("threadcreate", &profile)
}

#[cfg(test)]
mod tests;
