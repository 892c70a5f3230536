//! The actor on a paused clock.

mod sink;

use std::time::Duration;

use actor::{ActorRef, AskError, Kernel, testing};
use contract::Wiring;
use contract::event::{EventView, RecordEvent};
use model::PodUid;
use model::event::{EventObject, EventType, NodeEvent};

use crate::{Config, EventRecorder, Memory};

fn spawn(kernel: &Kernel, lines: usize) -> (Wiring, ActorRef<EventRecorder>) {
    let wiring = Wiring::default();
    let memory = Memory::default();
    let new = move |crew| EventRecorder::new(crew, Config { lines }, memory.clone());
    let recorder = fakes::start(kernel, &wiring, new);
    (wiring, recorder)
}

fn emit(wiring: &Wiring, event: NodeEvent) {
    wiring.tell(RecordEvent::from(event)).unwrap();
}

fn event(pod: &str, reason: &'static str, message: &str) -> NodeEvent {
    let object = EventObject::Pod {
        namespace: "ns".into(),
        name: pod.into(),
        uid: PodUid::from(pod),
        field_path: String::new(),
    };
    NodeEvent { kind: EventType::Normal, reason: reason.into(), message: message.into(), object }
}

/// `reason message xcount` of each line, oldest first.
fn lines(wiring: &Wiring) -> Vec<String> {
    wiring
        .value::<EventView>()
        .get()
        .entries
        .iter()
        .map(|l| format!("{} {} x{}", l.reason, l.message, l.count))
        .collect()
}

#[test]
fn what_is_about_something_unknown_is_counted_and_filed_nowhere() {
    testing::run(1, |kernel| async move {
        let (wiring, _recorder) = spawn(&kernel, 10);
        emit(&wiring, NodeEvent { object: EventObject::Unknown, ..event("p", "Pulling", "a") });
        emit(&wiring, event("p", "Created", "b"));
        testing::settle().await;
        assert_eq!((lines(&wiring), wiring.value::<EventView>().get().dropped), (vec!["Created b x1".to_owned()], 1));
    });
}

#[test]
fn emitted_events_are_listed_with_the_latest_last() {
    testing::run(1, |kernel| async move {
        let (wiring, _recorder) = spawn(&kernel, 10);
        emit(&wiring, event("p", "Pulling", "a"));
        emit(&wiring, event("p", "Created", "b"));
        testing::settle().await;
        emit(&wiring, event("p", "Pulling", "a"));
        testing::settle().await;
        assert_eq!(lines(&wiring), ["Created b x1", "Pulling a x2"]);
        let view = wiring.value::<EventView>().get();
        assert!(view.entries[1].first < view.entries[1].last);
        assert_eq!(view.dropped, 0);
    });
}

#[test]
fn the_list_is_bounded_and_forgets_the_oldest() {
    testing::run(1, |kernel| async move {
        let (wiring, _recorder) = spawn(&kernel, 3);
        for pod in ["p1", "p2", "p3", "p4"] {
            emit(&wiring, event(pod, "Started", pod));
        }
        testing::settle().await;
        assert_eq!(lines(&wiring), ["Started p2 x1", "Started p3 x1", "Started p4 x1"]);
    });
}

#[test]
fn a_flood_is_cut_counted_and_lets_one_through_after_five_minutes() {
    testing::run(1, |kernel| async move {
        let (wiring, _recorder) = spawn(&kernel, 10);
        for _ in 0..30 {
            wiring.ask(RecordEvent::from(event("p", "Unhealthy", "x"))).await.unwrap();
        }
        assert_eq!(
            (lines(&wiring), wiring.value::<EventView>().get().dropped),
            (vec!["Unhealthy x x25".to_owned()], 5)
        );
        kernel.clock().sleep(Duration::from_secs(300)).await;
        emit(&wiring, event("p", "Unhealthy", "x"));
        emit(&wiring, event("q", "Unhealthy", "x"));
        testing::settle().await;
        assert_eq!(lines(&wiring), ["Unhealthy x x31", "Unhealthy x x1"]);
    });
}

#[test]
fn similar_events_end_in_one_line() {
    testing::run(1, |kernel| async move {
        let (wiring, _recorder) = spawn(&kernel, 100);
        for n in 0..15 {
            emit(&wiring, event("p", "FailedMount", &format!("m{n}")));
        }
        testing::settle().await;
        let lines = lines(&wiring);
        assert_eq!(lines.len(), 11);
        assert_eq!(lines[10], "FailedMount (combined from similar events): m14 x5");
    });
}

#[test]
fn a_crash_keeps_list_counts_and_drops_and_lets_nobody_say_more() {
    testing::run(1, |kernel| async move {
        let (wiring, recorder) = spawn(&kernel, 10);
        for _ in 0..26 {
            emit(&wiring, event("p", "Pulling", "a"));
        }
        testing::settle().await;
        recorder.kill();
        testing::settle().await;
        assert_eq!((lines(&wiring), wiring.value::<EventView>().get().dropped), (vec!["Pulling a x25".to_owned()], 1));
        emit(&wiring, event("p", "Pulling", "a"));
        testing::settle().await;
        assert_eq!((lines(&wiring), wiring.value::<EventView>().get().dropped), (vec!["Pulling a x25".to_owned()], 2));
        tokio::time::sleep(Duration::from_secs(300)).await;
        emit(&wiring, event("p", "Pulling", "a"));
        testing::settle().await;
        assert_eq!((lines(&wiring), wiring.value::<EventView>().get().dropped), (vec!["Pulling a x28".to_owned()], 2));
        assert_eq!(recorder.info().generation, 1);
    });
}

#[test]
fn a_crash_at_each_fault_point_costs_at_most_the_event_under_work() {
    for (point, kept) in [("judged", 1), ("published", 2)] {
        testing::run(1, |kernel| async move {
            let (wiring, _recorder) = spawn(&kernel, 10);
            let send = |pod: &'static str| wiring.ask(RecordEvent::from(event(pod, "Started", pod)));
            send("p1").await.unwrap();
            kernel.faults().enable();
            kernel.faults().add_text(&format!("event-recorder: panic@{point}#1")).unwrap();
            assert_eq!(send("p2").await, Err(AskError::Crashed), "{point}");
            assert_eq!(lines(&wiring).len(), kept, "{point}");
            send("p3").await.unwrap();
            assert_eq!(lines(&wiring).last().unwrap(), "Started p3 x1", "{point}");
            send("p2").await.unwrap();
            assert_eq!(lines(&wiring).last().unwrap(), "Started p2 x2", "{point}: it happened twice");
        });
    }
}
