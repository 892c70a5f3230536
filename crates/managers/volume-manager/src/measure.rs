//! Counts operations on volumes (interfaces 5.1).

use metrics::volumes::{STORAGE_OPERATION, VOLUME_OPERATION};

/// Runs an operation on a volume whose kind has this directory name.
pub(crate) fn counted<T, E>(
    operation: &str,
    plugin: Option<&str>,
    work: impl FnOnce() -> Result<T, E>,
) -> Result<T, E> {
    let watch = metrics::Stopwatch::start();
    let result = work();
    if let Some(plugin) = plugin {
        let (plugin, seconds) = (plugin.replacen('~', "/", 1), watch.seconds());
        let status = if result.is_ok() { "success" } else { "fail-unknown" };
        STORAGE_OPERATION.with_label_values(&["false", operation, status, &plugin]).observe(seconds);
        if result.is_ok() {
            VOLUME_OPERATION.with_label_values(&[operation, &plugin]).observe(seconds);
        }
    }
    result
}
