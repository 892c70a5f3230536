//! Every actor is panicked, killed and stalled at each of its fault points while twenty pods run and others come and go.
//!
//! One case: arm one rule, let one pod start, one lose a container and one stop, and wait until everything is as it would be
//! without the fault. What must hold afterwards is in [`Round::verdict`]. Points are those that actors pass in an undisturbed
//! round: what takes a configMap, an orphan or an update of a pod is not struck here.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::rc::Rc;
use std::time::Duration;

use actor::Kernel;
use fakes::FakeRuntime;
use fakes::runtime::{ExecReply, Features, Program, Pull};
use model::Timestamp;
use sim::{LIMIT, POD_URL, SimNode, World};
use tokio::time::sleep;
use tonic::Code;

use crate::{pod, secs, simple};

const ACTIONS: [&str; 3] = ["panic", "kill", STALL];
/// Long enough to outlast the deadlines of book-keeping asks and the patience with a stuck actor.
const STALL: &str = "stall(40s)";
const STALLED: Duration = Duration::from_secs(41);
/// Passages beside the first that are struck too, where a round has so many.
const LATER: [u32; 4] = [2, 3, 4, 5];
/// A struck node must be as it should within this.
const CONVERGE: Duration = Duration::from_secs(400);
/// Restarts of actors are counted per minute; a round's time apart, cases stay below every budget.
const REST: Duration = Duration::from_secs(15);

/// The pods that are there all the time: name, manifest.
fn residents() -> Vec<(String, String)> {
    let mut all = Vec::new();
    let mut add = |name: &str, text: String| all.push((name.to_owned(), text));
    for i in 0..8 {
        add(&format!("plain{i}"), simple(&format!("plain{i}"), ""));
    }
    for i in 0..3 {
        let name = format!("side{i}");
        let spec = "
  initContainers:
  - {name: proxy, image: 'tool:1', restartPolicy: Always}
  - {name: quick, image: 'tool:1'}
  containers:
  - {name: app, image: 'app:1'}";
        add(&name, pod(&name, spec));
    }
    for i in 0..2 {
        let name = format!("probed{i}");
        let spec = "
  containers:
  - name: app
    image: app:1
    livenessProbe: {exec: {command: [ok]}, periodSeconds: 5}
    readinessProbe: {exec: {command: [ok]}, periodSeconds: 5}";
        add(&name, pod(&name, spec));
    }
    let hooked = "
  containers:
  - name: app
    image: app:1
    lifecycle: {postStart: {exec: {command: [hi]}}, preStop: {exec: {command: [bye]}}}";
    add("hooked", pod("hooked", hooked));
    let volumes = "
  volumes: [{name: v, emptyDir: {}}, {name: h, hostPath: {path: /tmp}}]
  containers:
  - {name: app, image: 'app:1', volumeMounts: [{name: v, mountPath: /v}, {name: h, mountPath: /h}]}
  - {name: more, image: 'app:2'}";
    add("volumes", pod("volumes", volumes));
    add("onhost", simple("onhost", "\n  hostNetwork: true"));
    let limited = "
  containers:
  - {name: app, image: 'app:1', resources: {limits: {cpu: 50m, memory: 32Mi}}}";
    add("limited", pod("limited", limited));
    add("loop", pod("loop", "\n  containers:\n  - {name: crash, image: 'app:1'}"));
    add("job", pod("job", "\n  restartPolicy: Never\n  containers:\n  - {name: quick, image: 'app:1'}"));
    add("noimage", pod("noimage", "\n  containers:\n  - {name: app, image: 'missing:1'}"));
    assert_eq!(all.len(), 20);
    all
}

/// A pod with a little of everything, which comes and goes.
fn guest(name: &str) -> String {
    let spec = "
  terminationGracePeriodSeconds: 10
  volumes: [{name: v, emptyDir: {}}]
  initContainers:
  - name: proxy
    image: tool:1
    restartPolicy: Always
    startupProbe: {exec: {command: [ok]}, periodSeconds: 1}
  - {name: quick, image: 'tool:1'}
  containers:
  - name: app
    image: app:1
    volumeMounts: [{name: v, mountPath: /v, subPath: sub}]
    readinessProbe: {exec: {command: [ok]}, periodSeconds: 2}
    lifecycle: {postStart: {exec: {command: [hi]}}, preStop: {exec: {command: [bye]}}}
  - {name: other, image: 'pulled:1', imagePullPolicy: IfNotPresent}";
    pod(name, spec)
}

/// The resident of the API server, and that of the URL.
const BOUND: &str = "bound";
const OF_URL: &str = "web";
/// Residents of the folder, the two others, two guests, two visitors.
const WORKERS: usize = 20 + 2 + 2 + 2;

/// Spec of the API server's pods.
fn bound() -> serde_json::Value {
    serde_json::json!({ "containers": [{ "name": "app", "image": "app:1" }] })
}

fn comes_and_goes(pod: &str) -> bool {
    pod.starts_with("guest") || pod.starts_with("visitor")
}

/// The API server has heard that a pod is ready, whose own or whose mirror it has.
fn told(node: &SimNode, name: &str) -> bool {
    let status = node.api_copy(name).and_then(|pod| pod.status);
    status.is_some_and(|s| s.conditions.iter().flatten().any(|c| c.type_ == "Ready" && c.status == "True"))
}

/// Residents whose worker rightly has an error all the time.
const TROUBLED: [&str; 2] = ["loop-sim", "noimage-sim"];

pub(crate) struct Round {
    pub(crate) node: SimNode,
    /// Running containers of residents that never end by themselves.
    steady: BTreeSet<String>,
    /// Number of the guest that starts in this round.
    pub(crate) k: usize,
    /// How long the last case took to get where it should be.
    took: Duration,
    /// Its rule struck.
    struck: bool,
    versions: Rc<RefCell<Vec<String>>>,
}

impl Round {
    async fn new(kernel: &Kernel, features: Features) -> Self {
        let now = Timestamp(kernel.clock().unix_nanos());
        let mut node = SimNode::down(World::with_runtime(FakeRuntime::at(features, now)).joined(), kernel);
        node.world.web.put(POD_URL, &simple(OF_URL, ""));
        node.boot();
        node.world.runtime.add_images(&["app:1", "app:2", "tool:1"]);
        node.world.runtime.program("quick", &[Program::exits(secs(1), 0)]);
        node.world.runtime.program("crash", &[Program::exits(secs(1), 1)]);
        node.world.runtime.on_exec(|_| ExecReply { takes: Duration::from_millis(200), ..ExecReply::default() });
        node.world.runtime.registry("pulled:1", Pull::Succeeds(secs(1)));
        kernel.faults().enable();
        let versions = Rc::default();
        watch_versions(&node, &versions);
        let mut round = Round { node, steady: BTreeSet::new(), k: 2, took: Duration::ZERO, struck: false, versions };
        for (name, text) in residents() {
            round.node.put(&format!("{name}.yaml"), &text);
        }
        round.node.bind(BOUND, bound());
        for k in 0..2 {
            round.node.put(&format!("guest{k}.yaml"), &guest(&format!("guest{k}")));
            round.node.bind(&format!("visitor{k}"), bound());
        }
        round
            .node
            .until("residents and guests are there", LIMIT, |n| {
                residents_fine(n).is_ok() && ["guest0", "guest1", "visitor0", "visitor1"].iter().all(|g| n.is_ready(g))
            })
            .await;
        sleep(secs(30)).await;
        round.steady = round.residents_running();
        round
    }

    /// A node after two rounds without faults.
    pub(crate) async fn undisturbed(kernel: &Kernel) -> Self {
        Self::undisturbed_on(kernel, Features::containerd_1_6()).await
    }

    /// As [`Round::undisturbed`], on a runtime of another kind.
    pub(crate) async fn undisturbed_on(kernel: &Kernel, features: Features) -> Self {
        let mut round = Round::new(kernel, features).await;
        for _ in 0..2 {
            round.case(None).await.unwrap_or_else(|e| panic!("without any fault: {e}"));
        }
        round
    }

    fn residents_running(&self) -> BTreeSet<String> {
        let runtime = &self.node.world.runtime;
        let guests: BTreeSet<String> =
            runtime.sandboxes().iter().filter(|s| comes_and_goes(s.pod())).map(|s| s.id.clone()).collect();
        let steady = |c: &&fakes::runtime::FakeContainer| c.running() && c.name() != "crash";
        runtime
            .containers()
            .iter()
            .filter(steady)
            .filter(|c| !guests.contains(&c.sandbox))
            .map(|c| c.id.clone())
            .collect()
    }

    fn name(&self, back: usize) -> String {
        format!("guest{}", self.k - back)
    }

    fn visitor(&self, back: usize) -> String {
        format!("visitor{}", self.k - back)
    }

    /// A guest comes, one loses a container, one goes.
    pub(crate) fn stir(&self) {
        let node = &self.node;
        node.world.runtime.remove_image("pulled:1");
        node.put(&format!("{}.yaml", self.name(0)), &guest(&self.name(0)));
        if let Some(id) = node.running_id(&self.name(1), "other") {
            node.world.runtime.exit(&id, 1);
        }
        node.remove(&format!("{}.yaml", self.name(2)));
        node.bind(&self.visitor(0), bound());
        node.delete(&self.visitor(2));
    }

    /// Everything is as it would be without a fault.
    pub(crate) fn settled(&self) -> Result<(), String> {
        let node = &self.node;
        let (new, struck, old) = (self.name(0), self.name(1), self.name(2));
        for name in [&new, &struck] {
            if !node.is_ready(name) {
                return Err(format!("{name} is not ready"));
            }
        }
        if node.instances(&struck, "other").iter().filter(|i| i.running).count() != 1 {
            return Err(format!("{struck}/other does not run"));
        }
        for old in [&old, &self.visitor(2)] {
            if !node.is_gone(old) {
                return Err(format!("{old} is not gone"));
            }
        }
        for (uid, row) in node.wiring().board::<contract::pod_worker::WorkerState>().snapshot() {
            let name = row.pod.as_deref().map_or("", |p| model::pod::name(p)).to_owned();
            if let (Some(e), false) = (&row.error, TROUBLED.contains(&name.as_str())) {
                return Err(format!("worker {uid} of {name} has an error: {e}"));
            }
        }
        residents_fine(node)?;
        if node.wiring().board::<contract::pod_worker::WorkerState>().snapshot().len() != WORKERS {
            return Err(format!(
                "{} workers",
                node.wiring().board::<contract::pod_worker::WorkerState>().snapshot().len()
            ));
        }
        // Last, for it takes longest: a copy is read as JSON.
        for name in [&new, &self.visitor(0), &self.visitor(1), &BOUND.to_owned(), &OF_URL.to_owned()] {
            if !told(node, name) {
                return Err(format!("the API server does not know that {name} is ready"));
            }
        }
        if node.api_copy(&self.visitor(2)).is_some() {
            return Err(format!("the API server still has {}", self.visitor(2)));
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

    /// Waits until everything is as it would be without a fault; whether it is, is asked for afterwards.
    pub(crate) async fn converge(&self) {
        self.node.holds_within(CONVERGE, |_| self.settled().is_ok()).await;
    }

    /// What a fault may not have done.
    pub(crate) fn verdict(&self) -> Result<(), String> {
        self.settled()?;
        self.undisturbed_residents()?;
        let node = &self.node;
        let (new, struck) = (self.name(0), self.name(1));
        for rpc in ["RunPodSandbox", "CreateContainer", "StartContainer"] {
            let mut counts = node.count(rpc);
            counts.retain(|subject, _| !subject.contains("/loop-sim") && !subject.contains("/visitor"));
            let of = |pod: &str, container: &str| format!("default/{pod}-sim{container}");
            let want: BTreeMap<String, usize> = match rpc {
                "RunPodSandbox" => BTreeMap::from([(of(&new, ""), 1)]),
                _ => ["/proxy", "/quick", "/app", "/other"]
                    .iter()
                    .map(|c| (of(&new, c), 1))
                    .chain([(of(&struck, "/other"), 1)])
                    .collect(),
            };
            if counts != want {
                return Err(format!("{rpc}: wanted {want:?}, got {counts:?}"));
            }
        }
        let refused: Vec<String> = node
            .world
            .runtime
            .calls()
            .iter()
            .filter(|c| c.mutation.is_some() && !["PullImage", "ExecSync"].contains(&c.rpc))
            .filter(|c| c.code.is_some_and(|code| code != Code::Ok))
            .map(|c| format!("{} {}: {:?}", c.rpc, c.subject, c.code))
            .collect();
        if refused.is_empty() { Ok(()) } else { Err(format!("the runtime refused {refused:?}")) }
    }

    /// One case: a rule, or none.
    pub(crate) async fn case(&mut self, rule: Option<&Case>) -> Result<(), String> {
        let faults = self.node.kernel.faults().clone();
        faults.clear();
        self.node.world.runtime.forget_calls();
        let before = faults.log().len();
        if let Some(case) = rule {
            self.node.fault(&case.rule());
        }
        let begun = tokio::time::Instant::now();
        self.stir();
        if let Some(case) = rule.filter(|case| case.nth == 1) {
            let struck = |_: &SimNode| faults.log().len() > before;
            if !self.node.holds_within(secs(70), struck).await {
                // A point that only a new generation passes.
                self.node.kernel.directory().kill(&case.actor);
            }
            if !self.node.holds_within(secs(70), struck).await {
                // Or only a new daemon, as what is done once in its life.
                self.node.restart().await;
                watch_versions(&self.node, &self.versions);
            }
            if !self.node.holds_within(secs(70), struck).await {
                return Err("the point was not passed".to_owned());
            }
        }
        if rule.is_some_and(|case| case.action == STALL) {
            // What was asked while the actor stood still may come out wrong when it goes on.
            sleep(STALLED).await;
        }
        self.converge().await;
        self.took = begun.elapsed();
        self.struck = faults.log().len() > before;
        faults.clear();
        sleep(REST).await;
        let verdict = self.verdict();
        self.k += 1;
        verdict.map_err(|e| format!("{e}\n{}", self.node.picture()))
    }
}

fn residents_fine(n: &SimNode) -> Result<(), String> {
    for name in [BOUND, OF_URL] {
        if !n.is_ready(name) {
            return Err(format!("{name} is not ready"));
        }
    }
    for (name, _) in residents() {
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

/// Notes every status whose version is lower than one seen before in this life of the daemon.
fn watch_versions(node: &SimNode, found: &Rc<RefCell<Vec<String>>>) {
    let (notes, board) = (found.clone(), node.wiring().board::<contract::status::StatusEntry>());
    let mut changes = board.changes();
    tokio::task::spawn_local(async move {
        let mut newest = BTreeMap::new();
        while changes.changed().await.is_ok() {
            for (uid, row) in board.snapshot() {
                let last = newest.insert(uid.clone(), row.version).unwrap_or_default();
                if row.version < last {
                    notes.borrow_mut().push(format!("{uid}: {last} then {}", row.version));
                }
            }
        }
    });
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Case {
    actor: String,
    point: String,
    action: &'static str,
    /// Which passage of the point.
    nth: u32,
}

impl Case {
    fn rule(&self) -> String {
        format!("{}: {}@{}#{}", self.actor, self.action, self.point, self.nth)
    }
}

/// Actors (workers count as one) and the points that they pass.
fn declared(kernel: &Kernel) -> BTreeMap<String, BTreeSet<String>> {
    let mut out: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (actor, point) in kernel.faults().declared() {
        let actor = actor.split('/').next().unwrap_or_default().to_owned();
        out.entry(actor).or_default().insert(point);
    }
    out
}

/// The runtimes that the cases are shared out to, by how they tell of changes, and the cases that each gets at most. The last
/// one gets what is left.
type Kind = (&'static str, fn() -> Features, fn(&Case) -> bool);
const KINDS: [Kind; 3] = [
    ("CRI events", Features::containerd_2, |c| c.action == "kill" || [2, 3, 5].contains(&c.nth)),
    ("no events", Features::without_events, |c| c.action == STALL || c.nth == 4),
    ("containerd's events", Features::containerd_1_6, |_| true),
];

/// How far the cases of one actor are.
#[derive(Default)]
struct Progress {
    /// Cases of the present kind of runtime that are left.
    left: Option<Vec<Case>>,
    done: BTreeSet<Case>,
    failures: String,
    times: Vec<(Duration, String)>,
}

impl Progress {
    /// Goes through the cases on one node, up to the first failure.
    async fn go_on(&mut self, kernel: Kernel, actor: &str, (name, features, takes): Kind) {
        let mut round = Round::undisturbed_on(&kernel, features()).await;
        let mut left = self.left.take().unwrap_or_else(|| {
            let mut all = cases(actor, &declared(&kernel).remove(actor).unwrap_or_default());
            all.retain(|c| takes(c) && !self.done.contains(c));
            all.reverse();
            all
        });
        while let Some(case) = left.pop() {
            let outcome = round.case(Some(&case)).await;
            if round.struck || outcome.is_err() {
                self.times.push((round.took, case.rule()));
            }
            let failed = outcome.map_err(|e| writeln!(self.failures, "--- {} with {name}\n{e}", case.rule())).is_err();
            self.done.insert(case);
            if failed {
                break;
            }
        }
        self.left = Some(left);
    }
}

fn cases(actor: &str, points: &BTreeSet<String>) -> Vec<Case> {
    let case = |p: &String, action, nth| Case { actor: actor.to_owned(), point: p.clone(), action, nth };
    let first = points.iter().flat_map(|p| ACTIONS.map(|a| case(p, a, 1)));
    let later = points.iter().flat_map(|p| LATER.map(|nth| case(p, "panic", nth)));
    // To replay single cases: the text of a rule, or a part of it.
    let only = std::env::var("FAULT").unwrap_or_default();
    first.chain(later).filter(|c| c.rule().contains(&only)).collect()
}

/// All points of one actor, each with each action. After a failure the rest goes on with a fresh node.
fn strike(actor: &str) {
    sim::log_to_stderr();
    let mut progress = Progress::default();
    for kind in KINDS {
        progress.left = None;
        while progress.left.as_ref().is_none_or(|left| !left.is_empty()) {
            actor::testing::run(7, |kernel| progress.go_on(kernel, actor, kind));
        }
    }
    println!("{actor}: {} cases; the slowest to recover:", progress.times.len());
    progress.times.sort();
    for (took, rule) in progress.times.iter().rev().take(5) {
        println!("  {took:.1?} {rule}");
    }
    assert!(!progress.done.is_empty(), "{actor} passes no fault point");
    assert!(progress.failures.is_empty(), "{}", progress.failures);
}

/// A test per actor that is declared.
macro_rules! each_actor {
    ($($other:ident: $other_role:ident),*; $($name:ident: $role:ident),* $(,)?) => {
        $(mod $name {
            #[test]
            fn recovers_from_each_fault() {
                super::strike(<contract::$role as contract::Role>::DECLARATION.actor);
            }
        })*
    };
}
contract::for_each_role!(each_actor);

#[test]
fn every_actor_of_the_node_is_struck() {
    actor::testing::run(7, |kernel| async move {
        Round::undisturbed(&kernel).await;
        let declared = declared(&kernel);
        for (actor, points) in &declared {
            println!("{actor}: {points:?}");
        }
        let points: usize = declared.values().map(BTreeSet::len).sum();
        let (first, later) = (points * ACTIONS.len(), points * LATER.len());
        println!(
            "{} actors, {points} points, {first} cases at first passages, up to {later} at later ones",
            declared.len()
        );
        let mut actors: Vec<_> = contract::DECLARATIONS.iter().map(|d| d.actor).filter(|a| !a.is_empty()).collect();
        actors.sort_unstable();
        assert_eq!(declared.keys().map(String::as_str).collect::<Vec<_>>(), actors);
    });
}
