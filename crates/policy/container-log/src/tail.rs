//! Where the last lines of a file begin.

use std::ops::Range;

/// A search from the end of a file for the place after which exactly so many line feeds follow. Chunks of a split line
/// count as lines, and an unterminated last line as none, as a kubelet has it.
///
/// The caller reads each block that [`TailScan::next_block`] asks for and shows it to [`TailScan::scanned`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TailScan {
    /// Line feeds still to pass.
    left: u64,
    /// Everything from here on was scanned.
    at: u64,
    start: Option<u64>,
}

impl TailScan {
    /// The last `lines` lines of a file of `size` bytes.
    #[must_use]
    pub fn new(size: u64, lines: u64) -> Self {
        Self { left: lines, at: size, start: (size == 0).then_some(0) }
    }

    /// The part of the file to read next, at most `most` bytes; `None` when the place is found.
    #[must_use]
    pub fn next_block(&self, most: u64) -> Option<Range<u64>> {
        self.start.is_none().then(|| self.at.saturating_sub(most)..self.at)
    }

    /// Takes the block that was asked for. One that is shorter (the file shrank) counts as ending where it should.
    pub fn scanned(&mut self, from: u64, block: &[u8]) {
        for (i, _) in block.iter().enumerate().rev().filter(|(_, b)| **b == b'\n') {
            if self.left == 0 {
                self.start = Some(from + i as u64 + 1);
                return;
            }
            self.left -= 1;
        }
        self.at = from;
        if from == 0 {
            self.start = Some(0);
        }
    }

    /// The place, once it is found.
    #[must_use]
    pub fn start(&self) -> Option<u64> {
        self.start
    }
}
