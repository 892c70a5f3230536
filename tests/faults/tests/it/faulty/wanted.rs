//! How the node must be after a round, and what a fault may not have done.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use contract::pod_worker::WorkerState;
use fakes::runtime::FakeContainer;
use model::core::PodStatus;
use model::userns::UserNamespace;
use sim::SimNode;
use tonic::Code;

use super::round::Round;
use super::{cast, world};

/// What the API server has of a pod's status, whose own or whose mirror it has.
fn told(node: &SimNode, name: &str) -> PodStatus {
    node.api_copy(name).and_then(|pod| pod.status).unwrap_or_default()
}

fn is_told_ready(node: &SimNode, name: &str) -> Result<(), String> {
    let conditions = told(node, name).conditions.unwrap_or_default();
    let ready = conditions.iter().any(|c| c.type_ == "Ready" && c.status == "True");
    if ready { Ok(()) } else { Err(format!("the API server does not know that {name} is ready")) }
}

fn is_told_failed(node: &SimNode, name: &str, reason: &str) -> Result<(), String> {
    let PodStatus { phase, reason: found, .. } = told(node, name);
    if (phase.as_deref(), found.as_deref()) == (Some("Failed"), Some(reason)) {
        return Ok(());
    }
    Err(format!("the API server has {name} as {phase:?} for {found:?}, not Failed for {reason}"))
}

pub(super) fn residents_are_fine(n: &SimNode) -> Result<(), String> {
    for name in [cast::BOUND, cast::OBJECTS, cast::OF_URL] {
        if !n.is_ready(name) {
            return Err(format!("{name} is not ready"));
        }
    }
    for (name, _) in cast::residents() {
        let fine = match name.as_str() {
            "loop" => n.phase("loop") == "Running",
            "job" => n.phase("job") == "Succeeded",
            "noimage" => {
                ["waiting:ErrImagePull", "waiting:ImagePullBackOff"].contains(&n.state("noimage", "app").as_str())
            }
            name => n.is_ready(name),
        };
        if !fine {
            return Err(format!("{name} is not as it should be"));
        }
    }
    Ok(())
}

type Check = fn(&Round) -> Result<(), String>;

/// What must hold after a round. Last what takes longest: a copy of the API server is read as JSON.
const CHECKS: [Check; 18] = [
    Round::all_are_ready,
    Round::resident_is_resized,
    Round::containers_are_changed,
    Round::old_ones_are_gone,
    |r| world::stranger_is_gone(&r.node, r.k),
    |r| world::is_left_behind(&r.node),
    |r| world::log_is_rotated(&r.node),
    |r| world::kills_are_told(&r.node),
    |r| world::shutdowns_are_held_back(&r.node),
    |r| world::image_is_collected(&r.node, r.k),
    |r| world::networks_are_told(&r.node, r.k),
    |r| world::plugins_are_registered(&r.node, r.k),
    |r| world::volumes_are_as_wanted(&r.node, r.k),
    |r| world::no_status_waits(&r.node),
    Round::objects_are_mounted,
    Round::users_are_apart,
    Round::workers_are_fine,
    Round::api_server_knows,
];

impl Round {
    pub(super) fn residents_running(&self) -> BTreeSet<String> {
        self.node.world.runtime.peek(|sandboxes, containers| {
            let is_steady = |c: &&FakeContainer| {
                c.running()
                    && c.name() != "crash"
                    && sandboxes.get(&c.sandbox).is_some_and(|s| !cast::comes_and_goes(s.pod()))
            };
            containers.values().filter(is_steady).map(|c| c.id.clone()).collect()
        })
    }

    /// Everything is as it would be without a fault.
    pub(crate) fn settled(&self) -> Result<(), String> {
        CHECKS.iter().try_for_each(|check| check(self))
    }

    /// As [`Round::settled`], for those who ask again and again: what was not fine the last time is looked at first.
    pub(super) fn is_settled(&self, last: &Cell<usize>) -> bool {
        let fine = |check: &Check| check(self).is_ok();
        fine(&CHECKS[last.get()]) && CHECKS.iter().position(|check| !fine(check)).inspect(|i| last.set(*i)).is_none()
    }

    fn all_are_ready(&self) -> Result<(), String> {
        for name in [self.guest(0), self.guest(1), self.critical(0), self.visitor(0), self.visitor(1)] {
            if !self.node.is_ready(&name) {
                return Err(format!("{name} is not ready"));
            }
        }
        residents_are_fine(&self.node)
    }

    fn old_ones_are_gone(&self) -> Result<(), String> {
        for old in [self.guest(2), self.visitor(2), self.critical(2), self.refused(1)] {
            if !self.node.is_gone(&old) {
                return Err(format!("{old} is not gone"));
            }
        }
        Ok(())
    }

    /// What ended runs again, and what was changed runs as it is to be now.
    fn containers_are_changed(&self) -> Result<(), String> {
        let (struck, changed) = (self.guest(1), self.visitor(1));
        for (pod, container) in [(&struck, "other"), (&changed, "app"), (&changed, "debug")] {
            if self.node.instances(pod, container).iter().filter(|i| i.running).count() != 1 {
                return Err(format!("{pod}/{container} does not run"));
            }
        }
        let status = self.node.container_status(&changed, "app");
        let image = status.map(|s| s.image).unwrap_or_default();
        if image.ends_with("/app:2") { Ok(()) } else { Err(format!("{changed} runs the image {image}")) }
    }

    /// Runtime, cgroup, file and status agree on the size; the container was not started anew (see [`Self::residents_running`]).
    fn resident_is_resized(&self) -> Result<(), String> {
        let size: model::quantity::Quantity = cast::size(self.k).parse().map_err(|e| format!("{e}"))?;
        let id = self.node.running_id(cast::BOUND, "app").unwrap_or_default();
        let told = self.node.world.runtime.peek(|_, containers| containers.get(&id)?.resources.clone());
        if told.as_ref().map(|r| r.memory_limit_in_bytes) != Some(size.value()) {
            return Err(format!("the runtime has {told:?} of {}, not {size}", cast::BOUND));
        }
        let status = self.node.container_status(cast::BOUND, "app").unwrap_or_default();
        let shown = serde_json::to_value(&status.resources).unwrap_or_default();
        if shown["limits"]["memory"] != cast::size(self.k) {
            return Err(format!("the status shows {shown} of {}", cast::BOUND));
        }
        let conditions = self.node.status(cast::BOUND).and_then(|s| s.conditions.clone()).unwrap_or_default();
        match conditions.iter().find(|c| c.type_.starts_with("PodResize")) {
            Some(c) => Err(format!("{} of {} is told: {:?} {:?}", c.type_, cast::BOUND, c.reason, c.message)),
            None => Ok(()),
        }
    }

    fn objects_are_mounted(&self) -> Result<(), String> {
        let names = [cast::OBJECTS, &self.visitor(0), &self.visitor(1)];
        names.iter().try_for_each(|name| world::has_objects(&self.node, name, self.k))
    }

    /// No id is one of two pods, and the pods' files say what the runtime was told.
    fn users_are_apart(&self) -> Result<(), String> {
        let mut taken: Vec<UserNamespace> = Vec::new();
        for name in [cast::OBJECTS, &self.visitor(0), &self.visitor(1)] {
            let ids = world::ids_of(&self.node, name)?;
            if taken.iter().any(|other| other.overlaps(&ids)) {
                return Err(format!("{name} has {ids:?}, which others have: {taken:?}"));
            }
            taken.push(ids);
        }
        Ok(())
    }

    fn workers_are_fine(&self) -> Result<(), String> {
        let mut count = 0;
        for (uid, row) in self.node.wiring().board::<WorkerState>().snapshot() {
            let name = row.pod.as_deref().map_or("", |p| model::pod::name(p));
            if let (Some(e), false) = (&row.error, cast::TROUBLED.contains(&name)) {
                return Err(format!("worker {uid} of {name} has an error: {e}"));
            }
            // One that was refused has a worker in the next life of the daemon, as whatever has ended.
            count += usize::from(!name.starts_with("refused"));
        }
        if count == cast::WORKERS { Ok(()) } else { Err(format!("{count} workers")) }
    }

    fn api_server_knows(&self) -> Result<(), String> {
        let node = &self.node;
        let ready = [self.guest(0), self.visitor(0), self.visitor(1), self.critical(0)];
        for name in ready.iter().map(String::as_str).chain([cast::BOUND, cast::OBJECTS, cast::OF_URL]) {
            is_told_ready(node, name)?;
        }
        is_told_failed(node, &self.critical(1), "Preempting")?;
        is_told_failed(node, &self.refused(0), "NodeAffinity")?;
        for name in [self.visitor(2), self.critical(2), self.refused(1)] {
            if node.api_copy(&name).is_some() {
                return Err(format!("the API server still has {name}"));
            }
        }
        Ok(())
    }

    /// The very same containers of residents run as at the beginning, and versions of statuses only grew.
    pub(crate) fn undisturbed_residents(&self) -> Result<(), String> {
        let running = self.residents_running();
        if running != self.steady {
            return Err(format!("containers of residents were {:?} and are {running:?}", self.steady));
        }
        let back = self.versions.borrow();
        if back.is_empty() { Ok(()) } else { Err(format!("versions went back: {back:?}")) }
    }

    /// What a fault may not have done.
    pub(crate) fn verdict(&self) -> Result<(), String> {
        self.settled()?;
        self.undisturbed_residents()?;
        self.nothing_was_made_twice()?;
        // The last one: not every runtime has it.
        let expected = ["PullImage", "ExecSync", "ReopenContainerLog", "UpdatePodSandboxResources"];
        let refused: Vec<String> = self.node.world.runtime.peek_calls(|calls| {
            let mutations = calls.iter().filter(|c| c.mutation.is_some() && !expected.contains(&c.rpc));
            let refused = mutations.filter(|c| c.code.is_some_and(|code| code != Code::Ok));
            refused.map(|c| format!("{} {}: {:?}", c.rpc, c.subject, c.code)).collect()
        });
        if refused.is_empty() { Ok(()) } else { Err(format!("the runtime refused {refused:?}")) }
    }

    /// Sandboxes and containers were made and started once, those of the round and no others.
    fn nothing_was_made_twice(&self) -> Result<(), String> {
        let (new, visitor, critical) = (self.guest(0), self.visitor(0), self.critical(0));
        let sandboxes = [(&new, ""), (&visitor, ""), (&critical, "")];
        let of_new = ["/proxy", "/quick", "/app", "/other"].map(|c| (&new, c));
        let (struck, changed) = (self.guest(1), self.visitor(1));
        let of_others =
            [(&struck, "/other"), (&visitor, "/app"), (&changed, "/app"), (&changed, "/debug"), (&critical, "/app")];
        let containers: Vec<_> = of_new.into_iter().chain(of_others).collect();
        for rpc in ["RunPodSandbox", "CreateContainer", "StartContainer"] {
            let mut counts = self.node.count(rpc);
            counts.retain(|subject, _| !subject.contains("/loop-sim") && !subject.contains("/stranger"));
            let want = if rpc == "RunPodSandbox" { &sandboxes[..] } else { &containers };
            let once = |(pod, container): &(&String, &str)| (format!("default/{pod}-sim{container}"), 1);
            let want: BTreeMap<String, usize> = want.iter().map(once).collect();
            if counts != want {
                return Err(format!("{rpc}: wanted {want:?}, got {counts:?}"));
            }
        }
        Ok(())
    }
}
