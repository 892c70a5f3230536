//! What differs between two sequences of calls.

use crate::align::align;
use crate::normal::{Step, compare, title};

/// Removal of what is dead: background work in both, so its place among the other calls is a difference of its own.
fn is_removal(step: &Step) -> bool {
    step.rpc == "RemoveContainer"
}

/// What a node does with a pod that is gone, after the recording has ended.
fn is_sweep(step: &Step) -> bool {
    ["StopPodSandbox", "RemovePodSandbox"].contains(&step.rpc.as_str())
}

/// Each removal with the call before it.
fn removals(steps: &[Step]) -> Vec<(String, String)> {
    let mut last = String::new();
    let mut out = Vec::new();
    for step in steps {
        if is_removal(step) {
            out.push((title(step), last.clone()));
        } else {
            last = title(step);
        }
    }
    out
}

fn main(steps: &[Step]) -> Vec<Step> {
    steps.iter().filter(|s| !is_removal(s)).cloned().collect()
}

fn titles(steps: &[Step]) -> Vec<String> {
    steps.iter().map(title).collect()
}

/// Both without removals, and ours without what a node does after the recording has ended.
fn both_main(want: &[Step], got: &[Step]) -> (Vec<Step>, Vec<Step>) {
    let (want, mut got) = (main(want), main(got));
    if got.get(want.len()..).is_some_and(|rest| rest.iter().all(is_sweep)) {
        got.truncate(want.len());
    }
    (want, got)
}

fn removal_differences(want: &[Step], got: &[Step], out: &mut Vec<String>) {
    let (want, got) = (removals(want), removals(got));
    for (i, (what, after)) in want.iter().enumerate() {
        match got.get(i) {
            Some((g, g_after)) if g == what && g_after == after => {}
            Some((g, g_after)) => out.push(format!("recorded {what} after {after}, ours {g} after {g_after}")),
            None => out.push(format!("recorded {what} after {after}, ours not")),
        }
    }
}

/// The sequences as a whole, then the fields of each call. One line when the sequences differ.
pub fn sequence_differences(want: &[Step], got: &[Step]) -> Vec<String> {
    let (want_main, got_main) = both_main(want, got);
    if titles(&want_main) != titles(&got_main) {
        return vec![format!("calls: recorded {:?}, ours {:?}", titles(want), titles(got))];
    }
    let mut out = Vec::new();
    for (w, g) in want_main.iter().zip(&got_main) {
        compare(&title(w), &w.request, &g.request, &mut out);
    }
    removal_differences(want, got, &mut out);
    out
}

/// Each call that only one side made, and the fields of those that both made.
pub fn call_differences(want: &[Step], got: &[Step]) -> Vec<String> {
    let (want_main, got_main) = both_main(want, got);
    let mut out = Vec::new();
    let mut before = "the start".to_owned();
    for pair in align(&titles(&want_main), &titles(&got_main)) {
        match pair {
            (Some(w), Some(g)) => {
                let (w, g) = (&want_main[w], &got_main[g]);
                before = title(w);
                compare(&before, &w.request, &g.request, &mut out);
            }
            (Some(w), None) => out.push(format!("call {} after {before}: recorded, ours not", title(&want_main[w]))),
            (None, Some(g)) => out.push(format!("call {} after {before}: ours, not recorded", title(&got_main[g]))),
            (None, None) => {}
        }
    }
    removal_differences(want, got, &mut out);
    out
}
