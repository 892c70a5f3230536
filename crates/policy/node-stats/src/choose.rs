//! Which sandbox and which containers of a pod count.

use model::runtime::{ContainerObservation, ContainerState, PodObservation, SandboxObservation};

/// What counts of one pod.
#[derive(Clone, Debug, PartialEq)]
pub struct Chosen<'a> {
    /// The newest ready sandbox, else the newest.
    pub sandbox: &'a SandboxObservation,
    /// Containers that run, the newest of each name, by name.
    pub containers: Vec<&'a ContainerObservation>,
}

/// `None`: the pod has no container that runs, so it is not in the statistics at all (interfaces 6.2).
#[must_use]
pub fn choose(pod: &PodObservation) -> Option<Chosen<'_>> {
    let sandbox = pod.sandboxes.iter().find(|s| s.ready).or(pod.sandboxes.first())?;
    let mut containers: Vec<&ContainerObservation> = Vec::new();
    // Newest first: the first of a name is the one to keep.
    for c in pod.containers.iter().filter(|c| c.state == ContainerState::Running) {
        if !containers.iter().any(|known| known.name == c.name) {
            containers.push(c);
        }
    }
    containers.sort_by(|a, b| a.name.cmp(&b.name));
    (!containers.is_empty()).then_some(Chosen { sandbox, containers })
}
