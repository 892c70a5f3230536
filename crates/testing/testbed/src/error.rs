//! What can go wrong while a bed is set up or used.

use std::path::PathBuf;
use std::time::Duration;

/// Why a bed could not do what was asked of it.
#[derive(Debug, thiserror::Error)]
pub enum BedError {
    /// The machine lacks something; the text says what and how to get it.
    #[error("this machine cannot run the test bed: {0}")]
    Machine(String),
    /// A file or folder could not be read or written.
    #[error("cannot {what} {}", path.display())]
    File {
        /// Verb: `create`, `read` ...
        what: &'static str,
        /// The path at hand.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A program could not be started or ended with an error.
    #[error("`{command}` failed: {output}")]
    Command {
        /// The command line.
        command: String,
        /// Exit status and what it printed.
        output: String,
    },
    /// Something did not happen in time.
    #[error("waited {limit:?} for {what}: {detail}")]
    Timeout {
        /// What was waited for.
        what: String,
        /// For how long.
        limit: Duration,
        /// The last thing seen.
        detail: String,
    },
    /// A program printed something that is not what its interface promises.
    #[error("unexpected answer of {from}: {detail}")]
    Answer {
        /// Who answered.
        from: String,
        /// What was wrong.
        detail: String,
    },
}

/// Adds verb and path to an I/O error.
pub(crate) fn file<T>(what: &'static str, path: &std::path::Path, result: std::io::Result<T>) -> Result<T, BedError> {
    result.map_err(|source| BedError::File { what, path: path.to_owned(), source })
}
