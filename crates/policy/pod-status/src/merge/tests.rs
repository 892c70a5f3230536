use serde_json::json;

use super::*;
use crate::testing::*;

fn api() -> PodStatus {
    status(json!({"phase": "Running", "reason": "ApiReason", "conditions": [
        {"type": "x/y", "status": "True"}, {"type": "Ready", "status": "True"}],
        "resourceClaimStatuses": [{"name": "c"}], "nominatedNodeName": "n"}))
}

fn kept(phase: &str) -> PodStatus {
    status(json!({"phase": phase, "reason": "Evicted", "message": "low", "podIP": "10.0.0.7", "conditions": [
        {"type": "DisruptionTarget", "status": "True"}, {"type": "Ready", "status": "True"},
        {"type": "ContainersReady", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}))
}

#[test]
fn edge_83_foreign_conditions_and_claims_stay_the_apis() {
    let merged = for_api(&api(), kept("Running"), true, NOW);
    assert_eq!(show_condition(&merged, "x/y"), "True");
    assert_eq!(merged.resource_claim_statuses, api().resource_claim_statuses);
    assert_eq!(merged.nominated_node_name.as_deref(), Some("n"));
    assert_eq!(merged.pod_ip.as_deref(), Some("10.0.0.7"));
}

#[test]
fn edges_79_89_91_a_terminal_phase_and_its_cause_wait_for_the_last_container() {
    let held = for_api(&api(), kept("Failed"), true, NOW);
    assert_eq!(
        (held.phase.as_deref(), held.reason.as_deref(), held.message.as_deref()),
        (Some("Running"), Some("ApiReason"), None)
    );
    assert_eq!(show_condition(&held, "DisruptionTarget"), "absent");
    assert_eq!(held.pod_ip.as_deref(), Some("10.0.0.7"), "the rest is written");

    let free = for_api(&api(), kept("Failed"), false, NOW);
    assert_eq!((free.phase.as_deref(), free.reason.as_deref()), (Some("Failed"), Some("Evicted")));
    assert_eq!(show_condition(&free, "DisruptionTarget"), "True");
    assert_eq!(show_condition(&free, "Ready"), "False PodFailed");
    assert_eq!(show_condition(&free, "ContainersReady"), "False PodFailed");
    assert_eq!(free.conditions.unwrap().last().unwrap().last_transition_time, NOW.to_api());
}

#[test]
fn disruption_target_is_not_written_without_an_end() {
    assert_eq!(show_condition(&for_api(&api(), kept("Running"), false, NOW), "DisruptionTarget"), "absent");
}

#[test]
fn a_pod_that_is_terminal_in_the_api_already_keeps_its_target() {
    let mut ended = api();
    ended.phase = Some("Failed".into());
    ended.conditions.as_mut().unwrap().push(crate::conditions::verdict("DisruptionTarget", true, "Api", ""));
    let merged = for_api(&ended, kept("Failed"), true, NOW);
    assert_eq!(merged.phase.as_deref(), Some("Failed"));
    assert_eq!(show_condition(&merged, "DisruptionTarget"), "True Api");
    let succeeded = for_api(&ended, kept("Succeeded"), false, NOW);
    assert_eq!(show_condition(&succeeded, "Ready"), "False PodCompleted");
}

#[test]
fn a_verdict_that_outlived_the_daemon_keeps_its_time() {
    let told = |start: &str, ready: (&str, &str), scheduled: &str| {
        status(json!({"startTime": start, "conditions": [
            {"type": "Ready", "status": ready.0, "lastTransitionTime": ready.1},
            {"type": "PodScheduled", "status": "True", "lastTransitionTime": scheduled}]}))
    };
    let (early, late, later) = ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z");
    let rows = [
        ("same verdicts", told(early, ("True", early), early), told(late, ("True", late), late), (early, early, early)),
        (
            "another verdict",
            told(early, ("False", early), early),
            told(late, ("True", late), late),
            (early, late, early),
        ),
        (
            "the API is behind",
            told(late, ("True", late), late),
            told(early, ("True", early), early),
            (early, early, early),
        ),
    ];
    for (name, api, kept, expected) in rows {
        let known = KnownTimes::learn(&api, &kept);
        let mut applied = kept.clone();
        known.apply(&mut applied);
        assert_eq!(applied, told(expected.0, ("True", expected.1), expected.2), "{name}");
    }
    let known = KnownTimes::learn(&told(early, ("True", early), early), &told(late, ("True", late), late));
    let mut changed = told(late, ("True", later), late);
    known.apply(&mut changed);
    assert_eq!(changed, told(early, ("True", later), early), "a change after that is told");
}
