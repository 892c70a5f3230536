//! Roles that a test plays.

use std::time::Duration;

use actor::AskError;
use actor::testing::{run, settle};
use contract::objects::{FetchRuntimeClass, FetchServices, ObjectError};
use contract::{ObjectStore, Wiring};
use fakes::{Events, StandIn};
use model::event::{EventObject, EventType, NodeEvent};

fn class(name: &str) -> FetchRuntimeClass {
    FetchRuntimeClass { name: name.to_owned() }
}

#[test]
fn a_stand_in_answers_what_it_was_told_and_keeps_what_was_asked() {
    run(1, |_| async move {
        let wiring = Wiring::default();
        let store = StandIn::<ObjectStore>::on(&wiring);
        assert_eq!(wiring.ask(class("a")).await.unwrap_err(), AskError::NotDelivered, "nobody answers yet");
        store.answer(|m: &FetchRuntimeClass| Ok(format!("handler of {}", m.name)));
        assert_eq!(wiring.ask(class("b")).await.unwrap().unwrap(), "handler of b");
        store.answer(|m: &FetchRuntimeClass| Err(ObjectError::NotFound(m.name.clone())));
        assert_eq!(wiring.ask(class("c")).await.unwrap().unwrap_err(), ObjectError::NotFound("c".to_owned()));
        store.crash_at_next::<FetchRuntimeClass>();
        assert_eq!(wiring.ask(class("d")).await.unwrap_err(), AskError::Crashed);
        wiring.tell(class("e")).unwrap();
        let asked: Vec<_> = store.asked::<FetchRuntimeClass>().into_iter().map(|m| m.name).collect();
        assert_eq!(asked, ["b", "c", "e"], "what it died over is not kept");
        assert!(store.asked::<FetchServices>().is_empty());
        store.leave::<FetchRuntimeClass>();
        assert_eq!(wiring.ask(class("f")).await.unwrap_err(), AskError::NotDelivered);
        store.forget();
        assert!(store.asked::<FetchRuntimeClass>().is_empty());
    });
}

#[test]
fn an_answer_that_takes_longer_than_is_declared_is_none() {
    run(1, |_| async move {
        let wiring = Wiring::default();
        let store = StandIn::<ObjectStore>::on(&wiring);
        store.answer_later(|m: &FetchRuntimeClass| {
            let takes = Duration::from_secs(if m.name == "slow" { 31 } else { 29 });
            async move {
                tokio::time::sleep(takes).await;
                Ok(String::new())
            }
        });
        assert!(wiring.ask(class("quick")).await.unwrap().is_ok());
        assert_eq!(wiring.ask(class("slow")).await.unwrap_err(), AskError::Timeout { started: true });
    });
}

#[test]
fn events_are_kept_until_they_are_taken() {
    run(1, |_| async move {
        let wiring = Wiring::default();
        let events = Events::on(&wiring);
        let (kind, message, object) = (EventType::Warning, "no".to_owned(), EventObject::Node);
        let event = NodeEvent { kind, reason: "Failed".into(), message, object };
        wiring.tell(contract::event::RecordEvent::from(event.clone())).unwrap();
        settle().await;
        assert_eq!(events.lines(), ["Warning Failed: no"]);
        assert_eq!(events.taken(), [event]);
        assert!(events.all().is_empty());
    });
}
