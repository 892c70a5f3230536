//! Fault points and rules.

use crate::crew::{Add, Bomb, LONG, Log, Worker};
use actor::{
    Actor, ActorRef, AskError, Ctx, Deferred, Detached, Handler, Kernel, Rule, Spec, message, supervised, testing,
};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

fn worker(kernel: &Kernel, name: &'static str) -> (ActorRef<Worker>, Log) {
    let log = Log::default();
    (kernel.spawn(Spec::new(name), Worker::factory(Bomb::None, &log)), log)
}

/// Has points of its own, in the turn and in effects.
struct Pointed;
impl Actor for Pointed {
    type Context = Ctx<Self>;
}
supervised!(Pointed);

struct InTurn;
message!(InTurn => ());
impl Handler<InTurn> for Pointed {
    type Result = ();
    fn handle(&mut self, _: InTurn, ctx: &mut Ctx<Self>) {
        ctx.fault_point("after decision");
    }
}

struct InEffect;
message!(InEffect => u64);
impl Handler<InEffect> for Pointed {
    type Result = Deferred<Self, u64>;
    fn handle(&mut self, _: InEffect, ctx: &mut Ctx<Self>) -> Self::Result {
        let faults = ctx.faults();
        let generation = ctx.generation();
        Deferred::new(async move {
            faults.hit("before effect").await;
            generation
        })
    }
}

struct InPool;
message!(InPool => u64);
impl Handler<InPool> for Pointed {
    type Result = Detached<u64>;
    fn handle(&mut self, _: InPool, ctx: &mut Ctx<Self>) -> Self::Result {
        let faults = ctx.faults();
        let generation = ctx.generation();
        Detached::new(async move {
            faults.hit("in pool").await;
            generation
        })
    }
}

fn pointed(kernel: &Kernel, rules: &str) -> ActorRef<Pointed> {
    kernel.faults().add_text(rules).unwrap();
    kernel.spawn(Spec::new("pointed"), |_| Pointed)
}

#[test]
fn rules_survive_printing() {
    for text in [
        "pod-worker/*: panic@before StartContainer#2",
        "pod-worker: stall(30s)@turn:UpdatePod#1",
        "*: kill",
        "a: kill@=mount#1",
        "a: delay(1500us)@x#%3",
        "a: drop@turn:Kick#p0.25",
        "a: duplicate@turn:Kick",
    ] {
        let rule: Rule = text.parse().unwrap();
        assert_eq!(rule.to_string(), text);
    }
}

#[test]
fn bad_rules_are_refused_with_the_reason() {
    for (text, reason) in [
        ("panic", "no \":\" after the actor"),
        (": panic", "no actor before \":\""),
        ("a: explode", "\"explode\" is none of panic, kill, stall(TIME), delay(TIME), block(TIME), drop, duplicate"),
        ("a: stall", "stall needs a time, as in stall(10ms)"),
        ("a: stall(5)", "\"5\" is no time: a whole number and us, ms, s, m or h"),
        ("a: stall(5s", "no \")\" in \"stall(5s\""),
        (
            "a: panic(5s)",
            "\"panic(5s)\" is none of panic, kill, stall(TIME), delay(TIME), block(TIME), drop, duplicate",
        ),
        ("a: panic@x#0", "\"#0\" is none of #2, #%3, #p0.1"),
        ("a: panic@x#p1.5", "probability 1.5 is not in 0 to 1"),
        ("a: panic@x#", "\"#\" is none of #2, #%3, #p0.1"),
    ] {
        let err = text.parse::<Rule>().unwrap_err();
        assert_eq!(err.to_string(), format!("fault rule \"{text}\": {reason}"));
    }
}

#[test]
fn one_bad_rule_of_many_adds_none() {
    testing::run(1, |kernel| async move {
        assert!(kernel.faults().add_text("a: panic\nb: nonsense").is_err());
        assert!(kernel.faults().rules().is_empty() && !kernel.faults().on());
    });
}

#[test]
fn panics_at_the_nth_turn_only() {
    testing::run(1, |kernel| async move {
        let (worker, log) = worker(&kernel, "worker");
        kernel.faults().add_text("worker: panic@turn:Add#2").unwrap();
        assert_eq!(worker.ask(Add(1), LONG).await, Ok((0, 1)));
        assert_eq!(worker.ask(Add(2), LONG).await, Err(AskError::Crashed));
        assert_eq!(worker.ask(Add(3), LONG).await, Ok((1, 3)));
        assert_eq!(log.count("add 2"), 0, "struck before the turn");
        assert_eq!(kernel.faults().log(), ["worker: panic@turn:Add"]);
        assert!(worker.info().last_cause.unwrap().starts_with("panic: injected at turn:Add, in Add"));
    });
}

#[test]
fn a_point_that_is_named_as_a_whole_is_no_other() {
    testing::run(1, |kernel| async move {
        let (worker, _) = worker(&kernel, "worker");
        kernel.faults().add_text("worker: panic@=turn:Ad; worker: panic@=turn:Add#2").unwrap();
        assert_eq!(worker.ask(Add(1), LONG).await, Ok((0, 1)));
        assert_eq!(worker.ask(Add(2), LONG).await, Err(AskError::Crashed));
        assert_eq!(kernel.faults().log(), ["worker: panic@turn:Add"]);
        let passages = kernel.faults().passages();
        assert!(passages.contains(&("worker".to_owned(), "turn:Add".to_owned(), 2)), "{passages:?}");
    });
}

#[test]
fn kills_without_a_panic() {
    testing::run(1, |kernel| async move {
        let (worker, _) = worker(&kernel, "worker");
        kernel.faults().add_text("worker: kill@turn:Add#1").unwrap();
        assert_eq!(worker.ask(Add(1), LONG).await, Err(AskError::Crashed));
        assert!(worker.info().last_cause.unwrap().starts_with("killed: fault at turn:Add, in Add"));
    });
}

#[test]
fn strikes_at_the_start_also_of_generation_0() {
    testing::run(1, |kernel| async move {
        kernel.faults().add_text("worker: panic@started#1").unwrap();
        let (worker, log) = worker(&kernel, "worker");
        assert_eq!(worker.ask(Add(1), LONG).await, Ok((1, 1)));
        assert_eq!(log.lines()[..3], ["build 0", "build 1", "drop 0"], "struck before the actor's own start");
    });
}

#[test]
fn stalls_the_actor_and_then_handles_the_message() {
    testing::run(1, |kernel| async move {
        let (worker, log) = worker(&kernel, "worker");
        kernel.faults().add_text("worker: stall(20s)@turn:Add#1").unwrap();
        let before = kernel.clock().now();
        let answers = tokio::join!(biased; worker.ask(Add(1), LONG), worker.ask(Add(2), LONG));
        assert_eq!(answers, (Ok((0, 1)), Ok((0, 3))));
        assert!(before.elapsed() >= 20 * SECOND);
        assert_eq!(log.lines()[2..], ["add 1", "add 2"]);
    });
}

#[test]
fn a_stall_beyond_the_patience_is_a_crash() {
    testing::run(1, |kernel| async move {
        let (worker, _) = worker(&kernel, "worker");
        kernel.faults().add_text("worker: stall(10m)@turn:Add#1").unwrap();
        let answers = tokio::join!(biased; worker.ask(Add(1), LONG), worker.ask(Add(2), LONG));
        assert_eq!(answers, (Err(AskError::Crashed), Ok((1, 2))));
    });
}

#[test]
fn delays_a_message_and_others_overtake_it() {
    testing::run(1, |kernel| async move {
        let (worker, log) = worker(&kernel, "worker");
        kernel.faults().add_text("worker: delay(20ms)@turn:Add#1").unwrap();
        let answers = tokio::join!(biased; worker.ask(Add(1), LONG), worker.ask(Add(2), LONG));
        assert_eq!(answers, (Ok((0, 3)), Ok((0, 2))));
        assert_eq!(log.lines()[2..], ["add 2", "add 1"]);
    });
}

#[test]
fn drops_and_duplicates_only_what_is_permitted() {
    testing::run(1, |kernel| async move {
        let (worker, _) = worker(&kernel, "worker");
        kernel.faults().add_text("worker: drop@turn:Add#1\nworker: duplicate@turn:Add#1").unwrap();
        worker.tell(Add(1)).unwrap();
        worker.tell(Add(10)).unwrap();
        assert_eq!(worker.ask(Add(0), LONG).await, Ok((0, 11)), "neither is permitted");
        kernel.faults().permit_drop::<Add>();
        kernel.faults().permit_duplicate::<Add>();
        kernel.faults().clear();
        kernel.faults().add_text("worker: drop@turn:Add#1\nworker: duplicate@turn:Add#1").unwrap();
        worker.tell(Add(100)).unwrap();
        worker.tell(Add(1000)).unwrap();
        assert_eq!(worker.ask(Add(0), LONG).await, Ok((0, 2011)), "100 dropped, 1000 twice");
    });
}

#[test]
fn an_ask_is_never_dropped() {
    testing::run(1, |kernel| async move {
        let (worker, _) = worker(&kernel, "worker");
        kernel.faults().permit_drop::<Add>();
        kernel.faults().add_text("worker: drop").unwrap();
        assert_eq!(worker.ask(Add(1), LONG).await, Ok((0, 1)));
    });
}

#[test]
fn points_inside_of_a_turn() {
    for (rule, seen, generation) in [
        ("pointed: panic@after decision#1", Err(AskError::Crashed), 1),
        ("pointed: kill@after decision#1", Err(AskError::Crashed), 1),
        ("pointed: stall(1h)@after decision#1", Ok(()), 0),
        ("pointed: drop@after decision#1", Ok(()), 0),
    ] {
        testing::run(1, |kernel| async move {
            let pointed = pointed(&kernel, rule);
            assert_eq!(pointed.ask(InTurn, LONG).await, seen, "{rule}");
            testing::settle().await;
            assert_eq!(pointed.info().generation, generation, "{rule}");
        });
    }
}

#[test]
fn points_inside_of_an_effect() {
    for (rule, seen, took) in [
        ("pointed: panic@before effect#1", Err(AskError::Crashed), Duration::ZERO),
        ("pointed: kill@before effect#1", Err(AskError::Crashed), Duration::ZERO),
        ("pointed: stall(30s)@before effect#1", Ok(0), 30 * SECOND),
        ("pointed: delay(30s)@before effect#1", Ok(0), 30 * SECOND),
    ] {
        testing::run(1, |kernel| async move {
            let pointed = pointed(&kernel, rule);
            let before = kernel.clock().now();
            assert_eq!(pointed.ask(InEffect, LONG).await, seen, "{rule}");
            assert_eq!(before.elapsed().as_secs(), took.as_secs(), "{rule}");
            assert_eq!(pointed.ask(InEffect, LONG).await, Ok(u64::from(seen.is_err())), "{rule}: serves again");
        });
    }
}

#[test]
fn points_inside_of_a_detached_answer() {
    testing::run(1, |kernel| async move {
        let pointed = pointed(&kernel, "pointed: panic@in pool#1; pointed: kill@in pool#1");
        assert_eq!(pointed.ask(InPool, LONG).await, Err(AskError::Crashed), "panic: the answer's own");
        assert_eq!(pointed.info().restarts, 0);
        assert_eq!(pointed.ask(InPool, LONG).await, Ok(0), "kill: the actor dies, the answer arrives");
        testing::settle().await;
        assert_eq!(pointed.info().restarts, 1);
    });
}

#[test]
fn rules_select_by_name_parent_and_pattern() {
    for (pattern, hit) in [
        ("pod-worker", vec!["pod-worker", "pod-worker/1"]),
        ("pod-worker/*", vec!["pod-worker/1"]),
        ("*worker*", vec!["pod-worker", "pod-worker/1", "pod-worker-2"]),
        ("pod-worker/2", vec![]),
    ] {
        testing::run(1, |kernel| async move {
            kernel.faults().add_text(&format!("{pattern}: kill@turn:Add")).unwrap();
            let mut struck = Vec::new();
            for name in ["pod-worker", "pod-worker/1", "pod-worker-2"] {
                if worker(&kernel, name).0.ask(Add(1), LONG).await.is_err() {
                    struck.push(name);
                }
            }
            assert_eq!(struck, hit, "{pattern}");
        });
    }
}

#[test]
fn lists_all_points_that_were_passed() {
    testing::run(1, |kernel| async move {
        kernel.faults().enable();
        let pointed = kernel.spawn(Spec::new("pointed"), |_| Pointed);
        pointed.ask(InTurn, LONG).await.unwrap();
        pointed.ask(InEffect, LONG).await.unwrap();
        let points: Vec<_> = kernel.faults().declared().into_iter().map(|(a, p)| format!("{a} {p}")).collect();
        assert_eq!(
            points,
            [
                "pointed after decision",
                "pointed before effect",
                "pointed started",
                "pointed turn:InEffect",
                "pointed turn:InTurn"
            ]
        );
    });
}

#[test]
fn disabled_faults_do_nothing() {
    testing::run(1, |kernel| async move {
        let (worker, _) = worker(&kernel, "worker");
        kernel.faults().add_text("*: kill").unwrap();
        kernel.faults().disable();
        assert_eq!(worker.ask(Add(1), LONG).await, Ok((0, 1)));
        assert!(kernel.faults().declared().is_empty());
    });
}

/// A stormy run: three workers, random faults, deadlines; everything that can be seen of it.
fn storm(seed: u64) -> Vec<String> {
    testing::run(seed, |kernel| async move {
        kernel
            .faults()
            .add_text("w/*: kill@turn:Add#p0.1\nw/*: delay(7ms)@turn:Add#p0.2\nw/2: panic@started#%2\nw/*: stall(40s)@turn#p0.02")
            .unwrap();
        let names = ["w/1", "w/2", "w/3"];
        let policy = actor::Policy { max_restarts: 1000, ..Default::default() };
        let group = kernel.group("w", policy);
        let log = Log::default();
        let workers: Vec<_> = names
            .iter()
            .map(|n| kernel.spawn(Spec::new(*n).group(&group), Worker::factory(Bomb::None, &log)))
            .collect();
        for n in 0..200 {
            let worker = &workers[n as usize % 3];
            let answer = worker.ask(Add(n), 2 * SECOND).await;
            log.add(format!("{n}: {answer:?} at {}", kernel.clock().unix_nanos()));
        }
        let mut lines = log.lines();
        lines.extend(kernel.faults().log());
        lines
    })
}

#[test]
fn the_same_seed_gives_the_same_transcript() {
    let first = storm(42);
    assert!(first.iter().filter(|l| l.contains("kill@")).count() > 5, "{first:#?}");
    for _ in 0..5 {
        assert_eq!(storm(42), first);
    }
    assert_ne!(storm(43), first);
}
