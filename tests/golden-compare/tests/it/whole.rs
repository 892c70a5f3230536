//! The whole node against the recordings: calls, statuses, events.

use std::collections::BTreeSet;
use std::sync::Arc;

use contract::status::StatusEntry;
use model::PodUid;
use serde_json::Value;

use crate::listed::LISTED;
use crate::node::{Observed, drive};
use crate::script::{Script, scripts};
use golden_compare::calls::sequence_differences;
use golden_compare::normal::{Dirs, TOKEN_DIR, compare, steps};
use golden_compare::recording::{Case, NODE, case};
use golden_compare::status::{by_name, condition_order, tidy};

const THREADS: usize = 4;

fn call_differences(case: &Case, ours: &Observed) -> Vec<String> {
    let want = steps(&case.calls, &Dirs::default(), (!case.is_static()).then_some(NODE));
    sequence_differences(&want, &steps(&ours.calls, &ours.dirs, None))
}

/// Turns the status of a pod of the API into that of the static pod of the same manifest: without the generation and the
/// token that the API mounts into every container, and with the node's name in the pod's.
fn as_static(status: &mut Value, name: &str) {
    match status {
        Value::Array(items) => items.iter_mut().for_each(|v| as_static(v, name)),
        Value::Object(map) => {
            map.remove("observedGeneration");
            if let Some(mounts) = map.get_mut("volumeMounts").and_then(Value::as_array_mut) {
                mounts.retain(|m| m["mountPath"] != TOKEN_DIR);
            }
            map.retain(|key, v| key != "volumeMounts" || v.as_array().is_some_and(|a| !a.is_empty()));
            map.values_mut().for_each(|v| as_static(v, name));
        }
        Value::String(s) => *s = s.replace(&format!("{name}_gold("), &format!("{name}-{NODE}_gold(")),
        _ => {}
    }
}

fn compare_status(what: &str, case: &Case, recorded: &Value, ours: Option<&(PodUid, Arc<StatusEntry>)>) -> Vec<String> {
    let mut want = recorded.clone();
    let Some((uid, entry)) = ours else { return vec![format!("{what}: ours has none")] };
    let mut got = serde_json::to_value(&*entry.status).expect("JSON");
    tidy(&mut want, &case.uid);
    if !case.is_static() {
        as_static(&mut want, &case.name);
    }
    tidy(&mut got, uid.as_str());
    let mut out = Vec::new();
    let (want_order, got_order) = (condition_order(&want), condition_order(&got));
    if want_order != got_order {
        out.push(format!("{what}.conditions: recorded {want_order:?}, ours {got_order:?}"));
    }
    by_name(&mut want);
    by_name(&mut got);
    compare(what, &want, &got, &mut out);
    out
}

/// What follows from the phase.
const FOLLOW_PHASE: [&str; 5] = [
    "last status.conditions.Ready.reason",
    "last status.conditions.Ready.message",
    "last status.conditions.ContainersReady.reason",
    "last status.conditions.ContainersReady.message",
    "last status.conditions.Initialized.reason",
];

fn status_differences(case: &Case, ours: &Observed) -> Vec<String> {
    let mut out = compare_status("status", case, &case.status, ours.status.as_ref());
    if let Some(last) = &case.last {
        let ends = compare_status("last status", case, last, ours.last.as_ref());
        // By rule only a pod of the API must have ended in a terminal phase.
        let by_rule = |d: &String| {
            d.starts_with("last status.phase: ") && (d.ends_with("ours \"Running\"") || d.ends_with("ours \"Pending\""))
        };
        let ruled = ends.iter().any(by_rule);
        let of_phase = |d: &String| by_rule(d) || FOLLOW_PHASE.iter().any(|r| d.starts_with(r));
        out.extend(ends.into_iter().filter(|d| !(d.starts_with("last status.resources.") || ruled && of_phase(d))));
    }
    out
}

/// Reasons and messages, each once, in the order of their first occurrence, for the pod and each of its containers.
fn event_differences(case: &Case, ours: &Observed) -> Vec<String> {
    let our_uid = ours.status.as_ref().map_or("no uid", |(uid, _)| uid.as_str());
    let recorded_name = format!("{}_gold(", case.name);
    let paths: BTreeSet<&String> = case.events.iter().chain(&ours.events).map(|(_, path)| path).collect();
    let mut out = Vec::new();
    for path in paths {
        let of = |events: &[(String, String)], uid: &str| -> Vec<String> {
            let of_path = events.iter().filter(|(_, p)| p == path);
            let tidy = of_path.map(|(e, _)| e.replace(uid, "<uid>"));
            tidy.map(|e| e.replace(&recorded_name, &format!("{}-{NODE}_gold(", case.name))).collect()
        };
        let (want, got) = (of(&case.events, &case.uid), of(&ours.events, our_uid));
        if want != got {
            let about = if path.is_empty() { "the pod" } else { path };
            out.push(format!("events of {about}: recorded {want:?}, ours {got:?}"));
        }
    }
    out
}

/// What one case shows, with its name before it.
fn of_case(script: &Script) -> Vec<String> {
    let case = case(script.case);
    let ours = drive(&case, script);
    let calls = call_differences(&case, &ours);
    let all = calls.into_iter().chain(status_differences(&case, &ours)).chain(event_differences(&case, &ours));
    all.map(|d| format!("{}: {d}", case.name)).collect()
}

/// What all cases show; each has a node and a clock of its own, so they may run side by side.
fn all_differences() -> BTreeSet<String> {
    let scripts = scripts();
    std::thread::scope(|scope| {
        let share = scripts.len().div_ceil(THREADS);
        let runs: Vec<_> = scripts
            .chunks(share)
            .map(|some| scope.spawn(|| some.iter().flat_map(of_case).collect::<Vec<_>>()))
            .collect();
        runs.into_iter().flat_map(|r| r.join().expect("no panic")).collect()
    })
}

#[test]
fn the_node_does_what_a_kubelet_did_but_for_listed_differences() {
    let found = all_differences();
    let unlisted: Vec<_> = found.iter().filter(|d| !LISTED.iter().any(|l| l.covers(d))).collect();
    assert!(unlisted.is_empty(), "not in listed.rs and docs/compat.md:\n{}", lines(&unlisted));
    let gone: Vec<_> = LISTED.iter().filter(|l| !found.iter().any(|d| l.covers(d))).collect();
    assert!(gone.is_empty(), "listed, but no longer there: {gone:#?}");
}

fn lines(all: &[&String]) -> String {
    all.iter().map(|d| format!("  {d}\n")).collect()
}

#[test]
fn every_listed_difference_is_documented() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/compat.md");
    let text = std::fs::read_to_string(path).expect("docs/compat.md");
    for listed in LISTED {
        assert!(text.contains(listed.row), "docs/compat.md has no row {:?}", listed.row);
    }
}
