//! When a shutdown began and ended: a file in the kubelet's format, and metrics.

use std::path::PathBuf;
use std::time::Duration;

use actor::{Class, Effects};
use metrics::node::{SHUTDOWN_END, SHUTDOWN_START};
use model::Timestamp;
use serde::{Deserialize, Serialize};

use crate::deps::{Config, Deps};

const FILE: &str = "graceful_node_shutdown_state";
/// The file is small; a larger one is none of ours.
const MOST: u64 = 4096;
/// How a kubelet writes a time that is not set.
const NEVER: &str = "0001-01-01T00:00:00Z";
/// A disk that does not answer must not take the machine's time.
const PATIENCE: Duration = Duration::from_secs(2);

/// Beginning and end of the latest shutdown; [`Timestamp::ZERO`]: not yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Times {
    pub(crate) start: Timestamp,
    pub(crate) end: Timestamp,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct File {
    start_time: String,
    end_time: String,
}

impl Times {
    /// For `/metrics`.
    fn count(self) {
        SHUTDOWN_START.set(seconds(self.start));
        SHUTDOWN_END.set(seconds(self.end));
    }

    fn encode(self) -> Vec<u8> {
        let text = |at: Timestamp| if at.is_set() { at.rfc3339_nano() } else { NEVER.to_owned() };
        let file = File { start_time: text(self.start), end_time: text(self.end) };
        serde_json::json!(file).to_string().into_bytes()
    }

    fn decode(file: &[u8]) -> Result<Self, serde_json::Error> {
        let file: File = serde_json::from_slice(file)?;
        let time = |text: &str| Timestamp::parse_rfc3339(text).filter(|at| at.is_set()).unwrap_or_default();
        Ok(Self { start: time(&file.start_time), end: time(&file.end_time) })
    }
}

/// Whole seconds since the epoch, as a kubelet counts; 0: not set.
fn seconds(at: Timestamp) -> f64 {
    #[allow(clippy::cast_precision_loss, reason = "numbers of metrics are doubles")]
    let seconds = (at.0 / 1_000_000_000) as f64;
    seconds
}

fn path(config: &Config) -> PathBuf {
    config.root_dir.join(FILE)
}

/// Counts what an earlier daemon wrote down. A file that cannot be read is told and left alone.
pub(crate) async fn load(deps: &Deps, config: &Config, effects: &Effects) {
    let (fs, path) = (deps.fs.clone(), path(config));
    let read = effects.blocking(Class::HostFiles, move || fs.read_file(&path, MOST)).await;
    let times = match read {
        Ok(file) => Times::decode(&file).map_err(|e| e.to_string()),
        Err(e) if e.is_not_found() => return,
        Err(e) => Err(actor::chain(&e)),
    };
    match times {
        Ok(times) => times.count(),
        Err(error) => tracing::error!(error, "when the machine went down last cannot be read"),
    }
}

/// Writes it down and counts it, where that is wanted. What fails is told; the shutdown goes on.
pub(crate) async fn note(times: Times, deps: &Deps, config: &Config, effects: &Effects) {
    if !config.tells_times {
        return;
    }
    times.count();
    let (fs, path) = (deps.fs.clone(), path(config));
    let write = move || fs.write_file_synced(&path, &times.encode(), 0o644);
    match tokio::time::timeout(PATIENCE, effects.blocking(Class::HostFiles, write)).await {
        Ok(Ok(())) => {}
        Ok(Err(e)) => tracing::error!(error = actor::chain(&e), "the times of the shutdown cannot be written"),
        Err(_) => tracing::error!("the times of the shutdown are not written: the disk does not answer"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_a_kubelets() {
        let start = Timestamp::parse_rfc3339("2026-11-23T15:04:05.5Z").unwrap();
        let begun = Times { start, end: Timestamp::ZERO };
        let text = String::from_utf8(begun.encode()).unwrap();
        assert_eq!(text, r#"{"endTime":"0001-01-01T00:00:00Z","startTime":"2026-11-23T15:04:05.500000000Z"}"#);
        assert_eq!(Times::decode(text.as_bytes()).unwrap(), begun);
        let theirs = br#"{"startTime":"2026-11-23T17:04:05.5+02:00","endTime":"0001-01-01T00:00:00Z"}"#;
        assert_eq!(Times::decode(theirs).unwrap(), begun);
        assert_eq!((seconds(start), seconds(Timestamp::ZERO)), (1_795_446_245.0, 0.0));
        assert!(Times::decode(b"{}").is_err());
    }
}
