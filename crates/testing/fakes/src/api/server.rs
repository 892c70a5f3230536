//! Requests and follows, as callers make them.

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use ports::api::{ApiError, ApiResult, ApiServer, Followed, Request, Selection};
use serde_json::Value;

use super::{Entry, FakeApi, follow};

#[async_trait]
impl ApiServer for FakeApi {
    async fn call(&self, request: Request) -> ApiResult<Bytes> {
        let body = match request.body.as_ref() {
            [] => Value::Null,
            text => serde_json::from_slice(text).map_err(|e| ApiError::status(400, "BadRequest", e.to_string()))?,
        };
        let entry = Entry { request: request.clone(), at: self.shared.began.elapsed(), failure: None, answered: false };
        let at = self.shared.with(|s| {
            s.log.push(entry);
            s.log.len() - 1
        });
        let answer = tokio::time::timeout(request.deadline, self.troubled(&request, body)).await;
        let answer = answer.unwrap_or(Err(ApiError::TimedOut { after: request.deadline }));
        self.shared.change(|s| {
            // The log may have been emptied meanwhile.
            if let Some(entry) = s.log.get_mut(at) {
                entry.answered = true;
                entry.failure = answer.as_ref().err().cloned();
            }
        });
        answer
    }

    fn follow(&self, selection: Selection) -> BoxStream<'static, Followed> {
        follow::follow(self, selection)
    }
}
