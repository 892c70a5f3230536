//! Pure: whole lines of one writer among several, each with its prefix.

/// A line longer than this is handed over in pieces; other writers may then come between.
const LONGEST: usize = 64 << 10;

#[derive(Debug)]
pub(super) struct Lines {
    prefix: Vec<u8>,
    pending: Vec<u8>,
    /// The pending bytes go on with a line that was begun.
    begun: bool,
}

impl Lines {
    pub(super) fn new(prefix: &str) -> Self {
        Self { prefix: prefix.as_bytes().to_vec(), pending: Vec::new(), begun: false }
    }

    /// Takes bytes as they come; answers with the lines that are whole now.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes.len());
        for piece in bytes.split_inclusive(|b| *b == b'\n') {
            self.pending.extend_from_slice(piece);
            if piece.ends_with(b"\n") || self.pending.len() > LONGEST {
                self.hand_over(&mut out);
                self.begun = !piece.ends_with(b"\n");
            }
        }
        out
    }

    /// What is left at the end; a line that was not ended is ended, as another writer's may follow.
    pub(super) fn rest(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        let open = self.begun || !self.pending.is_empty();
        if !self.pending.is_empty() {
            self.hand_over(&mut out);
        }
        if open {
            out.push(b'\n');
        }
        self.begun = false;
        out
    }

    fn hand_over(&mut self, out: &mut Vec<u8>) {
        if !self.begun {
            out.extend_from_slice(&self.prefix);
        }
        out.append(&mut self.pending);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(pieces: &[&str]) -> String {
        let mut lines = Lines::new("> ");
        let mut out: Vec<u8> = pieces.iter().flat_map(|p| lines.push(p.as_bytes())).collect();
        out.extend(lines.rest());
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn each_line_gets_one_prefix_wherever_it_is_cut() {
        let table: [(&[&str], &str); 6] = [
            (&["a\nb\n"], "> a\n> b\n"),
            (&["a", "b\nc", "\n"], "> ab\n> c\n"),
            (&["\n\n"], "> \n> \n"),
            (&["no end"], "> no end\n"),
            (&[""], ""),
            (&["a\n", "", "b"], "> a\n> b\n"),
        ];
        for (pieces, expected) in table {
            assert_eq!(all(pieces), expected, "{pieces:?}");
        }
    }

    #[test]
    fn a_line_without_end_is_not_kept() {
        let mut lines = Lines::new("> ");
        let mut out = 0;
        for _ in 0..100 {
            out += lines.push(&[b'x'; 8 << 10]).len();
            assert!(lines.pending.len() <= LONGEST + (8 << 10));
        }
        out += lines.rest().len();
        assert_eq!(out, 2 + 100 * (8 << 10) + 1, "one prefix, all bytes, one end");
    }
}
