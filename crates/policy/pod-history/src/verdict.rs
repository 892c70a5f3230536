//! Where a pod stands: the verdict of `bosun why`.

use model::Timestamp;
use model::history::{End, PodHistory};
use serde::{Deserialize, Serialize};

use crate::facts::{Facts, WorkerStage};
use crate::found::{Cause, Found};
use crate::pending::{ending, refused, starting};
use crate::words::sentence;

/// How many decisions are shown.
const DECISIONS: usize = 10;

/// A decision, and when it was taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Decision {
    /// When, the latest time; nanoseconds since the epoch.
    pub at_ns: i64,
    /// How often.
    pub count: u32,
    /// What, and why.
    pub text: String,
}

/// Where a pod stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Verdict {
    /// `namespace/name`.
    pub pod: String,
    /// Its UID.
    pub uid: String,
    /// What is wanted of it.
    pub wanted: String,
    /// In a word.
    pub cause: Cause,
    /// In a sentence.
    pub summary: String,
    /// The step that it is at.
    pub step: String,
    /// Who has to do something.
    pub owner: String,
    /// What the owner waits for; empty: nothing.
    pub waits_for: String,
    /// Since when, nanoseconds since the epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_ns: Option<i64>,
    /// Until when, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_ns: Option<i64>,
    /// What the latest step, call or program said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<String>,
    /// The latest decisions, oldest first.
    pub decisions: Vec<Decision>,
    /// How to look further: commands.
    pub look: Vec<String>,
    /// When this was true, nanoseconds since the epoch.
    pub now_ns: i64,
}

/// Names what holds the pod up. The first of the rules that has something to say is right: from what nothing can come after
/// (refused, at its end) to what is a matter of waiting.
#[must_use]
pub fn why(f: &Facts<'_>) -> Verdict {
    let found = refused(f).or_else(|| ending(f)).or_else(|| starting(f)).unwrap_or_else(|| at_rest(f));
    let pod = model::pod::namespaced_name(f.pod);
    let mut look = found.look;
    look.push(format!("bosun timeline {pod}"));
    look.push(format!("bosun get pod {pod}"));
    Verdict {
        wanted: wanted(f),
        uid: model::pod::uid(f.pod).to_string(),
        pod,
        cause: found.cause,
        summary: found.summary,
        step: found.step,
        owner: found.owner.to_owned(),
        waits_for: found.waits_for,
        since_ns: found.since.map(|at| at.0),
        until_ns: found.until.map(|at| at.0),
        said: found.said,
        decisions: f.history.map_or_else(Vec::new, decisions),
        look,
        now_ns: f.now.0,
    }
}

fn wanted(f: &Facts<'_>) -> String {
    let ends = f.unwanted || f.pod.metadata.deletion_timestamp.is_some();
    let asked = f.worker.is_some_and(|w| w.stop_requested);
    if ends || asked {
        let why = match (f.worker.and_then(|w| w.stop_reason), ends) {
            (Some((reason, _)), _) => format!(": {reason}"),
            (None, true) => ": it was deleted".to_owned(),
            (None, false) => String::new(),
        };
        return format!("to end{why}");
    }
    let spec = f.pod.spec.as_ref();
    let containers = spec.map_or(0, |s| s.containers.len());
    let init = model::pod::init_containers(f.pod).len();
    let policy = spec.and_then(|s| s.restart_policy.as_deref()).unwrap_or("Always");
    let init = if init == 0 { String::new() } else { format!(" after {init} init") };
    let plural = if containers == 1 { "" } else { "s" };
    format!("to run: {containers} container{plural}{init}, restartPolicy {policy}")
}

fn decisions(history: &PodHistory) -> Vec<Decision> {
    let all = history.transitions.iter().filter(|t| t.what.is_decision());
    let said = all.map(|t| Decision { at_ns: t.last.0, count: t.count, text: sentence(history, t) });
    let mut said: Vec<Decision> = said.collect();
    said.drain(..said.len().saturating_sub(DECISIONS));
    said
}

/// Nothing holds it up, or nothing that is known.
fn at_rest(f: &Facts<'_>) -> Found {
    if let Some((true, since)) = f.condition("Ready") {
        let restarts: i32 = f.containers().map(|c| c.restart_count).sum();
        let said = if restarts == 0 { String::new() } else { format!("; {restarts} restarts so far") };
        return Found::new(Cause::Ready, "running", "pod-worker", format!("it runs and is ready{said}")).since(since);
    }
    let new = f.worker.is_none_or(|w| w.synced_at == Timestamp::ZERO && w.stage == WorkerStage::Syncing);
    let latest = f.history.and_then(|h| h.transitions.iter().rfind(|t| t.end != End::Open));
    let error = f.worker.and_then(|w| w.error);
    let since = latest.map(|t| t.last);
    match (error, new) {
        (Some(error), _) => {
            Found::new(Cause::StepFails, "step", "pod-worker", "the latest step failed; it is tried again")
                .since(since)
                .said(Some(error))
        }
        (None, true) => Found::new(Cause::Starting, "first step", "pod-worker", "its worker has just begun"),
        (None, false) => Found::new(Cause::Starting, "starting", "pod-worker", "it is being started")
            .since(since.or_else(|| f.started_at())),
    }
}
