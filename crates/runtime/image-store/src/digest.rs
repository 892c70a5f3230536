//! Digests of content.

use std::fmt;
use std::io::{self, Read};
use std::str::FromStr;

use ring::digest::{Context, SHA256};
use serde::{Deserialize, Serialize};

/// SHA-256 of content: `sha256:` and 64 hexadecimal digits. Registries serve no other in practice, and a second algorithm
/// would be a second name for the same content.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest([u8; 32]);

/// Why a text is no digest that is known here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no sha256 digest")]
pub struct BadDigest(String);

impl Digest {
    /// Of these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Hasher::new().and(bytes).finish()
    }

    /// Of all that a reader gives, and how much that was.
    ///
    /// # Errors
    /// Reading failed.
    pub fn of_reader(mut source: impl Read) -> io::Result<(Self, u64)> {
        let (mut hasher, mut length) = (Hasher::new(), 0);
        let mut buffer = vec![0; 128 << 10];
        loop {
            match source.read(&mut buffer)? {
                0 => return Ok((hasher.finish(), length)),
                read => {
                    hasher.update(&buffer[..read]);
                    length += read as u64;
                }
            }
        }
    }

    /// The 64 digits alone.
    #[must_use]
    pub fn hex(&self) -> String {
        self.0.iter().map(|b| format!("{b:02x}")).collect()
    }

    /// By its 64 digits alone.
    #[must_use]
    pub fn from_hex(hex: &str) -> Option<Self> {
        let lower = hex.len() == 64 && hex.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        let mut bytes = [0; 32];
        for (at, byte) in bytes.iter_mut().enumerate().take(if lower { 32 } else { 0 }) {
            *byte = u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).ok()?;
        }
        lower.then_some(Self(bytes))
    }

    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// Content that comes in pieces.
pub struct Hasher(Context);

impl Hasher {
    /// Of nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self(Context::new(&SHA256))
    }

    /// Takes more.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn and(mut self, bytes: &[u8]) -> Self {
        self.update(bytes);
        self
    }

    /// Of all that came.
    #[must_use]
    pub fn finish(self) -> Digest {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(self.0.finish().as_ref());
        Digest(bytes)
    }
}

impl Default for Hasher {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Hasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hasher")
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Digest {
    type Err = BadDigest;

    fn from_str(text: &str) -> Result<Self, BadDigest> {
        text.strip_prefix("sha256:").and_then(Self::from_hex).ok_or_else(|| BadDigest(text.chars().take(100).collect()))
    }
}

impl TryFrom<String> for Digest {
    type Error = BadDigest;

    fn try_from(text: String) -> Result<Self, BadDigest> {
        text.parse()
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.to_string()
    }
}

/// A layer together with all below it (OCI image-spec, config.md): two images share an unpacked layer when they share this.
pub type ChainId = Digest;

/// The chain ids of layers, lowest first, as their diff ids come.
#[must_use]
pub fn chain_ids(diff_ids: &[Digest]) -> Vec<ChainId> {
    let mut chain: Vec<ChainId> = Vec::with_capacity(diff_ids.len());
    for diff_id in diff_ids {
        chain.push(match chain.last() {
            None => *diff_id,
            Some(below) => Digest::of(format!("{below} {diff_id}").as_bytes()),
        });
    }
    chain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_text_of_one_form() {
        let text = format!("sha256:{}", "0a".repeat(32));
        assert_eq!(text.parse::<Digest>().unwrap().to_string(), text);
        for bad in [
            "",
            "sha256:",
            &text.to_uppercase(),
            &text[7..],
            &format!("{text}0"),
            &text.replace("256", "512"),
            "sha256:é",
        ] {
            assert!(bad.parse::<Digest>().is_err(), "{bad}");
        }
        assert_eq!(Digest::of(b"").hex(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    }

    /// The example of the specification is checked by every builder; ours by its rule.
    #[test]
    fn a_chain_id_says_all_that_lies_below() {
        let diffs = [b"a", b"b", b"c"].map(|t| Digest::of(t));
        let chain = chain_ids(&diffs);
        assert_eq!(chain[0], diffs[0]);
        assert_eq!(chain[1], Digest::of(format!("{} {}", diffs[0], diffs[1]).as_bytes()));
        assert_eq!(chain[2], Digest::of(format!("{} {}", chain[1], diffs[2]).as_bytes()));
        assert_ne!(chain_ids(&[diffs[1], diffs[0]])[1], chain[1]);
        assert!(chain_ids(&[]).is_empty());
    }
}
