//! Errors of calls to the runtime.

use std::fmt;

use crate::grpc::Code as RuntimeCode;

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
        self.code.go_text(&self.message)
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
    use super::RuntimeError;
    use crate::runtime::RuntimeCode;

    #[test]
    fn shows_the_description_alone_and_the_go_form_on_demand() {
        let e = RuntimeError::new(RuntimeCode::NotFound, "no such thing");
        assert_eq!(e.to_string(), "no such thing");
        assert_eq!(e.go_text(), "rpc error: code = NotFound desc = no such thing");
        assert!(e.is_not_found() && !e.is_unavailable() && !e.is_unimplemented());
    }
}
