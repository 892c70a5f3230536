//! Why a request to the API server failed.

use std::time::Duration;

/// Failure of one request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApiError {
    /// The server answered with a failure (`metav1.Status`).
    #[error("{message}")]
    Status {
        /// HTTP status code.
        code: u16,
        /// CamelCase reason, e.g. `NotFound`, `Conflict`, `AlreadyExists`, `Expired`; may be empty.
        reason: String,
        /// Text of the server.
        message: String,
        /// `Retry-After`, where the server sent one.
        retry_after: Option<Duration>,
    },
    /// No connection: refused, reset, TLS, name resolution.
    #[error("{message}")]
    Unreachable {
        /// Text for people.
        message: String,
    },
    /// No answer within the deadline.
    #[error("no answer within {after:?}")]
    TimedOut {
        /// The deadline.
        after: Duration,
    },
    /// An answer that cannot be decoded.
    #[error("undecodable answer: {message}")]
    Garbage {
        /// What is wrong with it.
        message: String,
    },
    /// This node has no credentials yet (bootstrap under way) or no API server (standalone).
    #[error("{message}")]
    NotReady {
        /// What is missing.
        message: String,
    },
}

impl ApiError {
    /// A failure with a code and a reason, as servers send it.
    #[must_use]
    pub fn status(code: u16, reason: &str, message: impl Into<String>) -> Self {
        Self::Status { code, reason: reason.to_owned(), message: message.into(), retry_after: None }
    }

    /// HTTP status code of an answered failure.
    #[must_use]
    pub const fn code(&self) -> Option<u16> {
        match self {
            Self::Status { code, .. } => Some(*code),
            _ => None,
        }
    }

    fn has_reason(&self, wanted: &str) -> bool {
        matches!(self, Self::Status { reason, .. } if reason == wanted)
    }

    /// 404.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.code() == Some(404)
    }

    /// 409 because the object exists already.
    #[must_use]
    pub fn is_already_exists(&self) -> bool {
        self.code() == Some(409) && self.has_reason("AlreadyExists")
    }

    /// 409 for another cause: resource version or precondition.
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        self.code() == Some(409) && !self.has_reason("AlreadyExists")
    }

    /// 403.
    #[must_use]
    pub fn is_forbidden(&self) -> bool {
        self.code() == Some(403)
    }

    /// 401.
    #[must_use]
    pub fn is_unauthorized(&self) -> bool {
        self.code() == Some(401)
    }

    /// 410: the resource version is too old.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.code() == Some(410)
    }

    /// The same request may succeed later: nothing is wrong with the request itself.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Status { code, .. } => matches!(code, 408 | 429 | 500..=599),
            Self::Unreachable { .. } | Self::TimedOut { .. } | Self::Garbage { .. } | Self::NotReady { .. } => true,
        }
    }

    /// How long the server asks to wait.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Status { retry_after, .. } => *retry_after,
            _ => None,
        }
    }
}
