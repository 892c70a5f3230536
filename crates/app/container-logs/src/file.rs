//! The file of a log: where it is, where its last lines begin.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use actor::{Class, Effects};
use container_log::{TailScan, quote};
use log_files::{LogFile, resolve};
use ports::host::Links;
use tokio::time::sleep;

/// Bytes of a search for the last lines between two looks whether anybody still waits for it.
const TAIL_SLICE: u64 = 4 * 1024 * 1024;
const TAIL_BLOCK: u64 = 64 * 1024;
/// Looks for a log that is missing, and the time between them. Between the steps of a rotation there is none for some
/// milliseconds.
const FINDS: u32 = 4;
const FIND_PAUSE: Duration = Duration::from_millis(50);

/// Opens the log. One that is missing may be in the middle of its rotation: the runtime is about to make it.
pub(crate) async fn find(named: &Path, effects: &Effects) -> Result<(PathBuf, LogFile), String> {
    let mut tries = 1;
    loop {
        let path = named.to_owned();
        match effects.blocking(Class::ServedFiles, move || open(&path)).await {
            Err((e, _)) if e == io::ErrorKind::NotFound && tries < FINDS => {
                tries += 1;
                sleep(FIND_PAUSE).await;
            }
            other => return other.map_err(|(_, text)| text),
        }
    }
}

/// The path that a log really has, and the file; or why not, with the text for the client.
fn open(named: &Path) -> Result<(PathBuf, LogFile), (io::ErrorKind, String)> {
    let path = resolve(named).map_err(|e| {
        let why = go_error("lstat", &e.at, &e.source);
        (e.source.kind(), format!("failed to try resolving symlinks in path {}: {why}", quoted(named)))
    })?;
    let file = open_log(&path).map_err(|e| {
        (e.kind(), format!("failed to open log file {}: {}", quoted(&path), go_error("open", &path, &e)))
    })?;
    Ok((path, file))
}

/// No link, which somebody could have put there since it was resolved, and nothing that would be waited for.
pub(crate) fn open_log(path: &Path) -> io::Result<LogFile> {
    LogFile::new(host_linux::open_regular(path, Links::Refuse)?)
}

/// Where the last lines begin.
pub(crate) async fn tail(file: &LogFile, lines: u64, effects: &Effects) -> io::Result<u64> {
    let mut scan = TailScan::new(file.size()?, lines);
    loop {
        if let Some(start) = scan.start() {
            return Ok(start);
        }
        let file = file.clone();
        // In slices: a client that left is noticed between them.
        let search = move || {
            let mut buffer = Vec::new();
            let mut left = TAIL_SLICE;
            while let Some(range) = scan.next_block(TAIL_BLOCK.min(left)).filter(|_| left > 0) {
                buffer.resize(usize::try_from(range.end - range.start).unwrap_or(0), 0);
                let mut read = 0;
                while read < buffer.len() {
                    match file.read(range.start + read as u64, &mut buffer[read..])? {
                        0 => break,
                        n => read += n,
                    }
                }
                scan.scanned(range.start, &buffer[..read]);
                left -= (range.end - range.start).min(left);
            }
            Ok::<_, io::Error>(scan)
        };
        scan = effects.blocking(Class::ServedFiles, search).await?;
    }
}

pub(crate) fn quoted(path: &Path) -> String {
    quote(path.as_os_str().as_encoded_bytes())
}

/// `open /path: no such file or directory`, as Go prints it.
pub(crate) fn go_error(op: &str, path: &Path, e: &io::Error) -> String {
    let text = e.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut chars = text.chars();
    let lower: String = chars.next().into_iter().flat_map(char::to_lowercase).chain(chars).collect();
    format!("{op} {}: {lower}", path.display())
}
