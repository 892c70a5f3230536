//! Why a layer cannot be had.

use std::io;

/// Why a layer was not unpacked. What was written of it is to be thrown away.
#[derive(Debug, thiserror::Error)]
pub enum UnpackError {
    /// No tar archive, or a damaged one.
    #[error("not a good tar archive at byte {at}: {why}")]
    Archive {
        /// Offset without compression.
        at: u64,
        /// What is wrong.
        why: String,
    },
    /// It ends too early.
    #[error("archive is cut off at byte {at}, {within}")]
    Truncated {
        /// Offset without compression.
        at: u64,
        /// Within what.
        within: &'static str,
    },
    /// The compressed data is damaged, of a kind that no layer has, or needs too much memory.
    #[error("compressed data cannot be read: {0}")]
    Compression(String),
    /// The layer's own file cannot be read.
    #[error("layer cannot be read")]
    Source(#[source] io::Error),
    /// An entry that no layer may have.
    #[error("entry {name:?} is refused: {why}")]
    Entry {
        /// Its name, as far as it is text.
        name: String,
        /// Which rule it breaks.
        why: String,
    },
    /// More than is allowed.
    #[error("layer is too large: {0}")]
    Limit(String),
    /// Another archive than was promised.
    #[error("layer has the diff id sha256:{found}, its image's configuration says sha256:{promised}")]
    DiffId {
        /// Hexadecimal digits.
        promised: String,
        /// Hexadecimal digits.
        found: String,
    },
    /// The disk refused.
    #[error("{what} {name:?}")]
    Disk {
        /// What was tried.
        what: &'static str,
        /// With which entry.
        name: String,
        /// The system's words.
        #[source]
        source: io::Error,
    },
    /// The caller said so.
    #[error("stopped before the layer was unpacked")]
    Stopped,
}

impl UnpackError {
    pub(crate) fn entry(name: &[u8], why: impl Into<String>) -> Self {
        Self::Entry { name: text(name), why: why.into() }
    }

    /// A call to the system about an entry failed. What the entry itself is to blame for is a refusal.
    pub(crate) fn disk(what: &'static str, name: &[u8], e: rustix::io::Errno) -> Self {
        use rustix::io::Errno;
        let why = match e {
            Errno::NAMETOOLONG => "a name is too long",
            Errno::LOOP => "its links go round in a circle",
            Errno::NOTDIR => "a part of its path is no directory",
            _ => return Self::Disk { what, name: text(name), source: e.into() },
        };
        Self::entry(name, why)
    }
}

/// A name for people; at most 200 characters.
fn text(name: &[u8]) -> String {
    String::from_utf8_lossy(name).chars().take(200).collect()
}
