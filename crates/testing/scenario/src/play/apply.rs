//! Does what a step says.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fakes::runtime::{ExecReply, Pull};
use model::core::Pod;
use model::probe::ProbeOutcome;
use serde_json::json;
use sim::{NODE_NAME, POD_URL, SimNode};
use tokio::time::Instant;

use super::{claims, trouble};
use crate::history::Fact;
use crate::observe::Observer;
use crate::shape::{Means, ProbeKind, Shape, port};
use crate::step::{ApiTrouble, DiskTrouble, RuntimeTrouble, Scenario, Step};

mod machine;

/// What a machine takes to start.
const BOOT: Duration = Duration::from_secs(20);
/// How long pods may hold a shutdown back, the critical ones among them.
pub(super) const GRACE: Duration = Duration::from_secs(60);
pub(super) const OF_CRITICAL: Duration = Duration::from_secs(20);

/// A node, what plays around it, and who looks at it.
pub(super) struct Stage {
    pub(super) node: SimNode,
    pub(super) observer: Observer,
    /// When a daemon that is down starts.
    pub(super) boots_at: Option<Instant>,
    is_up: bool,
    /// Containers whose commands fail as probes.
    failing: Arc<Mutex<BTreeSet<String>>>,
    /// Pods of the API server and of the folder, by name.
    bound: BTreeMap<String, Shape>,
    folder: BTreeMap<String, Shape>,
    /// Steps so far, and those that found what they are about.
    pub(super) applied: usize,
    pub(super) took: BTreeMap<&'static str, u64>,
    reboots: u64,
    /// What the API server's last backup has, and which pods.
    backup: Option<(fakes::api::Backup, BTreeMap<String, Shape>)>,
}

fn full(name: &str) -> String {
    format!("{name}-{NODE_NAME}")
}

impl Stage {
    pub(super) fn new(node: SimNode) -> Self {
        let observer = Observer::new();
        let failing: Arc<Mutex<BTreeSet<String>>> = Arc::default();
        let runtime = &node.world.runtime;
        let here = ["app:1", "app:2", "tool:1"];
        runtime.add_images(&here);
        // What is removed when the disk runs short can be pulled again.
        for image in here.iter().chain(["pulled:1"].iter()) {
            runtime.registry(image, Pull::Succeeds(Duration::from_secs(2)));
        }
        let sick = failing.clone();
        runtime.on_exec(move |call| {
            let is_probe = call.command.first().is_some_and(|c| c == "look");
            let sick = is_probe && sick.lock().unwrap_or_else(PoisonError::into_inner).contains(&call.container);
            ExecReply { takes: Duration::from_millis(50), exit_code: sick.into(), ..ExecReply::default() }
        });
        node.world.net.open_all();
        // A source that has never been read holds up all that goes.
        node.world.web.put(POD_URL, "");
        let meta = |name: &str| json!({ "name": name, "namespace": "default" });
        let settings = json!({ "metadata": meta("settings"), "data": { "level": "1" } });
        node.api().put_json("/api/v1/namespaces/default/configmaps/settings", settings);
        let keys = json!({ "metadata": meta("keys"), "data": { "pass": "aHVzaA==" }, "type": "Opaque" });
        node.api().put_json("/api/v1/namespaces/default/secrets/keys", keys);
        claims::announce(node.api());
        node.world.logind.grant(Duration::from_secs(5), GRACE);
        node.kernel.faults().enable();
        observer.watch(&node);
        let (bound, folder, took) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self {
            node,
            observer,
            boots_at: None,
            is_up: false,
            failing,
            bound,
            folder,
            applied: 0,
            took,
            reboots: 0,
            backup: None,
        }
    }

    /// Starts the daemon, if it is down.
    pub(super) fn boot(&mut self) {
        self.boots_at = None;
        claims::serve(&self.node);
        if !std::mem::replace(&mut self.is_up, true) {
            self.node.world.runtime.shorten_lists(0);
            self.node.boot();
            self.observer.follow_boards(&self.node);
            self.observer.note(Fact::Up);
        }
    }

    async fn kill(&mut self, down: Duration) {
        if std::mem::take(&mut self.is_up) {
            self.node.kill().await;
            self.observer.note(Fact::Down);
        }
        self.boots_at = Some(Instant::now() + down);
    }

    /// All trouble ends.
    pub(super) fn calm(&mut self) {
        if self.node.world.host.peek(|machine| machine.names_hang) {
            // Those that came meanwhile as well.
            self.touch_probed();
        }
        trouble::calm(&self.node);
        self.node.world.net.open_all();
        self.failing.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.observer.note(Fact::Calm);
    }

    pub(super) async fn apply(&mut self, step: &Step) {
        self.applied += 1;
        if self.does(step).await {
            *self.took.entry(kind(step)).or_default() += 1;
        }
    }

    /// Whether what the step is about was there.
    async fn does(&mut self, step: &Step) -> bool {
        match step {
            Step::Bind(shape) => return self.bind(shape),
            Step::Static(shape) => return self.put(shape),
            Step::Remove { pod } => return self.remove(pod),
            Step::Delete { pod, grace_s } => return self.delete(pod, *grace_s),
            Step::SetImage { pod, image } => return self.set_image(pod, image),
            Step::Resize { pod, memory_mi } => return self.resize(pod, *memory_mi),
            Step::Exit { container, code } => return self.exit(container, *code),
            Step::LoseContainer { container } => return self.lose(container),
            Step::KillSandbox { pod } => return self.kill_sandbox(pod),
            Step::Probes { container, fail } => return self.probes(container, *fail),
            Step::KillDaemon { down_ms, turns } => {
                for _ in 0..*turns {
                    tokio::task::yield_now().await;
                }
                self.kill(Duration::from_millis(*down_ms)).await;
            }
            Step::Reboot { power } => self.reboot(*power).await,
            Step::Fault { rules } => {
                self.observer.note(Fact::Trouble);
                self.node.fault(rules);
            }
            Step::KillActor { actor } => {
                self.observer.note(Fact::Struck(actor.clone()));
                return self.node.kernel.directory().kill(actor);
            }
            Step::Swap { role } => return self.swap(role),
            Step::Clock { by_s } => self.set_clock(*by_s),
            Step::Shutdown => return self.shut_down().await,
            Step::Dns => {
                self.observer.note(Fact::Trouble);
                self.touch_probed();
                trouble::names(&self.node, true);
            }
            Step::Api(ApiTrouble::Backup) => self.back_up(),
            Step::Api(ApiTrouble::Restore) => return self.restore(),
            Step::Api(what) => {
                self.observer.note(Fact::Trouble);
                trouble::api(&self.node, what);
            }
            Step::Runtime(RuntimeTrouble::Forget) => self.forget(),
            Step::Runtime(RuntimeTrouble::Partial { times }) => return self.shorten_lists(*times),
            Step::Runtime(what) => {
                self.observer.note(Fact::Trouble);
                trouble::runtime(&self.node, what);
            }
            Step::Disk(what) => {
                self.observer.note(Fact::Trouble);
                trouble::disk(&self.node, *what);
            }
            Step::Calm => self.calm(),
        }
        true
    }

    fn program(&self, shape: &Shape) {
        for part in shape.parts() {
            self.node.world.runtime.program(&part.name, &part.programs());
        }
    }

    fn bind(&mut self, shape: &Shape) -> bool {
        if self.bound.contains_key(&shape.name) || self.folder.contains_key(&shape.name) {
            return false;
        }
        self.program(shape);
        self.observer.note(Fact::Wanted(full(&shape.name), Box::new(shape.clone())));
        shape.claims().for_each(|claim| claims::put(self.node.api(), &claim));
        self.node.bind(&shape.name, shape.spec());
        self.bound.insert(shape.name.clone(), shape.clone());
        true
    }

    fn put(&mut self, shape: &Shape) -> bool {
        if self.bound.contains_key(&shape.name) {
            return false;
        }
        self.program(shape);
        let pod = full(&shape.name);
        if self.folder.insert(shape.name.clone(), shape.clone()).is_some() {
            self.observer.note(Fact::Edited(pod.clone()));
            self.observer.note(Fact::SourceGone(pod.clone()));
        }
        self.observer.note(Fact::Wanted(pod, Box::new(shape.clone())));
        self.node.put(&format!("{}.yaml", shape.name), &shape.manifest());
        true
    }

    fn remove(&mut self, pod: &str) -> bool {
        let was_there = self.folder.remove(pod).is_some();
        if was_there {
            self.observer.note(Fact::Unwanted(full(pod), None));
            self.observer.note(Fact::SourceGone(full(pod)));
            self.node.remove(&format!("{pod}.yaml"));
        }
        was_there
    }

    /// Of a static pod it is the mirror that is deleted, which comes again.
    fn delete(&mut self, pod: &str, grace_s: Option<i64>) -> bool {
        if self.bound.contains_key(pod) {
            self.observer.note(Fact::Unwanted(full(pod), grace_s));
            if grace_s == Some(0) {
                self.observer.note(Fact::SourceGone(full(pod)));
            }
        }
        self.node.api().user_deletes::<Pod>(Some("default"), &full(pod), grace_s).is_ok()
    }

    fn change(&self, pod: &str, change: impl FnOnce(&mut Pod)) -> bool {
        let is_there = self.bound.contains_key(pod) && self.node.api_copy(pod).is_some();
        if is_there {
            self.node.api().change::<Pod>(Some("default"), &full(pod), change);
        }
        is_there
    }

    fn set_image(&self, pod: &str, image: &str) -> bool {
        self.observer.note(Fact::Edited(full(pod)));
        self.change(pod, |pod| {
            if let Some(c) = pod.spec.as_mut().and_then(|s| s.containers.first_mut()) {
                c.image = Some(image.to_owned());
            }
        })
    }

    /// Only of a container that has a limit: a pod's class may not change.
    fn resize(&self, pod: &str, memory_mi: u32) -> bool {
        let had = self.bound.get(pod).and_then(|shape| shape.containers.first()).is_some_and(|c| c.memory_mi > 0);
        if had {
            // Its back-off begins anew.
            self.observer.note(Fact::Edited(full(pod)));
        }
        let size = json!(format!("{memory_mi}Mi"));
        had && self.change(pod, |pod| {
            let Some(c) = pod.spec.as_mut().and_then(|s| s.containers.first_mut()) else { return };
            let mut resources = serde_json::to_value(&c.resources).unwrap_or_default();
            resources["limits"]["memory"] = size.clone();
            resources["requests"]["memory"] = size;
            c.resources = serde_json::from_value(resources).unwrap_or_default();
        })
    }

    /// Id of the running instance of a container, and its pod.
    fn running(&self, container: &str) -> Option<(String, String)> {
        self.node.world.runtime.peek(|sandboxes, containers| {
            let c = containers.values().rfind(|c| c.running() && c.name() == container)?;
            Some((c.id.clone(), sandboxes.get(&c.sandbox)?.pod().to_owned()))
        })
    }

    fn exit(&self, container: &str, code: Option<i32>) -> bool {
        let Some((id, pod)) = self.running(container) else { return false };
        self.observer.note(Fact::Touched(pod));
        match code {
            Some(code) => self.node.world.runtime.exit(&id, code),
            None => self.node.world.runtime.oom(&id),
        }
    }

    fn lose(&self, container: &str) -> bool {
        let Some((id, pod)) = self.running(container) else { return false };
        self.observer.note(Fact::Touched(pod));
        // Nobody tells: the node learns of it with its next look.
        self.observer.note(Fact::Struck(format!("{container} is lost")));
        self.node.world.runtime.lose(&id)
    }

    fn kill_sandbox(&self, pod: &str) -> bool {
        let pod = full(pod);
        let find = |s: &&fakes::runtime::FakeSandbox| s.ready && s.pod() == pod;
        let id = self.node.world.runtime.peek(|sandboxes, _| sandboxes.values().find(find).map(|s| s.id.clone()));
        let Some(id) = id else { return false };
        self.observer.note(Fact::Touched(pod));
        self.node.world.runtime.kill_sandbox(&id);
        true
    }

    /// Where names are looked up for too long, probes over the network fail, and may end containers.
    fn touch_probed(&self) {
        let ends = |(kind, means): &(ProbeKind, Means)| *kind != ProbeKind::Readiness && *means != Means::Exec;
        for shape in self.bound.values().chain(self.folder.values()) {
            if shape.parts().any(|part| part.probes.iter().any(ends)) {
                self.observer.note(Fact::Touched(full(&shape.name)));
            }
        }
    }

    fn probes(&self, container: &str, fail: bool) -> bool {
        let all = self.bound.values().chain(self.folder.values());
        let Some(shape) = all.into_iter().find(|s| s.parts().any(|p| p.name == container && !p.probes.is_empty()))
        else {
            return false;
        };
        self.observer.note(Fact::Touched(full(&shape.name)));
        let mut failing = self.failing.lock().unwrap_or_else(PoisonError::into_inner);
        if fail {
            failing.insert(container.to_owned());
            self.node.world.net.answer(port(container), ProbeOutcome::Failure, "503, by order");
        } else {
            failing.remove(container);
            self.node.world.net.answer(port(container), ProbeOutcome::Success, "ok");
        }
        true
    }
}

/// Name of a step's kind, as its file has it.
fn kind(step: &Step) -> &'static str {
    match step {
        Step::Bind(_) => "bind",
        Step::Static(_) => "static",
        Step::Remove { .. } => "remove",
        Step::Delete { grace_s: Some(0), .. } => "delete by force",
        Step::Delete { .. } => "delete",
        Step::SetImage { .. } => "setImage",
        Step::Resize { .. } => "resize",
        Step::Exit { code: None, .. } => "oom",
        Step::Exit { .. } => "exit",
        Step::KillSandbox { .. } => "killSandbox",
        Step::LoseContainer { .. } => "loseContainer",
        Step::Probes { .. } => "probes",
        Step::KillDaemon { .. } => "killDaemon",
        Step::Reboot { power: true } => "power cut",
        Step::Reboot { .. } => "reboot",
        Step::Fault { .. } => "fault",
        Step::KillActor { .. } => "killActor",
        Step::Swap { .. } => "swap",
        Step::Clock { .. } => "clock",
        Step::Shutdown => "shutdown",
        Step::Dns => "dns",
        Step::Api(ApiTrouble::Backup) => "backup",
        Step::Api(ApiTrouble::Restore) => "restore",
        Step::Disk(DiskTrouble::Short) => "pressure",
        Step::Api(_) => "api",
        Step::Runtime(_) => "runtime",
        Step::Disk(_) => "disk",
        Step::Calm => "calm",
    }
}

impl Scenario {
    /// As written by hand or by chance, its steps in the order of their times.
    #[must_use]
    pub fn in_order(mut self) -> Self {
        self.steps.sort_by_key(|step| step.at_ms);
        self
    }
}
