//! Names of log directories and files (pod-lifecycle 5.1, 5.2).

use model::core::Pod;
use model::pod;

/// Longest file name that ext4 takes, in bytes.
const MAX_FILE_NAME: usize = 255;
const SUFFIX: &str = ".log";

/// `<ns>_<name>_<uid>`: name of a pod's directory below the pod log root.
#[must_use]
pub fn pod_log_dir_name(pod: &Pod) -> String {
    format!("{}_{}_{}", pod::namespace(pod), pod::name(pod), pod::uid(pod))
}

/// `<root>/<ns>_<name>_<uid>`: the sandbox's `log_directory`.
#[must_use]
pub fn pod_log_dir(root: &str, pod: &Pod) -> String {
    format!("{}/{}", root.trim_end_matches('/'), pod_log_dir_name(pod))
}

/// `<pod log dir>/<container>`.
#[must_use]
pub fn container_log_dir(root: &str, pod: &Pod, container: &str) -> String {
    format!("{}/{container}", pod_log_dir(root, pod))
}

/// `<container>/<restart count>.log`: the CRI `log_path`, relative to the sandbox's `log_directory`.
#[must_use]
pub fn log_path(container: &str, restart_count: u32) -> String {
    format!("{container}/{restart_count}{SUFFIX}")
}

/// File name of the legacy symlink in `/var/log/containers`: `<pod>_<ns>_<container>-<id>.log`, cut to 255 bytes.
#[must_use]
pub fn symlink_name(pod: &Pod, container: &str, id: &str) -> String {
    let mut base = format!("{}_{container}-{id}", pod::full_name(pod));
    let mut cut = base.len().min(MAX_FILE_NAME - SUFFIX.len());
    while !base.is_char_boundary(cut) {
        cut -= 1;
    }
    base.truncate(cut);
    base.push_str(SUFFIX);
    base
}

/// Restart count for a container of which the runtime knows no instance, from the names of the *files* in its log
/// directory: one more than the highest `N` of `N.log` and `N.log.<anything>`, 0 when there is none.
#[must_use]
pub fn next_restart_count<I>(files: I) -> u32
where
    I: IntoIterator,
    I::Item: AsRef<str>,
{
    files.into_iter().filter_map(|f| log_number(f.as_ref())).map(|n| n.saturating_add(1)).max().unwrap_or(0)
}

fn log_number(file: &str) -> Option<u32> {
    let (number, _) = file.split_once(SUFFIX)?;
    if number.is_empty() || !number.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    number.parse().ok()
}
