//! Trouble that only HTTP can have.

use std::time::Duration;

use fakes::api::Matching;
use ports::api::Method;

/// What happens to a request instead of its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HttpTrouble {
    /// An answer of this code with this body, whatever it was.
    Body(u16, String),
    /// The whole connection ends without an answer.
    Cut,
    /// The connection ends in the middle of the answer's body.
    CutBody,
}

/// What happens to watches.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WatchTrouble {
    /// So many of the next watches begin with an `ERROR` event of code 410.
    pub expire: u32,
    /// Watches stay open and say nothing more, neither changes nor bookmarks.
    pub silent: bool,
    /// Each event comes twice.
    pub twice: bool,
    /// Events that come together come in reverse.
    pub reversed: bool,
    /// The stream breaks after so many events.
    pub cut_after: Option<u64>,
    /// So many of the next watches begin with a line that is not JSON.
    pub garbage: u32,
    /// Time between bookmarks.
    pub bookmark_every: Duration,
}

impl Default for WatchTrouble {
    fn default() -> Self {
        Self {
            expire: 0,
            silent: false,
            twice: false,
            reversed: false,
            cut_after: None,
            garbage: 0,
            bookmark_every: Duration::from_secs(60),
        }
    }
}

/// Trouble for requests, in the order in which it was set up.
#[derive(Debug, Default)]
pub(crate) struct HttpTroubles(Vec<(Matching, HttpTrouble, u32)>);

impl HttpTroubles {
    pub(crate) fn add(&mut self, matching: Matching, trouble: HttpTrouble, times: u32) {
        self.0.push((matching, trouble, times));
    }

    pub(crate) fn next(&mut self, method: Method, path: &str) -> Option<HttpTrouble> {
        let (_, trouble, left) = self.0.iter_mut().find(|(m, _, left)| *left > 0 && m.takes(method, path))?;
        *left -= 1;
        Some(trouble.clone())
    }
}
