//! What is kept, and how it comes back from the journal.

use model::Timestamp;
use model::history::{End, PodHistory, Reason, What};
use proptest::prelude::*;

use crate::{
    MOST, New, TEXT_BYTES, TEXTS, begin, close_open, end, from_bytes, note, open, sentence, to_bytes, was_done,
};

fn at(ms: i64) -> Timestamp {
    Timestamp(ms * 1_000_000)
}

fn words(history: &PodHistory) -> Vec<String> {
    history.transitions.iter().map(|t| format!("{} x{}", sentence(history, t), t.count)).collect()
}

#[test]
fn failures_that_take_turns_are_counted_each_in_its_place() {
    let mut h = PodHistory::default();
    for round in 0..50 {
        for text in ["ErrImagePull: no route", "ImagePullBackOff: wait"] {
            begin(&mut h, What::Pull, "app", at(round * 1000));
            end(&mut h, What::Pull, "app", Err(text), at(round * 1000 + 7));
        }
    }
    let both = ["image of app failed: ErrImagePull: no route x50", "image of app failed: ImagePullBackOff: wait x50"];
    assert_eq!(words(&h), both);
    assert_eq!((h.transitions[0].at, h.transitions[0].last, h.transitions[0].took_ms), (at(0), at(49_000), 7));
    begin(&mut h, What::Pull, "app", at(60_000));
    assert_eq!(open(&h).count(), 1);
    end(&mut h, What::Pull, "app", Ok(()), at(60_100));
    assert!(was_done(&h, What::Pull, "app") && !was_done(&h, What::Pull, "other"));
    begin(&mut h, What::Pull, "app", at(70_000));
    end(&mut h, What::Pull, "app", Err("ErrImagePull: no route"), at(70_001));
    assert_eq!(h.transitions.len(), 4, "after a success a failure is a new one: {:?}", words(&h));
}

#[test]
fn each_crash_is_told_of() {
    let mut h = PodHistory::default();
    for round in 0..3 {
        let exited = New { number: 1, ..New::of(What::Exited, "app") };
        note(&mut h, exited, at(round * 10_000));
        let hold = New { reason: Reason::Exited, number: 1, lasts_ms: 10_000 << round, ..New::of(What::Hold, "app") };
        note(&mut h, hold, at(round * 10_000));
    }
    let held = |s: &str| format!("hold app for {s}: exited with code 1 x1");
    let told =
        ["app exited with code 1 x1".to_owned(), held("10s"), "app exited with code 1 x1".to_owned(), held("20s")];
    assert_eq!(words(&h)[..4], told);
    assert_eq!(words(&h)[5], held("40s"));
}

#[test]
fn what_a_dead_worker_was_at_is_told_as_interrupted() {
    let mut h = PodHistory::default();
    begin(&mut h, What::Sandbox, "", at(0));
    close_open(&mut h);
    assert_eq!(words(&h), ["sandbox: interrupted x1"]);
    end(&mut h, What::Sandbox, "", Ok(()), at(9));
    assert_eq!(h.transitions[0].end, End::Lost, "an end without a beginning is none");
}

#[test]
fn a_history_of_twenty_entries_on_each_of_110_pods_is_far_below_a_mebibyte() {
    let mut h = PodHistory::default();
    for i in 0..20 {
        note(&mut h, New { number: i, text: "Back-off pulling image", ..New::of(What::Exited, "app") }, at(i.into()));
    }
    let texts: usize = h.transitions.iter().filter_map(|t| t.text.as_ref()).map(|t| t.len() + 16).sum();
    let bytes = h.transitions.len() * size_of_val(&h.transitions[0]) + texts + 64;
    // The worker has it, and the board.
    assert!(2 * 110 * bytes < 1 << 19, "{bytes} bytes a pod");
    let mut most = PodHistory::default();
    let long = "x".repeat(1000);
    for i in 0..1000 {
        note(&mut most, New { number: i, text: &long, ..New::of(What::Exited, "app") }, at(i.into()));
    }
    let texts: usize = most.transitions.iter().filter_map(|t| t.text.as_ref()).map(|t| t.len()).sum();
    assert!(texts <= TEXTS * TEXT_BYTES, "{texts}");
    assert_eq!((most.transitions.len(), most.dropped), (MOST, 800));
    assert!(to_bytes(&most).unwrap().len() < 24 << 10, "{}", to_bytes(&most).unwrap().len());
}

#[test]
fn a_line_of_a_newer_bosun_is_read_as_far_as_it_is_known() {
    let line = br#"{"n":["app"],"mood":"good","t":[{"a":5,"w":250,"zz":[1]},{"a":6,"w":21,"e":0}]}"#;
    let h = from_bytes(line).unwrap();
    assert_eq!(h.transitions.iter().map(|t| t.what).collect::<Vec<_>>(), [What::Unknown, What::Ready]);
    assert_eq!(words(&h)[0], "something that this version does not know x1");
}

/// Kind, what, container, time that passes, number, length of the text.
fn any_step() -> impl Strategy<Value = (u8, usize, usize, i64, i32, usize)> {
    (0..5u8, 0..What::ALL.len(), 0..400usize, 0..5000i64, -3..300i32, 0..400usize)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn whatever_happens_a_history_keeps_to_its_bounds_and_comes_back_from_the_journal(
        steps in prop::collection::vec(any_step(), 0..600)
    ) {
        let mut h = PodHistory::default();
        let mut now = 0;
        for (kind, what, name, later, number, length) in steps {
            let text = "\u{e9}".repeat(length);
            now += later;
            let (what, name) = (What::ALL[what], if name == 0 { String::new() } else { format!("c{name}") });
            match kind {
                0 => begin(&mut h, what, &name, at(now)),
                1 => end(&mut h, what, &name, Err(&text), at(now)),
                2 => end(&mut h, what, &name, Ok(()), at(now)),
                3 if later == 0 => close_open(&mut h),
                _ => note(&mut h, New { number, text: &text, ..New::of(what, &name) }, at(now)),
            }
            prop_assert!(h.transitions.len() <= MOST && h.names.len() <= 255);
            let texts: Vec<usize> = h.transitions.iter().filter_map(|t| t.text.as_ref()).map(|t| t.len()).collect();
            prop_assert!(texts.len() <= TEXTS && texts.iter().all(|t| *t <= TEXT_BYTES));
        }
        let line = to_bytes(&h).unwrap();
        prop_assert_eq!(from_bytes(&line).unwrap(), h);
    }

    #[test]
    fn a_line_that_is_none_is_refused_whatever_it_is(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let read = from_bytes(&bytes);
        prop_assert!(read.is_none_or(|h| h.transitions.len() <= MOST));
    }

    #[test]
    fn a_line_that_was_damaged_is_refused_or_keeps_to_the_bounds(cut in 0..400usize, with: u8) {
        let mut h = PodHistory::default();
        for i in 0..8 {
            note(&mut h, New { number: i, text: "said", ..New::of(What::Exited, "app") }, at(i.into()));
        }
        let mut line = to_bytes(&h).unwrap();
        let place = cut % line.len();
        line[place] = with;
        if let Some(h) = from_bytes(&line) {
            prop_assert!(h.transitions.len() <= 8);
            prop_assert!(h.transitions.iter().all(|t| !sentence(&h, t).is_empty()));
        }
    }
}
