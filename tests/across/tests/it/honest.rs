//! What a manager may do, and what becomes of its callers when it dies or hangs.

use std::time::{Duration, Instant};

use actor::AskError;
use actor::testing::{run_real, spin_until};
use contract::runtime::{ExecOutcome, ExecSync};
use contract::status::StatusEntry;
use contract::{ProbeManager, RuntimeClient};
use fakes::{Events, StandIn};
use ports::journal::Journal;
use remote_manager::{Counted, Status, WhenAway};

use crate::world::World;

fn status(version: u64) -> StatusEntry {
    StatusEntry {
        version,
        namespace: "n".to_owned(),
        name: "p".to_owned(),
        status: std::sync::Arc::default(),
        finished: false,
        changed_at: model::Timestamp(0),
    }
}

#[test]
fn rows_are_there_before_the_answer_and_boards_before_the_message() {
    run_real(|kernel| async move {
        let world = World::new(kernel);
        let _program = world.honest();
        world.wiring.put::<StatusEntry>("u1".into(), status(6));
        world.connect(WhenAway::Hold);
        for n in 1..200 {
            world.wiring.put::<StatusEntry>("u1".into(), status(n));
            assert_eq!(world.start("u1", "shows").await, Ok(()));
            let known = u64::from(n > 1);
            let words = [format!("known {known}"), format!("starts {n}"), format!("status {n}")];
            assert_eq!(world.words("u1"), words);
        }
        assert_eq!(world.stop("u1").await, Ok(()));
        assert!(world.words("u1").is_empty());
        assert_eq!(world.status(), Status { lives: 1, ..Status::default() });
    });
}

#[test]
fn what_it_counts_is_told_until_it_is_gone() {
    run_real(|kernel| async move {
        let world = World::new(kernel);
        assert_eq!(world.link.counted().await, Counted::Away);
        let mut program = world.honest();
        world.connect(WhenAway::Hold);
        for times in 1..=2 {
            assert_eq!(world.start("u1", "shows").await, Ok(()));
            let Counted::So(_, families) = world.link.counted().await else { panic!("it answers") };
            let probes = families.iter().find(|family| family.name() == "prober_probe_total").unwrap();
            assert_eq!(probes.get_metric()[0].get_counter().get_value(), f64::from(times));
        }
        program.0.kill().unwrap();
        world.away("").await;
        assert_eq!(world.link.counted().await, Counted::Away);
    });
}

#[test]
fn it_asks_what_its_role_asks_tells_events_and_keeps_its_lines() {
    run_real(|kernel| async move {
        let world = World::new(kernel);
        let runtime = StandIn::<RuntimeClient>::on(&world.wiring);
        runtime.answer::<ExecSync>(|m| {
            assert_eq!((m.uid.as_str(), m.command.as_slice()), ("u1", &["true".to_owned()][..]));
            Ok(ExecOutcome { exit_code: 42, stdout: Vec::new(), stderr: Vec::new() })
        });
        let events = Events::on(&world.wiring);
        world.journal.save("probe/old", b"o").unwrap();
        world.journal.save("object/x", b"secret").unwrap();
        let _program = world.honest();
        world.connect(WhenAway::Hold);
        assert_eq!(world.start("u1", "asks").await, Ok(()));
        assert_eq!(world.words("u1"), ["Ok(Ok(42))"]);
        assert_eq!(world.start("u1", "tells").await, Ok(()));
        spin_until("the event is here", || !events.all().is_empty()).await;
        assert_eq!(events.all()[0].message, "from afar");
        assert_eq!(world.start("u1", "keeps").await, Ok(()));
        let keys = r#"["probe/old", "probe/saved", "probe/soon"]"#;
        let words = format!("saved true foreign false keys {keys} loaded Some([115]) removed true");
        assert_eq!(world.words("u1"), [words]);
        assert_eq!(world.journal.load("object/stolen").unwrap(), None);
        assert_eq!(world.status().refused_keys, 2);
    });
}

#[test]
fn killed_in_the_middle_of_a_call_it_is_an_actor_that_crashed() {
    run_real(|kernel| async move {
        let world = World::new(kernel);
        let mut program = world.honest();
        world.connect(WhenAway::Hold);
        assert_eq!(world.start("u1", "shows").await, Ok(()));
        let killed = async {
            spin_until("it has the call", || world.words("u2") == ["hangs"]).await;
            program.kill();
        };
        let (answer, ()) = futures::join!(world.start("u2", "hangs"), killed);
        assert_eq!(answer, Err(AskError::Crashed));
        assert_eq!(world.words("u1").len(), 3, "its rows outlive it");
        // A message that comes meanwhile waits for the next one, which knows the row.
        let next = async {
            world.away("").await;
            world.honest()
        };
        let (answer, _program) = futures::join!(world.start("u3", "shows"), next);
        assert_eq!(answer, Ok(()));
        assert_eq!(world.words("u3"), ["known 2", "starts 1", "status 0"]);
        assert_eq!(world.status(), Status { lives: 2, ..Status::default() });
    });
}

#[test]
fn a_panic_there_costs_one_answer_and_no_connection() {
    run_real(|kernel| async move {
        let world = World::new(kernel);
        let _program = world.honest();
        world.connect(WhenAway::Hold);
        assert_eq!(world.start("u1", "crashes").await, Err(AskError::Crashed));
        assert_eq!(world.start("u1", "shows").await, Ok(()));
        assert_eq!(world.words("u1")[1], "starts 1", "it was built anew");
        assert_eq!(world.status(), Status { lives: 1, ..Status::default() });
    });
}

#[test]
fn who_is_to_fail_while_it_is_away_fails_at_once() {
    run_real(|kernel| async move {
        let world = World::new(kernel);
        let stand_in = world.connect(WhenAway::Fail);
        let began = Instant::now();
        assert_eq!(world.start("u1", "shows").await, Err(AskError::Crashed));
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
        let _program = world.honest();
        world.up().await;
        assert_eq!(world.start("u1", "shows").await, Ok(()));
        assert_eq!(stand_in.info().generation, 0);
    });
}

#[test]
fn one_that_stands_still_is_gone_after_ten_seconds_and_back_when_it_moves() {
    run_real(|kernel| async move {
        let world = World::new(kernel);
        let program = world.honest();
        world.connect(WhenAway::Hold);
        assert_eq!(world.start("u1", "shows").await, Ok(()));
        program.signal(rustix::process::Signal::STOP);
        let began = Instant::now();
        assert_eq!(world.start("u1", "shows").await, Err(AskError::Crashed));
        let took = began.elapsed();
        assert!((8..16).contains(&took.as_secs()), "{took:?}");
        world.away("").await;
        program.signal(rustix::process::Signal::CONT);
        assert_eq!(world.start("u1", "shows").await, Ok(()));
        // The call that nobody waits for any more is not answered to anybody else.
        assert_eq!(world.status(), Status { lives: 2, ..Status::default() });
    });
}

#[test]
fn a_manager_whose_place_another_one_has_taken_posts_nothing() {
    run_real(|kernel| async move {
        let world = World::new(kernel);
        let _program = world.honest();
        let old = world.connect(WhenAway::Hold);
        assert_eq!(world.start("u1", "shows").await, Ok(()));
        let newest = world.wiring.crew::<ProbeManager>();
        let stop = contract::probe::StopProbes { uid: "u1".into(), keep_readiness: false };
        assert_eq!(old.ask(stop, Duration::from_secs(5)).await, Ok(()));
        assert_eq!(world.words("u1").len(), 3, "the row was not taken away");
        assert_eq!((world.status().refused_rows, world.wiring.refused_posts::<ProbeManager>()), (1, 1));
        assert!(newest.is_current());
    });
}
