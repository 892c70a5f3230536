//! The life of a pod as bars.

use model::Timestamp;
use model::core::{Pod, PodStatus};
use model::history::{End, PodHistory, Transition, What};
use model::pod::CONFIG_SEEN;
use serde::{Deserialize, Serialize};

use crate::words::sentence;

/// A life, as bars in the order in which they begin: those of the pod first, then those of each container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Timeline {
    /// `namespace/name`.
    pub pod: String,
    /// Its UID.
    pub uid: String,
    /// Its phase.
    pub phase: String,
    /// Restarts of its containers, by the runtime's count.
    pub restarts: u32,
    /// Entries that were there before the first one that is kept.
    pub dropped: u32,
    /// When this was true, nanoseconds since the epoch.
    pub now_ns: i64,
    /// The bars.
    pub bars: Vec<Bar>,
}

/// One bar, or a point where `start_ns` and `end_ns` are the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Bar {
    /// Container; empty: the pod.
    pub of: String,
    /// What: `volumes`, `pull`, `running`, ...
    pub label: String,
    /// Begin, nanoseconds since the epoch.
    pub start_ns: i64,
    /// End; absent: under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_ns: Option<i64>,
    /// How often, from begin to end.
    pub count: u32,
    /// `done`, `failed`, `open`, `lost`, `point`.
    pub outcome: String,
    /// For people.
    pub note: String,
}

/// The bars of a life.
#[must_use]
pub fn timeline(pod: &Pod, status: Option<&PodStatus>, history: Option<&PodHistory>, now: Timestamp) -> Timeline {
    let empty = PodHistory::default();
    let history = history.unwrap_or(&empty);
    let mut bars = before(pod, status, history);
    bars.extend(history.transitions.iter().filter_map(|t| bar(history, t)));
    bars.extend(running(history));
    let place = |b: &Bar| history.names.iter().position(|n| **n == *b.of).map_or(0, |at| at + 1);
    bars.sort_by_key(|b| (place(b), b.start_ns));
    let lists = status.into_iter().flat_map(|s| [&s.init_container_statuses, &s.container_statuses]);
    let restarts: i32 = lists.flatten().flatten().map(|c| c.restart_count.max(0)).sum();
    Timeline {
        pod: model::pod::namespaced_name(pod),
        uid: model::pod::uid(pod).to_string(),
        phase: status.and_then(|s| s.phase.clone()).unwrap_or_default(),
        restarts: u32::try_from(restarts).unwrap_or(0),
        dropped: history.dropped,
        now_ns: now.0,
        bars,
    }
}

fn span(label: &str, start: Timestamp, end: Option<Timestamp>, note: &str) -> Bar {
    let outcome = if end.is_some() { "done" } else { "open" };
    Bar {
        of: String::new(),
        label: label.to_owned(),
        start_ns: start.0,
        end_ns: end.map(|e| e.0.max(start.0)),
        count: 1,
        outcome: outcome.to_owned(),
        note: note.to_owned(),
    }
}

/// What was before a worker took it on: bound to the node, delivered, admitted.
fn before(pod: &Pod, status: Option<&PodStatus>, history: &PodHistory) -> Vec<Bar> {
    let created = pod.metadata.creation_timestamp.as_ref().map(Timestamp::from_api);
    let seen = model::pod::annotation(pod, CONFIG_SEEN).and_then(Timestamp::parse_rfc3339);
    let taken = history.transitions.iter().find(|t| t.what == What::Taken).map(|t| t.at);
    let mut bars = Vec::new();
    // Times of the API are whole seconds.
    if let (Some(created), Some(seen)) = (created, seen) {
        bars.push(span("scheduled", created, Some(seen), "created, given to this node and delivered"));
    }
    if let Some(seen) = seen {
        let refused = status.is_some_and(|s| s.phase.as_deref() == Some("Failed")) && history.transitions.is_empty();
        let message = status.and_then(|s| s.message.as_deref()).unwrap_or_default();
        match (taken, refused) {
            (None, true) => {
                bars.push(Bar { outcome: "failed".to_owned(), ..span("admitted", seen, Some(seen), message) });
            }
            (taken, _) if taken.is_some() || history.dropped == 0 => bars.push(span("admitted", seen, taken, "")),
            _ => {}
        }
    }
    bars
}

fn label(what: What) -> Option<&'static str> {
    Some(match what {
        What::Turn => "turn",
        What::Look => "look",
        What::Cgroup => "cgroup",
        What::Volumes => "volumes",
        What::Network => "network",
        What::Sandbox => "sandbox",
        What::Pull => "pull",
        What::Create => "create",
        What::Start => "start",
        What::PostStart => "postStart",
        What::Stop => "stop",
        What::CleanUp => "clean up",
        What::Hold => "back-off",
        What::Step => "step",
        What::Resumed => "daemon back",
        What::Exited => "exited",
        What::Ready => "ready",
        What::NotReady => "not ready",
        What::EndAsked => "end asked",
        What::Finished => "finished",
        _ => return None,
    })
}

fn outcome(end: End) -> &'static str {
    match end {
        End::Point => "point",
        End::Open => "open",
        End::Done => "done",
        End::Failed => "failed",
        End::Lost | End::Unknown => "lost",
    }
}

fn ended(t: &Transition) -> Timestamp {
    t.last.plus(std::time::Duration::from_millis(t.took_ms.into()))
}

fn bar(history: &PodHistory, t: &Transition) -> Option<Bar> {
    Some(Bar {
        of: history.name(t).to_owned(),
        label: label(t.what)?.to_owned(),
        start_ns: t.at.0,
        end_ns: (t.end != End::Open).then(|| ended(t).0),
        count: t.count,
        outcome: outcome(t.end).to_owned(),
        note: sentence(history, t),
    })
}

/// A container runs from the end of its start to its exit, or to the end of the pod.
fn running(history: &PodHistory) -> Vec<Bar> {
    let starts = history.transitions.iter().enumerate().filter(|(_, t)| t.what == What::Start && t.end == End::Done);
    let bar = |(at, start): (usize, &Transition)| {
        let ends = |t: &&Transition| {
            let own = t.of == start.of && matches!(t.what, What::Exited | What::Start);
            own || (t.what == What::Stop && t.end == End::Done) || t.what == What::Finished
        };
        let end = history.transitions[at + 1..].iter().find(ends).map(|t| match t.what {
            What::Stop => ended(t),
            _ => t.at,
        });
        Bar { of: history.name(start).to_owned(), ..span("running", ended(start), end, "") }
    };
    starts.map(bar).collect()
}
