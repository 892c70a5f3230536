//! Errors of calls to the runtime.

use std::fmt;

/// gRPC status codes other than OK.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub enum RuntimeCode {
    Cancelled,
    Unknown,
    InvalidArgument,
    /// Our deadline ran out, or the runtime's.
    DeadlineExceeded,
    /// No such container, sandbox or image.
    NotFound,
    AlreadyExists,
    PermissionDenied,
    /// Also: an answer larger than 16 MiB, too many streaming tokens.
    ResourceExhausted,
    FailedPrecondition,
    Aborted,
    OutOfRange,
    /// The runtime does not know this call.
    Unimplemented,
    Internal,
    /// Not connected.
    Unavailable,
    DataLoss,
    Unauthenticated,
}

impl RuntimeCode {
    /// Name as gRPC libraries print it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cancelled => "Canceled",
            Self::Unknown => "Unknown",
            Self::InvalidArgument => "InvalidArgument",
            Self::DeadlineExceeded => "DeadlineExceeded",
            Self::NotFound => "NotFound",
            Self::AlreadyExists => "AlreadyExists",
            Self::PermissionDenied => "PermissionDenied",
            Self::ResourceExhausted => "ResourceExhausted",
            Self::FailedPrecondition => "FailedPrecondition",
            Self::Aborted => "Aborted",
            Self::OutOfRange => "OutOfRange",
            Self::Unimplemented => "Unimplemented",
            Self::Internal => "Internal",
            Self::Unavailable => "Unavailable",
            Self::DataLoss => "DataLoss",
            Self::Unauthenticated => "Unauthenticated",
        }
    }
}

/// A failed call. Displays the runtime's own words only: they go into events and statuses verbatim.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RuntimeError {
    /// Kind of failure.
    pub code: RuntimeCode,
    /// The runtime's description.
    pub message: String,
}

impl RuntimeError {
    /// Makes an error.
    #[must_use]
    pub fn new(code: RuntimeCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// The thing asked about is gone.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.code == RuntimeCode::NotFound
    }

    /// The runtime lacks this call.
    #[must_use]
    pub fn is_unimplemented(&self) -> bool {
        self.code == RuntimeCode::Unimplemented
    }

    /// The runtime is not there.
    #[must_use]
    pub fn is_unavailable(&self) -> bool {
        self.code == RuntimeCode::Unavailable
    }

    /// As a Go client prints it (`rpc error: code = NotFound desc = ...`), for texts that a kubelet writes in that form.
    #[must_use]
    pub fn go_text(&self) -> String {
        format!("rpc error: code = {} desc = {}", self.code.as_str(), self.message)
    }
}

impl fmt::Display for RuntimeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for RuntimeError {}

#[cfg(test)]
mod tests {
    use super::{RuntimeCode, RuntimeError};

    #[test]
    fn shows_the_description_alone_and_the_go_form_on_demand() {
        let e = RuntimeError::new(RuntimeCode::NotFound, "no such thing");
        assert_eq!(e.to_string(), "no such thing");
        assert_eq!(e.go_text(), "rpc error: code = NotFound desc = no such thing");
        assert!(e.is_not_found() && !e.is_unavailable() && !e.is_unimplemented());
    }
}
