//! A transcript of what managers say to each other: every message, answer and post.
//!
//! Of what is declared as `kept secret` it holds a digest: enough to see whether two are the same. Specifications of pods stand
//! in it as they are, with whatever their authors wrote into them.

use sha2::{Digest, Sha256};

/// One thing that was said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Role that spoke, of an answer the role that answered; empty: whoever put the node together.
    pub from: &'static str,
    /// Role that was spoken to; empty for a post, which is for whoever reads.
    pub to: &'static str,
    /// Message or row.
    pub what: &'static str,
    /// Content as JSON, `secret, sha256 0123456789abcdef` where it is kept secret, or why there is no answer; `refused` for a post of a former generation.
    pub body: String,
}

/// Takes entries in the order in which things were said. Called on the speaker's thread: return soon.
pub trait Recorder: Send + Sync + 'static {
    /// Notes one entry.
    fn entry(&self, entry: &Entry);
}

/// JSON of something that can always be written as JSON; a text that says why where it cannot.
pub(crate) fn json<T: serde::Serialize + ?Sized>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_else(|e| format!("\"no JSON: {e}\""))
}

/// What is told of something that was said.
pub(crate) fn content<T: serde::Serialize + ?Sized>(is_secret: bool, said: &T) -> String {
    if is_secret { digest(said) } else { json(said) }
}

/// What can be told of a secret.
fn digest<T: serde::Serialize + ?Sized>(value: &T) -> String {
    let digest = Sha256::digest(json(value));
    let start = digest.iter().take(8).fold(0, |sum, byte| sum << 8 | u64::from(*byte));
    format!("secret, sha256 {start:016x}")
}
