//! The way of log lines to the standard streams: a bounded queue and a thread of its own.
//!
//! Who logs never waits for whoever reads the log: when it does not read, lines are lost and counted, and told when it
//! reads again.

use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Lines that wait at most.
const LINES: usize = 4096;
/// Bytes that wait at most.
const BYTES: usize = 1 << 20;
/// How long the end of the process waits for what was logged last.
const FAREWELL: Duration = Duration::from_secs(1);

/// Where a line goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stream {
    Out,
    Err,
}

enum Entry {
    Line(Stream, Vec<u8>),
    /// Answered when everything before it is written.
    Flush(SyncSender<()>),
}

/// Takes lines without waiting. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Lossy {
    queue: SyncSender<Entry>,
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    waiting: AtomicUsize,
    /// Lines lost that have not been told yet.
    untold: AtomicU64,
}

impl std::fmt::Debug for Lossy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Lossy({:?})", self.state)
    }
}

impl Lossy {
    /// # Errors
    /// No thread can be started.
    pub(super) fn start(write: impl FnMut(Stream, &[u8]) + Send + 'static) -> io::Result<Self> {
        let (queue, lines) = sync_channel(LINES);
        let state = Arc::<State>::default();
        let told = state.clone();
        std::thread::Builder::new().name("log".to_owned()).spawn(move || work(&lines, &told, write))?;
        Ok(Self { queue, state })
    }

    /// A writer of one line.
    pub(super) fn line(&self, stream: Stream) -> Line {
        Line { to: self.clone(), stream, bytes: Vec::new() }
    }

    fn push(&self, stream: Stream, bytes: Vec<u8>) {
        let len = bytes.len();
        let fits = self.state.waiting.fetch_add(len, Relaxed) + len <= BYTES;
        if !fits || self.queue.try_send(Entry::Line(stream, bytes)).is_err() {
            self.state.waiting.fetch_sub(len, Relaxed);
            self.state.untold.fetch_add(1, Relaxed);
            metrics::log::LINES_LOST.inc();
        }
    }

    /// Waits until what was logged is written, but not for long.
    pub(crate) fn flush(&self) {
        let (done, written) = sync_channel(1);
        let mut entry = Entry::Flush(done);
        for _ in 0..10 {
            match self.queue.try_send(entry) {
                Ok(()) => {
                    let _in_time = written.recv_timeout(FAREWELL);
                    return;
                }
                Err(TrySendError::Full(back)) => {
                    entry = back;
                    std::thread::park_timeout(FAREWELL / 10);
                }
                Err(TrySendError::Disconnected(_)) => return,
            }
        }
    }
}

fn work(lines: &Receiver<Entry>, state: &State, mut write: impl FnMut(Stream, &[u8])) {
    while let Ok(entry) = lines.recv() {
        match entry {
            Entry::Line(stream, bytes) => {
                write(stream, &bytes);
                state.waiting.fetch_sub(bytes.len(), Relaxed);
            }
            Entry::Flush(done) => {
                let _nobody_waits_any_more = done.send(());
            }
        }
        let lost = state.untold.swap(0, Relaxed);
        if lost > 0 {
            write(Stream::Err, format!("bosun: {lost} log lines were lost: nobody read them in time\n").as_bytes());
        }
    }
}

/// The daemon's own streams. A stream that is closed loses its lines.
pub(super) fn to_standard(stream: Stream, bytes: &[u8]) {
    let _lost = match stream {
        Stream::Out => io::stdout().write_all(bytes).and_then(|()| io::stdout().flush()),
        Stream::Err => io::stderr().write_all(bytes),
    };
}

/// One line in the making; sent when it is dropped.
pub(super) struct Line {
    to: Lossy,
    stream: Stream,
    bytes: Vec<u8>,
}

impl Write for Line {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if !self.bytes.is_empty() {
            self.to.push(self.stream, std::mem::take(&mut self.bytes));
        }
    }
}

/// The log of this process, for its last words.
static LOG: Mutex<Option<Lossy>> = Mutex::new(None);

/// Keeps it for [`flush`].
pub(super) fn keep(log: &Lossy) {
    *LOG.lock().unwrap_or_else(PoisonError::into_inner) = Some(log.clone());
}

/// Waits until what was logged is written, for a second at most. Before the process ends.
pub(crate) fn flush() {
    let log = LOG.lock().unwrap_or_else(PoisonError::into_inner).clone();
    if let Some(log) = log {
        log.flush();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn a_reader_that_does_not_read_holds_nobody_up_and_is_told_what_it_missed() {
        let (free, gate) = channel::<()>();
        let written: Arc<Mutex<Vec<String>>> = Arc::default();
        let seen = written.clone();
        let mut open = false;
        let log = Lossy::start(move |_, bytes| {
            if !open {
                gate.recv().unwrap();
                open = true;
            }
            seen.lock().unwrap().push(String::from_utf8_lossy(bytes).into_owned());
        })
        .unwrap();
        for n in 0..100_000 {
            writeln!(log.line(Stream::Err), "line {n}").unwrap();
        }
        // Megabytes in one piece are refused too.
        log.push(Stream::Err, vec![b'x'; BYTES + 1]);
        free.send(()).unwrap();
        log.flush();
        let lines = written.lock().unwrap().clone();
        assert_eq!(lines[0], "line 0\n");
        let kept = lines.iter().filter(|l| l.starts_with("line ")).count();
        assert!((LINES..=LINES + 1).contains(&kept), "{kept}");
        let told: Vec<_> = lines.iter().filter(|l| l.starts_with("bosun: ")).collect();
        assert_eq!(told, [&format!("bosun: {} log lines were lost: nobody read them in time\n", 100_001 - kept)]);
        assert!(lines[1].starts_with("bosun: "), "at once when it reads again");
    }

    #[test]
    fn lines_come_whole_and_in_order() {
        let written: Arc<Mutex<Vec<u8>>> = Arc::default();
        let seen = written.clone();
        let log = Lossy::start(move |_, bytes| seen.lock().unwrap().extend_from_slice(bytes)).unwrap();
        for n in 0..100 {
            let mut line = log.line(Stream::Out);
            write!(line, "{n}").unwrap();
            line.write_all(b"\n").unwrap();
        }
        log.flush();
        let want: String = (0..100).map(|n| format!("{n}\n")).collect();
        assert_eq!(String::from_utf8_lossy(&written.lock().unwrap()), want);
    }
}
