//! gRPC statuses as the port's errors.

use ports::runtime::RuntimeError;
use tonic::Status;

/// Turns a status into our error.
pub(crate) fn error(status: &Status) -> RuntimeError {
    let (code, message) = grpc::read(status);
    RuntimeError::new(code, message)
}
