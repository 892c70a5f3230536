//! Pods, their containers' states, and a runtime that runs commands as a script says.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use contract::probe::{PodProbes, RetainProbes, StartProbes, StopProbes};
use contract::runtime::{CallError, CallErrorKind, ExecOutcome, ExecSync};
use contract::status::StatusEntry;
use contract::{ProbeManager, RuntimeClient};
use fakes::{Events, StandIn};
use model::Timestamp;
use model::core::{ContainerStatus, Pod, PodStatus};
use model::probe::{ProbeKind, ProbeVerdict};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::case::Case;
use crate::outcome::{Broken, Outcome, demand};
use crate::stage::Stage;
use crate::watch::until;

/// How long a manager may take for what it does at once.
pub(super) const SOON: Duration = Duration::from_millis(900);

/// What comes of a command.
#[derive(Debug, Clone)]
pub(super) enum Reply {
    /// It ends with this code and says so.
    Exits(i32, &'static str),
    /// After that time it ends with this code.
    Takes(Duration, i32),
    /// The call fails.
    Fails(CallErrorKind, &'static str),
    /// It never ends.
    Hangs,
}

/// Commands that were run.
#[derive(Default)]
struct Commands {
    scripts: BTreeMap<String, VecDeque<Reply>>,
    began: Vec<(Instant, ExecSync)>,
    running: BTreeMap<String, (usize, usize)>,
}

/// Notes the end of a command, however it ends.
struct Running(Arc<Mutex<Commands>>, String);

impl Drop for Running {
    fn drop(&mut self) {
        if let Some((now, _)) = lock(&self.0).running.get_mut(&self.1) {
            *now -= 1;
        }
    }
}

fn lock(commands: &Mutex<Commands>) -> MutexGuard<'_, Commands> {
    commands.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A stage with a runtime, an event recorder and statuses.
pub(super) struct Bed {
    pub(super) stage: Stage<ProbeManager>,
    pub(super) events: Events,
    commands: Arc<Mutex<Commands>>,
    version: Mutex<u64>,
}

impl Bed {
    pub(super) fn on(stage: Stage<ProbeManager>) -> Self {
        let runtime = StandIn::<RuntimeClient>::on(stage.wiring());
        let events = Events::on(stage.wiring());
        let commands: Arc<Mutex<Commands>> = Arc::default();
        let ours = commands.clone();
        runtime.answer_later(move |m: &ExecSync| run(ours.clone(), m.clone()));
        Bed { stage, events, commands, version: Mutex::new(0) }
    }

    /// What comes of commands with this first word, one after the other; the last one stays. Without a script they exit with 0.
    pub(super) fn script(&self, word: &str, replies: impl IntoIterator<Item = Reply>) {
        lock(&self.commands).scripts.insert(word.to_owned(), replies.into_iter().collect());
    }

    /// Commands with this first word so far, with when they began.
    pub(super) fn ran(&self, word: &str) -> Vec<(Instant, ExecSync)> {
        lock(&self.commands).began.iter().filter(|(_, m)| first(m) == word).cloned().collect()
    }

    pub(super) fn count(&self, word: &str) -> usize {
        self.ran(word).len()
    }

    /// The most of them that ran at one time.
    pub(super) fn most_at_once(&self, word: &str) -> usize {
        lock(&self.commands).running.get(word).map_or(0, |(_, most)| *most)
    }

    /// How many have run within that time from now.
    pub(super) async fn count_in(&self, word: &str, time: Duration) -> usize {
        let before = self.count(word);
        tokio::time::sleep(time).await;
        self.count(word) - before
    }

    /// A pod of this specification whose UID begins with the case's.
    pub(super) fn pod(&self, word: &str, spec: Value) -> Arc<Pod> {
        let metadata = json!({"name": "web", "namespace": "ns"});
        Arc::new(fakes::pod(&self.stage.uid(word), json!({"metadata": metadata, "spec": spec})))
    }

    pub(super) async fn start(&self, pod: &Arc<Pod>) -> Outcome {
        self.stage.ask(StartProbes { pod: pod.clone() }).await
    }

    pub(super) async fn stop(&self, pod: &Pod, keep_readiness: bool) -> Outcome {
        self.stage.ask(StopProbes { uid: model::pod::uid(pod), keep_readiness }).await
    }

    pub(super) async fn retain(&self, pods: &[&Pod]) -> Outcome {
        let known = pods.iter().map(|p| model::pod::uid(p)).collect();
        self.stage.ask(RetainProbes { known }).await
    }

    /// The node publishes this status of a pod.
    pub(super) fn show_in_phase(&self, pod: &Pod, phase: &str, containers: Vec<ContainerStatus>) {
        let mut version = self.version.lock().unwrap_or_else(PoisonError::into_inner);
        *version += 1;
        let is_init = |c: &ContainerStatus| model::pod::init_containers(pod).iter().any(|i| i.name == c.name);
        let (init, regular) = containers.into_iter().partition(is_init);
        let status = PodStatus {
            phase: Some(phase.to_owned()),
            pod_ip: Some("127.0.0.1".to_owned()),
            container_statuses: Some(regular),
            init_container_statuses: Some(init),
            ..PodStatus::default()
        };
        let changed_at = self.stage.now();
        let entry = StatusEntry { version: *version, changed_at, ..fakes::status_entry(pod, status) };
        self.stage.wiring().put(model::pod::uid(pod), entry);
    }

    pub(super) fn show(&self, pod: &Pod, containers: Vec<ContainerStatus>) {
        self.show_in_phase(pod, "Running", containers);
    }

    /// The container `m` runs since now as `c1` and has started.
    pub(super) fn runs(&self, pod: &Pod) {
        self.show(pod, vec![running("m", "c1", self.stage.now(), true)]);
    }

    /// A pod of one container `m` with these probes, which runs since now and has started.
    pub(super) async fn running_pod(&self, word: &str, probes: Value) -> Outcome<Arc<Pod>> {
        let pod = self.pod(word, one(probes));
        self.runs(&pod);
        self.start(&pod).await?;
        Ok(pod)
    }

    pub(super) fn row(&self, pod: &Pod) -> Option<Arc<PodProbes>> {
        self.stage.wiring().board::<PodProbes>().get(&model::pod::uid(pod))
    }

    pub(super) fn verdict(&self, pod: &Pod, id: &str, kind: ProbeKind) -> Option<ProbeVerdict> {
        self.row(pod)?.verdict(&id.into(), kind)
    }

    /// Waits for a verdict.
    pub(super) async fn turns(
        &self,
        pod: &Pod,
        (id, kind): (&str, ProbeKind),
        to: ProbeVerdict,
        within: Duration,
    ) -> Outcome {
        let so = || self.verdict(pod, id, kind) == Some(to);
        let what = format!("{kind} of {id} is {to:?}");
        let found = until(&what, within, so).await;
        found.map_err(|Broken(why)| Broken(format!("{why}; it is {:?}", self.verdict(pod, id, kind))))
    }

    /// The verdict is that now.
    pub(super) fn stands(&self, pod: &Pod, (id, kind): (&str, ProbeKind), at: Option<ProbeVerdict>) -> Outcome {
        let is = self.verdict(pod, id, kind);
        demand(is == at, || format!("{kind} of {id} is {is:?}, not {at:?}"))
    }

    /// Rows of a pod that were posted since then, in order; `None`: it is gone.
    pub(super) fn rows_since(&self, mark: usize, pod: &Pod) -> Outcome<Vec<Option<PodProbes>>> {
        self.stage.rows_since(mark, pod)
    }

    /// In no row since then the verdict was another one, nor none.
    pub(super) fn never_flipped(
        &self,
        mark: usize,
        pod: &Pod,
        (id, kind): (&str, ProbeKind),
        from: ProbeVerdict,
    ) -> Outcome {
        for row in self.rows_since(mark, pod)? {
            let is = row.and_then(|row| row.verdict(&id.into(), kind));
            demand(is == Some(from), || format!("a row said {is:?} of {kind} of {id}, which was {from:?}"))?;
        }
        self.stands(pod, (id, kind), Some(from))
    }

    /// Messages of events so far.
    pub(super) fn told(&self) -> Vec<String> {
        self.events.all().into_iter().map(|event| event.message).collect()
    }
}

fn first(message: &ExecSync) -> &str {
    message.command.first().map_or("", String::as_str)
}

async fn run(commands: Arc<Mutex<Commands>>, message: ExecSync) -> Result<ExecOutcome, CallError> {
    let word = first(&message).to_owned();
    let reply = {
        let mut all = lock(&commands);
        all.began.push((Instant::now(), message));
        let (now, most) = all.running.entry(word.clone()).or_default();
        *now += 1;
        *most = (*most).max(*now);
        let script = all.scripts.entry(word.clone()).or_default();
        let last = script.len() <= 1;
        let next = if last { script.front().cloned() } else { script.pop_front() };
        next.unwrap_or(Reply::Exits(0, ""))
    };
    let _until_it_ends = Running(commands, word);
    let (code, output) = match reply {
        Reply::Exits(code, output) => (code, output),
        Reply::Takes(time, code) => {
            tokio::time::sleep(time).await;
            (code, "")
        }
        Reply::Fails(kind, message) => return Err(CallError::new(kind, message)),
        Reply::Hangs => std::future::pending().await,
    };
    Ok(ExecOutcome { exit_code: code, stdout: output.as_bytes().to_vec(), stderr: Vec::new() })
}

/// A specification with one container `m` and these fields of it.
pub(super) fn one(probes: Value) -> Value {
    json!({"containers": [container("m", probes)]})
}

/// A container of this name with these fields.
pub(super) fn container(name: &str, mut fields: Value) -> Value {
    fields["name"] = json!(name);
    fields
}

/// A probe every second by a command with this first word.
pub(super) fn exec(word: &str) -> Value {
    json!({"exec": {"command": [word]}, "periodSeconds": 1})
}

/// The same with other fields.
pub(super) fn exec_with(word: &str, fields: Value) -> Value {
    let mut probe = exec(word);
    for (name, value) in fields.as_object().into_iter().flatten() {
        probe[name] = value.clone();
    }
    probe
}

fn state(name: &str, id: Option<&str>, started: bool, state: Value) -> ContainerStatus {
    fakes::object(json!({"name": name, "image": "", "imageID": "", "ready": false, "restartCount": 0,
        "containerID": id.map(|id| format!("containerd://{id}")), "started": started, "state": state}))
}

pub(super) fn running(name: &str, id: &str, since: Timestamp, started: bool) -> ContainerStatus {
    state(name, Some(id), started, json!({"running": {"startedAt": since.to_api()}}))
}

pub(super) fn ended(name: &str, id: &str, exit_code: i32) -> ContainerStatus {
    state(name, Some(id), false, json!({"terminated": {"exitCode": exit_code}}))
}

pub(super) fn waiting(name: &str) -> ContainerStatus {
    state(name, None, false, json!({"waiting": {"reason": "ContainerCreating"}}))
}

pub(super) fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

/// A case that begins with a manager that has nothing to do.
pub(super) fn case<F, Fut>(name: &'static str, source: &'static str, rule: &'static str, play: F) -> Case<ProbeManager>
where
    F: Fn(Bed) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Outcome> + 'static,
{
    Case::begun(name, source, rule, Bed::on, play)
}
