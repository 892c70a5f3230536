//! In-place resize of containers that run (pod-lifecycle 4.8, KEP-1287).

use model::ContainerId;
use model::allocation::Amounts;
use model::core::Container;
use model::resources::{CPU, MEMORY};
use model::runtime::ContainerObservation;

use crate::input::PlanInput;

/// What to change on a pod whose containers run: memory first, then CPU, each list in order of execution.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Resize {
    /// Containers to tell of another amount of memory; those that get less come first.
    pub memory: Vec<ContainerResize>,
    /// As `memory`, of CPU.
    pub cpu: Vec<ContainerResize>,
    /// A container is started anew for it, and the pod's cgroup follows.
    pub restarts: bool,
    /// The pod's cgroup follows, whoever of its containers runs: those that start must have room in it.
    pub pod: bool,
}

/// One container to tell the runtime of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ContainerResize {
    /// Runtime id.
    pub id: ContainerId,
    /// Container name.
    pub name: String,
    /// What it shall have.
    pub wanted: Amounts,
    /// What it has.
    pub actuated: Amounts,
}

impl Resize {
    /// Nothing is to be changed.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.memory.is_empty() && self.cpu.is_empty() && !self.restarts && !self.pod
    }

    /// Decides about a container that runs. Answers whether it must be started anew (`resizePolicy`).
    pub(crate) fn judge(&mut self, input: &PlanInput<'_>, c: &Container, instance: &ContainerObservation) -> bool {
        let Some(actuated) = input.actuated.get(&c.name).copied() else { return false };
        let wanted = Amounts::of(input.pod, c);
        let memory = wanted.memory_limit_bytes.cmp(&actuated.memory_limit_bytes);
        let memory = memory.then(wanted.memory_request_bytes.cmp(&actuated.memory_request_bytes));
        let cpu = wanted.cpu_limit_milli.cmp(&actuated.cpu_limit_milli);
        let cpu = cpu.then(wanted.cpu_request_milli.cmp(&actuated.cpu_request_milli));
        if (memory.is_ne() && restarts(c, MEMORY)) || (cpu.is_ne() && restarts(c, CPU)) {
            self.restarts = true;
            return true;
        }
        for (list, change) in [(&mut self.memory, memory), (&mut self.cpu, cpu)] {
            let one = ContainerResize { id: instance.id.clone(), name: c.name.clone(), wanted, actuated };
            match change {
                std::cmp::Ordering::Less => list.insert(0, one),
                std::cmp::Ordering::Equal => {}
                std::cmp::Ordering::Greater => list.push(one),
            }
        }
        false
    }
}

fn restarts(c: &Container, resource: &str) -> bool {
    let policy = c.resize_policy.iter().flatten().find(|p| p.resource_name == resource);
    policy.is_some_and(|p| p.restart_policy == "RestartContainer")
}
