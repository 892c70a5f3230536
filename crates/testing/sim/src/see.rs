//! What a test can look at.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use contract::pod_worker::{WorkerPhase, WorkerState};
use contract::status::StatusEntry;
use fakes::runtime::{FakeContainer, Mutation};
use model::core::{ContainerState, ContainerStatus, PodStatus};
use model::{PodUid, pod};
use tonic::Code;

use crate::node::SimNode;
use crate::world::NODE_NAME;

/// One container instance in the runtime.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    /// Id.
    pub id: String,
    /// Attempt.
    pub attempt: u32,
    /// It runs now.
    pub running: bool,
    /// Exit code, once ended.
    pub exit_code: i32,
}

/// How often something was done, by `namespace/pod/container` (or `namespace/pod`).
pub type Counts = BTreeMap<String, usize>;

/// The name under which a static pod runs.
fn full(name: &str) -> String {
    format!("{name}-{NODE_NAME}")
}

impl SimNode {
    /// Status board row of a pod, by the name in its manifest. Of two pods of one name: the one that is desired now.
    #[must_use]
    pub fn entry(&self, name: &str) -> Option<Arc<StatusEntry>> {
        let name = full(name);
        let rows = self.wiring().board::<StatusEntry>().snapshot();
        let mut named: Vec<_> = rows.into_iter().filter(|(_, row)| row.name == name).collect();
        named.sort_by_key(|(uid, row)| {
            (self.wiring().board::<contract::pod_manager::DesiredPod>().get(uid).is_some(), row.changed_at)
        });
        named.pop().map(|(_, row)| row)
    }

    /// Status of a pod, by the name in its manifest.
    #[must_use]
    pub fn status(&self, name: &str) -> Option<Arc<PodStatus>> {
        self.entry(name).map(|row| row.status.clone())
    }

    /// Phase of a pod; empty when it has no status.
    #[must_use]
    pub fn phase(&self, name: &str) -> String {
        self.status(name).and_then(|s| s.phase.clone()).unwrap_or_default()
    }

    /// A condition of a pod is `True`.
    #[must_use]
    pub fn condition(&self, name: &str, kind: &str) -> bool {
        let Some(status) = self.status(name) else { return false };
        status.conditions.iter().flatten().any(|c| c.type_ == kind && c.status == "True")
    }

    /// Running with every container ready.
    #[must_use]
    pub fn is_ready(&self, name: &str) -> bool {
        self.phase(name) == "Running" && self.condition(name, "Ready")
    }

    /// Status of one container, of whatever kind.
    #[must_use]
    pub fn container_status(&self, name: &str, container: &str) -> Option<ContainerStatus> {
        let status = self.status(name)?;
        let all = status.init_container_statuses.iter().chain(&status.container_statuses).flatten();
        let mut all = all.chain(status.ephemeral_container_statuses.iter().flatten());
        all.find(|c| c.name == container).cloned()
    }

    /// State of one container in a word or two: `waiting:ReasonSaid`, `running`, `terminated:0`; empty when unknown.
    #[must_use]
    pub fn state(&self, name: &str, container: &str) -> String {
        self.container_status(name, container).and_then(|c| c.state).map(|s| state_text(&s)).unwrap_or_default()
    }

    /// Restart counts in the statuses, by `pod/container`.
    #[must_use]
    pub fn restarts(&self) -> BTreeMap<String, i32> {
        let mut out = BTreeMap::new();
        for row in self.wiring().board::<StatusEntry>().snapshot().values() {
            let all = row.status.init_container_statuses.iter().chain(&row.status.container_statuses).flatten();
            out.extend(all.map(|c| (format!("{}/{}", row.name, c.name), c.restart_count)));
        }
        out
    }

    /// Desired UID of a pod, by the name in its manifest.
    #[must_use]
    pub fn uid(&self, name: &str) -> Option<PodUid> {
        let name = full(name);
        let desired = self.wiring().board::<contract::pod_manager::DesiredPod>().snapshot();
        desired.into_iter().find(|(_, row)| pod::name(&row.pod) == name).map(|(uid, _)| uid)
    }

    /// Workers of pods of this name.
    #[must_use]
    pub fn workers(&self, name: &str) -> BTreeMap<PodUid, Arc<WorkerState>> {
        let name = full(name);
        let mut rows = self.wiring().board::<WorkerState>().snapshot();
        rows.retain(|_, row| row.pod.as_deref().is_some_and(|p| pod::name(p) == name));
        rows
    }

    /// Phase of the worker of the desired pod of this name.
    #[must_use]
    pub fn worker_phase(&self, name: &str) -> Option<WorkerPhase> {
        self.wiring().board::<WorkerState>().get(&self.uid(name)?).map(|w| w.phase)
    }

    /// Nothing of a pod is left: no worker, no status, nothing in the runtime, no cgroup, no directory.
    #[must_use]
    pub fn is_gone(&self, name: &str) -> bool {
        let name = full(name);
        let in_runtime = self.world.runtime.peek(|sandboxes, _| sandboxes.values().any(|s| s.pod() == name));
        let has_status = self.wiring().board::<StatusEntry>().snapshot().values().any(|row| row.name == name);
        let has_worker = self
            .wiring()
            .board::<WorkerState>()
            .snapshot()
            .values()
            .any(|row| row.pod.as_deref().is_some_and(|p| pod::name(p) == name));
        !in_runtime && !has_status && !has_worker
    }

    /// Instances of a container that the runtime has, oldest first.
    #[must_use]
    pub fn instances(&self, name: &str, container: &str) -> Vec<Instance> {
        let name = full(name);
        self.world.runtime.peek(|sandboxes, containers| {
            let of_pod = |c: &&FakeContainer| {
                c.name() == container && sandboxes.get(&c.sandbox).is_some_and(|s| s.pod() == name)
            };
            let running = |c: &FakeContainer| Instance {
                id: c.id.clone(),
                attempt: c.attempt(),
                running: c.running(),
                exit_code: c.exit_code,
            };
            containers.values().filter(of_pod).map(running).collect()
        })
    }

    /// Id of the running instance of a container.
    #[must_use]
    pub fn running_id(&self, name: &str, container: &str) -> Option<String> {
        self.instances(name, container).into_iter().rfind(|i| i.running).map(|i| i.id)
    }

    /// Ids of all running containers.
    #[must_use]
    pub fn running_ids(&self) -> Vec<String> {
        let running = |c: &&FakeContainer| c.running();
        self.world.runtime.peek(|_, all| all.values().filter(running).map(|c| c.id.clone()).collect())
    }

    /// Good answers of one RPC so far, by subject.
    #[must_use]
    pub fn count(&self, rpc: &str) -> Counts {
        let mut out = Counts::new();
        self.world.runtime.peek_calls(|calls| {
            for call in calls.iter().filter(|c| c.rpc == rpc && c.code == Some(Code::Ok)) {
                *out.entry(call.subject.clone()).or_default() += 1;
            }
        });
        out
    }

    /// Mutating calls of one pod (by the name in its manifest) in order of arrival, as `StartContainer app`.
    #[must_use]
    pub fn steps(&self, name: &str) -> Vec<String> {
        let part = format!("/{}", full(name));
        let calls = self.world.runtime.calls();
        let of_pod = |subject: &str| {
            let (_, rest) = subject.split_once(&part)?;
            match rest.strip_prefix('/') {
                Some(container) => Some(container.to_owned()),
                None => rest.is_empty().then(String::new),
            }
        };
        calls
            .iter()
            .filter(|c| c.mutation.is_some())
            .filter_map(|c| Some(format!("{} {}", c.rpc, of_pod(&c.subject)?).trim_end().to_owned()))
            .collect()
    }

    /// Every mutating call so far, with its time and its bytes: the transcript of a run.
    #[must_use]
    pub fn transcript(&self) -> Vec<String> {
        let calls = self.world.runtime.calls();
        let line = |at: i64, subject: &str, m: &Mutation| format!("{at} {} {subject} {m:?}", m.rpc());
        calls.iter().filter_map(|c| Some(line(c.at.0, &c.subject, c.mutation.as_ref()?))).collect()
    }

    /// Events of pods of this name, as `Reason: message`, oldest first. Repeated ones count once.
    #[must_use]
    pub fn events(&self, name: &str) -> Vec<String> {
        let name = full(name);
        let view = self.wiring().value::<contract::event::EventView>().get();
        let of_pod = |o: &model::event::EventObject| match o {
            model::event::EventObject::Pod { name: n, .. } => *n == name,
            _ => false,
        };
        view.entries.iter().filter(|e| of_pod(&e.object)).map(|e| format!("{}: {}", e.reason, e.message)).collect()
    }

    /// An event with this reason was recorded for the pod.
    #[must_use]
    pub fn has_event(&self, name: &str, reason: &str) -> bool {
        self.events(name).iter().any(|e| e.split(':').next() == Some(reason))
    }

    /// The node at a glance, for failure messages.
    #[must_use]
    pub fn picture(&self) -> String {
        let mut out = String::new();
        let now = self.world.runtime.now();
        let _ = writeln!(out, "at {}", now.rfc3339_nano());
        if self.life_is_up() {
            for (uid, w) in self.wiring().board::<WorkerState>().snapshot() {
                let name = w.pod.as_deref().map_or("?", |p| pod::name(p)).to_owned();
                let _ = writeln!(
                    out,
                    "worker {uid} {name}: {:?}, stop {}, deleted {}, cause {:?}, error {:?}",
                    w.phase, w.termination_requested, w.deleted, w.cause, w.error
                );
            }
            for row in self.wiring().board::<StatusEntry>().snapshot().values() {
                let phase = row.status.phase.as_deref().unwrap_or_default();
                let _ = write!(out, "status {} v{}: {phase}", row.name, row.version);
                let all = row.status.init_container_statuses.iter().chain(&row.status.container_statuses).flatten();
                for c in all {
                    let state = c.state.as_ref().map(state_text).unwrap_or_default();
                    let _ = write!(out, "; {} {state} r{}", c.name, c.restart_count);
                }
                out.push('\n');
            }
            let _ = writeln!(out, "runtime {:?}", self.wiring().value::<contract::runtime::RuntimeInfo>().get());
            for a in self.kernel.directory().actors().iter().filter(|a| a.restarts > 0 || a.mailbox_depth > 0) {
                let _ = writeln!(
                    out,
                    "actor {}: {:?}, {} restarts, {} queued, last cause {:?}",
                    a.name, a.state, a.restarts, a.mailbox_depth, a.last_cause
                );
            }
        }
        for s in self.world.runtime.sandboxes() {
            let _ = writeln!(out, "sandbox {} {} ready {}", s.id.trim_start_matches(['5', '0']), s.pod(), s.ready);
        }
        for c in self.world.runtime.containers() {
            let _ = writeln!(
                out,
                "container {} {} in {} attempt {}: {:?} {}",
                c.id.trim_start_matches(['c', '0']),
                c.name(),
                c.sandbox.trim_start_matches(['5', '0']),
                c.attempt(),
                c.state,
                c.exit_code
            );
        }
        let struck = self.kernel.faults().log();
        let _ = writeln!(out, "struck: {:?}", &struck[struck.len().saturating_sub(5)..]);
        out
    }
}

fn state_text(s: &ContainerState) -> String {
    if let Some(w) = &s.waiting {
        return format!("waiting:{}", w.reason.as_deref().unwrap_or_default());
    }
    if s.running.is_some() {
        return "running".to_owned();
    }
    s.terminated.as_ref().map_or_else(String::new, |t| format!("terminated:{}", t.exit_code))
}
