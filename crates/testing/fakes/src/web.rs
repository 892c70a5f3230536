//! Documents by their URL, as the test puts them there.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use ports::fetch::{Fetch, Fetched};

/// A web of documents; what is not there is refused with 404.
#[derive(Debug, Default)]
pub struct FakeWeb(Mutex<BTreeMap<String, String>>);

impl FakeWeb {
    /// What is at this URL from now on.
    pub fn put(&self, url: &str, text: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(url.to_owned(), text.to_owned());
    }
}

#[async_trait]
impl Fetch for FakeWeb {
    async fn get(&self, url: &str, _headers: &[(String, String)], limit: usize) -> Result<Fetched, String> {
        let found = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(url).cloned();
        let Some(text) = found else { return Ok(Fetched { code: 404, body: Bytes::new() }) };
        let mut body = Bytes::from(text);
        body.truncate(limit + 1);
        Ok(Fetched { code: 200, body })
    }
}
