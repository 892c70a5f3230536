//! Rows of node-and-resources 4.1.

use std::collections::BTreeSet;
use std::time::Duration;

use model::Timestamp;

use super::{InvalidCapacity, Listed, Memory, Thresholds, amount_to_free, candidates, not_enough, observe, too_old};

fn image(id: &str, name: &str) -> Listed {
    Listed { id: id.into(), names: vec![name.into()], size_bytes: 10, pinned: false }
}

fn at(s: i64) -> Timestamp {
    Timestamp::from_secs(s)
}

fn used(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|n| (*n).to_owned()).collect()
}

fn ids(list: Vec<(String, u64)>) -> Vec<String> {
    list.into_iter().map(|(id, _)| id).collect()
}

#[test]
fn amounts_table() {
    let t = Thresholds::default();
    for (name, capacity, available, expected) in [
        ("below", 1000, 160, Ok(None)),
        ("at the threshold", 1000, 150, Ok(Some(50))),
        ("above", 1000, 0, Ok(Some(200))),
        ("integers round the use up", 1000, 159, Ok(Some(41))),
        ("more available than there is", 1000, 2000, Ok(None)),
        ("no capacity", 0, 0, Err(InvalidCapacity)),
    ] {
        assert_eq!(amount_to_free(capacity, available, &t), expected, "{name}");
    }
    let full = Thresholds { high_percent: 100, low_percent: 80, ..t };
    assert_eq!(amount_to_free(1000, 0, &full), Ok(Some(200)));
    assert!(full.is_off() && !t.is_off() && !Thresholds { max_age: Duration::from_secs(1), ..full }.is_off());
}

#[test]
fn least_recently_used_go_first_and_what_is_needed_stays() {
    let mut memory = Memory::new();
    let pinned = Listed { pinned: true, ..image("pinned", "p:1") };
    let list = [
        image("a", "r.io/a:1"),
        image("b", "r.io/b:1"),
        image("c", "r.io/c:1"),
        image("running", "r.io/run:1"),
        image("pause", "registry.k8s.io/pause:3.10"),
        pinned,
    ];
    observe(&mut memory, &list, &used(&["a", "r.io/run:1"]), at(1000), true);
    observe(&mut memory, &list, &used(&["r.io/b:1", "running"]), at(2000), false);
    observe(&mut memory, &list, &used(&["running"]), at(3000), false);
    assert_eq!(ids(candidates(&memory, &Thresholds::default(), at(3001))), ["c", "a", "b"]);
}

#[test]
fn young_images_stay_but_what_was_there_at_the_start_is_old() {
    let mut memory = Memory::new();
    observe(&mut memory, &[image("old", "r.io/o")], &used(&[]), at(1000), true);
    observe(&mut memory, &[image("old", "r.io/o"), image("new", "r.io/n")], &used(&[]), at(1010), false);
    let t = Thresholds::default();
    assert_eq!(ids(candidates(&memory, &t, at(1010))), ["old"]);
    assert_eq!(ids(candidates(&memory, &t, at(1129))), ["old"]);
    assert_eq!(ids(candidates(&memory, &t, at(1130))), ["old", "new"]);
}

#[test]
fn images_that_are_gone_are_forgotten() {
    let mut memory = Memory::new();
    observe(&mut memory, &[image("a", "r.io/a")], &used(&[]), at(1), true);
    observe(&mut memory, &[], &used(&[]), at(2), false);
    assert!(memory.is_empty());
}

#[test]
fn ages_table() {
    let mut memory = Memory::new();
    let list = [image("never", "r.io/n"), image("once", "r.io/o"), image("now", "r.io/w")];
    observe(&mut memory, &list, &used(&["once", "now"]), at(1000), true);
    observe(&mut memory, &list, &used(&["now"]), at(2000), false);
    let t = Thresholds { max_age: Duration::from_secs(3600), ..Thresholds::default() };
    let old = |now: i64| too_old(&memory, &t, at(900), at(now));
    assert_eq!(old(4500), Vec::<String>::new(), "not watched for long enough");
    assert_eq!(old(4501), ["never"]);
    assert_eq!(old(4601), ["never", "once"]);
    assert_eq!(too_old(&memory, &Thresholds::default(), at(0), at(999_999)), Vec::<String>::new());
}

#[test]
fn sandbox_images_table() {
    for (name, expected) in [
        ("registry.k8s.io/pause:3.10", true),
        ("registry.k8s.io/pause@sha256:00", true),
        ("docker.io/rancher/mirrored/pause:3.6", true),
        ("docker.io/library/pause-menu:1", false),
        ("pause:1", false),
        ("r.io/pause/app:1", false),
    ] {
        assert_eq!(super::is_sandbox_image(name), expected, "{name}");
    }
}

#[test]
fn too_little_is_told_in_bytes() {
    assert_eq!(
        not_enough(50, 10),
        "Failed to garbage collect required amount of images. Attempted to free 50 bytes, but only found 10 bytes eligible to free."
    );
}
