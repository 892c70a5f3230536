//! One client's way through a log.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use actor::{Class, Effects};
use bytes::Bytes;
use container_log::{Fed, LogOptions, Printer, Wanted};
use log_files::{FolderChanges, FolderWatch, LogFile};
use model::Timestamp;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep, sleep_until};

use crate::file::{find, go_error, open_log, quoted, tail};
use crate::liveness::Liveness;

/// Most that is read at once, and about the most that one chunk of the answer holds.
const BLOCK: usize = 32 * 1024;
/// Chunks that the client has not taken yet.
const CHUNKS: usize = 2;
/// A follower looks at least this often, whatever it is told (interfaces 4.4).
const LOOK: Duration = Duration::from_secs(1);
/// A follower that had something to send looks again after this time, and needs no event for it: a container that writes
/// all the time is read in large pieces.
const PACE: Duration = Duration::from_millis(30);
/// Bytes that may pass without any to show before others get their turn on this thread.
const SILENT: usize = 256 * 1024;

/// What is read.
pub(crate) struct Log {
    /// As the runtime names it.
    pub(crate) path: PathBuf,
    pub(crate) since: Option<Timestamp>,
    pub(crate) options: LogOptions,
    /// Set to go on while the container runs.
    pub(crate) follow: Option<Liveness>,
}

struct Follow {
    live: Liveness,
    changes: FolderChanges,
    /// The container ended: what is in the file now is all.
    ended: bool,
    /// Something was sent since the last pause.
    busy_since: Option<Instant>,
}

/// Reads one log for one client. Holds no buffer while it waits.
pub(crate) struct Reader {
    path: PathBuf,
    file: LogFile,
    offset: u64,
    printer: Printer,
    follow: Option<Follow>,
    /// Grows when a line needs it.
    window: usize,
    /// The last read from memory fell short.
    from_disk: bool,
    over: bool,
    effects: Effects,
    room: Arc<Semaphore>,
}

/// What one read of the file brought.
enum Progress {
    /// Bytes to send, or none yet.
    Bytes(Vec<u8>),
    /// No whole line is left; the file had this size.
    AtEnd(u64, Vec<u8>),
}

/// Bytes of an answer. Gone when the connection has written them: only then there is room for others.
struct Chunk {
    bytes: Vec<u8>,
    _room: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for Chunk {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Reader {
    /// Opens the log and finds the first line that is asked for.
    ///
    /// # Errors
    /// Text for the client.
    pub(crate) async fn open(log: Log, watch: &FolderWatch, effects: Effects) -> Result<Self, String> {
        let Log { path, since, options, follow } = log;
        let (path, file) = find(&path, &effects).await?;
        let offset = match options.tail_lines {
            None => 0,
            Some(lines) => tail(&file, lines, &effects).await.map_err(|e| {
                let why = go_error("read", &path, &e);
                format!("failed to tail {lines} lines of log file {}: {why}", quoted(&path))
            })?,
        };
        let wanted = Wanted {
            timestamps: options.timestamps,
            since,
            streams: options.streams,
            limit_bytes: options.limit_bytes,
            max_lines: options.tail_lines.filter(|_| follow.is_none()),
        };
        let folder = path.parent().unwrap_or(Path::new("/"));
        let follow =
            follow.map(|live| Follow { live, changes: watch.subscribe(folder), ended: false, busy_since: None });
        Ok(Self {
            path,
            file,
            offset,
            printer: Printer::new(wanted),
            follow,
            window: BLOCK,
            from_disk: false,
            over: false,
            effects,
            room: Arc::new(Semaphore::new(CHUNKS)),
        })
    }

    /// The next bytes of the answer; `None` at its end. An error is told as the last bytes. Dropping the future ends the read.
    pub(crate) async fn next(&mut self) -> Option<Bytes> {
        if self.over {
            return None;
        }
        // A client that does not read stops its reader here.
        let room = self.room.clone().acquire_owned().await.ok()?;
        let bytes = match self.bytes().await {
            Ok(bytes) => bytes,
            Err(text) => {
                self.over = true;
                text.into_bytes()
            }
        };
        if bytes.is_empty() {
            return None;
        }
        Some(Bytes::from_owner(Chunk { bytes, _room: room }))
    }

    /// The next bytes; none at the end.
    async fn bytes(&mut self) -> Result<Vec<u8>, String> {
        let mut silent = 0;
        loop {
            let before = self.offset;
            match self.advance().await? {
                Progress::Bytes(out) if !out.is_empty() || self.over => {
                    if let Some(follow) = &mut self.follow {
                        follow.busy_since.get_or_insert_with(Instant::now);
                    }
                    return Ok(out);
                }
                Progress::Bytes(_) => {
                    silent += usize::try_from(self.offset - before.min(self.offset)).unwrap_or(SILENT);
                    if silent >= SILENT {
                        silent = 0;
                        tokio::task::yield_now().await;
                    }
                }
                Progress::AtEnd(size, rest) if self.follow.is_some() => {
                    drop(rest);
                    if !self.wait(size).await? {
                        self.over = true;
                        return Ok(Vec::new());
                    }
                }
                Progress::AtEnd(_, rest) => {
                    self.over = true;
                    let mut out = Vec::new();
                    return match self.printer.finish(&rest, &mut out) {
                        Fed::Failed(text) => Err(text),
                        Fed::More | Fed::Done => Ok(out),
                    };
                }
            }
        }
    }

    /// Reads and prints one piece of the file.
    async fn advance(&mut self) -> Result<Progress, String> {
        if self.printer.is_done() {
            self.over = true;
            return Ok(Progress::Bytes(Vec::new()));
        }
        let size = self.file.size().map_err(|e| self.failed(&e))?;
        if size < self.offset {
            // Somebody cut the file: what is in it now was written since.
            self.printer.reset_line();
            self.offset = if self.follow.is_some() { 0 } else { size };
        }
        let have = usize::try_from(size - self.offset).unwrap_or(usize::MAX);
        let want = have.min(self.window);
        let from_disk = self.from_disk;
        let buffer = if want == 0 { Vec::new() } else { self.read(want).await.map_err(|e| self.failed(&e))? };
        if buffer.is_empty() {
            return Ok(Progress::AtEnd(size, buffer));
        }
        let mut out = Vec::with_capacity(buffer.len() + buffer.len() / 8 + 64);
        let (used, fed) = self.printer.feed(&buffer, &mut out);
        self.offset += used as u64;
        match fed {
            Fed::Done => self.over = true,
            Fed::Failed(text) => {
                self.over = true;
                out.extend_from_slice(text.as_bytes());
            }
            Fed::More if used > 0 => self.window = BLOCK,
            Fed::More if buffer.len() < want && !from_disk => self.from_disk = true,
            // Even the disk has less than the size says (a network's file, mostly): there is no more for now.
            Fed::More if want == have || buffer.len() < want => return Ok(Progress::AtEnd(size, buffer)),
            Fed::More => self.window *= 2,
        }
        Ok(Progress::Bytes(out))
    }

    /// Reads at most `want` bytes: at once when they are in memory, else on a thread that may wait for them.
    async fn read(&mut self, want: usize) -> io::Result<Vec<u8>> {
        let mut buffer = vec![0; want];
        if !std::mem::take(&mut self.from_disk)
            && let Some(n) = self.file.read_now(self.offset, &mut buffer)?
        {
            buffer.truncate(n);
            return Ok(buffer);
        }
        let (file, offset) = (self.file.clone(), self.offset);
        let read = move || {
            let n = file.read(offset, &mut buffer)?;
            buffer.truncate(n);
            Ok(buffer)
        };
        self.effects.blocking(Class::ServedFiles, read).await
    }

    /// Waits until there may be more than the `seen` bytes of the file, or in a file that took its place. `false`: there
    /// will be none.
    async fn wait(&mut self, seen: u64) -> Result<bool, String> {
        let Some(follow) = &mut self.follow else { return Ok(false) };
        if let Some(since) = follow.busy_since.take() {
            sleep_until(since + PACE).await;
            return Ok(true);
        }
        loop {
            follow.changes.arm();
            // In this order: the runtime writes nothing more to the old file once there is something in the new one.
            let next = self.file.successor(&self.path).unwrap_or_default();
            let size = self.file.size().unwrap_or(seen);
            if size != seen {
                return Ok(true);
            }
            if next.is_some_and(|bytes| bytes > 0) {
                let path = self.path.clone();
                match self.effects.blocking(Class::ServedFiles, move || open_log(&path)).await {
                    Ok(file) => {
                        self.file = file;
                        self.offset = 0;
                        self.printer.reset_line();
                        return Ok(true);
                    }
                    Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                    Err(e) => {
                        let why = go_error("open", &self.path, &e);
                        return Err(format!("failed to open log file {}: {why}", quoted(&self.path)));
                    }
                }
            }
            if follow.ended {
                return Ok(false);
            }
            if !follow.live.is_running().await? {
                follow.ended = true;
                return Ok(true);
            }
            let told = tokio::select! {
                () = follow.changes.changed() => true,
                () = follow.live.changed() => false,
                () = sleep(LOOK) => false,
            };
            // News of another file of the folder, perhaps of one that is written all the time.
            if told && self.file.size().is_ok_and(|size| size == seen) {
                sleep(PACE).await;
            }
        }
    }

    fn failed(&self, e: &io::Error) -> String {
        format!("failed to read log file {}: {}", quoted(&self.path), go_error("read", &self.path, e))
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let skipped = self.printer.skipped();
        if skipped > 0 {
            tracing::warn!(path = %self.path.display(), lines = skipped, "lines of a log are in no known format; left out");
        }
    }
}
