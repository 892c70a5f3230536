use std::sync::{Mutex, PoisonError};

use actor::testing::{run, spin_until};
use actor::{Actor, ActorRef, Ctx, Deferred, Handler, Kernel, Spec, supervised};
use model::PodUid;
use serde_json::json;

use super::*;
use crate::ProbeManager;
use crate::Wiring;
use crate::probe::{RetainProbes, StartProbes, StopProbes};

/// What a manager was told, in order.
type Heard = Arc<Mutex<Vec<String>>>;

struct Probes {
    heard: Heard,
    /// Never answers.
    hangs: bool,
}

impl Actor for Probes {
    type Context = Ctx<Self>;
}
supervised!(Probes);

impl Probes {
    fn note(&self, words: String) -> Deferred<Self, ()> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).push(words);
        if self.hangs { Deferred::new(std::future::pending()) } else { Deferred::ready(()) }
    }
}

macro_rules! notes {
    ($($message:ident: $words:expr;)*) => {
        $(impl Handler<$message> for Probes {
            type Result = Deferred<Self, ()>;

            fn handle(&mut self, message: $message, _: &mut Ctx<Self>) -> Self::Result {
                let words: fn($message) -> String = $words;
                self.note(words(message))
            }
        })*
    };
}
notes! {
    StartProbes: |m| format!("start {}", model::pod::uid(&m.pod));
    StopProbes: |m| format!("stop {}{}", m.uid, if m.keep_readiness { ", ready" } else { "" });
    RetainProbes: |m| format!("retain {}", m.known.len());
}

fn probes(kernel: &Kernel, wiring: &Wiring, hangs: bool) -> (ActorRef<Probes>, Heard) {
    let heard = Heard::default();
    let of = heard.clone();
    let actor = kernel.spawn(Spec::new("probe-manager"), move |_| Probes { heard: of.clone(), hangs });
    wiring.connect::<ProbeManager, _>(&actor);
    (actor, heard)
}

fn heard(of: &Heard) -> Vec<String> {
    of.lock().unwrap().clone()
}

fn start(uid: &str) -> StartProbes {
    StartProbes { pod: serde_json::from_value(json!({"metadata": {"uid": uid, "name": uid}})).unwrap() }
}

fn stop(uid: &str, keep_readiness: bool) -> StopProbes {
    StopProbes { uid: uid.into(), keep_readiness }
}

#[test]
fn an_actor_that_takes_the_place_is_told_what_is_remembered_and_nothing_else() {
    run(7, |kernel| async move {
        let wiring = Wiring::default();
        assert_eq!(wiring.seat::<ProbeManager>(kernel.clock()).remembered(), 0);
        let _first = probes(&kernel, &wiring, false);
        for uid in ["u1", "u2", "u3", "u4"] {
            wiring.ask(start(uid)).await.unwrap();
            wiring.ask(start(uid)).await.unwrap();
        }
        wiring.ask(stop("u1", false)).await.unwrap();
        wiring.ask(stop("u2", true)).await.unwrap();
        let known = ["u2", "u4"].map(PodUid::from).into();
        wiring.ask(RetainProbes { known }).await.unwrap();
        assert_eq!(wiring.reminders::<ProbeManager>(), 3);
        let (_second, told) = probes(&kernel, &wiring, false);
        assert_eq!(wiring.remind::<ProbeManager>(), 0);
        wiring.ask(start("u5")).await.unwrap();
        assert_eq!(heard(&told), ["start u2", "stop u2, ready", "start u4", "start u5"]);
        let crew = wiring.crew::<ProbeManager>();
        let again: Vec<_> = crew.remembered().iter().map(|t| t.message).collect();
        assert_eq!(again, ["StartProbes", "StopProbes", "StartProbes", "StartProbes"]);
    });
}

#[test]
fn without_a_seat_nothing_is_remembered() {
    run(7, |kernel| async move {
        let wiring = Wiring::default();
        let _first = probes(&kernel, &wiring, false);
        wiring.ask(start("u1")).await.unwrap();
        assert_eq!((wiring.reminders::<ProbeManager>(), wiring.remind::<ProbeManager>()), (0, 0));
    });
}

#[test]
fn what_the_former_actor_began_and_did_not_answer_is_asked_of_the_new_one_and_counts_for_it_alone() {
    run(7, |kernel| async move {
        let wiring = Wiring::default();
        let seat = wiring.seat::<ProbeManager>(kernel.clock());
        let (first, of_first) = probes(&kernel, &wiring, true);
        let swap = async {
            spin_until("the first has it", || !heard(&of_first).is_empty()).await;
            assert!(seat.fared()["StartProbes"].oldest.is_some());
            let second = probes(&kernel, &wiring, false);
            first.stop();
            second
        };
        let (answer, (_second, of_second)) = futures::join!(wiring.ask(start("u1")), swap);
        assert_eq!(answer, Ok(()));
        assert_eq!((heard(&of_first), heard(&of_second)), (vec!["start u1".into()], vec!["start u1".into()]));
        let fared = &seat.fared()["StartProbes"];
        assert_eq!((fared.well, fared.ended(), fared.oldest), (1, 1, None));
    });
}

#[test]
fn an_actor_that_dies_in_its_place_is_asked_no_second_time() {
    run(7, |kernel| async move {
        let wiring = Wiring::default();
        let seat = wiring.seat::<ProbeManager>(kernel.clock());
        let (first, of_first) = probes(&kernel, &wiring, true);
        let killed = async {
            spin_until("it has it", || !heard(&of_first).is_empty()).await;
            first.stop();
        };
        let (answer, ()) = futures::join!(wiring.ask(start("u1")), killed);
        assert_eq!(answer, Err(AskError::Crashed));
        assert_eq!(wiring.ask(start("u1")).await, Err(AskError::NotDelivered));
        let fared = &seat.fared()["StartProbes"];
        assert_eq!((fared.crashed, fared.unheard, fared.ended()), (1, 1, 2));
    });
}

#[test]
fn an_ask_that_nobody_polls_is_overdue_from_its_deadline_on() {
    run(7, |kernel| async move {
        let wiring = Wiring::default();
        let seat = wiring.seat::<ProbeManager>(kernel.clock());
        let (_silent, heard_of) = probes(&kernel, &wiring, true);
        let overdue = || wiring.seats().flat_map(|seat| seat.overdue()).collect::<Vec<_>>();
        let mut ask = Box::pin(wiring.ask_within(start("u1"), Duration::from_secs(10)));
        assert!(ask.as_mut().now_or_never().is_none());
        spin_until("it has it", || !heard(&heard_of).is_empty()).await;
        tokio::time::sleep(Duration::from_secs(9)).await;
        assert_eq!(overdue(), []);
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert!(matches!(overdue()[..], [("StartProbes", late)] if late.as_secs() == 2), "{:?}", overdue());
        assert!(matches!(ask.await, Err(AskError::Timeout { .. })));
        assert_eq!((overdue(), seat.fared()["StartProbes"].expired), (Vec::new(), 1));
    });
}

#[derive(Default)]
struct Notes {
    answered: Mutex<Vec<Answered>>,
    passed_over: AtomicU64,
}

impl Compare for Notes {
    fn run(&self, work: BoxFuture<'static, ()>) {
        tokio::spawn(work);
    }
    fn answered(&self, answered: Answered) {
        self.answered.lock().unwrap().push(answered);
    }
    fn passed_over(&self, _: &'static str) {
        self.passed_over.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_candidate_hears_the_same_and_its_answers_go_to_nobody() {
    run(7, |kernel| async move {
        let (wiring, there) = (Wiring::default(), Wiring::default());
        let (seat, seat_there) =
            (wiring.seat::<ProbeManager>(kernel.clock()), there.seat::<ProbeManager>(kernel.clock()));
        let _in_force = probes(&kernel, &wiring, false);
        wiring.ask(start("u1")).await.unwrap();
        let (candidate, told) = probes(&kernel, &there, true);
        let notes = Arc::new(Notes::default());
        wiring.show::<ProbeManager>(&there, kernel.clock(), notes.clone());
        assert_eq!(there.reminders::<ProbeManager>(), 1, "it is to know what was said before");
        assert_eq!(wiring.ask(start("u2")).await, Ok(()), "nobody waits for it");
        assert_eq!(wiring.tell(start("u3")), Ok(()));
        spin_until("it has both", || heard(&told).len() == 2).await;
        candidate.stop();
        spin_until("it was compared", || !notes.answered.lock().unwrap().is_empty()).await;
        let subject = Some("u2".into());
        let theirs = Err(AskError::Crashed);
        let expected = Answered { message: "StartProbes", subject, ours: Ok("null".into()), theirs };
        assert_eq!(*notes.answered.lock().unwrap(), [expected]);
        assert_eq!(there.reminders::<ProbeManager>(), 3);
        assert_eq!(wiring.tell(start("u4")), Ok(()));
        assert_eq!(notes.passed_over.load(Ordering::Relaxed), 1, "the candidate takes nothing any more");
        seat.show_nobody();
        assert_eq!(wiring.ask(start("u5")).await, Ok(()));
        assert_eq!(there.reminders::<ProbeManager>(), 4, "u4 was noted before it was not taken");
        assert!(seat_there.fared()["StartProbes"].crashed == 1 && seat.fared()["StartProbes"].well == 3);
    });
}
