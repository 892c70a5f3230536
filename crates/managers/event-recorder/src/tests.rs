//! The actor on a paused clock.

mod sink;

use std::time::Duration;

use actor::{ActorRef, AskError, Kernel, Spec, testing};
use contract::event::{EventHandle, RecordEvent};
use model::PodUid;
use model::event::{EventObject, EventType, NodeEvent};

use crate::{Config, EventRecorder};

const SECOND: Duration = Duration::from_secs(1);

fn spawn(kernel: &Kernel, lines: usize) -> (EventHandle, ActorRef<EventRecorder>) {
    let handle = EventHandle::default();
    let view = handle.view.clone();
    let recorder =
        kernel.spawn(Spec::new("event-recorder"), move |_| EventRecorder::new(Config { lines }, view.clone()));
    handle.connect(&recorder);
    (handle, recorder)
}

fn event(pod: &str, reason: &'static str, message: &str) -> NodeEvent {
    let object = EventObject::Pod {
        namespace: "ns".into(),
        name: pod.into(),
        uid: PodUid::from(pod),
        field_path: String::new(),
    };
    NodeEvent { kind: EventType::Normal, reason, message: message.into(), object }
}

/// `reason message xcount` of each line, oldest first.
fn lines(handle: &EventHandle) -> Vec<String> {
    handle.view.get().entries.iter().map(|l| format!("{} {} x{}", l.reason, l.message, l.count)).collect()
}

#[test]
fn emitted_events_are_listed_with_the_latest_last() {
    testing::run(1, |kernel| async move {
        let (handle, _recorder) = spawn(&kernel, 10);
        handle.emit(event("p", "Pulling", "a"));
        handle.emit(event("p", "Created", "b"));
        testing::settle().await;
        handle.emit(event("p", "Pulling", "a"));
        testing::settle().await;
        assert_eq!(lines(&handle), ["Created b x1", "Pulling a x2"]);
        let view = handle.view.get();
        assert!(view.entries[1].first < view.entries[1].last);
        assert_eq!(view.dropped, 0);
    });
}

#[test]
fn the_list_is_bounded_and_forgets_the_oldest() {
    testing::run(1, |kernel| async move {
        let (handle, _recorder) = spawn(&kernel, 3);
        for pod in ["p1", "p2", "p3", "p4"] {
            handle.emit(event(pod, "Started", pod));
        }
        testing::settle().await;
        assert_eq!(lines(&handle), ["Started p2 x1", "Started p3 x1", "Started p4 x1"]);
    });
}

#[test]
fn a_flood_is_cut_counted_and_lets_one_through_after_five_minutes() {
    testing::run(1, |kernel| async move {
        let (handle, _recorder) = spawn(&kernel, 10);
        for _ in 0..30 {
            handle.record.ask(RecordEvent { event: event("p", "Unhealthy", "x") }, SECOND).await.unwrap();
        }
        assert_eq!((lines(&handle), handle.view.get().dropped), (vec!["Unhealthy x x25".to_owned()], 5));
        kernel.clock().sleep(Duration::from_secs(300)).await;
        handle.emit(event("p", "Unhealthy", "x"));
        handle.emit(event("q", "Unhealthy", "x"));
        testing::settle().await;
        assert_eq!(lines(&handle), ["Unhealthy x x31", "Unhealthy x x1"]);
    });
}

#[test]
fn similar_events_end_in_one_line() {
    testing::run(1, |kernel| async move {
        let (handle, _recorder) = spawn(&kernel, 100);
        for n in 0..15 {
            handle.emit(event("p", "FailedMount", &format!("m{n}")));
        }
        testing::settle().await;
        let lines = lines(&handle);
        assert_eq!(lines.len(), 11);
        assert_eq!(lines[10], "FailedMount (combined from similar events): m14 x5");
    });
}

#[test]
fn a_crash_keeps_list_counts_and_drops() {
    testing::run(1, |kernel| async move {
        let (handle, recorder) = spawn(&kernel, 10);
        for _ in 0..26 {
            handle.emit(event("p", "Pulling", "a"));
        }
        testing::settle().await;
        recorder.kill();
        testing::settle().await;
        assert_eq!((lines(&handle), handle.view.get().dropped), (vec!["Pulling a x25".to_owned()], 1));
        handle.emit(event("p", "Pulling", "a"));
        testing::settle().await;
        assert_eq!((lines(&handle), handle.view.get().dropped), (vec!["Pulling a x26".to_owned()], 1));
        assert_eq!(recorder.info().generation, 1);
    });
}

#[test]
fn a_crash_at_each_fault_point_costs_at_most_the_event_under_work() {
    for (point, kept) in [("judged", 1), ("published", 2)] {
        testing::run(1, |kernel| async move {
            let (handle, _recorder) = spawn(&kernel, 10);
            let send = |pod: &'static str| handle.record.ask(RecordEvent { event: event(pod, "Started", pod) }, SECOND);
            send("p1").await.unwrap();
            kernel.faults().enable();
            kernel.faults().add_text(&format!("event-recorder: panic@{point}#1")).unwrap();
            assert_eq!(send("p2").await, Err(AskError::Crashed), "{point}");
            assert_eq!(lines(&handle).len(), kept, "{point}");
            send("p3").await.unwrap();
            assert_eq!(lines(&handle).last().unwrap(), "Started p3 x1", "{point}");
        });
    }
}
