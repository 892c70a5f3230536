use super::world::{START, World};
use crate::backoff::{After, CrashBackoff, Entry, ImageBackoff, crash_key, event_message, image_key, waiting_message};
use model::Timestamp;
use model::core::ResourceRequirements;
use model::go_duration::format_millis;
use model::k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use model::runtime::ContainerState::{Created, Unknown};
use std::time::Duration;

fn at(secs: i64) -> Timestamp {
    Timestamp::from_secs(START + secs)
}

/// Waits after exits 1, 2, 3 ... of a container that crashes at once, in seconds.
fn waits(max: u64, exits: usize) -> Vec<i64> {
    let mut b = CrashBackoff::new(Duration::from_secs(max));
    let mut now = at(0);
    (0..exits)
        .map(|_| {
            let finished = now;
            let until = b.check("k", finished, now).map_or(now, |h| h.until);
            assert!(b.check("k", finished, until).is_none(), "the wait is over at its end");
            b.next("k", finished, until);
            now = until;
            until.nanos_since(finished) / 1_000_000_000
        })
        .collect()
}

#[test]
fn crash_delays_double_up_to_the_maximum_6_1() {
    assert_eq!(waits(300, 9), [0, 10, 20, 40, 80, 160, 300, 300, 300], "edge 52: default");
    assert_eq!(waits(60, 6), [0, 10, 20, 40, 60, 60], "maximum 60 s");
    assert_eq!(waits(5, 4), [0, 5, 5, 5], "edge 55: maximum below the first delay lowers it");
    assert_eq!(waits(1, 3), [0, 1, 1], "least maximum");
}

#[test]
fn a_container_that_ran_past_the_reset_window_starts_afresh() {
    let rows = [
        ("edge 53: ran 11 minutes", 660, None, 10),
        ("ran exactly the window", 600, Some(40), 80),
        ("ran 5 minutes", 300, Some(40), 80),
    ];
    for (name, ran, hold, next) in rows {
        let mut b = CrashBackoff::default();
        b.restore("k", Entry { delay_ms: 40_000, last_update_ns: at(0).0 });
        let finished = at(ran);
        assert_eq!(b.check("k", finished, finished).map(|h| h.delay.as_secs()), hold, "{name}: check");
        b.next("k", finished, finished);
        assert_eq!(b.entries()["k"].delay_ms, next * 1000, "{name}: next");
    }
}

#[test]
fn the_reset_window_does_not_follow_the_maximum() {
    let mut b = CrashBackoff::new(Duration::from_secs(5));
    b.next("k", at(0), at(0));
    assert!(b.check("k", at(599), at(599)).is_some());
    assert!(b.check("k", at(601), at(601)).is_none());
}

#[test]
fn idle_entries_are_collected() {
    let mut b = CrashBackoff::default();
    b.next("old", at(0), at(0));
    b.next("new", at(500), at(500));
    b.gc(at(601));
    assert_eq!(b.entries().keys().collect::<Vec<_>>(), ["new"]);
}

#[test]
fn edge_54_image_and_resources_are_part_of_the_key() {
    let base = World::new("Always").regular("m");
    let key = |w: &World| crash_key(&w.pod, &w.container("m").1);
    let image = base.clone().with("m", |c| c.image = Some("img:2".into()));
    let limits = |n: &str| {
        base.clone().with("m", |c| {
            c.resources = Some(ResourceRequirements {
                limits: Some([("cpu".to_owned(), Quantity(n.into()))].into()),
                ..ResourceRequirements::default()
            });
        })
    };
    let requests = base.clone().with("m", |c| {
        c.resources = Some(ResourceRequirements {
            requests: Some([("cpu".to_owned(), Quantity("1".into()))].into()),
            ..ResourceRequirements::default()
        });
    });
    let other_uid = base.clone().then(|w| w.pod.metadata.uid = Some("u2".into()));
    let all = [key(&base), key(&image), key(&limits("1")), key(&limits("2")), key(&requests), key(&other_uid)];
    let distinct: std::collections::BTreeSet<_> = all.iter().collect();
    assert_eq!(distinct.len(), all.len());
    let env = base.clone().with("m", |c| c.args = Some(vec!["x".into()]));
    assert_eq!(key(&base), key(&env), "other fields do not reset it");
}

#[test]
fn back_off_counts_from_the_newest_exited_instance() {
    let crashed = |w: World| {
        w.then(|w| {
            let key = crash_key(&w.pod, &w.container("m").1);
            let finished = w.observed.container("m").unwrap().finished_at;
            w.backoff.next(&key, finished, w.now);
        })
    };
    let base = || crashed(World::new("Always").regular("m").sandbox(true).exited("m", 0));
    let hold = |w: World| w.plan().regular[0].hold.map(|h| h.delay.as_secs());
    assert_eq!(hold(base()), Some(10), "exit code 0 backs off just the same");
    assert_eq!(hold(base().seen("m", Created)), Some(10), "a created one is skipped");
    assert_eq!(hold(base().seen("m", Unknown)), Some(10), "an unknown one is skipped");
    assert_eq!(hold(base().then(|w| w.now = w.now.plus(Duration::from_secs(10)))), None, "over");
    let set_back = |known: u64| {
        base().then(|w| {
            w.now = Timestamp(w.now.0 - 3_600_000_000_000);
            let id = w.observed.container("m").unwrap().id.clone();
            w.ended_for.insert(id, Duration::from_secs(known));
        })
    };
    assert_eq!(hold(set_back(0)), Some(10), "the clock was set back by an hour");
    assert_eq!(hold(set_back(9)), Some(10), "and the wait goes on");
    assert_eq!(hold(set_back(10)), None, "but ends after its delay, not after an hour");
    let until = set_back(4).plan().regular[0].hold.unwrap().until;
    assert_eq!(until.nanos_since(set_back(4).now), 6_000_000_000, "the worker looks again then");
    assert_eq!(hold(base().with("m", |c| c.image = Some("img:2".into()))), None, "edge 54: another image");
    let plan = base().plan();
    assert_eq!(
        plan.next_due(),
        Some(base().observed.container("m").unwrap().finished_at.plus(Duration::from_secs(10)))
    );
    assert!(plan.is_quiet());
}

#[test]
fn a_created_container_alone_causes_no_back_off() {
    let w = World::new("Always").regular("m").sandbox(true).seen("m", Created);
    assert_eq!(w.plan().regular[0].crashed_at, None);
}

#[test]
fn a_start_that_failed_is_tried_again_ten_seconds_later_edge_48() {
    let failed = |seconds: i64| {
        World::new("Always").regular("m").sandbox(true).seen("m", Created).then(|w| {
            let newest = w.observed.container("m").unwrap();
            w.failed_starts.insert(newest.id.clone());
            w.now = Timestamp(newest.created_at.0 + seconds * 1_000_000_000);
        })
    };
    let other_image = |w: World| w.with("m", |c| c.image = Some("img:2".into()));
    let created_again = |w: World| w.seen("m", Created);
    for (what, world, plan) in [
        ("at once", failed(0), "hold m@1 10s"),
        ("a little early", failed(9), "hold m@1 10s"),
        ("in time", failed(10), "start m@1"),
        ("the clock was set back", failed(-3600), "start m@1"),
        ("another image", other_image(failed(0)), "start m@1"),
        ("another one was created, and nobody knows of its start", created_again(failed(0)), "start m@2"),
    ] {
        assert_eq!(super::world::brief(&world.plan()), plan, "{what}");
    }
    let hold = failed(0).plan().regular[0].hold.unwrap();
    assert_eq!((hold.after, hold.until.nanos_since(failed(0).now)), (After::FailedStart, 10_000_000_000));
    let crashed = failed(0).then(|w| w.observed.containers[0].state = model::runtime::ContainerState::Exited);
    assert_eq!(super::world::brief(&crashed.plan()), "start m@1", "an end has a back-off of its own");
}

#[test]
fn image_back_off_counts_from_the_last_failure_6_2() {
    let mut b = ImageBackoff::default();
    let key = image_key(&"u1".into(), "img:1");
    assert_eq!(key, "u1_img:1");
    let mut now = at(0);
    let mut seen = Vec::new();
    for _ in 0..7 {
        b.next(&key, now);
        let hold = b.check(&key, now).unwrap();
        assert_eq!(hold.until, now.plus(hold.delay));
        seen.push(hold.delay.as_secs());
        now = hold.until;
        assert!(b.check(&key, now).is_none());
    }
    assert_eq!(seen, [10, 20, 40, 80, 160, 300, 300]);
    now = now.plus(Duration::from_secs(400));
    b.next(&key, now);
    assert_eq!(b.check(&key, now).unwrap().delay.as_secs(), 10, "expired 600 s after the last failure");
    b.gc(now.plus(Duration::from_secs(601)));
    assert!(b.entries().is_empty());
}

#[test]
fn messages_are_the_kubelets_own() {
    let w = World::new("Always").regular("m");
    assert_eq!(event_message(&w.pod, "m"), "Back-off restarting failed container m in pod web_ns(u1)");
    assert_eq!(
        waiting_message(&w.pod, "m", Duration::from_secs(40)),
        "back-off 40s restarting failed container=m pod=web_ns(u1)"
    );
}

#[test]
fn durations_read_as_in_go() {
    let rows = [
        (0, "0s"),
        (500, "500ms"),
        (1_000, "1s"),
        (1_500, "1.5s"),
        (10_000, "10s"),
        (80_000, "1m20s"),
        (160_000, "2m40s"),
        (300_000, "5m0s"),
        (3_600_000, "1h0m0s"),
        (3_661_250, "1h1m1.25s"),
    ];
    for (ms, want) in rows {
        assert_eq!(format_millis(Duration::from_millis(ms)), want);
    }
}

#[test]
fn back_off_survives_a_journal() {
    let mut b = CrashBackoff::default();
    b.next("k", at(0), at(0));
    let text = serde_json::to_string(&b).unwrap();
    assert_eq!(serde_json::from_str::<CrashBackoff>(&text).unwrap(), b);
}
