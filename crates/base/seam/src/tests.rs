use std::sync::Arc;
use std::time::Duration;

use actor::testing;
use contract::probe::PodProbes;
use contract::seam::{Changes, Refusal};
use contract::status::StatusEntry;
use contract::{ProbeManager, Wiring};

use crate::out::{Out, Said, frames};
use crate::v1::{Answer, FromManager, Row, Rows, ToManager, Unanswered, answer, to_manager};
use crate::{Boards, Calls, Desk, FRAME_OF_ROWS, Lost, MAX_FRAME};

fn changes(sizes: &[usize]) -> Changes {
    let rows = sizes.iter().map(|size| (b"1".to_vec(), Some(vec![b' '; *size - 1]))).collect();
    Changes { number: 7, whole: true, rows }
}

#[test]
fn rows_go_in_frames_that_are_not_too_large() {
    for (sizes, per_frame) in [
        (&[][..], &[0][..]),
        (&[10, 10], &[2]),
        (&[FRAME_OF_ROWS, 10, 10], &[1, 2]),
        (&[10, FRAME_OF_ROWS, FRAME_OF_ROWS], &[1, 1, 1]),
        (&[10, MAX_FRAME, 10], &[2]),
    ] {
        let made = frames("B", changes(sizes));
        assert_eq!(made.iter().map(|f| f.rows.len()).collect::<Vec<_>>(), per_frame);
        let more: Vec<bool> = made.iter().map(|f| f.more).collect();
        assert_eq!(more.iter().position(|more| !more), Some(made.len() - 1), "{more:?}");
        assert!(made.iter().all(|f| f.whole && f.number == 7 && f.board == "B"));
    }
}

#[test]
fn what_was_posted_before_a_message_is_said_before_it() {
    testing::run(1, |_| async {
        let wiring = Wiring::default();
        let crew = wiring.crew::<ProbeManager>();
        let (out, mut said) = Out::<FromManager>::new(Boards::own_feeds_of::<ProbeManager>(&wiring));
        for uid in ["a", "b"] {
            crew.poster().post(uid.into(), PodProbes::default().into());
            out.say(Said::Answer(Answer { id: 1, what: None })).await.unwrap();
            use crate::v1::from_manager::What::{Answer as A, Rows as R};
            assert!(matches!(said.recv().await.unwrap().what, Some(R(Rows { board, .. })) if board == "PodProbes"));
            assert!(matches!(said.recv().await.unwrap().what, Some(A(_))));
        }
        assert!(said.try_recv().is_err(), "nothing was said twice");
        drop(said);
        assert!(out.say(Said::Answer(Answer::default())).await.is_err());
        out.follow().await;
    });
}

#[test]
fn rows_outlive_the_one_who_gave_up_saying_them() {
    testing::run(1, |_| async {
        let wiring = Wiring::default();
        let crew = wiring.crew::<ProbeManager>();
        let (frames, mut said) = tokio::sync::mpsc::channel::<FromManager>(1);
        let out = Out::over(frames, Boards::own_feeds_of::<ProbeManager>(&wiring));
        let nothing = || Said::Answer(Answer::default());
        out.say_now(nothing().into()).unwrap();
        crew.poster().post("a".into(), PodProbes::default().into());
        // The other side does not read: whoever wanted to say something waits no longer.
        let given_up = tokio::time::timeout(Duration::from_secs(1), out.say(nothing())).await;
        assert!(given_up.is_err(), "there is no room");
        let heard = async {
            let mut rows = 0;
            for _ in 0..3 {
                let what = said.recv().await.unwrap().what;
                rows += usize::from(matches!(what, Some(crate::v1::from_manager::What::Rows(_))));
            }
            rows
        };
        let heard = tokio::time::timeout(Duration::from_secs(1), heard);
        let (done, rows) = futures::join!(out.say(nothing()), heard);
        assert_eq!((done, rows.ok()), (Ok(()), Some(1)));
    });
}

/// A call, and what it was sent as.
async fn sent(calls: &Arc<Calls>, answers: impl FnOnce(u64) -> Option<Answer>) -> (Result<Vec<u8>, Lost>, String) {
    let (out, mut said) = Out::<ToManager>::new(Vec::new());
    let other_side = async {
        let Some(ToManager { what: Some(to_manager::What::Call(call)) }) = said.recv().await else { panic!() };
        match answers(call.id) {
            Some(answer) => assert!(calls.answered(answer)),
            None => calls.end(),
        }
        call.key
    };
    let call = calls.call(&out, "StopProbes", b"{}".to_vec(), Duration::from_secs(5), ());
    futures::join!(call, other_side)
}

#[test]
fn a_call_is_answered_refused_late_or_lost() {
    testing::run(1, |_| async {
        let calls = Arc::new(Calls::new(0x2a));
        let body = |id| Some(Answer { id, what: Some(answer::What::Body(b"null".to_vec())) });
        assert_eq!(sent(&calls, body).await, (Ok(b"null".to_vec()), "2a-1".to_owned()));
        let crashed = Unanswered::Crashed;
        let unanswered = |id| Some(Answer { id, what: Some(answer::What::Unanswered(crashed.into())) });
        assert_eq!(sent(&calls, unanswered).await.0, Err(Lost::Said(crashed)));
        let nonsense = |id| Some(Answer { id, what: Some(answer::What::Unanswered(99)) });
        assert_eq!(sent(&calls, nonsense).await.0, Err(Lost::Said(crashed)));
        let other = |_| Some(Answer { id: 1, what: None });
        assert_eq!(sent(&calls, other).await.0, Err(Lost::Late), "the answer to another call is none");
        assert!(!calls.answered(Answer { id: 77, what: None }), "nobody asked that");
        assert!(!calls.answered(Answer { id: 0, what: None }));
        assert_eq!(sent(&calls, |_| None).await.0, Err(Lost::Gone));
        let (out, _said) = Out::<ToManager>::new(Vec::new());
        let after = calls.call(&out, "StopProbes", Vec::new(), Duration::from_secs(5), ()).await;
        assert_eq!(after, Err(Lost::NotSent));
        let large =
            Arc::new(Calls::new(1)).call(&out, "StopProbes", vec![0; MAX_FRAME], Duration::from_secs(5), ()).await;
        assert_eq!(large, Err(Lost::NotSent));
    });
}

#[test]
fn a_turn_ends_with_the_life_of_a_side_that_does_not_read() {
    testing::run(1, |_| async {
        let calls = Arc::new(Calls::new(1));
        let (out, _unread) = Out::<ToManager>::new(Vec::new());
        let ping = || to_manager::What::Ping(crate::v1::Ping { number: 1 }).into();
        while out.say_now(ping()).is_ok() {}
        let turn = Arc::new(());
        let day = Duration::from_secs(86_400);
        let stuck = calls.call(&out, "StopProbes", Vec::new(), day, turn.clone());
        let end = async {
            testing::settle().await;
            assert_eq!(Arc::strong_count(&turn), 2, "it waits for room");
            calls.end();
        };
        let (answer, ()) = futures::join!(stuck, end);
        assert_eq!((answer, Arc::strong_count(&turn)), (Err(Lost::Gone), 1));
    });
}

#[test]
fn a_desk_has_what_is_declared_and_nothing_else() {
    testing::run(1, |_| async {
        let wiring = Wiring::default();
        let (asks, answers) =
            (Desk::asks_of::<ProbeManager>(&wiring.crew()), Desk::answers_of::<ProbeManager>(&wiring));
        assert_eq!(
            format!("{asks:?} {answers:?}"),
            r#"{"ExecSync", "RecordEvent"} {"RetainProbes", "StartProbes", "StopProbes"}"#
        );
        let within = Duration::from_secs(1);
        for (message, body, what) in [
            ("StartContainer", &b"{}"[..], Unanswered::Refused),
            ("StopProbes", b"{}", Unanswered::Refused),
            ("ExecSync", b"garbage", Unanswered::Refused),
            (
                "ExecSync",
                br#"{"uid":"u","container":"c","command":[],"timeout":{"secs":1,"nanos":0}}"#,
                Unanswered::NotDelivered,
            ),
        ] {
            assert_eq!(asks.ask(message, body, within).await, Err(what), "{message}");
        }
        assert_eq!(asks.tell("StartContainer", b"{}"), Err(Unanswered::Refused));
        assert_eq!(asks.tell("RecordEvent", b"{"), Err(Unanswered::Refused));
    });
}

#[test]
fn boards_take_what_the_role_posts_or_mirrors_what_it_reads() {
    let wiring = Wiring::default();
    let rows = |board: &str, text: &str| Rows {
        board: board.to_owned(),
        number: 1,
        whole: false,
        more: false,
        rows: vec![Row { key: b"\"u\"".to_vec(), value: Some(text.as_bytes().to_vec()) }],
    };
    let probes = r#"{"verdicts":{},"probes":{}}"#;
    let status =
        serde_json::json!({"version":1,"namespace":"n","name":"p","status":{},"finished":false,"changed_at":0});
    let mut posts = Boards::posts_of::<ProbeManager>(&wiring.crew());
    assert_eq!(posts.take(rows("PodProbes", probes), &|_| true).posted, 1);
    let refused = posts.take(rows("StatusEntry", &status.to_string()), &|_| true).refused;
    assert!(matches!(refused[..], [Refusal::Unreadable(_)]), "{refused:?}");
    let there = Wiring::default();
    let mut mirrors = Boards::mirrors_of::<ProbeManager>(&there);
    assert_eq!(mirrors.take(rows("PodProbes", probes), &|_| true).refused, []);
    assert_eq!(mirrors.take(rows("StatusEntry", &status.to_string()), &|_| true).refused, []);
    assert_eq!((there.board::<PodProbes>().snapshot().len(), there.board::<StatusEntry>().snapshot().len()), (1, 1));
    let (own, others) = Boards::feeds_of::<ProbeManager>(&wiring.crew());
    let names = |feeds: &crate::Feeds| feeds.iter().map(|(name, _)| *name).collect::<Vec<_>>();
    assert_eq!((names(&own), names(&others)), (vec!["PodProbes"], vec!["StatusEntry"]));
}
