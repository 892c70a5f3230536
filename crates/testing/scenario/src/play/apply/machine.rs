//! What happens to the machine, to all of the daemon, and to all of the API server.

use std::path::Path;
use std::time::Duration;

use contract::runtime::RuntimeInfo;
use ports::host::{CgroupFs, Mounter};
use sim::DISK;
use tokio::time::Instant;

use super::super::trouble;
use super::{BOOT, GRACE, Stage, full};
use crate::history::{FORGOTTEN, Fact, SHUTDOWN};
use crate::step::ApiTrouble;

impl Stage {
    pub(super) async fn reboot(&mut self, power: bool) {
        self.kill(BOOT).await;
        let world = &self.node.world;
        self.observer.note(Fact::Rebooted);
        world.runtime.reboot();
        world.plugins.reboot();
        let mut mounts = world.files.mounts_below(Path::new(DISK)).unwrap_or_default();
        mounts.reverse();
        for mount in mounts {
            // Nothing of it is left, whatever trouble the disk has.
            let _unmounted = world.files.unmount(&mount);
        }
        for group in world.cgroups.paths() {
            let _removed = world.cgroups.remove(&group);
        }
        if power {
            self.reboots += 1;
            world.files.lose_power(self.reboots);
            world.journal.lose_power();
        }
    }

    /// The runtime starts anew, and has lost every other container.
    pub(super) fn forget(&self) {
        let runtime = &self.node.world.runtime;
        let lost: Vec<(String, String)> = runtime.peek(|sandboxes, containers| {
            let pod = |sandbox| sandboxes.get(sandbox).map_or("", |s| s.pod()).to_owned();
            containers.values().step_by(2).map(|c| (c.id.clone(), pod(&c.sandbox))).collect()
        });
        self.observer.note(Fact::Struck(FORGOTTEN.to_owned()));
        for (id, pod) in lost {
            self.observer.note(Fact::Touched(pod));
            runtime.lose(&id);
        }
        runtime.disconnect();
    }

    /// What a daemon's first list lacks it cannot know of: only later ones lack something.
    pub(super) fn shorten_lists(&self, times: u32) -> bool {
        if !self.is_up || !self.node.wiring().value::<RuntimeInfo>().get().listed {
            return false;
        }
        self.observer.note(Fact::Trouble);
        self.node.world.runtime.shorten_lists(times);
        true
    }

    /// A manager gives its place to another one, as `bosun` makes it.
    pub(super) fn swap(&self, role: &str) -> bool {
        if !self.is_up {
            return false;
        }
        self.observer.note(Fact::Struck(role.to_owned()));
        self.node.node().renew(role)
    }

    pub(super) fn set_clock(&self, by_s: i64) {
        let nanos = by_s.saturating_mul(1_000_000_000);
        self.observer.note(Fact::ClockSet);
        self.node.kernel.clock().set_by(nanos);
        self.node.world.runtime.set_clock_by(nanos);
    }

    /// As logind does it: who holds it back has until then.
    pub(super) async fn shut_down(&mut self) -> bool {
        if !self.is_up {
            return false;
        }
        // What ends meanwhile does so by the node's own decision.
        self.observer.note(Fact::Struck(SHUTDOWN.to_owned()));
        self.node.world.logind.say(true);
        let longest = Instant::now() + GRACE + Duration::from_secs(5);
        while self.node.world.logind.held() > 0 && Instant::now() < longest {
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        self.node.world.logind.say(false);
        self.reboot(false).await;
        true
    }

    pub(super) fn back_up(&mut self) {
        self.backup = Some((self.node.api().peek(fakes::api::Store::backup), self.bound.clone()));
    }

    /// Pods that came since are gone, those that went are there again, as they were then.
    pub(super) fn restore(&mut self) -> bool {
        let Some((backup, bound)) = self.backup.take() else { return false };
        self.observer.note(Fact::Trouble);
        self.observer.note(Fact::Restored);
        self.node.api().store(|store| store.restore(&backup));
        trouble::api(&self.node, &ApiTrouble::Cut);
        for name in self.bound.keys().filter(|name| !bound.contains_key(*name)) {
            self.observer.note(Fact::Unwanted(full(name), None));
        }
        for (name, shape) in &bound {
            self.program(shape);
            // Whatever was done to it since, nobody knows in which state it comes back.
            self.observer.note(Fact::Edited(full(name)));
            let is_deleted = self.node.api_copy(name).is_none_or(|pod| pod.metadata.deletion_timestamp.is_some());
            if !is_deleted {
                self.observer.note(Fact::Wanted(full(name), Box::new(shape.clone())));
            }
        }
        self.bound = bound;
        true
    }
}
