//! One request to the API server.

use std::time::Duration;

use bytes::Bytes;

/// HTTP method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "named after the methods")]
pub enum Method {
    Get,
    Post,
    Put,
    Patch(PatchKind),
    Delete,
}

/// Content type of a patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchKind {
    /// `application/strategic-merge-patch+json`.
    Strategic,
    /// `application/merge-patch+json`.
    Merge,
}

/// Which client-side limits hold (interfaces 9.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lane {
    /// `kubeAPIQPS` / `kubeAPIBurst`.
    #[default]
    Main,
    /// `eventRecordQPS` / `eventBurst`.
    Events,
    /// Node status and lease: never throttled.
    Heartbeat,
}

/// One request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Method.
    pub method: Method,
    /// Absolute path, e.g. `/api/v1/namespaces/default/pods/web/status`; segments are escaped already.
    pub path: String,
    /// Query parameters, not escaped yet.
    pub query: Vec<(String, String)>,
    /// JSON body; empty: none.
    pub body: Bytes,
    /// Limits that hold for it.
    pub lane: Lane,
    /// How long to wait for the whole answer, throttling included.
    pub deadline: Duration,
}

impl Request {
    /// A request without query and body, on the main lane.
    #[must_use]
    pub fn new(method: Method, path: impl Into<String>) -> Self {
        Self {
            method,
            path: path.into(),
            query: Vec::new(),
            body: Bytes::new(),
            lane: Lane::Main,
            deadline: super::DEFAULT_DEADLINE,
        }
    }

    /// Adds a query parameter.
    #[must_use]
    pub fn query(mut self, key: &str, value: impl Into<String>) -> Self {
        self.query.push((key.to_owned(), value.into()));
        self
    }

    /// Sets the JSON body.
    #[must_use]
    pub fn body(mut self, json: impl Into<Bytes>) -> Self {
        self.body = json.into();
        self
    }

    /// Sends it on another lane.
    #[must_use]
    pub fn lane(mut self, lane: Lane) -> Self {
        self.lane = lane;
        self
    }

    /// Sets the deadline.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }
}

/// What must still hold when an object is deleted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preconditions {
    /// The object's UID.
    pub uid: Option<String>,
    /// `gracePeriodSeconds`.
    pub grace_s: Option<i64>,
}
