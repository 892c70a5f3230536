//! Plays a scenario on a node in memory, and judges what was seen.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use actor::Kernel;
use model::Timestamp;
use node_config::{NodeShutdown, Threshold};
use sim::{SimNode, World};
use tokio::time::{Instant, sleep, sleep_until};

use crate::check::{self, Finding};
use crate::coverage::Coverage;
use crate::history::{Fact, History};
use crate::observe::{Observer, blind};
use crate::step::Scenario;

mod apply;
mod claims;
mod left;
mod trouble;

use apply::Stage;

/// The node has to be at rest so long after all trouble is over: twice the longest back-off, and a few deadlines of two minutes.
const REST: Duration = Duration::from_secs(1500);
/// At rest, it is looked at for so long.
const CALM: Duration = Duration::from_secs(60);
/// Between two looks whether it is.
const LOOKS: Duration = Duration::from_secs(10);

/// Facts of a scenario: an hour of twenty pods has a few thousand.
const MOST: usize = 50_000;

/// What became of a scenario.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Rules that were broken, the earliest first.
    pub findings: Vec<Finding>,
    /// Of the transcript: the same scenario gives the same one.
    pub hash: u64,
    /// Time that passed for the node.
    pub simulated: Duration,
    /// What was seen, in lines; kept only when it is asked for.
    pub transcript: Option<String>,
    /// Steps that found what they are about, by kind.
    pub steps: BTreeMap<&'static str, u64>,
    /// Fault points that were passed, by role and point.
    pub points: BTreeMap<String, u64>,
    /// Decisions that were taken.
    pub coverage: Coverage,
    /// Steps, facts, and calls of the runtime.
    pub counts: [usize; 3],
}

/// Plays `scenario`; `keep` its transcript.
#[must_use]
pub fn play(scenario: &Scenario, keep: bool) -> Outcome {
    let run = || actor::testing::run(scenario.seed, |kernel| async move { on(&kernel, scenario, keep).await });
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(outcome) => outcome,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned())).unwrap_or_default();
            let findings = vec![Finding { at: 0, checker: "panic", text }];
            Outcome { findings, ..Outcome::default() }
        }
    }
}

/// A node of a cluster that evicts when its disk is short, and holds shutdowns back.
fn world(kernel: &Kernel) -> World {
    let mut world = World::in_cluster(kernel);
    let config = &mut world.settings.config;
    config.eviction.hard.insert("nodefs.available".to_owned(), Threshold::Percent(10.0));
    config.eviction.pressure_transition_period = Duration::from_secs(60);
    config.shutdown =
        NodeShutdown { grace_period: apply::GRACE, critical: apply::OF_CRITICAL, ..NodeShutdown::default() };
    world.files.count(Timestamp(kernel.clock().unix_nanos()));
    world
}

async fn on(kernel: &Kernel, scenario: &Scenario, keep: bool) -> Outcome {
    let mut stage = Stage::new(SimNode::down(world(kernel), kernel));
    let observer = stage.observer.clone();
    tokio::select! {
        biased;
        () = flooded(&observer) => {}
        () = until_rest(&mut stage, scenario) => {}
    }
    outcome(stage, keep)
}

/// Ends when more was seen than can be: a node that does something again and again without a pause would have no end.
async fn flooded(observer: &Observer) {
    while observer.history().facts.len() < MOST {
        sleep(LOOKS).await;
    }
    observer.note(Fact::Left(format!("more than {MOST} facts")));
}

/// All steps, then whatever the node does until it rests.
async fn until_rest(stage: &mut Stage, scenario: &Scenario) {
    stage.boot();
    let began = stage.observer.began();
    let mut steps = scenario.steps.iter().peekable();
    let end = began + Duration::from_millis(scenario.calm_ms);
    loop {
        let next = steps.peek().map_or(end, |step| began + Duration::from_millis(step.at_ms)).min(end);
        if let Some(boot) = stage.boots_at.filter(|boot| *boot <= next) {
            sleep_until(boot).await;
            stage.boot();
            continue;
        }
        sleep_until(next).await;
        if next == end {
            break;
        }
        if let Some(step) = steps.next() {
            stage.apply(&step.step).await;
        }
    }
    stage.calm();
    stage.boot();
    come_to_rest(stage).await;
}

/// Waits until the node is at rest, or until it should be.
async fn come_to_rest(stage: &Stage) {
    let limit = Instant::now() + REST;
    let is_at_rest = || check::is_at_rest(&stage.observer.history()) && left::of(stage).is_empty();
    let mut expired = 0;
    while Instant::now() < limit {
        sleep(LOOKS).await;
        if is_at_rest() {
            let before = left::expired(stage);
            sleep(CALM).await;
            expired = left::expired(stage).saturating_sub(before);
            if expired == 0 && is_at_rest() {
                break;
            }
        }
    }
    let unanswered = (expired > 0).then(|| format!("{expired} asks within a minute that nobody answers"));
    for text in left::of(stage).into_iter().chain(unanswered) {
        stage.observer.note(Fact::Left(text));
    }
}

fn outcome(stage: Stage, keep: bool) -> Outcome {
    blind(&stage.node);
    let history = {
        let mut history = stage.observer.history();
        history.end = stage.observer.now();
        std::mem::take(&mut *history)
    };
    let kernel = &stage.node.kernel;
    let mut findings = check::check(&history);
    if let Err(e) = kernel.health() {
        findings.push(Finding {
            at: history.end,
            checker: "supervision",
            text: format!("the root group gave up: {e:?}"),
        });
    }
    let mut points = BTreeMap::new();
    for (actor, point, count) in kernel.faults().passages() {
        let role = actor.split('/').next().unwrap_or_default();
        *points.entry(format!("{role}: {point}")).or_default() += count;
    }
    let mut transcript = Transcript { hasher: DefaultHasher::new(), text: keep.then(String::new) };
    let calls = write_down(&stage.node, &history, &mut transcript);
    let Transcript { hasher, text: transcript } = transcript;
    let simulated = Duration::from_nanos(u64::try_from(history.end).unwrap_or_default());
    let counts = [stage.applied, history.facts.len(), calls];
    let coverage = stage.observer.covered.take();
    Outcome { findings, hash: hasher.finish(), simulated, transcript, steps: stage.took, points, coverage, counts }
}

/// Text of which the hash is taken, and which is kept where somebody wants to read it.
struct Transcript {
    hasher: DefaultHasher,
    text: Option<String>,
}

impl std::fmt::Write for Transcript {
    fn write_str(&mut self, s: &str) -> std::fmt::Result {
        self.hasher.write(s.as_bytes());
        if let Some(text) = &mut self.text {
            text.push_str(s);
        }
        Ok(())
    }
}

/// Facts, calls, strikes. Returns how many calls there were.
fn write_down(node: &SimNode, history: &History, out: &mut Transcript) -> usize {
    for (at, fact) in &history.facts {
        let _ =
            writeln!(out, "{:.6} {fact:?}", Duration::from_nanos(u64::try_from(*at).unwrap_or_default()).as_secs_f64());
    }
    let calls = node.world.runtime.peek_calls(|calls| {
        for call in calls {
            let (at, answered) = (call.at.0, call.answered.map(|t| t.0));
            let _ = writeln!(out, "call {at} {answered:?} {} {} {:?}", call.rpc, call.subject, call.code);
        }
        calls.len()
    });
    for struck in node.kernel.faults().log() {
        let _ = writeln!(out, "struck {struck}");
    }
    for a in node.kernel.directory().actors() {
        let _ = writeln!(out, "actor {} generation {}, {} turns", a.name, a.generation, a.turns);
    }
    calls
}
