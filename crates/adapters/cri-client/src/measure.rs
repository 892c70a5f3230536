//! Counts calls (interfaces 5.1): each logical call once, whatever it takes to carry it out.

use std::future::Future;

use cri_api::v1::{NamespaceMode, PodSandboxConfig};
use metrics::actors::Phase;
use metrics::{pods, runtime};
use ports::runtime::RuntimeResult;
use tokio::time::Instant;

/// Counts a call under its `operation_type`.
pub(crate) async fn counted<T>(operation: &str, call: impl Future<Output = RuntimeResult<T>>) -> RuntimeResult<T> {
    runtime::OPERATIONS.with_label_values(&[operation]).inc();
    let began = Instant::now();
    let answer = call.await;
    let took = began.elapsed();
    runtime::DURATION.with_label_values(&[operation]).observe(took.as_secs_f64());
    if answer.is_err() {
        runtime::ERRORS.with_label_values(&[operation]).inc();
    } else if let Some(phase) = phase(operation) {
        phase.took(took);
    }
    answer
}

/// Calls that are parts of a pod's start.
fn phase(operation: &str) -> Option<Phase> {
    match operation {
        "run_podsandbox" => Some(Phase::Sandbox),
        "pull_image" => Some(Phase::Pull),
        "create_container" => Some(Phase::Create),
        "start_container" => Some(Phase::Start),
        _ => None,
    }
}

/// As [`counted`], for the call that starts a pod.
pub(crate) async fn sandbox<T>(
    own_users: bool,
    handler: &str,
    call: impl Future<Output = RuntimeResult<T>>,
) -> RuntimeResult<T> {
    pods::STARTED.inc();
    if own_users {
        pods::STARTED_USER_NAMESPACED.inc();
    }
    let began = Instant::now();
    let answer = counted("run_podsandbox", call).await;
    runtime::RUN_PODSANDBOX_DURATION.with_label_values(&[handler]).observe(began.elapsed().as_secs_f64());
    if answer.is_err() {
        runtime::RUN_PODSANDBOX_ERRORS.with_label_values(&[handler]).inc();
        pods::START_ERRORS.inc();
        if own_users {
            pods::START_USER_NAMESPACED_ERRORS.inc();
        }
    }
    answer
}

/// Whether a pod has a user namespace of its own.
pub(crate) fn has_own_users(config: Option<&PodSandboxConfig>) -> bool {
    let linux = config.and_then(|c| c.linux.as_ref());
    let options = linux.and_then(|l| l.security_context.as_ref()?.namespace_options.as_ref());
    let users = options.and_then(|n| n.userns_options.as_ref());
    users.is_some_and(|u| u.mode == NamespaceMode::Pod as i32)
}
