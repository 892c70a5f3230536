//! The query of `/containerLogs` (interfaces 4.3): the fields of `PodLogOptions`, decoded as the API does it.

use model::Timestamp;
use model::url::Query;

use crate::quote;
use crate::stamp::Stamp;

/// Which outputs are asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Streams {
    /// Both, as they were written.
    #[default]
    All,
    /// Standard output alone.
    Stdout,
    /// Standard error alone.
    Stderr,
}

/// What of a log is asked for.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LogOptions {
    /// Go on at the end of the file while the container runs.
    pub follow: bool,
    /// The instance before the present one.
    pub previous: bool,
    /// Put the time before each line.
    pub timestamps: bool,
    /// Lines of the last so many seconds; at least 1.
    pub since_seconds: Option<i64>,
    /// Lines from this time on.
    pub since_time: Option<Timestamp>,
    /// The last so many lines.
    pub tail_lines: Option<u64>,
    /// End after so many bytes; at least 1.
    pub limit_bytes: Option<u64>,
    /// Which outputs.
    pub streams: Streams,
}

/// A request that is answered with an error.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// HTTP status.
    pub code: u16,
    /// Body.
    pub body: String,
}

impl LogOptions {
    /// The time before which lines are left out.
    #[must_use]
    pub fn since(&self, now: Timestamp) -> Option<Timestamp> {
        let nanos = |seconds: i64| seconds.saturating_mul(1_000_000_000);
        let by_seconds = self.since_seconds.map(|s| Timestamp(now.0.saturating_sub(nanos(s))));
        by_seconds.max(self.since_time)
    }
}

struct Undecodable;

/// Reads a raw query. `split_streams`: the feature gate PodLogsQuerySplitStreams.
///
/// # Errors
/// 400 for what cannot be decoded, 422 for values that are not allowed.
pub fn decode(raw_query: &str, split_streams: bool) -> Result<LogOptions, Refusal> {
    let refused = |code, body: &str| Refusal { code, body: body.to_owned() };
    let raw = read(&Query::parse(raw_query));
    let raw = raw.map_err(|Undecodable| refused(400, r#"{"message": "Unable to decode query."}"#))?;
    let stream = raw.stream.as_deref();
    if !split_streams && stream.is_some_and(|s| s != "All") {
        let given = quote(stream.unwrap_or_default().as_bytes());
        let gate = "Please enable PodLogsQuerySplitStreams feature gate in kubelet";
        return Err(Refusal { code: 400, body: format!("unable to return the given log stream: {given}. {gate}") });
    }
    let streams = match stream {
        None | Some("All") => Some(Streams::All),
        Some("Stdout") => Some(Streams::Stdout),
        Some("Stderr") => Some(Streams::Stderr),
        Some(_) => None,
    };
    let valid = raw.tail_lines.is_none_or(|n| n >= 0)
        && raw.limit_bytes.is_none_or(|n| n >= 1)
        && raw.since_seconds.is_none_or(|n| n >= 1)
        && (raw.since_seconds.is_none() || raw.since_time.is_none())
        && (matches!(streams, Some(Streams::All)) || raw.tail_lines.is_none());
    let Some(streams) = streams.filter(|_| valid) else {
        return Err(refused(422, r#"{"message": "Invalid request."}"#));
    };
    Ok(LogOptions {
        follow: raw.follow,
        previous: raw.previous,
        timestamps: raw.timestamps,
        since_seconds: raw.since_seconds,
        since_time: raw.since_time,
        tail_lines: raw.tail_lines.map(i64::unsigned_abs),
        limit_bytes: raw.limit_bytes.map(i64::unsigned_abs),
        streams,
    })
}

/// Decoded, not checked.
struct Raw {
    follow: bool,
    previous: bool,
    timestamps: bool,
    since_seconds: Option<i64>,
    since_time: Option<Timestamp>,
    tail_lines: Option<i64>,
    limit_bytes: Option<i64>,
    stream: Option<String>,
}

/// `container` and `insecureSkipTLSVerifyBackend` are accepted, and mean nothing here.
fn read(query: &Query) -> Result<Raw, Undecodable> {
    let flag = |name| match query.first(name) {
        None => false,
        Some(text) => !(text == "0" || text.eq_ignore_ascii_case("false")),
    };
    let number = |text: &str| text.parse::<i64>().map_err(|_| Undecodable);
    let int = |name| query.first(name).map(number).transpose();
    // The legacy name goes before the other.
    let tail_lines = match query.first("tail").filter(|t| !t.is_empty()) {
        Some("all") => None,
        Some(text) => Some(number(text)?),
        None => int("tailLines")?,
    };
    Ok(Raw {
        follow: flag("follow"),
        previous: flag("previous"),
        timestamps: flag("timestamps"),
        since_seconds: int("sinceSeconds")?,
        since_time: query.first("sinceTime").map(time).transpose()?,
        tail_lines,
        limit_bytes: int("limitBytes")?,
        stream: query.first("stream").map(str::to_owned),
    })
}

fn time(text: &str) -> Result<Timestamp, Undecodable> {
    // Clients of old wrote an absent time like this.
    if text.is_empty() || text == "null" {
        return Ok(Stamp::ZERO.instant());
    }
    Stamp::parse(text.as_bytes()).map(|s| s.instant()).ok_or(Undecodable)
}
