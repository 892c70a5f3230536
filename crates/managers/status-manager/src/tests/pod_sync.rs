//! What is due, row by row.

use std::sync::Arc;
use std::time::Duration;

use contract::config_sources::Source;
use contract::pod_manager::DesiredPod;
use contract::pod_worker::{WorkerPhase, WorkerState};
use contract::status::StatusEntry;
use model::Timestamp;
use tokio::time::Instant;

use super::rig::{pod, status, worker};
use crate::pod_sync::{PodRows, PodSync, Trouble, Urgency};

fn entry(short: &str, version: u64) -> Arc<StatusEntry> {
    let first = fakes::status_entry(&pod("p", serde_json::json!({})), status(short));
    Arc::new(StatusEntry { version, ..first })
}

fn desired(short: &str, version: &str) -> DesiredPod {
    let mut pod = pod("p", serde_json::json!({}));
    pod.metadata.uid = Some("u".into());
    pod.metadata.resource_version = Some(version.into());
    pod.status = Some(status(short));
    DesiredPod::admitted(Arc::new(pod), Source::Api)
}

fn pod_rows(entry: &Arc<StatusEntry>, desired: &DesiredPod, worker: Option<&WorkerState>) -> PodRows {
    PodRows { entry: entry.clone(), desired: Arc::new(desired.clone()), worker: worker.cloned().map(Arc::new) }
}

fn with(set: impl FnOnce(&mut PodSync)) -> PodSync {
    let mut sync = PodSync::default();
    set(&mut sync);
    sync
}

#[test]
fn due_rows() {
    let now = Instant::now();
    let soon = Some(now + Duration::from_secs(1));
    let (first, then) = (Some(Urgency::First), Some(Urgency::Then));
    type Row<'a> = (&'a str, PodSync, &'a str, &'a str, WorkerPhase, bool, Option<Urgency>);
    let rows: Vec<Row<'_>> = vec![
        ("never told", PodSync::default(), "Pending", "Pending", WorkerPhase::Syncing, false, then),
        ("told", with(|s| s.server.version = Some(7)), "Ready", "Ready", WorkerPhase::Syncing, false, None),
        ("newer", with(|s| s.server.version = Some(6)), "Running", "Running", WorkerPhase::Syncing, false, then),
        ("ready flips", PodSync::default(), "Ready", "Running", WorkerPhase::Syncing, false, first),
        ("unready flips", PodSync::default(), "Running", "Ready", WorkerPhase::Syncing, false, first),
        ("an end", PodSync::default(), "Failed 1", "Running", WorkerPhase::Terminated, false, first),
        (
            "an end whose phase must wait",
            PodSync::default(),
            "Failed 1",
            "Running",
            WorkerPhase::Terminating,
            false,
            None,
        ),
        (
            "held back",
            with(|s| {
                s.server.version = Some(7);
                s.server.phase_held_back = true;
            }),
            "Failed 1",
            "Running",
            WorkerPhase::Terminating,
            false,
            None,
        ),
        (
            "no more held back",
            with(|s| {
                s.server.version = Some(7);
                s.server.phase_held_back = true;
            }),
            "Failed 1",
            "Running",
            WorkerPhase::Terminated,
            false,
            first,
        ),
        (
            "under way",
            with(|s| s.attempts.in_flight = Some(now)),
            "Ready",
            "Running",
            WorkerPhase::Syncing,
            false,
            None,
        ),
        (
            "backing off",
            with(|s| {
                s.attempts.retry_at = soon;
                s.attempts.trouble = Some(Trouble::Server);
            }),
            "Ready",
            "Running",
            WorkerPhase::Syncing,
            false,
            None,
        ),
        (
            "a newer one after a refusal",
            with(|s| {
                s.attempts.retry_at = soon;
                s.attempts.trouble = Some(Trouble::Refused);
                s.attempts.version = Some(6);
            }),
            "Ready",
            "Running",
            WorkerPhase::Syncing,
            false,
            first,
        ),
        (
            "the refused one",
            with(|s| {
                s.attempts.retry_at = soon;
                s.attempts.trouble = Some(Trouble::Refused);
                s.attempts.version = Some(7);
            }),
            "Ready",
            "Running",
            WorkerPhase::Syncing,
            false,
            None,
        ),
        (
            "edited by others",
            with(|s| s.server.version = Some(7)),
            "Ready",
            "Running",
            WorkerPhase::Syncing,
            false,
            None,
        ),
        (
            "edited by others, audit",
            with(|s| s.server.version = Some(7)),
            "Ready",
            "Running",
            WorkerPhase::Syncing,
            true,
            then,
        ),
        (
            "gone",
            with(|s| s.removal.gone = Some(("u".into(), Some(5)))),
            "Ready",
            "Running",
            WorkerPhase::Syncing,
            true,
            None,
        ),
        (
            "gone, and seen again",
            with(|s| s.removal.gone = Some(("u".into(), Some(4)))),
            "Ready",
            "Running",
            WorkerPhase::Syncing,
            true,
            first,
        ),
        ("deleted", with(|s| s.removal.deleted_at = Some(now)), "Ready", "Running", WorkerPhase::Syncing, true, None),
    ];
    for (name, mut sync, kept, api, phase, audit, expected) in rows {
        let (entry, desired, worker) = (entry(kept, 7), desired(api, "5"), worker(phase, Timestamp(1)));
        let rows = pod_rows(&entry, &desired, Some(&worker));
        assert_eq!(sync.due(&rows, now, audit, None), expected, "{name}");
    }
}

#[test]
fn what_a_life_before_left_waits_for_the_worker() {
    let now = Instant::now();
    let (entry, row) = (entry("Ready", 7), desired("Running", "5"));
    let rejected = DesiredPod { rejected: Some(("a".into(), "b".into())), ..row.clone() };
    let cases = [
        ("no worker", &row, None, false),
        ("worker has not looked", &row, Some(worker(WorkerPhase::Syncing, Timestamp::ZERO)), false),
        ("worker has looked", &row, Some(worker(WorkerPhase::Syncing, Timestamp(1))), true),
        ("worker is done", &row, Some(worker(WorkerPhase::Terminated, Timestamp::ZERO)), true),
        ("refused", &rejected, None, true),
    ];
    for (name, desired, worker, due) in cases {
        let mut sync = with(|s| s.line.left_over = Some(7));
        let rows = pod_rows(&entry, desired, worker.as_ref());
        assert_eq!(sync.due(&rows, now, false, None).is_some(), due, "{name}");
    }
}

#[test]
fn pauses_grow_to_ten_seconds_and_heed_the_server() {
    let now = Instant::now();
    let pause = |sync: &PodSync| sync.attempts.retry_at.unwrap().duration_since(now).as_millis();
    let mut sync = PodSync::default();
    let pauses: Vec<u128> = (0..7)
        .map(|_| {
            sync.attempts.back_off(Trouble::Server, None, 0.999_999, now);
            pause(&sync)
        })
        .collect();
    assert_eq!(pauses, [499, 999, 1999, 3999, 7999, 9999, 9999]);
    sync.attempts.back_off(Trouble::Server, Some(Duration::from_secs(33)), 0.0, now);
    assert_eq!(pause(&sync), 33_000);
    sync.attempts.clear_trouble();
    sync.attempts.back_off(Trouble::Server, None, 0.0, now);
    assert_eq!(pause(&sync), 250);
    (0..20).for_each(|_| sync.attempts.back_off(Trouble::Refused, None, 0.0, now));
    assert_eq!(pause(&sync), 60_000);
}

#[test]
fn an_answer_is_newer_than_the_board_until_the_board_has_it_or_should_have() {
    let now = Instant::now();
    let answered = |version: &str| crate::copy::ApiCopy::of(desired("Ready", version).pod);
    let (entry, worker) = (entry("Ready", 7), worker(WorkerPhase::Syncing, Timestamp(1)));
    for (name, on_board, age, kept) in [
        ("behind", "5", 1, true),
        ("caught up", "9", 1, false),
        ("ahead", "12", 1, false),
        ("behind for long", "5", 10, false),
    ] {
        let desired = desired("Running", on_board);
        let rows = pod_rows(&entry, &desired, Some(&worker));
        let mut sync = with(|s| s.server.answer = Some((answered("9"), now)));
        sync.server.drop_old_answer(&rows, now + Duration::from_secs(age));
        assert_eq!(sync.server.answer.is_some(), kept, "{name}");
        let newest = if kept { Some(9) } else { on_board.parse().ok() };
        assert_eq!(sync.server.newest(&rows).unwrap().version, newest, "{name}");
    }
}

#[test]
fn a_young_daemon_tells_no_pod_unready_for_want_of_a_verdict() {
    let now = Instant::now();
    let calm = Some(now + Duration::from_secs(30));
    let rows = [
        ("unready, as before", "Running", "Running", None, calm, true),
        ("ready as before", "Ready", "Ready", None, calm, true),
        ("ready before, same containers", "Running", "Ready", None, calm, false),
        ("its end", "Failed 1", "Ready", None, calm, true),
        ("told once already", "Running", "Ready", Some(1), calm, true),
        ("no young daemon", "Running", "Ready", None, None, true),
    ];
    for (name, kept, api, accepted, calm_until, due) in rows {
        let (entry, desired, worker) =
            (entry(kept, 7), desired(api, "5"), worker(WorkerPhase::Terminated, Timestamp(1)));
        let rows = pod_rows(&entry, &desired, Some(&worker));
        let mut sync = with(|s| s.server.version = accepted);
        assert_eq!(sync.due(&rows, now, false, calm_until).is_some(), due, "{name}");
        assert_eq!(sync.wake_at, calm.filter(|_| !due), "{name}");
        assert!(sync.due(&rows, now + Duration::from_secs(30), false, calm_until).is_some(), "{name}");
    }
}

#[test]
fn an_end_whose_phase_must_wait_is_told_soon_all_the_same() {
    let now = Instant::now();
    let (entry, desired, worker) =
        (entry("Failed 1", 7), desired("Running", "5"), worker(WorkerPhase::Syncing, Timestamp(1)));
    let rows = pod_rows(&entry, &desired, Some(&worker));
    let mut sync = PodSync::default();
    assert_eq!(sync.due(&rows, now, false, None), None);
    let at = sync.wake_at.unwrap();
    assert_eq!(at.duration_since(now), Duration::from_millis(250));
    assert_eq!(sync.due(&rows, at, false, None), Some(Urgency::First));
}

#[test]
fn an_object_that_outlives_its_pod_is_told_of_with_the_reason() {
    let now = Instant::now();
    let seconds = Duration::from_secs;
    let entry = |finished: bool| Arc::new(StatusEntry { finished, ..(*entry("Failed 1", 7)).clone() });
    let mut deleting = desired("Failed 1", "5");
    let pod = Arc::make_mut(&mut deleting.pod);
    pod.metadata.deletion_timestamp = Some(serde_json::from_value("2026-01-01T00:00:00Z".into()).unwrap());
    pod.metadata.finalizers = Some(vec!["x/y".into()]);
    let mut cleans = worker(WorkerPhase::Terminated, Timestamp(1));
    cleans.error = Some("waits for its volumes".into());
    let rows: [(&str, PodSync, bool, Option<&WorkerState>, &str); 6] = [
        ("worker", PodSync::default(), false, Some(&cleans), "its worker, Terminated: waits for its volumes"),
        ("no worker", PodSync::default(), false, None, "a worker: it has none"),
        (
            "request",
            with(|s| s.attempts.in_flight = Some(now)),
            true,
            Some(&cleans),
            "a request that was sent 30 s ago",
        ),
        (
            "finalizer",
            with(|s| s.removal.deleted_at = Some(now)),
            true,
            Some(&cleans),
            "the API server, which was told 30 s ago; finalizers: [x/y]",
        ),
        (
            "refused",
            with(|s| {
                s.attempts.trouble = Some(Trouble::Refused);
                s.attempts.failures = 3;
            }),
            true,
            Some(&cleans),
            "the next attempt after 3 failed",
        ),
        ("nothing", PodSync::default(), true, Some(&cleans), "its turn"),
    ];
    for (name, mut sync, finished, worker, why) in rows {
        let entry = entry(finished);
        let rows = pod_rows(&entry, &deleting, worker);
        let mut at = |s: u64| sync.overdue(&rows, now + seconds(s));
        assert_eq!((at(0), at(29)), (None, None), "{name}");
        assert_eq!(at(30), Some((seconds(30), why.to_owned())), "{name}");
        assert_eq!(at(329), None, "{name}: not each time");
        assert_eq!(at(330).map(|(waited, _)| waited), Some(seconds(330)), "{name}");
    }
    for (name, kept, desired, trouble) in [
        ("stays", "Failed 1", desired("Failed 1", "5"), None),
        (
            "still runs",
            "Running",
            DesiredPod { pod: Arc::new(with_status(&deleting, "Running")), ..deleting.clone() },
            None,
        ),
        ("an outage", "Failed 1", deleting.clone(), Some(Trouble::Connection)),
    ] {
        let entry = self::entry(kept, 7);
        let rows = pod_rows(&entry, &desired, Some(&cleans));
        let mut sync = with(|s| s.attempts.trouble = trouble);
        assert!((0..100).all(|s| sync.overdue(&rows, now + seconds(s)).is_none()), "{name}");
    }
}

fn with_status(row: &DesiredPod, short: &str) -> model::core::Pod {
    let mut pod = (*row.pod).clone();
    pod.status = Some(status(short));
    pod
}
