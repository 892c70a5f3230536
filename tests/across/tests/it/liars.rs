//! What a process says that breaks a rule changes nothing, and is counted.

use actor::AskError;
use actor::testing::run_real;
use contract::probe::PodProbes;
use contract::status::StatusEntry;
use fakes::StandIn;
use ports::journal::Journal;
use remote_manager::{Counted, Status, WhenAway};

use crate::world::World;

/// Asks a liar something, and gives what was counted.
fn counted(how: &'static str, answer: Result<(), AskError>) -> Status {
    run_real(|kernel| async move {
        let world = World::new(kernel);
        world.journal.save("object/secret", b"s").unwrap();
        world.journal.save("worker/u1", b"w").unwrap();
        // Whoever asks these is heard by nobody.
        let runtime = StandIn::<contract::RuntimeClient>::on(&world.wiring);
        runtime.answer::<contract::runtime::StartContainer>(|_| panic!("a ProbeManager starts no container"));
        let _program = world.liar(how);
        world.connect(WhenAway::Hold);
        assert_eq!(world.stop("u1").await, answer, "{how}");
        assert!(world.wiring.board::<PodProbes>().snapshot().is_empty(), "{how}");
        assert!(world.wiring.board::<StatusEntry>().snapshot().is_empty(), "{how}");
        assert_eq!(world.journal.load("worker/u1").unwrap().as_deref(), Some(&b"w"[..]));
        let counts = |s: Status| s.refused_rows + s.refused_calls + s.refused_answers + s.refused_keys;
        let expected = match how {
            "calls" => 3,
            _ => 0,
        };
        actor::testing::spin_until("all was counted", || counts(world.status()) >= expected).await;
        world.status()
    })
}

#[test]
fn rows_that_are_not_its_own_or_of_strangers_or_garbage_are_refused() {
    assert_eq!(counted("rows", Ok(())), Status { lives: 1, refused_rows: 5, late_rows: 1, ..Status::default() });
}

#[test]
fn messages_that_its_role_does_not_send_reach_nobody() {
    assert_eq!(counted("calls", Ok(())), Status { lives: 1, refused_calls: 3, ..Status::default() });
}

#[test]
fn answers_that_nobody_asked_for_are_refused() {
    assert_eq!(counted("answers", Ok(())), Status { lives: 1, refused_answers: 2, ..Status::default() });
}

#[test]
fn an_answer_that_cannot_be_read_is_none() {
    let status = counted("unreadable", Err(AskError::Crashed));
    assert_eq!(status, Status { lives: 1, refused_answers: 1, ..Status::default() });
}

#[test]
fn lines_of_the_journal_that_are_not_its_own_are_neither_read_nor_written() {
    assert_eq!(counted("keys", Ok(())), Status { lives: 1, refused_keys: 4, ..Status::default() });
}

#[test]
fn a_frame_that_is_too_large_ends_the_connection() {
    assert_eq!(counted("oversized", Err(AskError::Crashed)), Status { lives: 1, ..Status::default() });
}

#[test]
fn who_says_too_much_is_read_slowly_and_all_of_it_is_refused() {
    let began = std::time::Instant::now();
    assert_eq!(
        counted("flood", Ok(())),
        Status { lives: 1, refused_rows: 50_000, late_rows: 50_000, ..Status::default() }
    );
    assert!(began.elapsed().as_secs() >= 8, "{:?}", began.elapsed());
}

/// What a liar says that it has counted.
fn says(how: &'static str) -> Counted {
    run_real(|kernel| async move {
        let world = World::new(kernel);
        let _program = world.liar(how);
        world.connect(WhenAway::Hold);
        world.up().await;
        world.link.counted().await
    })
}

#[test]
fn numbers_that_are_not_its_own_are_not_told() {
    metrics::declare();
    let Counted::So(life, families) = says("numbers") else { panic!("it answers") };
    assert_eq!(metrics::elsewhere::take("ProbeManager", life, families), 4, "what is of no kind was not even heard");
    let own: Vec<String> = metrics::elsewhere::own().iter().map(|family| family.name().to_owned()).collect();
    assert_eq!(own, ["acme_truths"]);
    let all = [&*metrics::MAIN, &*metrics::PROBES].map(metrics::elsewhere::gathered).concat();
    assert!(!all.iter().any(|f| f.name() == "kubelet_evictions" || f.name() == "prober_probe_total"));
}

#[test]
fn who_counts_nothing_says_nothing_and_who_does_not_answer_is_not_waited_for() {
    assert!(matches!(says("rows"), Counted::So(_, families) if families.is_empty()));
    let began = std::time::Instant::now();
    assert_eq!(says("deaf"), Counted::Silent);
    assert!(began.elapsed().as_secs() < 5, "{:?}", began.elapsed());
}
