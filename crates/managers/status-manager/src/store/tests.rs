use serde_json::json;

use super::*;

const NOW: Timestamp = Timestamp::from_secs(1_000_000);
const LATER: Timestamp = Timestamp::from_secs(1_000_060);

fn pod(policy: &str) -> Pod {
    let spec = json!({"restartPolicy": policy, "containers": [{"name": "app"}]});
    fakes::pod("u1", json!({"metadata": {"name": "p", "namespace": "ns", "generation": 1}, "spec": spec}))
}

fn as_static(mut pod: Pod) -> Pod {
    pod.metadata.annotations.get_or_insert_default().insert(pod::CONFIG_SOURCE.into(), "file".into());
    pod
}

fn status(phase: &str, state: serde_json::Value) -> PodStatus {
    fakes::object(json!({"phase": phase,
        "conditions": [{"type": "Ready", "status": "True"}, {"type": "ContainersReady", "status": "True"}],
        "containerStatuses": [{"name": "app", "image": "i", "imageID": "", "restartCount": 0, "ready": true,
            "started": true, "containerID": "containerd://c1", "state": state, "lastState": {}}]}))
}

fn running() -> PodStatus {
    status("Running", json!({"running": {"startedAt": "2026-01-01T00:00:00Z"}}))
}

fn ended() -> PodStatus {
    status("Succeeded", json!({"terminated": {"exitCode": 0}}))
}

fn stored(outcome: Outcome) -> Arc<StatusEntry> {
    match outcome {
        Outcome::Stored(entry) => entry,
        other => panic!("not stored: {other:?}"),
    }
}

#[test]
fn each_change_is_one_version_and_an_equal_status_none() {
    let mut statuses = Statuses::default();
    let p = pod("Always");
    let first = stored(statuses.set(&p, running(), NOW));
    assert_eq!((first.version, first.changed_at, first.finished), (1, NOW, false));
    assert_eq!((first.namespace.as_str(), first.name.as_str()), ("ns", "p"));
    assert_eq!(statuses.set(&p, running(), LATER), Outcome::Unchanged);
    assert_eq!(statuses.set(&p, (*first.status).clone(), LATER), Outcome::Unchanged);
    let mut other = running();
    other.pod_ip = Some("10.0.0.1".into());
    assert_eq!(stored(statuses.set(&p, other, LATER)).version, 2);
}

#[test]
fn start_time_is_that_of_the_first_status() {
    let mut statuses = Statuses::default();
    let p = pod("Always");
    assert_eq!(stored(statuses.set(&p, running(), NOW)).status.start_time, NOW.to_api());
    let mut other = running();
    other.start_time = LATER.to_api();
    other.pod_ip = Some("10.0.0.1".into());
    assert_eq!(stored(statuses.set(&p, other, LATER)).status.start_time, NOW.to_api());
}

#[test]
fn transition_times_follow_the_verdict() {
    let mut statuses = Statuses::default();
    let p = pod("Always");
    statuses.set(&p, running(), NOW);
    let mut unready = running();
    unready.conditions.as_mut().unwrap()[0].status = "False".into();
    let entry = stored(statuses.set(&p, unready, LATER));
    let times: Vec<_> = entry.status.conditions.iter().flatten().map(|c| c.last_transition_time.clone()).collect();
    assert_eq!(times, [LATER.to_api(), NOW.to_api()]);
}

#[test]
fn the_apis_status_is_the_old_one_when_there_is_none_here() {
    let mut p = pod("Never");
    p.status = Some(ended());
    p.status.as_mut().unwrap().start_time = NOW.to_api();
    assert!(matches!(Statuses::default().set(&p, running(), LATER), Outcome::Refused(_)));
    let again = stored(Statuses::default().set(&p, ended(), LATER));
    assert_eq!(again.status.start_time, NOW.to_api());
}

#[test]
fn an_illegal_transition_is_dropped_whole() {
    let mut statuses = Statuses::default();
    let p = pod("Never");
    statuses.set(&p, ended(), NOW);
    let refused = Outcome::Refused(IllegalTransition { container: "app".into() });
    assert_eq!(statuses.set(&p, running(), LATER), refused);
    assert_eq!(statuses.set(&p, ended(), LATER), Outcome::Unchanged, "the old one is still held");
}

#[test]
fn a_rejected_pod_gets_a_start_time_too() {
    let p = pod("Always");
    let entry = stored(Statuses::default().set(&p, patch::rejected(&p, "OutOfcpu", "too big"), NOW));
    assert_eq!(entry.status.start_time, NOW.to_api());
    assert_eq!(entry.status.observed_generation, Some(1));
}

#[test]
fn terminate_closes_finishes_and_is_idempotent() {
    let mut statuses = Statuses::default();
    let p = pod("Always");
    statuses.set(&p, running(), NOW);
    let entry = stored(statuses.terminate(&p, LATER));
    assert!(entry.finished);
    assert_eq!((entry.version, entry.status.phase.as_deref()), (2, Some("Failed")));
    let state = entry.status.container_statuses.as_ref().unwrap()[0].state.as_ref().unwrap();
    assert_eq!(state.terminated.as_ref().unwrap().exit_code, 137);
    assert_eq!(statuses.terminate(&p, LATER), Outcome::Unchanged);
    let mut late = (*entry.status).clone();
    late.pod_ip = Some("10.0.0.1".into());
    assert!(stored(statuses.set(&p, late, LATER)).finished, "sticky");
}

#[test]
fn terminate_of_an_equal_status_still_marks_it_finished() {
    let mut statuses = Statuses::default();
    let p = pod("Never");
    statuses.set(&p, ended(), NOW);
    let entry = stored(statuses.terminate(&p, LATER));
    assert_eq!((entry.version, entry.finished), (2, true));
}

#[test]
fn terminate_without_a_status_starts_from_the_apis() {
    let mut p = pod("Always");
    assert_eq!(stored(Statuses::default().terminate(&p, NOW)).status.phase.as_deref(), Some("Failed"));
    p.status = Some(ended());
    assert_eq!(stored(Statuses::default().terminate(&p, NOW)).status.phase.as_deref(), Some("Succeeded"));
}

#[test]
fn a_static_pod_may_live_again_under_its_uid() {
    let mut statuses = Statuses::default();
    let p = as_static(pod("Never"));
    statuses.set(&p, ended(), NOW);
    assert!(stored(statuses.terminate(&p, NOW)).finished);
    let again = stored(statuses.set(&p, running(), LATER));
    assert_eq!((again.version, again.finished), (3, false));
}

#[test]
fn forgotten_pods_start_above_their_former_version() {
    let mut statuses = Statuses::default();
    let p = pod("Always");
    statuses.set(&p, running(), NOW);
    statuses.terminate(&p, NOW);
    assert!(statuses.retain(&BTreeSet::from([PodUid::from("u1")])).is_empty());
    assert_eq!(statuses.retain(&BTreeSet::new()), [PodUid::from("u1")]);
    assert!(statuses.is_empty());
    let entry = stored(statuses.set(&p, running(), LATER));
    assert_eq!((entry.version, entry.finished), (3, false));
}

#[test]
fn recovered_versions_go_on() {
    let mut statuses = Statuses::default();
    let p = pod("Always");
    let uid = pod::uid(&p);
    statuses.set(&p, running(), NOW);
    let entry = stored(statuses.terminate(&p, NOW));
    let mut again = Statuses::recovered(BTreeMap::from([(uid, entry.clone())]));
    assert_eq!(again.terminate(&p, LATER), Outcome::Unchanged);
    let mut other = pod("Always");
    other.metadata.uid = Some("u2".into());
    assert_eq!(stored(again.set(&other, running(), LATER)).version, entry.version + 1);
}
