//! Paths inside of a volume.

#[cfg(test)]
mod tests;

/// Longest path, in bytes.
const PATH_MAX: usize = 4096;
/// Longest component, in bytes.
const NAME_MAX: usize = 255;

/// Why a path cannot be written. Displays as a kubelet prints it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PathError {
    /// Nothing.
    #[error("invalid path: must not be empty: \"\"")]
    Empty,
    /// Begins at the root.
    #[error("invalid path: must be relative path: {0}")]
    Absolute(String),
    /// Longer than the system takes.
    #[error("invalid path: must be less than or equal to {PATH_MAX} characters")]
    TooLong,
    /// Leads out of the volume.
    #[error("invalid path: must not contain '..': {0}")]
    Backsteps(String),
    /// A component is longer than the system takes.
    #[error("invalid path: filenames must be less than or equal to {NAME_MAX} characters")]
    NameTooLong,
    /// Would meet the writer's own names.
    #[error("invalid path: must not start with '..': {0}")]
    Reserved(String),
    /// A file is where a directory must be.
    #[error("invalid path: {0} is below the file {1}")]
    BelowFile(String, String),
}

/// Whether a file may be written at this path.
///
/// # Errors
/// See [`PathError`].
pub(crate) fn check(path: &str) -> Result<(), PathError> {
    if path.is_empty() {
        return Err(PathError::Empty);
    }
    if path.starts_with('/') {
        return Err(PathError::Absolute(path.to_owned()));
    }
    if path.len() > PATH_MAX {
        return Err(PathError::TooLong);
    }
    for part in path.split('/') {
        if part == ".." {
            return Err(PathError::Backsteps(path.to_owned()));
        }
        if part.len() > NAME_MAX {
            return Err(PathError::NameTooLong);
        }
    }
    if path.starts_with("..") {
        return Err(PathError::Reserved(path.to_owned()));
    }
    Ok(())
}

/// The shortest spelling of a path: without empty and `.` components, `..` taken back where there is something to take.
#[must_use]
pub fn clean(path: &str) -> String {
    let rooted = path.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|p| *p != "..") => {
                parts.pop();
            }
            ".." if rooted => {}
            other => parts.push(other),
        }
    }
    match (rooted, parts.is_empty()) {
        (true, _) => format!("/{}", parts.join("/")),
        (false, true) => ".".to_owned(),
        (false, false) => parts.join("/"),
    }
}
