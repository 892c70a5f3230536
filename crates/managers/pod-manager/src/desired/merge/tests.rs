use super::*;
use model::k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

const NOW: Timestamp = Timestamp::from_secs(1_700_000_000);

fn pod(id: &str, name: &str, image: &str) -> Arc<Pod> {
    let spec = serde_json::json!({"containers": [{"name": "c", "image": image}]});
    Arc::new(fakes::pod(id, serde_json::json!({"metadata": {"name": name}, "spec": spec})))
}

fn edit(p: &Arc<Pod>, f: impl FnOnce(&mut Pod)) -> Arc<Pod> {
    let mut p = (**p).clone();
    f(&mut p);
    Arc::new(p)
}

fn kinds(m: &Merge) -> Vec<String> {
    m.changes
        .iter()
        .map(|c| match c {
            Change::Remove(p) => format!("remove {}", uid(p)),
            Change::Add(p) => format!("add {}", uid(p)),
            Change::Update(p) => format!("update {}", uid(p)),
            Change::Delete(p) => format!("delete {}", uid(p)),
            Change::Reconcile(p) => format!("reconcile {}", uid(p)),
        })
        .collect()
}

fn known(pods: Vec<Arc<Pod>>) -> BTreeMap<PodUid, Arc<Pod>> {
    merge("file", &BTreeMap::new(), pods, NOW).next
}

#[test]
fn a_new_pod_is_stamped_with_its_source_and_first_seen_time() {
    let m = merge("file", &BTreeMap::new(), vec![pod("u1", "a", "x")], NOW);
    assert_eq!(kinds(&m), ["add u1"]);
    let p = &m.next[&PodUid::from("u1")];
    assert_eq!(model::pod::annotation(p, CONFIG_SOURCE), Some("file"));
    assert_eq!(model::pod::annotation(p, CONFIG_SEEN), Some("2023-11-14T22:13:20.000000000Z"));
}

#[test]
fn an_unchanged_set_changes_nothing_and_keeps_the_very_same_objects() {
    let old = known(vec![pod("u1", "a", "x")]);
    let m = merge("file", &old, vec![pod("u1", "a", "x")], NOW.plus(std::time::Duration::from_secs(9)));
    assert!(m.changes.is_empty());
    assert!(Arc::ptr_eq(&m.next[&PodUid::from("u1")], &old[&PodUid::from("u1")]));
}

#[test]
fn removal_comes_before_the_addition_of_the_same_name() {
    let old = known(vec![pod("u1", "a", "x")]);
    let m = merge("file", &old, vec![pod("u2", "a", "y")], NOW);
    assert_eq!(kinds(&m), ["remove u1", "add u2"]);
}

#[test]
fn differences_are_told_apart() {
    let base = pod("u1", "a", "x");
    let old = known(vec![base.clone()]);
    let table: Vec<(&str, Arc<Pod>, &[&str])> = vec![
        ("image", pod("u1", "a", "y"), &["update u1"]),
        (
            "label",
            edit(&base, |p| drop(p.metadata.labels.get_or_insert_default().insert("k".into(), "v".into()))),
            &["update u1"],
        ),
        (
            "annotation",
            edit(&base, |p| drop(p.metadata.annotations.get_or_insert_default().insert("k".into(), "v".into()))),
            &["update u1"],
        ),
        (
            "first-seen annotation of the sender",
            edit(&base, |p| {
                drop(p.metadata.annotations.get_or_insert_default().insert(CONFIG_SEEN.into(), "v".into()))
            }),
            &[],
        ),
        (
            "mirror annotation",
            edit(&base, |p| {
                drop(p.metadata.annotations.get_or_insert_default().insert(CONFIG_MIRROR.into(), "v".into()))
            }),
            &[],
        ),
        (
            "deletion timestamp",
            edit(&base, |p| p.metadata.deletion_timestamp = Some(Time(Default::default()))),
            &["delete u1"],
        ),
        ("status", edit(&base, |p| p.status.get_or_insert_default().phase = Some("Running".into())), &["reconcile u1"]),
        ("owner references", edit(&base, |p| p.metadata.owner_references = Some(vec![])), &[]),
        ("resource version", edit(&base, |p| p.metadata.resource_version = Some("7".into())), &[]),
    ];
    for (what, incoming, expected) in table {
        assert_eq!(kinds(&merge("file", &old, vec![incoming], NOW)), expected, "{what}");
    }
}

#[test]
fn the_first_seen_stamp_survives_an_update() {
    let old = known(vec![pod("u1", "a", "x")]);
    let m = merge("file", &old, vec![pod("u1", "a", "y")], NOW.plus(std::time::Duration::from_secs(60)));
    assert_eq!(
        model::pod::annotation(&m.next[&PodUid::from("u1")], CONFIG_SEEN),
        Some("2023-11-14T22:13:20.000000000Z")
    );
}

#[test]
fn the_first_of_two_pods_with_one_name_wins() {
    let m = merge("file", &BTreeMap::new(), vec![pod("u1", "a", "x"), pod("u2", "a", "y")], NOW);
    assert_eq!(kinds(&m), ["add u1"]);
    assert_eq!(m.duplicates.len(), 1);
}

#[test]
fn additions_are_sorted_by_creation_time() {
    let at = |p: &Arc<Pod>, s: i64| edit(p, |p| p.metadata.creation_timestamp = Timestamp::from_secs(s).to_api());
    let (late, early) = (at(&pod("u1", "a", "x"), 20), at(&pod("u2", "b", "x"), 10));
    assert_eq!(kinds(&merge("api", &BTreeMap::new(), vec![late, early], NOW)), ["add u2", "add u1"]);
}

#[test]
fn a_pod_that_its_source_stamped_is_shared_and_no_others_stamp_is_believed() {
    let stamped = |source: &str, seen: &str, image: &str| edit(&pod("u1", "a", image), |p| stamp(p, source, seen));
    let id = PodUid::from("u1");
    let (first, later) = (NOW.rfc3339_nano(), NOW.plus(std::time::Duration::from_secs(9)).rfc3339_nano());
    let seen = |p: &Arc<Pod>| annotation(p, CONFIG_SEEN).map(str::to_owned);

    let own = stamped("api", &first, "x");
    let old = merge("api", &BTreeMap::new(), vec![own.clone()], NOW).next;
    assert!(Arc::ptr_eq(&old[&id], &own));
    let changed = stamped("api", &first, "y");
    assert!(Arc::ptr_eq(&merge("api", &old, vec![changed.clone()], NOW).next[&id], &changed));

    let restarted = merge("api", &old, vec![stamped("api", &later, "y")], NOW).next;
    assert_eq!(seen(&restarted[&id]), Some(first.clone()), "first seen stays");
    for foreign in [stamped("file", &later, "x"), stamped("api", "never", "x")] {
        let p = &merge("api", &BTreeMap::new(), vec![foreign], NOW).next[&id];
        assert_eq!((annotation(p, CONFIG_SOURCE), seen(p)), (Some("api"), Some(first.clone())));
    }
}
