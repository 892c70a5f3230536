//! Pure: arguments of `bosun logs` to the query of `/containerLogs` (interfaces 4.3).

use std::str::FromStr;

use clap::Args;

use crate::args::{PodArg, SocketArg};
use crate::client::segment;

/// What `bosun logs` takes.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    bosun logs web                                the log of the first container\n  \
    bosun logs web -c app -f --tail 20            the last 20 lines, and what comes\n  \
    bosun logs web -p                             the instance before the latest restart\n  \
    bosun logs web --since 10m --timestamps       the last ten minutes, with times\n  \
    bosun logs web --all-containers --prefix -f   everybody, each line with its writer\n\n\
    Exit code: 0, also when the reader of a pipe goes; 1 when a log cannot be had; 130 on Ctrl-C.")]
pub struct LogArgs {
    #[command(flatten)]
    pub(crate) socket: SocketArg,
    #[command(flatten)]
    pub(crate) pod: PodArg,
    /// Container; the pod's default one unless given.
    #[arg(short, long, conflicts_with = "all_containers")]
    pub(crate) container: Option<String>,
    /// Go on with what the container writes from now on, until it ends.
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// The instance before the latest restart.
    #[arg(short, long)]
    pub(crate) previous: bool,
    /// Only lines younger than this: 5s, 10m, 1h30m.
    #[arg(long, value_name = "DURATION", conflicts_with = "since_time")]
    pub(crate) since: Option<Since>,
    /// Only lines since then, e.g. 2026-01-31T08:00:00Z.
    #[arg(long, value_name = "RFC 3339")]
    pub(crate) since_time: Option<Rfc3339>,
    /// Only the last lines; -1: all.
    #[arg(long, value_name = "LINES", allow_negative_numbers = true, value_parser = clap::value_parser!(i64).range(-1..))]
    pub(crate) tail: Option<i64>,
    /// Begin each line with its time.
    #[arg(long)]
    pub(crate) timestamps: bool,
    /// At most this many bytes.
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(i64).range(1..))]
    pub(crate) limit_bytes: Option<i64>,
    /// Every container of the pod: one after another, with --follow all at once.
    #[arg(long)]
    pub(crate) all_containers: bool,
    /// Begin each line with the pod and container that wrote it.
    #[arg(long)]
    pub(crate) prefix: bool,
}

/// Whole seconds, at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Since(i64);

impl FromStr for Since {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let duration: jiff::SignedDuration =
            text.parse().map_err(|_| "not a duration; allowed: 5s, 10m, 1h30m".to_owned())?;
        let seconds = duration.as_millis().div_euclid(1000) + i128::from(duration.subsec_millis() >= 500);
        i64::try_from(seconds)
            .ok()
            .filter(|s| *s >= 1)
            .map(Self)
            .ok_or_else(|| "must be at least one second".to_owned())
    }
}

/// A point in time, kept as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rfc3339(String);

impl FromStr for Rfc3339 {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed: Result<jiff::Timestamp, _> = text.parse();
        parsed.map(|_| Self(text.to_owned())).map_err(|_| "not a time; allowed: 2026-01-31T08:00:00Z".to_owned())
    }
}

pub(super) fn query(args: &LogArgs) -> String {
    let mut pairs: Vec<String> = Vec::new();
    let flags = [("follow", args.follow), ("previous", args.previous), ("timestamps", args.timestamps)];
    pairs.extend(flags.iter().filter(|(_, on)| *on).map(|(name, _)| format!("{name}=true")));
    pairs.extend(args.since.map(|s| format!("sinceSeconds={}", s.0)));
    pairs.extend(args.since_time.as_ref().map(|t| format!("sinceTime={}", segment(&t.0))));
    pairs.extend(args.tail.filter(|n| *n >= 0).map(|n| format!("tailLines={n}")));
    pairs.extend(args.limit_bytes.map(|n| format!("limitBytes={n}")));
    pairs.join("&")
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: LogArgs,
    }

    fn parse(words: &str) -> Result<LogArgs, clap::Error> {
        Line::try_parse_from(std::iter::once("logs").chain(words.split_whitespace())).map(|l| l.args)
    }

    #[test]
    fn arguments_become_the_query_of_a_kubelet() {
        let table = [
            ("web", ""),
            ("web -f", "follow=true"),
            ("web -p --timestamps", "previous=true&timestamps=true"),
            ("web --since 10m", "sinceSeconds=600"),
            ("web --since 1h30m5s", "sinceSeconds=5405"),
            ("web --since 1500ms", "sinceSeconds=2"),
            ("web --since-time 2026-01-31T08:00:00+01:00", "sinceTime=2026-01-31T08%3A00%3A00%2B01%3A00"),
            ("web --tail 20", "tailLines=20"),
            ("web --tail=0", "tailLines=0"),
            ("web --tail -1", ""),
            ("web --limit-bytes 9 -f", "follow=true&limitBytes=9"),
        ];
        for (words, expected) in table {
            assert_eq!(query(&parse(words).unwrap()), expected, "{words}");
        }
    }

    #[test]
    fn what_a_kubelet_would_refuse_is_refused_here_with_what_is_allowed() {
        let table = [
            ("web --since 10", "not a duration"),
            ("web --since 0s", "at least one second"),
            ("web --since -5m", "unexpected argument"),
            ("web --since=-5m", "at least one second"),
            ("web --since-time yesterday", "2026-01-31T08:00:00Z"),
            ("web --since 1m --since-time 2026-01-31T08:00:00Z", "cannot be used with"),
            ("web --tail -2", "-2"),
            ("web --limit-bytes 0", "0"),
            ("web -c a --all-containers", "cannot be used with"),
            ("", "required"),
        ];
        for (words, expected) in table {
            let e = parse(words).map(|_| ()).unwrap_err().to_string();
            assert!(e.contains(expected), "{words}: {e}");
        }
    }
}
