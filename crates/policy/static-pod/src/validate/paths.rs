//! Paths that may not lead out of where they start.

use super::faults::Faults;

/// A path inside a volume: given, relative, and never upwards.
pub(super) fn relative_path(path: &str, value: &str, faults: &mut Faults) {
    if value.is_empty() {
        faults.required(path, "");
        return;
    }
    if value.starts_with('/') {
        faults.invalid(path, value, "must be a relative path");
    }
    no_backsteps(path, value, faults);
    // Names that start with two dots are the volume's own.
    if value.starts_with("..") && !value.starts_with("../") && value != ".." {
        faults.invalid(path, value, "must not start with '..'");
    }
}

/// A path may not lead out of where it starts.
pub(super) fn no_backsteps(path: &str, value: &str, faults: &mut Faults) {
    if value.split('/').any(|part| part == "..") {
        faults.invalid(path, value, "must not contain '..'");
    }
}
