//! Watches: from a version or from the whole, with bookmarks, until their time is over.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use fakes::api::{Change, Event, FieldSelector, Target};
use futures::stream;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use hyper::{Response, StatusCode};
use ports::api::ApiError;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::reply::{self, Body};
use crate::state::Shared;

/// How long a watch lives that names no time.
const LIFE: Duration = Duration::from_secs(1800);
const FLUSH: Duration = Duration::from_millis(5);

struct Watch {
    shared: Arc<Shared>,
    target: Target,
    fields: FieldSelector,
    version: u64,
    changed: actor::watch::Receiver<u64>,
    ready: VecDeque<Value>,
    ends: Instant,
    bookmarks: Option<Instant>,
    sent: u64,
    over: bool,
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.shared.with(|s| s.open -= 1);
    }
}

fn parameter<'a>(query: &'a [(String, String)], key: &str) -> &'a str {
    query.iter().find(|(k, _)| k == key).map_or("", |(_, v)| v.as_str())
}

pub(crate) fn answer(shared: &Arc<Shared>, path: &str, query: &[(String, String)]) -> Response<Body> {
    let Some(target) = Target::parse(path) else {
        return reply::failure(&ApiError::status(404, "NotFound", "the server could not find the requested resource"));
    };
    let fields = FieldSelector::parse(parameter(query, "fieldSelector"));
    let life = parameter(query, "timeoutSeconds").parse().map_or(LIFE, Duration::from_secs);
    let changed = shared.api.changes();
    let every = shared.with(|s| s.watch.bookmark_every);
    let bookmarks = (parameter(query, "allowWatchBookmarks") == "true").then(|| Instant::now() + every);
    let mut watch = Watch {
        shared: shared.clone(),
        version: 0,
        changed,
        ready: VecDeque::new(),
        ends: Instant::now() + life,
        bookmarks,
        sent: 0,
        over: false,
        target,
        fields,
    };
    shared.with(|s| {
        s.watches.push(parameter(query, "resourceVersion").to_owned());
        s.open += 1;
    });
    watch.begin(query);
    let lines = stream::unfold(watch, |mut watch| async move {
        let line = watch.next().await?;
        Some((line, watch))
    });
    let mut answer = Response::new(BodyExt::boxed(StreamBody::new(lines)));
    *answer.status_mut() = StatusCode::OK;
    answer
}

fn event(kind: &str, object: &Value) -> Value {
    json!({ "type": kind, "object": object })
}

impl Watch {
    fn begin(&mut self, query: &[(String, String)]) {
        let from = parameter(query, "resourceVersion");
        let initial = parameter(query, "sendInitialEvents") == "true";
        if initial || matches!(from, "" | "0") {
            let api = self.shared.api.clone();
            let (all, version) = api.peek(|s| (s.list(&self.target, &self.fields), s.version()));
            self.version = version;
            self.ready.extend(all.iter().map(|object| event("ADDED", object)));
            if initial {
                let end = json!({ "k8s.io/initial-events-end": "true" });
                self.ready.push_back(self.bookmark(Some(end)));
            }
        } else {
            self.version = from.parse().unwrap_or(0);
        }
        let (expired, garbage) = self.shared.with(|s| {
            let (expired, garbage) = (s.watch.expire > 0, s.watch.garbage > 0);
            s.watch.expire = s.watch.expire.saturating_sub(1);
            s.watch.garbage = s.watch.garbage.saturating_sub(1);
            (expired, garbage)
        });
        if expired {
            self.fail(&ApiError::status(410, "Expired", "too old resource version"));
        }
        if garbage {
            self.ready.push_front(Value::String("garbage".to_owned()));
        }
    }

    fn fail(&mut self, error: &ApiError) {
        self.ready.clear();
        self.ready.push_back(event("ERROR", &reply::status(error)));
        self.over = true;
    }

    fn bookmark(&self, annotations: Option<Value>) -> Value {
        let mut object = json!({
            "kind": self.target.kind(),
            "apiVersion": self.target.group_version,
            "metadata": { "resourceVersion": self.version.to_string(), "creationTimestamp": null },
        });
        if let Some(annotations) = annotations {
            object["metadata"]["annotations"] = annotations;
        }
        event("BOOKMARK", &object)
    }

    async fn next(&mut self) -> Option<Result<Frame<Bytes>, io::Error>> {
        loop {
            let trouble = self.shared.with(|s| s.watch.clone());
            if trouble.silent {
                // As a peer that is gone.
                return std::future::pending().await;
            }
            if trouble.cut_after.is_some_and(|n| self.sent >= n) {
                // What was sent leaves the buffers first.
                tokio::time::sleep(FLUSH).await;
                return Some(Err(io::Error::new(io::ErrorKind::ConnectionReset, "cut by the test")));
            }
            if let Some(line) = self.ready.pop_front() {
                self.sent += 1;
                let text = if line == "garbage" { "}{ no json\n".to_owned() } else { format!("{line}\n") };
                return Some(Ok(Frame::data(Bytes::from(text))));
            }
            if self.over {
                return None;
            }
            self.changed.borrow_and_update();
            self.look(trouble.twice, trouble.reversed);
            if self.ready.is_empty() {
                if Instant::now() >= self.ends {
                    return None;
                }
                self.wait(trouble.bookmark_every).await;
            }
        }
    }

    fn look(&mut self, twice: bool, reversed: bool) {
        let api = self.shared.api.clone();
        let looked = api.peek(|s| (s.changes(&self.target, &self.fields, self.version), s.version()));
        let (changes, version) = match looked {
            (Ok(changes), version) => (changes, version),
            (Err(error), _) => return self.fail(&error),
        };
        // A version from the future: nothing until the store has come so far.
        self.version = self.version.max(version);
        let line = |change: &Change| match change.event {
            Event::Added => event("ADDED", &change.object),
            Event::Modified => event("MODIFIED", &change.object),
            Event::Deleted => event("DELETED", &change.object),
        };
        let lines = changes.iter().map(line).flat_map(|line| std::iter::repeat_n(line, if twice { 2 } else { 1 }));
        let mut lines: Vec<_> = lines.collect();
        if reversed {
            lines.reverse();
        }
        self.ready.extend(lines);
    }

    async fn wait(&mut self, every: Duration) {
        let until = self.bookmarks.map_or(self.ends, |at| at.min(self.ends));
        tokio::select! {
            // The sender lives in `shared`.
            _ = self.changed.changed() => {}
            () = tokio::time::sleep_until(until) => {
                if self.bookmarks.is_some_and(|at| at <= Instant::now()) {
                    self.bookmarks = Some(Instant::now() + every);
                    self.ready.push_back(self.bookmark(None));
                    self.shared.with(|s| s.bookmarks += 1);
                }
            }
        }
    }
}
