//! Errors of the runtime as the contract has them.

use contract::runtime::{CallError, CallErrorKind};
use ports::runtime::{RuntimeCode, RuntimeError};

/// The contract's error for a failed call.
pub(crate) fn call_error(e: RuntimeError) -> CallError {
    let kind = match e.code {
        RuntimeCode::NotFound => CallErrorKind::NotFound,
        RuntimeCode::Unimplemented => CallErrorKind::Unimplemented,
        RuntimeCode::DeadlineExceeded => CallErrorKind::Timeout,
        RuntimeCode::Unavailable => CallErrorKind::Unavailable,
        _ => CallErrorKind::Failed,
    };
    CallError { kind, message: e.message, code: e.code.as_str().to_owned() }
}
