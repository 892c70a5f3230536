//! Bytes of a log file in, bytes of an answer out.

use model::Timestamp;

use crate::line::{Format, Head, Line, Source};
use crate::options::Streams;
use crate::quote;
use crate::stamp::Stamp;

/// A CRI line that is longer than this is printed piece by piece, so that no reader needs to hold it. Runtimes split lines
/// at 16 KiB.
pub const LONG_LINE: usize = 20 * 1024;
/// A JSON line that is longer than this is skipped: it has to be decoded whole.
pub const MAX_JSON_LINE: usize = 1024 * 1024;
/// How much of a line an error shows.
const SAMPLE: usize = 512;

/// What is to be printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Wanted {
    /// Put the time before each logical line.
    pub timestamps: bool,
    /// Leave out what is older.
    pub since: Option<Timestamp>,
    /// Which outputs.
    pub streams: Streams,
    /// End after so many bytes, in the middle of a line if need be.
    pub limit_bytes: Option<u64>,
    /// End after so many lines of the file (those left out by `since` count, as a kubelet counts them).
    pub max_lines: Option<u64>,
}

/// What comes after a piece of input.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Fed {
    /// Go on.
    More,
    /// All that was wanted is printed.
    Done,
    /// The file cannot be printed; text for the client.
    Failed(String),
}

/// Prints one log; carries over from one file to the next when the log is rotated.
#[derive(Debug)]
pub struct Printer {
    wanted: Wanted,
    format: Option<Format>,
    at_line_start: bool,
    bytes_left: u64,
    lines_left: u64,
    long: Option<Long>,
    skipped: u64,
}

/// A long line whose beginning is printed.
#[derive(Clone, Copy, Debug)]
struct Long {
    /// It is printed, not skipped.
    shown: bool,
    /// Counts as a line (was in the format of the file).
    counted: bool,
    partial: bool,
    last: Option<u8>,
}

enum Step {
    Go,
    Stop(Fed),
}

impl Printer {
    /// Nothing printed yet.
    #[must_use]
    pub fn new(wanted: Wanted) -> Self {
        Self {
            wanted,
            format: None,
            at_line_start: true,
            bytes_left: wanted.limit_bytes.unwrap_or(u64::MAX),
            lines_left: wanted.max_lines.unwrap_or(u64::MAX),
            long: None,
            skipped: 0,
        }
    }

    /// Lines so far that were not in the format of the file.
    #[must_use]
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Whether there is nothing (more) to print, whatever the file says.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.lines_left == 0 || self.bytes_left == 0
    }

    /// The reader goes on in another file, or at another place: a line that was begun will not be ended.
    pub fn reset_line(&mut self) {
        if self.long.take().is_some() {
            self.at_line_start = true;
        }
    }

    /// Takes a piece of the file and appends what is to be printed. Returns how many bytes were used: show the rest again
    /// with more behind it. When nothing of [`MAX_JSON_LINE`] bytes or less was used, a longer piece is needed.
    pub fn feed(&mut self, input: &[u8], out: &mut Vec<u8>) -> (usize, Fed) {
        let mut used = 0;
        while used < input.len() || self.is_done() {
            if self.is_done() {
                return (used, Fed::Done);
            }
            let rest = &input[used..];
            let (len, step) = match rest.iter().position(|b| *b == b'\n') {
                Some(end) => (end + 1, self.piece(&rest[..=end], true, out)),
                None if self.long.is_some() => (rest.len(), self.piece(rest, false, out)),
                None if rest.len() >= LONG_LINE => self.begin_long(rest, out),
                None => break,
            };
            used += len;
            match step {
                Step::Go if len == 0 => break,
                Step::Go => {}
                Step::Stop(fed) => return (used, fed),
            }
        }
        (used, Fed::More)
    }

    /// Prints what is left at the end of a file that nobody follows: a last line without its line feed.
    pub fn finish(&mut self, rest: &[u8], out: &mut Vec<u8>) -> Fed {
        if rest.is_empty() || self.is_done() {
            return Fed::Done;
        }
        match self.piece(rest, true, out) {
            Step::Go => Fed::Done,
            Step::Stop(fed) => fed,
        }
    }

    /// A whole line, or the next piece of a long one. `ends`: the line ends here.
    fn piece(&mut self, piece: &[u8], ends: bool, out: &mut Vec<u8>) -> Step {
        let Some(mut long) = self.long.take() else { return self.line(piece, out) };
        let content = if long.partial { piece.strip_suffix(b"\n").unwrap_or(piece) } else { piece };
        if long.shown {
            self.emit(None, content, out);
            long.last = content.last().copied().or(long.last);
        }
        if self.bytes_left == 0 {
            return Step::Stop(Fed::Done);
        }
        if !ends {
            self.long = Some(long);
            return Step::Go;
        }
        if long.shown {
            self.at_line_start = long.last.is_none_or(|b| b == b'\n');
        }
        self.count(long.counted)
    }

    fn line(&mut self, line: &[u8], out: &mut Vec<u8>) -> Step {
        let format = match self.choose_format(line) {
            Ok(format) => format,
            Err(stop) => return stop,
        };
        let Ok(line) = format.parse(line) else {
            self.skipped += 1;
            return Step::Go;
        };
        let Line { stamp, source, content } = line;
        if !self.is_too_old(&stamp) {
            let source = match source {
                Ok(source) => source,
                Err(word) => {
                    let text = format!("unexpected stream type {}", quote(word.as_bytes()));
                    return Step::Stop(Fed::Failed(text));
                }
            };
            if !self.is_shown(source) {
                return self.count(true);
            }
            self.emit(Some(&stamp), &content, out);
            if self.bytes_left == 0 {
                return Step::Stop(Fed::Done);
            }
        }
        self.at_line_start = content.last().is_none_or(|b| *b == b'\n');
        self.count(true)
    }

    /// The beginning of a line whose end is far: what of it can be used, and how it goes on.
    fn begin_long(&mut self, piece: &[u8], out: &mut Vec<u8>) -> (usize, Step) {
        let head = Head::parse(piece);
        // A JSON line has to come whole, as long as it may still become one.
        let may_be_json = match self.format {
            None => head.is_none() && piece.starts_with(b"{"),
            Some(format) => format == Format::Json,
        };
        if may_be_json && piece.len() < MAX_JSON_LINE {
            return (0, Step::Go);
        }
        let cri = self.format.unwrap_or(Format::Cri) == Format::Cri;
        let Some(head) = head.filter(|_| cri) else {
            if self.format.is_none() {
                return (piece.len(), Step::Stop(unsupported(piece)));
            }
            self.skipped += 1;
            self.long = Some(Long { shown: false, counted: false, partial: false, last: None });
            return (piece.len(), Step::Go);
        };
        self.format = Some(Format::Cri);
        let shown = !self.is_too_old(&head.stamp) && self.is_shown(head.source);
        let content = &piece[head.len..];
        if shown {
            self.emit(Some(&head.stamp), content, out);
            if self.bytes_left == 0 {
                return (piece.len(), Step::Stop(Fed::Done));
            }
        }
        let last = content.last().copied();
        self.long = Some(Long { shown, counted: true, partial: head.partial, last });
        (piece.len(), Step::Go)
    }

    fn choose_format(&mut self, first: &[u8]) -> Result<Format, Step> {
        if self.format.is_none() {
            self.format = Format::of(first);
        }
        self.format.ok_or_else(|| Step::Stop(unsupported(first)))
    }

    fn is_too_old(&self, stamp: &Stamp) -> bool {
        self.wanted.since.is_some_and(|since| stamp.instant() < since)
    }

    fn is_shown(&self, source: Source) -> bool {
        match self.wanted.streams {
            Streams::All => true,
            Streams::Stdout => source == Source::Stdout,
            Streams::Stderr => source == Source::Stderr,
        }
    }

    fn emit(&mut self, stamp: Option<&Stamp>, content: &[u8], out: &mut Vec<u8>) {
        let before = out.len();
        if let Some(stamp) = stamp.filter(|_| self.wanted.timestamps && self.at_line_start) {
            stamp.render(out);
            out.push(b' ');
        }
        out.extend_from_slice(content);
        let room = usize::try_from(self.bytes_left).unwrap_or(usize::MAX);
        out.truncate(before.saturating_add(room));
        if self.wanted.limit_bytes.is_some() {
            self.bytes_left -= (out.len() - before) as u64;
        }
    }

    fn count(&mut self, counted: bool) -> Step {
        if counted && self.wanted.max_lines.is_some() {
            self.lines_left -= 1;
        }
        Step::Go
    }
}

fn unsupported(line: &[u8]) -> Fed {
    let sample = quote(&line[..line.len().min(SAMPLE)]);
    Fed::Failed(format!("failed to get parse function: unsupported log format: {sample}"))
}
