//! One request to the API server.

use std::time::Duration;

use bytes::Bytes;

/// Limits how long a caller waits when it names no deadline of its own.
pub const DEFAULT_DEADLINE: Duration = Duration::from_secs(30);

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

/// Which client-side rate limit holds (interfaces 9.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Throttle {
    /// `kubeAPIQPS` / `kubeAPIBurst`.
    #[default]
    Main,
    /// `eventRecordQPS` / `eventBurst`.
    Events,
    /// None: node status and lease.
    Unlimited,
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
    /// The rate limit that holds for it.
    pub throttle: Throttle,
    /// How long to wait for the whole answer, throttling included.
    pub deadline: Duration,
}

impl Request {
    /// A request without query and body, under the common rate limit.
    #[must_use]
    pub fn new(method: Method, path: impl Into<String>) -> Self {
        Self {
            method,
            path: path.into(),
            query: Vec::new(),
            body: Bytes::new(),
            throttle: Throttle::Main,
            deadline: DEFAULT_DEADLINE,
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

    /// Puts it under another rate limit.
    #[must_use]
    pub fn throttle(mut self, throttle: Throttle) -> Self {
        self.throttle = throttle;
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
