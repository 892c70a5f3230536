//! Terminal: the operator's terminal, for the command line.
//!
//! **Owns** raw mode and gives it back on every way out; window size and its changes; reading and writing
//! standard streams without holding up the rest.
//! **Never** knows what is shown or typed.

#![forbid(unsafe_code)]

mod flow;
mod raw;
mod signal;

pub use flow::{Writer, read, write};
pub use raw::Raw;
pub use signal::{Ending, Resizes};

use std::os::fd::AsFd;

/// Columns and rows of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Characters in a line.
    pub columns: u16,
    /// Lines.
    pub rows: u16,
}

/// Size of the window behind a descriptor; `None` when it is no terminal or the terminal does not know.
pub fn size_of(fd: impl AsFd) -> Option<Size> {
    let size = rustix::termios::tcgetwinsize(fd).ok()?;
    (size.ws_col > 0 && size.ws_row > 0).then_some(Size { columns: size.ws_col, rows: size.ws_row })
}

/// Size of the operator's window, asked of the first standard stream that has one.
#[must_use]
pub fn size() -> Option<Size> {
    size_of(std::io::stdout()).or_else(|| size_of(std::io::stdin())).or_else(|| size_of(std::io::stderr()))
}

#[cfg(test)]
mod tests;
