//! The node's configuration: a KubeletConfiguration v1beta1 file to plain typed values (interfaces chapter 1).
//!
//! Owns: defaults, types, ranges, cross-field rules, and honest answers about fields that bosun does not use yet. Every field
//! of v1beta1 is known by name and checked for its type. All mistakes of a file are reported together. Knows nothing of the
//! command line: flags are written over the result by the app.

#![forbid(unsafe_code)]

mod config;
mod document;
mod error;
pub mod feature_gates;
mod fields;
pub mod go_duration;
mod nearest;
mod read;
mod reader;

#[cfg(test)]
mod tests;

pub use config::{CgroupDriver, Enforce, LogFormat, NodeConfig, Reserved, SwapBehavior};
pub use error::{ConfigError, ConfigErrors, Warning};

use std::path::Path;

/// Reads and checks a configuration file. Relative paths in it are resolved against its folder.
///
/// # Errors
/// Everything that is wrong with the file, together: unreadable, empty, not YAML or JSON, another kind, wrong types, values
/// that are not allowed, fields that contradict each other.
pub fn load(path: &Path) -> Result<(NodeConfig, Vec<Warning>), ConfigErrors> {
    let refuse = |reason: String| ConfigErrors::new(path, vec![ConfigError::whole_file(reason)]);
    let bytes = std::fs::read(path).map_err(|e| refuse(format!("cannot be read: {e}")))?;
    let text = String::from_utf8(bytes).map_err(|e| {
        refuse(format!("is not UTF-8: byte {} is not part of a character", e.utf8_error().valid_up_to()))
    })?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    parse(&text, &folder).map_err(|errors| ConfigErrors::new(path, errors))
}

/// As [`load`], for text that is in memory already. `folder` is where relative paths start.
///
/// # Errors
/// As [`load`], without the file's name.
pub fn parse(text: &str, folder: &Path) -> Result<(NodeConfig, Vec<Warning>), Vec<ConfigError>> {
    let mut warnings = Vec::new();
    let document = document::parse(text, &mut warnings).map_err(|e| vec![e])?;
    read::read(document, folder, warnings)
}
