//! Delivery to an API server.

use std::sync::Arc;
use std::time::Duration;

use actor::{Action, Kernel, Rule, When, testing};
use contract::Wiring;
use contract::config_sources::Source;
use contract::event::EventView;
use contract::pod_manager::DesiredPod;
use fakes::FakeApi;
use fakes::api::{Matching, Trouble};
use model::core::Event;
use model::event::{EventObject, EventType, NodeEvent};
use model::{PodUid, pod};
use ports::api::{ApiError, Throttle};

use super::{emit, event};
use crate::{Config, EventRecorder, Memory, Outbox, Reporter, Sink};

fn spawn(kernel: &Kernel) -> (Wiring, FakeApi) {
    let (wiring, api) = (Wiring::default(), FakeApi::new());
    let sink =
        Sink { api: Arc::new(api.clone()), reporter: Reporter { node_name: "n1".into() }, outbox: Outbox::default() };
    let memory = Memory::default();
    let new = move |crew| EventRecorder::new(crew, Config { lines: 100 }, memory.clone()).with_sink(sink.clone());
    fakes::start(kernel, &wiring, new);
    (wiring, api)
}

/// `object reason message xcount`, by name.
fn stored(api: &FakeApi) -> Vec<String> {
    let show = |e: &Event| {
        let (name, reason) = (e.involved_object.name.as_deref(), e.reason.as_deref());
        let count = e.count.unwrap_or_default();
        format!(
            "{} {} {} x{count}",
            name.unwrap_or_default(),
            reason.unwrap_or_default(),
            e.message.as_deref().unwrap_or_default()
        )
    };
    api.read_all::<Event>(None).iter().map(show).collect()
}

async fn pass(time: Duration) {
    tokio::time::sleep(time).await;
}

#[test]
fn events_are_stored_counted_and_carry_the_version_of_their_pod() {
    testing::run(1, |kernel| async move {
        let (wiring, api) = spawn(&kernel);
        let known = fakes::pod("p", serde_json::json!({"metadata": {"resourceVersion": "77"}}));
        fakes::desire(&wiring, known, Source::Api);
        emit(&wiring, event("p", "Pulling", "a"));
        emit(&wiring, event("q", "Pulling", "a"));
        let object = EventObject::Node;
        emit(
            &wiring,
            NodeEvent {
                kind: EventType::Normal,
                reason: "Starting".into(),
                message: "Starting kubelet.".into(),
                object,
            },
        );
        pass(Duration::from_secs(1)).await;
        emit(&wiring, event("p", "Pulling", "a"));
        pass(Duration::from_secs(1)).await;
        assert_eq!(stored(&api), ["n1 Starting Starting kubelet. x1", "p Pulling a x2", "q Pulling a x1"]);
        let verbs: Vec<_> = api.requests().iter().map(|r| (fakes::api::verb(r.method), r.throttle)).collect();
        assert_eq!(
            verbs,
            [
                ("POST", Throttle::Events),
                ("POST", Throttle::Events),
                ("POST", Throttle::Events),
                ("PATCH", Throttle::Events)
            ]
        );
        let all = api.read_all::<Event>(Some("ns"));
        let version = |at: usize| all[at].involved_object.resource_version.clone();
        assert_eq!((version(0).as_deref(), version(1)), (Some("77"), None));
        assert!(all[0].first_timestamp < all[0].last_timestamp);
        assert_eq!(api.read_all::<Event>(Some("default")).len(), 1);
        assert_eq!(pod::uid(&wiring.board::<DesiredPod>().get(&PodUid::from("p")).unwrap().pod), PodUid::from("p"));
    });
}

#[test]
fn an_event_that_expired_in_the_api_is_made_again() {
    testing::run(1, |kernel| async move {
        let (wiring, api) = spawn(&kernel);
        emit(&wiring, event("p", "Unhealthy", "a"));
        pass(Duration::from_secs(1)).await;
        let name = api.read_all::<Event>(None)[0].metadata.name.clone().unwrap();
        api.vanish::<Event>(Some("ns"), &name);
        emit(&wiring, event("p", "Unhealthy", "a"));
        pass(Duration::from_secs(1)).await;
        assert_eq!(stored(&api), ["p Unhealthy a x2"]);
        assert_eq!(api.read_all::<Event>(None)[0].metadata.name.as_ref(), Some(&name));
    });
}

#[test]
fn an_outage_of_a_minute_loses_nothing_and_one_of_three_loses_the_oldest() {
    for (minutes, left, undelivered) in [(1, 2, 0), (3, 1, 1)] {
        testing::run(1, |kernel| async move {
            let (wiring, api) = spawn(&kernel);
            api.unplug();
            emit(&wiring, event("a", "Started", "m"));
            emit(&wiring, event("b", "Started", "m"));
            pass(Duration::from_secs(60 * minutes)).await;
            assert!(api.requests().len() <= 24, "{}", api.requests().len());
            api.calm();
            pass(Duration::from_secs(20)).await;
            assert_eq!(stored(&api).len(), left);
            assert_eq!(wiring.value::<EventView>().get().undelivered, undelivered);
        });
    }
}

#[test]
fn a_refused_event_is_given_up_at_once_and_holds_up_nobody() {
    testing::run(1, |kernel| async move {
        let (wiring, api) = spawn(&kernel);
        api.fail("POST", "", 1, ApiError::status(403, "Forbidden", "namespace is being terminated"));
        emit(&wiring, event("a", "Started", "m"));
        emit(&wiring, event("b", "Started", "m"));
        pass(Duration::from_secs(1)).await;
        assert_eq!(stored(&api), ["b Started m x1"]);
        assert_eq!(wiring.value::<EventView>().get().undelivered, 1);
    });
}

#[test]
fn a_lost_answer_makes_no_second_event() {
    testing::run(1, |kernel| async move {
        let (wiring, api) = spawn(&kernel);
        let lost = ApiError::Unreachable { message: "reset".into() };
        api.trouble(Matching::of("POST", ""), Trouble::DoneButLost(lost), 1);
        emit(&wiring, event("a", "Started", "m"));
        pass(Duration::from_secs(20)).await;
        assert_eq!((stored(&api), api.requests().len()), (vec!["a Started m x1".to_owned()], 2));
    });
}

#[test]
fn a_crash_of_the_recorder_loses_no_event_that_waits() {
    for point in ["before send", "after send", "answered", "published"] {
        for action in [Action::Panic, Action::Kill, Action::Stall(Duration::from_secs(3))] {
            testing::run(1, |kernel| async move {
                let (actor, point) = ("event-recorder".to_owned(), point.to_owned());
                kernel.faults().add(Rule { actor, point: point.clone(), when: When::Nth(1), action: action.clone() });
                let (wiring, api) = spawn(&kernel);
                for name in ["a", "b", "c"] {
                    emit(&wiring, event(name, "Started", "m"));
                }
                pass(Duration::from_secs(30)).await;
                let all = ["a Started m x1", "b Started m x1", "c Started m x1"];
                assert_eq!(stored(&api), all, "{action:?} at {point}");
            });
        }
    }
}
