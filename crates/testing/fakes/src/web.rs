//! Documents by their URL, as the test puts them there.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use ports::fetch::{Fetch, Fetched};

/// A web of documents; what is not there is refused with 404.
#[derive(Debug, Default)]
pub struct FakeWeb(Mutex<Web>);

#[derive(Debug, Default)]
struct Web {
    /// `None`: never answers.
    documents: BTreeMap<String, Option<(u16, String)>>,
    asked: Vec<(String, Vec<(String, String)>)>,
}

impl FakeWeb {
    fn web(&self) -> MutexGuard<'_, Web> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is at this URL from now on.
    pub fn put(&self, url: &str, text: &str) {
        self.answer(url, 200, text);
    }

    /// From now on this URL is answered with this status code.
    pub fn answer(&self, url: &str, code: u16, text: &str) {
        self.web().documents.insert(url.to_owned(), Some((code, text.to_owned())));
    }

    /// From now on this URL is never answered.
    pub fn hang(&self, url: &str) {
        self.web().documents.insert(url.to_owned(), None);
    }

    /// URLs that were asked for, with the headers of the request.
    #[must_use]
    pub fn asked(&self) -> Vec<(String, Vec<(String, String)>)> {
        self.web().asked.clone()
    }
}

#[async_trait]
impl Fetch for FakeWeb {
    async fn get(&self, url: &str, headers: &[(String, String)], limit: usize) -> Result<Fetched, String> {
        let found = {
            let mut web = self.web();
            web.asked.push((url.to_owned(), headers.to_vec()));
            web.documents.get(url).cloned()
        };
        let Some(found) = found else { return Ok(Fetched { code: 404, body: Bytes::new() }) };
        let Some((code, text)) = found else { return std::future::pending().await };
        let mut body = Bytes::from(text);
        body.truncate(limit + 1);
        Ok(Fetched { code, body })
    }
}
