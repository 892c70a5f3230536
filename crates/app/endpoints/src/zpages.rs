//! `/configz`, `/statusz`, `/flagz` (interfaces 3.2).

use std::fmt::Write;
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;

use crate::deps::{Deps, Shared};
use crate::respond::{self, TEXT};

pub(crate) async fn configz(State(deps): Shared) -> Response {
    respond::json((deps.configz)().to_string())
}

/// Both pages are text for people; a caller that asks for something else only is told so.
fn page(headers: &HeaderMap, name: &str, lines: &str) -> Response {
    const WARNING: &str = "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility \
                           guarantees and is for debugging purposes only.";
    if !takes_text(headers) {
        return respond::error(StatusCode::NOT_ACCEPTABLE, "media type in Accept header not supported: text/plain is");
    }
    let mut response = Response::new(format!("\nkubelet {name}\n{WARNING}\n{lines}").into());
    response.headers_mut().insert(header::CONTENT_TYPE, TEXT);
    response
}

fn takes_text(headers: &HeaderMap) -> bool {
    let mut given = headers.get_all(header::ACCEPT).iter().peekable();
    let fits = |accept: &str| {
        accept.split(',').any(|range| {
            let kind = range.split(';').next().unwrap_or_default().trim();
            ["*/*", "text/*", "text/plain", ""].iter().any(|k| kind.eq_ignore_ascii_case(k))
        })
    };
    given.peek().is_none() || given.any(|value| value.to_str().is_ok_and(fits))
}

pub(crate) async fn flagz(State(deps): Shared, headers: HeaderMap) -> Response {
    let mut lines = String::new();
    for (name, value) in &deps.flagz {
        // Writing into a String cannot fail; a value with a new line in it must not look like a flag.
        let _ = writeln!(lines, "{name}:{}", value.replace('\n', "\\n"));
    }
    page(&headers, "flagz", &lines)
}

pub(crate) async fn statusz(State(deps): Shared, headers: HeaderMap) -> Response {
    page(&headers, "statusz", &status(&deps, deps.settings.started.1.elapsed()))
}

/// The lines of a kubelet, but for the compiler: this is no Go.
fn status(deps: &Deps, up: Duration) -> String {
    let started = jiff::Timestamp::from_nanosecond(deps.settings.started.0.0.into()).unwrap_or_default();
    let started = started.strftime("%a %b %e %H:%M:%S UTC %Y");
    let (hours, minutes, seconds) = (up.as_secs() / 3600, up.as_secs() / 60 % 60, up.as_secs() % 60);
    let version = &deps.settings.version;
    let minor: Vec<&str> = version.split('.').take(2).collect();
    format!(
        "\nStarted= {started}\nUp= {hours} hr {minutes:02} min {seconds:02} sec\nGo version= none, this is bosun\n\
         Binary version= {version}\nEmulation version= {}\nPaths= /configz /debug /flagz /healthz /metrics\n",
        minor.join("."),
    )
}
