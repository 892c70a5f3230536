use super::*;
use model::k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use model::pod::CONFIG_SOURCE;

fn original(hash: &str) -> Pod {
    let mut p = Pod::default();
    p.metadata.name = Some("web-n1".into());
    p.metadata.namespace = Some("default".into());
    p.metadata.uid = Some(hash.into());
    p.metadata.labels = Some([("app".to_owned(), "web".to_owned())].into());
    p.metadata.resource_version = Some("7".into());
    let annotations = [(CONFIG_HASH, hash), (CONFIG_SOURCE, "file")];
    p.metadata.annotations = Some(annotations.map(|(k, v)| (k.to_owned(), v.to_owned())).into());
    p
}

fn node(uid: Option<&str>) -> Node {
    let mut n = Node::default();
    n.metadata.name = Some("n1".into());
    n.metadata.uid = uid.map(Into::into);
    n
}

fn mirror(hash: &str, deleting: bool) -> Pod {
    let mut m = mirror_pod(&original(hash), &node(Some("node-uid"))).unwrap();
    m.metadata.uid = Some("m1".into());
    m.metadata.deletion_timestamp = deleting.then(|| Time(Default::default()));
    m
}

#[test]
fn each_state_of_the_static_pod_and_its_mirror_has_its_step() {
    let pod = original("h1");
    let (good, old, going) = (mirror("h1", false), mirror("h0", false), mirror("h1", true));
    let table: Vec<(&str, Original<'_>, Option<&Pod>, Step)> = vec![
        ("runs, none", Original::Runs(&pod), None, Step::Create),
        ("runs, good", Original::Runs(&pod), Some(&good), Step::Nothing),
        ("runs, of another version", Original::Runs(&pod), Some(&old), Step::Replace),
        ("runs, deleted by a user", Original::Runs(&pod), Some(&going), Step::Replace),
        ("waits, none", Original::Pauses, None, Step::Nothing),
        ("waits, of the version before", Original::Pauses, Some(&old), Step::Nothing),
        ("ended, good", Original::Ended(&pod), Some(&good), Step::Nothing),
        ("ended, deleted by a user", Original::Ended(&pod), Some(&going), Step::Delete),
        ("ended, none", Original::Ended(&pod), None, Step::Nothing),
        ("leaves, good", Original::Leaves, Some(&good), Step::Nothing),
        ("gone, good", Original::Absent, Some(&good), Step::Delete),
        ("gone, deleted by a user", Original::Absent, Some(&going), Step::Delete),
        ("gone, none", Original::Absent, None, Step::Nothing),
    ];
    for (what, original, mirror, expected) in table {
        assert_eq!(step(original, mirror, true), expected, "{what}");
        if !matches!(original, Original::Ended(_)) {
            assert_eq!(step(original, mirror, false), expected, "{what}: only the end of a pod has to be shown once");
        }
    }
    let unseen = |mirror| step(Original::Ended(&pod), mirror, false);
    assert_eq!((unseen(None), unseen(Some(&old)), unseen(Some(&good))), (Step::Create, Step::Replace, Step::Nothing));
}

#[test]
fn a_mirror_carries_the_hash_and_belongs_to_the_node() {
    let m = mirror_pod(&original("h1"), &node(Some("node-uid"))).unwrap();
    assert_eq!(annotation(&m, CONFIG_MIRROR), Some("h1"));
    assert_eq!(annotation(&m, CONFIG_SOURCE), Some("file"));
    assert_eq!(m.metadata.labels, original("h1").metadata.labels);
    let owners = m.metadata.owner_references.as_ref().unwrap();
    assert_eq!(owners.len(), 1);
    assert_eq!((owners[0].kind.as_str(), owners[0].uid.as_str()), ("Node", "node-uid"));
    assert_eq!((owners[0].controller, owners[0].block_owner_deletion), (Some(true), None));
    assert_eq!((m.metadata.uid, m.metadata.resource_version, m.status), (None, None, None));
}

#[test]
fn no_mirror_is_made_for_a_node_that_the_api_does_not_know_or_removes() {
    assert_eq!(mirror_pod(&original("h1"), &node(None)), None);
    let mut going = node(Some("node-uid"));
    going.metadata.deletion_timestamp = Some(Time(Default::default()));
    assert_eq!(mirror_pod(&original("h1"), &going), None);
}

#[test]
fn a_pod_of_that_name_that_is_no_mirror_is_never_taken_for_one() {
    let mut foreign = mirror("h1", false);
    foreign.metadata.annotations = None;
    let mut bare = original("h1");
    bare.metadata.annotations = None;
    assert!(!is_mirror_of(&foreign, &bare));
    assert!(!is_mirror_of(&foreign, &original("h1")));
}

fn worker(uid: &str, phase: WorkerPhase, stops: bool) -> Arc<WorkerState> {
    Arc::new(WorkerState {
        termination_requested: stops,
        started_terminating: stops,
        pod: Some(Arc::new(original(uid))),
        ..WorkerState::new(phase)
    })
}

#[test]
fn a_desired_static_pod_is_as_its_worker_shows_it() {
    let pod = original("h1");
    let table = [
        ("no worker yet", false, None, Original::Pauses),
        ("refused", true, None, Original::Pauses),
        ("refused, an old worker is there", true, Some((WorkerPhase::Syncing, false)), Original::Pauses),
        ("waits for its name", false, Some((WorkerPhase::Waiting, false)), Original::Pauses),
        ("runs", false, Some((WorkerPhase::Syncing, false)), Original::Runs(&pod)),
        ("is about to be stopped", false, Some((WorkerPhase::Syncing, true)), Original::Pauses),
        ("is being stopped", false, Some((WorkerPhase::Terminating, true)), Original::Pauses),
        ("has ended", false, Some((WorkerPhase::Terminated, true)), Original::Ended(&pod)),
        ("is cleaned up", false, Some((WorkerPhase::Finished, true)), Original::Ended(&pod)),
    ];
    for (what, rejected, state, expected) in table {
        let state = state.map(|(phase, stops)| worker("h1", phase, stops));
        assert_eq!(desired(&pod, rejected, state.as_deref()), expected, "{what}");
    }
}

#[test]
fn a_name_that_no_source_has_is_absent_when_all_sources_have_delivered_and_nothing_of_it_runs() {
    let running = worker("h1", WorkerPhase::Terminating, true);
    let done = worker("h1", WorkerPhase::Terminated, true);
    let mut other = (*worker("h2", WorkerPhase::Syncing, false)).clone();
    let mut pod = original("h2");
    pod.metadata.name = Some("other-n1".to_owned());
    other.pod = Some(Arc::new(pod));
    let table = [
        ("a source has not delivered", false, None, Original::Leaves),
        ("nothing runs", true, None, Original::Absent),
        ("is being stopped", true, Some(running), Original::Leaves),
        ("is stopped", true, Some(done), Original::Absent),
        ("another pod runs", true, Some(Arc::new(other)), Original::Absent),
    ];
    for (what, all_delivered, state, expected) in table {
        let workers = state.into_iter().map(|w| (PodUid::from("u"), w)).collect();
        assert_eq!(undesired("web-n1_default", all_delivered, &workers), expected, "{what}");
    }
}
