//! Cuts output into the lines of a CRI log.

/// Bytes of a line: longer ones become several, all but the last tagged `P` (containerd's `max_container_log_line_size`).
pub(super) const MAX_LINE: usize = 16 << 10;

/// One output stream: what of an unfinished line came so far.
#[derive(Debug)]
pub(super) struct Lines {
    stream: &'static str,
    rest: Vec<u8>,
}

impl Lines {
    pub(super) fn of(stream: &'static str) -> Self {
        Self { stream, rest: Vec::new() }
    }

    /// Takes output and adds whole log lines to `out`.
    pub(super) fn cut(&mut self, mut bytes: &[u8], stamp: &str, out: &mut Vec<u8>) {
        while !bytes.is_empty() {
            let room = MAX_LINE - self.rest.len();
            // A line of exactly the limit is whole: its end is looked for just behind it, too.
            let within = &bytes[..bytes.len().min(room + 1)];
            if let Some(end) = within.iter().position(|b| *b == b'\n') {
                self.line('F', &bytes[..end], stamp, out);
                bytes = &bytes[end + 1..];
            } else if bytes.len() > room {
                self.line('P', &bytes[..room], stamp, out);
                bytes = &bytes[room..];
            } else {
                self.rest.extend_from_slice(bytes);
                break;
            }
        }
        if self.rest.is_empty() && self.rest.capacity() > 1024 {
            self.rest = Vec::new();
        }
    }

    /// The stream ended: what is left is a line.
    pub(super) fn finish(&mut self, stamp: &str, out: &mut Vec<u8>) {
        if !self.rest.is_empty() {
            self.line('F', &[], stamp, out);
        }
    }

    fn line(&mut self, tag: char, end: &[u8], stamp: &str, out: &mut Vec<u8>) {
        out.extend_from_slice(format!("{stamp} {} {tag} ", self.stream).as_bytes());
        out.append(&mut self.rest);
        out.extend_from_slice(end);
        out.push(b'\n');
    }
}

#[cfg(test)]
mod tests {
    use super::{Lines, MAX_LINE};

    fn all(pieces: &[&[u8]]) -> Vec<(char, usize, u8)> {
        let mut lines = Lines::of("stdout");
        let mut out = Vec::new();
        for piece in pieces {
            lines.cut(piece, "T", &mut out);
        }
        lines.finish("T", &mut out);
        let parsed = out.split_terminator_lines().into_iter();
        parsed.map(|l| (char::from(l[9]), l.len() - 11, l.get(11).copied().unwrap_or(b'-'))).collect()
    }

    trait SplitLines {
        fn split_terminator_lines(&self) -> Vec<&[u8]>;
    }

    impl SplitLines for Vec<u8> {
        fn split_terminator_lines(&self) -> Vec<&[u8]> {
            let mut all: Vec<&[u8]> = self.split(|b| *b == b'\n').collect();
            assert_eq!(all.pop(), Some(&[][..]), "a log ends with a line's end");
            all
        }
    }

    #[test]
    fn lines_are_cut_at_their_ends_and_at_the_limit() {
        let x = |n: usize| vec![b'x'; n];
        assert_eq!(all(&[b"a\nbc\n"]), [('F', 1, b'a'), ('F', 2, b'b')]);
        assert_eq!(all(&[b"a", b"b", b"\n", b"\n", b"c"]), [('F', 2, b'a'), ('F', 0, b'-'), ('F', 1, b'c')]);
        assert_eq!(all(&[&x(MAX_LINE), b"\n"]), [('F', MAX_LINE, b'x')]);
        assert_eq!(all(&[&x(MAX_LINE + 1), b"\n"]), [('P', MAX_LINE, b'x'), ('F', 1, b'x')]);
        assert_eq!(all(&[&x(2 * MAX_LINE)]), [('P', MAX_LINE, b'x'), ('F', MAX_LINE, b'x')]);
        assert_eq!(all(&[&x(10), &x(MAX_LINE)]), [('P', MAX_LINE, b'x'), ('F', 10, b'x')]);
        assert!(all(&[]).is_empty());
    }

    #[test]
    fn an_unfinished_line_is_never_longer_than_the_limit() {
        let mut lines = Lines::of("stderr");
        let mut out = Vec::new();
        for _ in 0..100 {
            lines.cut(&[b'y'; 1000], "T", &mut out);
            assert!(lines.rest.len() <= MAX_LINE);
        }
        assert!(out.starts_with(b"T stderr P yyy"));
    }
}
