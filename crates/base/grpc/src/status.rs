//! gRPC statuses as codes and words of ours.

use std::error::Error;

use ports::grpc::Code;
use tonic::Status;

/// Code and words of a status.
///
/// A status that this process made itself (it has a source) is a fault of the connection, whatever code the library
/// picked: callers must see one code, `Unavailable`, for "the server is not there".
#[must_use]
pub fn read(status: &Status) -> (Code, String) {
    if status.source().is_some() && status.code() != tonic::Code::Unimplemented {
        return (Code::Unavailable, chain(status));
    }
    let code = match status.code() {
        // How tonic refuses a message over the limit; the protocol's word for that is ResourceExhausted.
        tonic::Code::OutOfRange if status.message().contains("message length too large") => Code::ResourceExhausted,
        other => code(other),
    };
    (code, status.message().to_owned())
}

fn code(code: tonic::Code) -> Code {
    match code {
        tonic::Code::Ok | tonic::Code::Unknown => Code::Unknown,
        tonic::Code::Cancelled => Code::Cancelled,
        tonic::Code::InvalidArgument => Code::InvalidArgument,
        tonic::Code::DeadlineExceeded => Code::DeadlineExceeded,
        tonic::Code::NotFound => Code::NotFound,
        tonic::Code::AlreadyExists => Code::AlreadyExists,
        tonic::Code::PermissionDenied => Code::PermissionDenied,
        tonic::Code::ResourceExhausted => Code::ResourceExhausted,
        tonic::Code::FailedPrecondition => Code::FailedPrecondition,
        tonic::Code::Aborted => Code::Aborted,
        tonic::Code::OutOfRange => Code::OutOfRange,
        tonic::Code::Unimplemented => Code::Unimplemented,
        tonic::Code::Internal => Code::Internal,
        tonic::Code::Unavailable => Code::Unavailable,
        tonic::Code::DataLoss => Code::DataLoss,
        tonic::Code::Unauthenticated => Code::Unauthenticated,
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
