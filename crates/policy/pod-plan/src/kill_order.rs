//! Who waits for whom when a pod with sidecars stops (pod-lifecycle 4.9; KEP-753).

use std::collections::{BTreeMap, BTreeSet};

use model::core::Pod;
use model::pod;

/// For each running container, the running containers that must have stopped before it is stopped.
///
/// preStop hooks do not wait. Counts only for the kill of a whole pod with a grace above 0; individual kills pass no order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct KillOrder {
    prerequisites: BTreeMap<String, Vec<String>>,
}

impl KillOrder {
    /// Names to wait for, in spec order; empty for a container that need not wait or is not known.
    #[must_use]
    pub fn prerequisites(&self, container: &str) -> &[String] {
        self.prerequisites.get(container).map(Vec::as_slice).unwrap_or_default()
    }

    /// Whether nobody waits: pods without sidecars.
    #[must_use]
    pub fn is_free(&self) -> bool {
        self.prerequisites.is_empty()
    }

    /// Whether `container` may be stopped when only `running` still runs.
    #[must_use]
    pub fn may_stop(&self, container: &str, running: &BTreeSet<String>) -> bool {
        self.prerequisites(container).iter().all(|p| !running.contains(p))
    }

    /// The containers in waves: all of a wave can be stopped at once when the waves before it have ended.
    #[must_use]
    pub fn waves(&self, running: &BTreeSet<String>) -> Vec<BTreeSet<String>> {
        let mut left = running.clone();
        let mut waves = Vec::new();
        while !left.is_empty() {
            let wave: BTreeSet<String> = left.iter().filter(|c| self.may_stop(c, &left)).cloned().collect();
            // Prerequisites always point to regular containers or to a later sidecar, so they cannot form a circle.
            assert!(!wave.is_empty(), "termination order has a cycle");
            left.retain(|c| !wave.contains(c));
            waves.push(wave);
        }
        waves
    }
}

/// Order for the containers in `running` (names). Regular containers go first and together, then the sidecars from the last
/// to the first; plain init and ephemeral containers wait for nobody and nobody waits for them.
#[must_use]
pub fn kill_order(pod: &Pod, running: &BTreeSet<String>) -> KillOrder {
    let regular: Vec<&str> =
        pod::regular_containers(pod).iter().map(|c| c.name.as_str()).filter(|n| running.contains(*n)).collect();
    let sidecars: Vec<&str> =
        pod::init_containers(pod).iter().filter(|c| pod::is_sidecar(c)).map(|c| c.name.as_str()).collect();
    let mut prerequisites = BTreeMap::new();
    for (i, name) in sidecars.iter().enumerate().filter(|(_, n)| running.contains(**n)) {
        let later = sidecars[i + 1..].iter().copied().filter(|n| running.contains(*n));
        prerequisites.insert((*name).to_owned(), later.chain(regular.iter().copied()).map(str::to_owned).collect());
    }
    KillOrder { prerequisites }
}
