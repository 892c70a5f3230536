//! What a case finds.

use std::fmt;

/// Why a rule is not kept, in a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken(pub String);

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Broken {}

/// What a case finds.
pub type Outcome<T = ()> = Result<T, Broken>;

/// Finds that a rule is not kept unless `so`.
///
/// # Errors
/// When it is not so.
pub(crate) fn demand(so: bool, why: impl FnOnce() -> String) -> Outcome {
    if so { Ok(()) } else { Err(Broken(why())) }
}
