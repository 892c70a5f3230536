//! The last lines of a container's log file (CRI log format).

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// Longest piece of a log that is read at once.
const MAX_BYTES: u64 = 16 << 20;

/// Text of the log, without the CRI prefixes; at most the last `tail` lines.
///
/// # Errors
/// The file cannot be read.
pub(crate) fn read(path: &Path, tail: Option<usize>) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let len = file.metadata()?.len();
    let skipped = len.saturating_sub(MAX_BYTES);
    file.seek(SeekFrom::Start(skipped))?;
    let mut raw = Vec::with_capacity(usize::try_from(len - skipped).unwrap_or(0));
    file.take(MAX_BYTES).read_to_end(&mut raw)?;
    // A cut in the middle of a line loses that line, not the rest.
    let from = if skipped > 0 { raw.iter().position(|b| *b == b'\n').map_or(0, |i| i + 1) } else { 0 };
    let lines = logical_lines(&raw[from..]);
    let first = tail.map_or(0, |n| lines.len().saturating_sub(n));
    Ok(lines[first..].concat())
}

/// CRI lines `<time> <stream> <P|F> <text>` joined to the lines that the container wrote.
fn logical_lines(raw: &[u8]) -> Vec<Vec<u8>> {
    let mut out: Vec<Vec<u8>> = Vec::new();
    let mut open = false;
    for line in raw.split_inclusive(|b| *b == b'\n') {
        let mut parts = line.splitn(4, |b| *b == b' ');
        let (Some(_time), Some(_stream), Some(tag), Some(text)) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            continue;
        };
        let partial = tag.split(|b| *b == b':').next() == Some(b"P");
        let text = if partial { text.strip_suffix(b"\n").unwrap_or(text) } else { text };
        match out.last_mut().filter(|_| open) {
            Some(last) => last.extend_from_slice(text),
            None => out.push(text.to_vec()),
        }
        open = partial;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partial_lines_are_joined_and_prefixes_dropped() {
        let raw = b"2026-01-01T00:00:00Z stdout P hel\n2026-01-01T00:00:00Z stdout F lo\n2026-01-01T00:00:01Z stderr F  two\n";
        assert_eq!(logical_lines(raw), [b"hello\n".to_vec(), b" two\n".to_vec()]);
    }

    #[test]
    fn the_tail_counts_lines_of_the_container() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("0.log");
        std::fs::write(&path, "t stdout F a\nt stdout P b\nt stdout F c\nt stdout F d\n").unwrap();
        assert_eq!(read(&path, Some(2)).unwrap(), b"bc\nd\n");
        assert_eq!(read(&path, None).unwrap(), b"a\nbc\nd\n");
        assert_eq!(read(&path, Some(0)).unwrap(), b"");
    }
}
