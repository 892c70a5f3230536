use super::*;
use model::pod::{CONFIG_HASH, CONFIG_MIRROR};

const NAME: &str = "web-n1_default";

fn pod(annotation: &str, hash: &str) -> Pod {
    let metadata = serde_json::json!({"name": "web-n1", "annotations": {annotation: hash}});
    fakes::pod("u", serde_json::json!({"metadata": metadata}))
}

fn mirror(hash: &str) -> Arc<Pod> {
    Arc::new(pod(CONFIG_MIRROR, hash))
}

fn node() -> Node {
    fakes::object(serde_json::json!({"metadata": {"name": "n1", "uid": "node-uid"}}))
}

fn failure() -> Result<Written, ApiError> {
    Err(ApiError::Unreachable { message: "connection refused".to_owned() })
}

fn holding(mirror_hash: Option<&str>) -> MirrorPods {
    let mut mirrors = MirrorPods::default();
    mirrors.replace(mirror_hash.map(mirror).into_iter().collect());
    mirrors
}

#[test]
fn each_need_has_its_write() {
    let original = pod(CONFIG_HASH, "h1");
    let runs = Original::Runs(&original);
    // What is so, whether the API server knows this node, and which mirror is deleted and created.
    let table = [
        ("none yet", None, runs, true, Some((false, true))),
        ("none yet, nobody to own it", None, runs, false, None),
        ("as it should be", Some("h1"), runs, true, None),
        ("of another version", Some("h0"), runs, true, Some((true, true))),
        ("of another version, nobody to own the next", Some("h0"), runs, false, Some((true, false))),
        ("its pod is gone", Some("h1"), Original::Absent, true, Some((true, false))),
        ("its pod is being stopped", Some("h1"), Original::Leaves, true, None),
    ];
    for (what, held, original, known_node, expected) in table {
        let node = node();
        let write = holding(held).next_write(NAME, original, Some(&node).filter(|_| known_node));
        assert_eq!(write.map(|w| (w.old.is_some(), w.new.is_some())), expected, "{what}");
    }
}

#[test]
fn a_pod_that_ended_before_anybody_saw_it_is_shown_once() {
    let (original, node) = (pod(CONFIG_HASH, "h1"), node());
    let ended = Original::Ended(&original);
    let next = |mirrors: &mut MirrorPods| {
        mirrors.next_write(NAME, ended, Some(&node)).map(|w| (w.old.is_some(), w.new.is_some()))
    };
    let mut mirrors = holding(None);
    assert_eq!(next(&mut mirrors), Some((false, true)));
    assert_eq!(mirrors.written(NAME, Ok(Written::Created(mirror("h1")))), None);
    assert_eq!(next(&mut mirrors), None);
    mirrors.replace(Vec::new());
    assert_eq!(next(&mut mirrors), None, "somebody took it away");
    assert_eq!(next(&mut holding(Some("h0"))), Some((true, true)), "what is there is of the version before");
    let mut deleting = (*mirror("h1")).clone();
    deleting.metadata.deletion_timestamp = Some(fakes::object(serde_json::json!("2026-01-01T00:00:00Z")));
    mirrors.change(vec![Arc::new(deleting)]);
    assert_eq!(next(&mut mirrors), Some((true, false)), "it is being taken away");
    assert!(!mirrors.shown.is_empty());
    mirrors.retain(&BTreeSet::new());
    assert!(mirrors.shown.is_empty());
    let mut gone = holding(Some("h1"));
    assert!(gone.next_write(NAME, Original::Absent, Some(&node)).is_some());
    assert_eq!(gone.written(NAME, Ok(Written::Deleted)), None);
    assert_eq!(next(&mut gone), Some((false, true)), "it came again, and had ended already");
}

#[test]
fn one_write_runs_at_a_time_and_its_outcome_is_known_at_once() {
    let (original, node) = (pod(CONFIG_HASH, "h1"), node());
    let mut mirrors = holding(None);
    let write = mirrors.next_write(NAME, Original::Runs(&original), Some(&node)).expect("none is there");
    assert!(mirrors.next_write(NAME, Original::Runs(&original), Some(&node)).is_none(), "a write is under way");
    let made = Arc::new(write.new.expect("one is made"));
    assert_eq!(mirrors.written(NAME, Ok(Written::Created(made.clone()))), None);
    assert_eq!(mirrors.of(&original), Some(&made));
    assert!(mirrors.next_write(NAME, Original::Runs(&original), Some(&node)).is_none(), "it is as it should be");
    assert!(mirrors.next_write(NAME, Original::Absent, Some(&node)).is_some());
    assert_eq!(mirrors.written(NAME, Ok(Written::Deleted)), None);
    assert_eq!(mirrors.of(&original), None);
}

#[test]
fn a_failed_write_pauses_longer_each_time_and_one_that_works_ends_that() {
    let (original, node) = (pod(CONFIG_HASH, "h1"), node());
    let mut mirrors = holding(None);
    for pause in [1, 2, 4, 8, 16, 32, 60, 60, 60] {
        assert!(mirrors.next_write(NAME, Original::Runs(&original), Some(&node)).is_some());
        assert_eq!(mirrors.written(NAME, failure()), Some(Duration::from_secs(pause)));
        assert!(mirrors.next_write(NAME, Original::Runs(&original), Some(&node)).is_none(), "it pauses");
        mirrors.resume(NAME);
    }
    assert!(mirrors.next_write(NAME, Original::Runs(&original), Some(&node)).is_some());
    assert_eq!(mirrors.written(NAME, Ok(Written::Created(mirror("h0")))), None);
    assert!(mirrors.next_write(NAME, Original::Runs(&original), Some(&node)).is_some(), "no pause is left");
    assert_eq!(mirrors.written(NAME, failure()), Some(FIRST_PAUSE));
}

#[test]
fn a_new_full_set_names_what_changed() {
    let mut mirrors = MirrorPods::default();
    let changed = BTreeSet::from([NAME.to_owned()]);
    for (what, incoming, expected) in [
        ("a new one", vec![mirror("h1")], &changed),
        ("the same", vec![mirror("h1")], &BTreeSet::new()),
        ("of another version", vec![mirror("h2")], &changed),
        ("gone", vec![], &changed),
    ] {
        assert_eq!(&mirrors.replace(incoming), expected, "{what}");
    }
    assert_eq!(mirrors.names().count(), 0);
}
