//! gRPC statuses as the port's errors.

use std::error::Error;

use ports::runtime::{RuntimeCode, RuntimeError};
use tonic::{Code, Status};

/// Turns a status into our error.
///
/// A status that this process made itself (it has a source) is a fault of the connection, whatever code the library
/// picked: callers must see one code, `Unavailable`, for "the runtime is not there".
pub(crate) fn error(status: &Status) -> RuntimeError {
    if status.source().is_some() && status.code() != Code::Unimplemented {
        return RuntimeError::new(RuntimeCode::Unavailable, chain(status));
    }
    let code = match status.code() {
        // How tonic refuses a message over the limit; the protocol's word for that is ResourceExhausted.
        Code::OutOfRange if status.message().contains("message length too large") => RuntimeCode::ResourceExhausted,
        other => code(other),
    };
    RuntimeError::new(code, status.message())
}

fn code(code: Code) -> RuntimeCode {
    match code {
        Code::Ok | Code::Unknown => RuntimeCode::Unknown,
        Code::Cancelled => RuntimeCode::Cancelled,
        Code::InvalidArgument => RuntimeCode::InvalidArgument,
        Code::DeadlineExceeded => RuntimeCode::DeadlineExceeded,
        Code::NotFound => RuntimeCode::NotFound,
        Code::AlreadyExists => RuntimeCode::AlreadyExists,
        Code::PermissionDenied => RuntimeCode::PermissionDenied,
        Code::ResourceExhausted => RuntimeCode::ResourceExhausted,
        Code::FailedPrecondition => RuntimeCode::FailedPrecondition,
        Code::Aborted => RuntimeCode::Aborted,
        Code::OutOfRange => RuntimeCode::OutOfRange,
        Code::Unimplemented => RuntimeCode::Unimplemented,
        Code::Internal => RuntimeCode::Internal,
        Code::Unavailable => RuntimeCode::Unavailable,
        Code::DataLoss => RuntimeCode::DataLoss,
        Code::Unauthenticated => RuntimeCode::Unauthenticated,
    }
}

/// The message and the innermost causes; the library's own words for the outer layers say nothing.
fn chain(status: &Status) -> String {
    let mut causes = Vec::new();
    let mut next = status.source();
    while let Some(e) = next {
        causes.push(e.to_string());
        next = e.source();
    }
    match causes.pop() {
        Some(innermost) => format!("connection error: {innermost}"),
        None => status.message().to_owned(),
    }
}
