//! What gRPC calls of any kind have in common.

/// gRPC status codes other than OK.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub enum Code {
    Cancelled,
    Unknown,
    InvalidArgument,
    /// Our deadline ran out, or the server's.
    DeadlineExceeded,
    /// What was asked about is not there.
    NotFound,
    AlreadyExists,
    PermissionDenied,
    /// Also: an answer larger than what is accepted; of a runtime, too many streaming tokens.
    ResourceExhausted,
    FailedPrecondition,
    Aborted,
    OutOfRange,
    /// The server does not know this call.
    Unimplemented,
    Internal,
    /// Not connected.
    Unavailable,
    DataLoss,
    Unauthenticated,
}

impl Code {
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

    /// As a Go client prints an error of this code: `rpc error: code = NotFound desc = ...`.
    #[must_use]
    pub fn go_text(self, description: &str) -> String {
        format!("rpc error: code = {} desc = {description}", self.as_str())
    }
}
