//! Termination messages (pod-lifecycle 9.2): the file that the container wrote, else the end of its log.

use std::error::Error as _;
use std::path::Path;

use cri_api::v1;
use ports::host::{HostError, HostFs, Links};

const PATH: &str = "io.kubernetes.container.terminationMessagePath";
const POLICY: &str = "io.kubernetes.container.terminationMessagePolicy";
const FALLBACK: &str = "FallbackToLogsOnError";

/// Most of the file that is taken, from its end.
const FILE_LIMIT: u64 = 4096;
/// Most of a log that is taken, from its end.
const LOG_LIMIT: usize = 2048;
const LOG_LINES: usize = 80;
/// Holds 80 line heads and 2048 bytes of content, however those are spread.
const LOG_WINDOW: u64 = 16 << 10;

/// Where to look for the message of an ended container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    /// What the runtime itself says; goes first.
    runtime: String,
    /// Host path of the message file.
    file: Option<String>,
    /// Log to take when the file gives nothing.
    log: Option<String>,
}

impl Source {
    /// From the status of an ended container.
    pub(crate) fn of(s: &v1::ContainerStatus) -> Self {
        let path = s.annotations.get(PATH).filter(|p| !p.is_empty());
        let mount = path.and_then(|p| s.mounts.iter().find(|m| &m.container_path == p));
        let fallback = s.annotations.get(POLICY).is_some_and(|p| p == FALLBACK)
            && s.exit_code != 0
            && s.reason != "ContainerCannotRun";
        Self {
            runtime: s.message.clone(),
            file: mount.map(|m| m.host_path.clone()),
            log: (fallback && !s.log_path.is_empty()).then(|| s.log_path.clone()),
        }
    }

    /// Whether there is nothing to read from files.
    pub(crate) fn is_plain(&self) -> bool {
        self.file.is_none() && self.log.is_none()
    }

    /// Reads the files; blocks. The container may have made its file whatever it likes.
    pub(crate) fn read(self, fs: &dyn HostFs) -> String {
        let file = self.file.map(|f| (fs.read_end(Path::new(&f), FILE_LIMIT, Links::Refuse), f));
        let mut said = match file {
            None => String::new(),
            Some((Ok(end), _)) => String::from_utf8_lossy(&end.bytes).into_owned(),
            Some((Err(e), _)) if e.is_not_found() => String::new(),
            Some((Err(e), file)) => {
                return join(self.runtime, &format!("error reading termination log {file}: {}", why(&e)));
            }
        };
        if let (true, Some(log)) = (said.is_empty(), self.log) {
            // Some runtimes have a link there that leads to their own place of logs.
            said = match fs.read_end(Path::new(&log), LOG_WINDOW, Links::Follow) {
                Ok(end) => log_end(&end.bytes, end.cut),
                Err(e) => format!("error reading container log {log}: {}", why(&e)),
            };
        }
        join(self.runtime, &said)
    }
}

/// The system's error alone; the message names path and purpose already.
fn why(e: &HostError) -> String {
    e.source().map_or_else(|| e.to_string(), ToString::to_string)
}

fn join(runtime: String, said: &str) -> String {
    match (runtime.is_empty(), said.is_empty()) {
        (_, true) => runtime,
        (true, false) => said.to_owned(),
        (false, false) => format!("{runtime}: {said}"),
    }
}

/// Content of the last lines of a CRI log. `cut`: the first line lost its head.
fn log_end(bytes: &[u8], cut: bool) -> String {
    let mut lines: Vec<&[u8]> = bytes.split_inclusive(|&b| b == b'\n').collect();
    let headless = cut && !lines.is_empty();
    let first_whole = usize::from(headless);
    let skip = lines.len().saturating_sub(LOG_LINES);
    let mut content = Vec::new();
    for (i, line) in lines.drain(..).enumerate().skip(skip) {
        if i < first_whole {
            content.extend_from_slice(line);
        } else {
            push_content(&mut content, line);
        }
    }
    let from = content.len().saturating_sub(LOG_LIMIT);
    String::from_utf8_lossy(&content[from..]).into_owned()
}

/// `TIME STREAM TAGS CONTENT`; a partial line (P) goes on in the next one.
fn push_content(to: &mut Vec<u8>, line: &[u8]) {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let mut fields = line.splitn(4, |&b| b == b' ');
    let (Some(_), Some(_), Some(tags)) = (fields.next(), fields.next(), fields.next()) else { return };
    to.extend_from_slice(fields.next().unwrap_or_default());
    if tags.split(|&b| b == b':').next() != Some(b"P") {
        to.push(b'\n');
    }
}

#[cfg(test)]
mod tests;
