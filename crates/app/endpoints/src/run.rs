//! `/run` and `/checkpoint` (interfaces 3.8).

use std::os::unix::fs::DirBuilderExt;

use actor::Class;
use axum::extract::{Path, RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use contract::lookup::FoundPod;
use cri_api::v1::{CheckpointContainerRequest, ExecSyncRequest};
use model::core::Pod;
use model::runtime::{ContainerObservation, ContainerState};
use model::url::Query;
use ports::runtime::RuntimeError;

use crate::deps::{Deps, Shared};
use crate::respond::{bare, json};

pub(crate) async fn run(
    state: Shared,
    Path((namespace, pod, container)): Path<(String, String, String)>,
    query: RawQuery,
) -> Response {
    execute(&state.0, [&namespace, &pod, &container], None, query).await
}

pub(crate) async fn run_by_uid(
    state: Shared,
    Path((namespace, pod, uid, container)): Path<(String, String, String, String)>,
    query: RawQuery,
) -> Response {
    execute(&state.0, [&namespace, &pod, &container], Some(&uid), query).await
}

/// A failure becomes the text of the answer.
fn failed(text: impl Into<String>) -> Response {
    bare(StatusCode::INTERNAL_SERVER_ERROR, text)
}

/// The runtime's words as a Go client prints them.
fn words(e: &RuntimeError) -> String {
    format!("rpc error: code = {} desc = {}", e.code.as_str(), e.message)
}

async fn execute(
    deps: &Deps,
    [namespace, pod, container]: [&str; 3],
    uid: Option<&str>,
    RawQuery(query): RawQuery,
) -> Response {
    let Some(found) = deps.lookup.by_name(namespace, pod) else {
        return bare(StatusCode::NOT_FOUND, "pod does not exist");
    };
    // Another incarnation of the pod has no such container.
    let same = deps.lookup.by_full_name(namespace, pod, uid).is_some();
    let Some(running) = Some(&found).filter(|_| same).and_then(|found| instance(deps, found, container)) else {
        return failed(format!("container not found ({container:?})"));
    };
    let query = Query::parse(query.as_deref().unwrap_or_default());
    let cmd: Vec<String> = query.first("cmd").unwrap_or_default().split(' ').map(str::to_owned).collect();
    let request = ExecSyncRequest { container_id: running.id.to_string(), cmd: cmd.clone(), timeout: 0 };
    match deps.runtime.exec_sync(request).await {
        Ok(answer) if answer.exit_code == 0 => json([answer.stdout, answer.stderr].concat()),
        Ok(answer) => {
            let stderr = String::from_utf8_lossy(&answer.stderr);
            failed(format!("command '{}' exited with {}: {stderr}", cmd.join(" "), answer.exit_code))
        }
        Err(e) => failed(words(&e)),
    }
}

/// The running instance of a container, else the newest.
fn instance(deps: &Deps, found: &FoundPod, name: &str) -> Option<ContainerObservation> {
    let observed = deps.lookup.observed(&found.uid)?;
    let running = observed.instances(name).find(|c| c.state == ContainerState::Running);
    running.or_else(|| observed.container(name)).cloned()
}

fn has_container(pod: &Pod, name: &str) -> bool {
    let Some(spec) = &pod.spec else { return false };
    let ephemeral = spec.ephemeral_containers.iter().flatten().map(|c| c.name.as_str());
    let init = spec.init_containers.iter().flatten();
    spec.containers.iter().chain(init).map(|c| c.name.as_str()).chain(ephemeral).any(|n| n == name)
}

pub(crate) async fn checkpoint(
    State(deps): Shared,
    Path((namespace, pod, container)): Path<(String, String, String)>,
    RawQuery(query): RawQuery,
) -> Response {
    let Some(found) = deps.lookup.by_name(&namespace, &pod) else {
        return bare(StatusCode::NOT_FOUND, "pod does not exist");
    };
    if !has_container(found.pod(), &container) {
        return bare(StatusCode::NOT_FOUND, format!("container {container} does not exist"));
    }
    let query = Query::parse(query.as_deref().unwrap_or_default());
    let last = query.all("timeout").next_back().map(str::parse::<i64>);
    let Ok(timeout) = last.transpose() else {
        return bare(StatusCode::NOT_FOUND, "cannot parse value of timeout parameter");
    };
    match write_checkpoint(&deps, &found, &container, timeout.unwrap_or(0)).await {
        Ok(location) => json(serde_json::json!({ "items": [location] }).to_string()),
        Err(reason) => failed(format!("checkpointing of {namespace}/{pod}/{container} failed ({reason})")),
    }
}

async fn write_checkpoint(deps: &Deps, found: &FoundPod, container: &str, timeout: i64) -> Result<String, String> {
    let Some(instance) = instance(deps, found, container) else {
        return Err(format!("container {container} not found"));
    };
    let folder = deps.settings.root_dir.join("checkpoints");
    let made = deps.effects.blocking(Class::HostFiles, {
        let folder = folder.clone();
        move || make_private(&folder)
    });
    made.await.map_err(|e| format!("{}: {e}", folder.display()))?;
    let location = folder.join(archive(found.pod(), container, jiff::Timestamp::now())).display().to_string();
    let request =
        CheckpointContainerRequest { container_id: instance.id.to_string(), location: location.clone(), timeout };
    deps.runtime.checkpoint_container(request).await.map_err(|e| words(&e))?;
    Ok(location)
}

/// Name of a checkpoint's file.
fn archive(pod: &Pod, container: &str, now: jiff::Timestamp) -> String {
    let (name, namespace) = (model::pod::name(pod), model::pod::namespace(pod));
    format!("checkpoint-{name}_{namespace}-{container}-{}.tar", now.strftime("%Y-%m-%dT%H:%M:%SZ"))
}

/// A checkpoint holds the memory of a container: nobody but root may read it.
fn make_private(folder: &std::path::Path) -> std::io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_is_named_by_pod_container_and_time() {
        let mut pod = Pod::default();
        pod.metadata.name = Some("web-0".to_owned());
        pod.metadata.namespace = Some("shop".to_owned());
        let now = "2026-11-20T08:51:37.9Z".parse().expect("a time");
        assert_eq!(archive(&pod, "app", now), "checkpoint-web-0_shop-app-2026-11-20T08:51:37Z.tar");
    }
}
