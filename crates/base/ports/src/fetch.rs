//! Getting a document by its URL (`staticPodURL`).

use async_trait::async_trait;
use bytes::Bytes;

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// HTTP status code.
    pub code: u16,
    /// Body, at most as long as was asked for and one byte more.
    pub body: Bytes,
}

/// Gets URLs. Certificates are verified; redirects are followed as usual.
#[async_trait]
pub trait Fetch: Send + Sync + 'static {
    /// One GET. Reads the body up to `limit` bytes and one more, so that a longer one is noticed. The caller sets the time
    /// limit by dropping the future.
    ///
    /// # Errors
    /// No answer; the text is for people.
    async fn get(&self, url: &str, headers: &[(String, String)], limit: usize) -> Result<Fetched, String>;
}
