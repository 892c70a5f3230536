//! Bars of a life.

use model::Timestamp;
use model::history::{PodHistory, Reason, What};
use serde_json::json;

use crate::{New, begin, end, note, timeline};

fn s(secs: i64) -> Timestamp {
    Timestamp::from_secs(secs)
}

#[test]
fn a_start_a_crash_and_a_second_start() {
    let mut h = PodHistory::default();
    note(&mut h, New::of_pod(What::Taken), s(11));
    let step = |h: &mut PodHistory, what, of, from, to| {
        begin(h, what, of, s(from));
        end(h, what, of, Ok(()), s(to));
    };
    step(&mut h, What::Volumes, "", 11, 12);
    step(&mut h, What::Sandbox, "", 12, 13);
    step(&mut h, What::Pull, "app", 13, 20);
    step(&mut h, What::Start, "app", 20, 21);
    note(&mut h, New { number: 3, ..New::of(What::Exited, "app") }, s(30));
    let hold = New { reason: Reason::Exited, number: 3, lasts_ms: 10_000, ..New::of(What::Hold, "app") };
    note(&mut h, hold, s(30));
    step(&mut h, What::Start, "app", 40, 41);
    begin(&mut h, What::Stop, "", s(50));
    let pod = serde_json::from_value(json!({ "metadata": {
        "name": "web", "namespace": "shop", "creationTimestamp": "1970-01-01T00:00:05Z",
        "annotations": { "kubernetes.io/config.seen": "1970-01-01T00:00:10Z" },
    } }))
    .unwrap();
    let life = timeline(&pod, None, Some(&h), s(55));
    let text = |b: &crate::Bar| {
        let end = b.end_ns.map_or("-".to_owned(), |e| (e / 1_000_000_000).to_string());
        format!("{} {} {}..{end} {}", b.of, b.label, b.start_ns / 1_000_000_000, b.outcome)
    };
    let bars: Vec<String> = life.bars.iter().map(text).collect();
    let expected = [
        " scheduled 5..10 done",
        " admitted 10..11 done",
        " volumes 11..12 done",
        " sandbox 12..13 done",
        " stop 50..- open",
        "app pull 13..20 done",
        "app start 20..21 done",
        "app running 21..30 done",
        "app exited 30..30 point",
        "app back-off 30..40 done",
        "app start 40..41 done",
        "app running 41..- open",
    ];
    assert_eq!(bars, expected);
}

#[test]
fn a_pod_that_was_refused_has_a_life_too() {
    let pod = serde_json::from_value(json!({ "metadata": {
        "name": "web", "annotations": { "kubernetes.io/config.seen": "1970-01-01T00:00:10Z" } } }))
    .unwrap();
    let status = serde_json::from_value(json!({ "phase": "Failed", "message": "no room" })).unwrap();
    let life = timeline(&pod, Some(&status), None, s(55));
    assert_eq!((life.bars.len(), &*life.bars[0].outcome, &*life.bars[0].note), (1, "failed", "no room"));
}
