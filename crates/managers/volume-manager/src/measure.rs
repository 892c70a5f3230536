//! Counts operations on volumes (book interfaces.md 5.1).

use std::time::Instant;

use metrics::volumes::{STORAGE_OPERATION, VOLUME_OPERATION};

/// Runs an operation on a volume whose kind has this directory name. Time is real: the work blocks a thread.
pub(crate) fn counted<T, E>(
    operation: &str,
    plugin: Option<&str>,
    work: impl FnOnce() -> Result<T, E>,
) -> Result<T, E> {
    let began = Instant::now();
    let result = work();
    if let Some(plugin) = plugin {
        let (plugin, seconds) = (plugin.replacen('~', "/", 1), began.elapsed().as_secs_f64());
        let status = if result.is_ok() { "success" } else { "fail-unknown" };
        STORAGE_OPERATION.with_label_values(&["false", operation, status, &plugin]).observe(seconds);
        if result.is_ok() {
            VOLUME_OPERATION.with_label_values(&[operation, &plugin]).observe(seconds);
        }
    }
    result
}
