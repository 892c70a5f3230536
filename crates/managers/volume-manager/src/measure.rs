//! Counts operations on volumes and calls to drivers (interfaces 5.1).

use metrics::Stopwatch;
use metrics::volumes::{STORAGE_OPERATION, VOLUME_OPERATION, bool_label, observe_call};
use ports::csi::{CsiResult, grpc_code};

/// A volume that a pod wants is mounted.
pub(crate) const MOUNT: &str = "volume_mount";
/// What was mounted for all pods is unmounted, or unstaged.
pub(crate) const UNMOUNT_DEVICE: &str = "unmount_device";
/// A raw volume is unstaged, or let go.
pub(crate) const UNMAP_DEVICE: &str = "unmap_device";
/// The controller has attached a volume.
const ATTACHED: &str = "verify_controller_attached_volume";
/// Names of kinds.
pub(crate) const LOCAL_PLUGIN: &str = "kubernetes.io/local-volume";
pub(crate) const HOST_PATH_PLUGIN: &str = "kubernetes.io/host-path";
pub(crate) const NFS_PLUGIN: &str = "kubernetes.io/nfs";

/// Runs an operation on a volume whose kind has this directory name.
pub(crate) fn counted<T, E>(
    operation: &str,
    plugin: Option<&str>,
    work: impl FnOnce() -> Result<T, E>,
) -> Result<T, E> {
    let watch = Stopwatch::start();
    let result = work();
    if let Some(plugin) = plugin {
        count(operation, &plugin.replacen('~', "/", 1), &watch, result.is_ok());
    }
    result
}

/// Runs an operation on a volume of a driver. `is_migrated`: it is written as one of an in-tree kind.
pub(crate) async fn counted_of<T, E>(
    operation: &str,
    (driver, is_migrated): (&str, bool),
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    let watch = Stopwatch::start();
    let result = work.await;
    note(operation, &format!("kubernetes.io/csi:{driver}"), is_migrated, &watch, result.is_ok());
    result
}

/// Runs an operation on a volume of a kind.
pub(crate) async fn counted_as<T, E>(
    operation: &str,
    kind: &str,
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    let watch = Stopwatch::start();
    let result = work.await;
    count(operation, kind, &watch, result.is_ok());
    result
}

/// Counts that the Node says of a volume of a driver that it is attached.
pub(crate) fn attached((driver, is_migrated): (&str, bool), watch: &Stopwatch) {
    note(ATTACHED, &format!("kubernetes.io/csi:{driver}"), is_migrated, watch, true);
}

/// The same of a volume of a kind.
pub(crate) fn attached_as(kind: &str, watch: &Stopwatch) {
    count(ATTACHED, kind, watch, true);
}

fn count(operation: &str, plugin: &str, watch: &Stopwatch, is_ok: bool) {
    note(operation, plugin, false, watch, is_ok);
}

fn note(operation: &str, plugin: &str, is_migrated: bool, watch: &Stopwatch, is_ok: bool) {
    let (status, seconds) = (if is_ok { "success" } else { "fail-unknown" }, watch.seconds());
    STORAGE_OPERATION.with_label_values(&[bool_label(is_migrated), operation, status, plugin]).observe(seconds);
    if is_ok && operation == MOUNT {
        VOLUME_OPERATION.with_label_values(&["overall_volume_mount", plugin]).observe(seconds);
    }
}

/// Runs a call to a driver.
pub(crate) async fn call<T>(
    (driver, is_migrated): (&str, bool),
    method: &str,
    work: impl Future<Output = CsiResult<T>>,
) -> CsiResult<T> {
    let watch = Stopwatch::start();
    let answer = work.await;
    observe_call(driver, method, grpc_code(&answer), is_migrated, &watch);
    answer
}
