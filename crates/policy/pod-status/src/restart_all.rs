//! Whether all containers of a pod are being restarted (feature gate RestartAllContainersOnContainerExits).

use model::core::{Container, Pod, PodCondition, PodStatus};
use model::runtime::ContainerState;
use model::{pod, restart};

use crate::input::StatusInput;
use crate::reasons::condition;

/// Whether all containers of the pod are being restarted: it was said before, or the end of a container asks for it.
pub(crate) fn restarts_all(input: &StatusInput<'_>, base: &PodStatus) -> bool {
    let asks = |c: &Container| {
        let newest = input.observed.container(&c.name).filter(|o| o.state == ContainerState::Exited);
        newest.is_some_and(|o| restart::asks_for_all(c, o.exit_code))
    };
    input.restart_all && (restarting_all(base) || containers(input.pod).any(asks))
}

/// Whether a status says that all containers of the pod are being restarted.
#[must_use]
pub fn restarting_all(status: &PodStatus) -> bool {
    let said = |c: &PodCondition| c.type_ == condition::ALL_CONTAINERS_RESTARTING && c.status == "True";
    status.conditions.iter().flatten().any(said)
}

/// Containers that a restart of all goes round: ephemeral ones are not.
pub(crate) fn containers(p: &Pod) -> impl Iterator<Item = &Container> {
    pod::init_containers(p).iter().chain(pod::regular_containers(p))
}
