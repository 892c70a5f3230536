//! Errors as Go words them.

use std::io;

/// The system's words without Rust's `(os error N)`, in lower case as Go has them.
#[must_use]
pub fn io_text(e: &io::Error) -> String {
    let text = e.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_lowercase().chain(chars).collect())
}
