//! Facts as tests of checkers write them.

#![allow(clippy::unwrap_used, reason = "tests")]

use fakes::runtime::Cause;

use crate::history::{Fact, History, Of, SECOND, Told, ToldContainer};
use crate::shape::{Part, Restart, Shape};

/// A container that runs for ever.
pub(super) fn part(name: &str) -> Part {
    serde_json::from_value(serde_json::json!({ "name": name, "image": "app:1" })).unwrap()
}

/// A pod `p` with one container `a`.
pub(super) fn shape() -> Shape {
    Shape {
        name: "p".to_owned(),
        restart: Restart::Always,
        grace_s: 30,
        priority: None,
        host_network: false,
        init: Vec::new(),
        containers: vec![part("a")],
        volumes: Vec::new(),
    }
}

/// The n-th instance of a container of `p`.
pub(super) fn of(name: &str, attempt: u32) -> Of {
    Of {
        uid: "u".to_owned(),
        pod: "p-sim".to_owned(),
        sandbox: "s".to_owned(),
        name: name.to_owned(),
        id: format!("{name}{attempt}"),
        attempt,
    }
}

pub(super) fn wanted(shape: Shape) -> Fact {
    Fact::Wanted("p-sim".to_owned(), Box::new(shape))
}

pub(super) fn unwanted() -> Fact {
    Fact::Unwanted("p-sim".to_owned(), None)
}

pub(super) fn started(attempt: u32) -> Fact {
    Fact::Started(of("a", attempt))
}

pub(super) fn ended(attempt: u32, code: i32) -> Fact {
    Fact::Ended(of("a", attempt), code, Cause::Itself)
}

/// A status of `p` in this phase, with this of `a`.
pub(super) fn told(phase: &str, of_a: ToldContainer) -> Fact {
    let containers = vec![ToldContainer { name: "a".to_owned(), ..of_a }];
    let ready = phase == "Running";
    let told = Told {
        pod: "p-sim".to_owned(),
        uid: "u".to_owned(),
        phase: phase.to_owned(),
        ready,
        containers,
        ..Told::default()
    };
    Fact::Status(told)
}

pub(super) fn running(attempt: u32) -> ToldContainer {
    let restarts = i32::try_from(attempt).unwrap();
    ToldContainer { running: Some(format!("a{attempt}")), restarts, ready: true, ..ToldContainer::default() }
}

/// A history of these facts, at seconds; it is over an hour later.
pub(super) fn history(facts: impl IntoIterator<Item = (i64, Fact)>) -> History {
    let facts: Vec<_> = facts.into_iter().map(|(at, fact)| (at * SECOND, fact)).collect();
    let end = facts.last().map_or(0, |(at, _)| *at) + 3600 * SECOND;
    let mut history = History { facts, end, ..History::default() };
    for (_, fact) in &history.facts {
        if let Fact::Wanted(pod, shape) = fact {
            history.shapes.insert(pod.clone(), (**shape).clone());
        }
    }
    history
}
