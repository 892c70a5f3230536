//! Which instance of a container a request means.

use model::core::{ContainerStatus, PodStatus};

/// The id (`<runtime>://<id>`, as the status has it) of the instance whose log is asked for: the running one, else the one
/// that ended last; with `previous` the one before.
///
/// # Errors
/// Text for the client (interfaces 4.3): there is no such instance.
pub fn choose(status: &PodStatus, pod: &str, container: &str, previous: bool) -> Result<String, String> {
    let this = format!("container {} in pod {}", crate::quote(container.as_bytes()), crate::quote(pod.as_bytes()));
    let Some(status) = find(status, container) else { return Err(format!("{this} is not available")) };
    let last = status.last_state.as_ref().and_then(|s| s.terminated.as_ref());
    let last_id = last.and_then(|t| t.container_id.clone()).filter(|id| !id.is_empty());
    if previous {
        return last_id.ok_or_else(|| format!("previous terminated {this} not found"));
    }
    let state = status.state.clone().unwrap_or_default();
    if state.running.is_some() {
        return Ok(status.container_id.clone().unwrap_or_default());
    }
    if let Some(terminated) = state.terminated {
        // Without an id of its own the next instance was never made.
        let own = terminated.container_id.filter(|id| !id.is_empty());
        return own.or(last_id).ok_or_else(|| format!("{this} is terminated"));
    }
    if last.is_some() {
        return last_id.ok_or_else(|| format!("{this} is terminated"));
    }
    Err(match state.waiting.map(|w| w.reason.unwrap_or_default()) {
        Some(reason) if reason == "ErrImagePull" => format!("{this} is waiting to start: image can't be pulled"),
        Some(reason) if reason == "ImagePullBackOff" => {
            format!("{this} is waiting to start: trying and failing to pull image")
        }
        Some(reason) => format!("{this} is waiting to start: {reason}"),
        None => format!("{this} is waiting to start - no logs yet"),
    })
}

fn find<'a>(status: &'a PodStatus, name: &str) -> Option<&'a ContainerStatus> {
    let lists = [&status.container_statuses, &status.init_container_statuses, &status.ephemeral_container_statuses];
    lists.into_iter().flatten().flatten().find(|c| c.name == name)
}
