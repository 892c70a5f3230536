use super::*;

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

const fn s(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// So many answers, of which the last ones are failures, each after the same time.
fn fared(answers: u64, failed: u64, took: Duration) -> Fared {
    let mut fared = Fared::default();
    (0..answers).for_each(|n| fared.answered(n >= answers - failed, took));
    fared
}

/// The same, and so many that expired, crashed, were not heard.
fn ended(mut fared: Fared, expired: u64, crashed: u64, unheard: u64) -> Fared {
    (fared.expired, fared.crashed, fared.unheard) = (expired, crashed, unheard);
    fared
}

/// Nothing was answered, and one waits.
fn waits(since: Duration) -> Fared {
    let mut nothing = fared(0, 0, Duration::ZERO);
    nothing.oldest = Some(since);
    nothing
}

fn asked(before: Fared, now: Fared) -> Seen {
    Seen { asked: vec![Asked { message: "M", deadline: s(30), before, now }], ..on_probation() }
}

fn on_probation() -> Seen {
    Seen { lasted: s(10), probation: s(60), lives: 1, ..Seen::default() }
}

#[test]
fn what_costs_a_manager_its_place_and_what_does_not() {
    let good = || fared(100, 0, ms(1));
    let none = Fared::default;
    let back = Verdict::RollBack;
    let table = [
        ("nothing was asked", on_probation(), Verdict::Wait),
        ("its time is over", Seen { lasted: s(60), ..on_probation() }, Verdict::Keep),
        ("without a probation", Seen { lasted: s(0), probation: s(0), ..on_probation() }, Verdict::Keep),
        ("as before", asked(good(), good()), Verdict::Wait),
        // What it is.
        ("gone", Seen { away: Some("killed".into()), ..on_probation() }, back(Reason::Gone("killed".into()))),
        (
            "gone at the end",
            Seen { away: Some("x".into()), lasted: s(60), ..on_probation() },
            back(Reason::Gone("x".into())),
        ),
        ("one new connection", Seen { lives: 2, ..on_probation() }, Verdict::Wait),
        ("a crash loop", Seen { lives: 3, ..on_probation() }, back(Reason::Restless(3))),
        ("a lie", Seen { lies: 1, ..on_probation() }, back(Reason::Lies(1))),
        ("rows of pods that have just gone", Seen { late_rows: 32, ..on_probation() }, Verdict::Wait),
        ("rows of strangers", Seen { late_rows: 33, ..on_probation() }, back(Reason::Strangers(33))),
        ("one reminder of many", Seen { reminders: (110, 5), ..on_probation() }, Verdict::Wait),
        ("some reminders", Seen { reminders: (110, 6), ..on_probation() }, back(Reason::Deaf(110, 6))),
        ("the only reminder", Seen { reminders: (1, 1), ..on_probation() }, back(Reason::Deaf(1, 1))),
        // Hanging: ten times the usual, 2 s at least, never longer than is declared.
        ("waits", asked(good(), waits(s(2))), Verdict::Wait),
        ("hangs", asked(good(), waits(ms(2001))), back(Reason::Hangs("M", ms(2001)))),
        ("slow ones may wait", asked(fared(20, 0, s(1)), waits(s(10))), Verdict::Wait),
        ("slow ones may hang", asked(fared(20, 0, s(1)), waits(s(11))), back(Reason::Hangs("M", s(11)))),
        ("unknown ones may wait", asked(none(), waits(s(7))), Verdict::Wait),
        ("unknown ones may hang", asked(none(), waits(s(8))), back(Reason::Hangs("M", s(8)))),
        ("the one before hung, too", asked(fared(20, 0, s(20)), waits(s(31))), back(Reason::Hangs("M", s(31)))),
        // Without answers.
        ("the first expires", asked(good(), ended(none(), 1, 0, 0)), back(Reason::Expires("M", 1, 1))),
        ("one of many expires", asked(good(), ended(fared(99, 0, ms(1)), 1, 0, 0)), Verdict::Wait),
        ("they expired before, too", asked(ended(none(), 9, 0, 0), ended(none(), 3, 0, 0)), Verdict::Wait),
        ("one crash", asked(good(), ended(none(), 0, 1, 0)), Verdict::Wait),
        ("two crashes", asked(good(), ended(none(), 0, 1, 1)), back(Reason::Drops("M", 2, 2))),
        ("two crashes of many", asked(good(), ended(good(), 0, 2, 0)), Verdict::Wait),
        // Failures.
        ("some fail", asked(good(), fared(5, 4, ms(1))), Verdict::Wait),
        ("more fail than before", asked(good(), fared(5, 5, ms(1))), back(Reason::Fails("M", 5, 5))),
        ("a quarter fails", asked(good(), fared(100, 25, ms(1))), Verdict::Wait),
        ("as many failed before", asked(fared(10, 10, ms(1)), fared(10, 10, ms(1))), Verdict::Wait),
        // Time.
        ("slower, and nobody minds", asked(good(), fared(10, 0, ms(520))), Verdict::Wait),
        (
            "slower",
            asked(good(), fared(10, 0, ms(600))),
            back(Reason::Slow("M", Duration::from_micros(1 << 20), ms(1) + Duration::from_micros(24))),
        ),
        ("slower, but few", asked(good(), fared(9, 0, ms(600))), Verdict::Wait),
        // On a real node: as many StartProbes as there are pods, right after the place has gone over.
        ("all pods at once", asked(fared(113, 0, ms(30)), fared(113, 0, ms(400))), Verdict::Wait),
        ("as slow as before", asked(fared(10, 0, ms(300)), fared(10, 0, ms(900))), Verdict::Wait),
        ("nothing to compare with", asked(none(), fared(10, 0, s(4))), Verdict::Wait),
        (
            "slow by itself",
            asked(none(), fared(10, 0, s(5))),
            back(Reason::Slow("M", Duration::from_micros(1 << 23), ms(750))),
        ),
        // Rows.
        ("a pod of five ended", Seen { rows: (5, 1), ..on_probation() }, Verdict::Wait),
        ("rows vanish", Seen { rows: (5, 2), ..on_probation() }, back(Reason::Vanish(2, 5))),
        ("the only row", Seen { rows: (1, 1), ..on_probation() }, back(Reason::Vanish(1, 1))),
    ];
    for (name, seen, expected) in table {
        assert_eq!(judge(&seen), expected, "{name}");
    }
}

#[test]
fn a_reason_is_told_with_its_figures() {
    for (reason, words) in [
        (Reason::Gone("killed".into()), "it is away: killed"),
        (Reason::Hangs("StartProbes", ms(2340)), "StartProbes has waited 2.3 s for an answer"),
        (Reason::Slow("M", ms(300), ms(2)), "M takes up to 0.300 s, with the one before it was 0.002 s"),
        (Reason::Deaf(3, 2), "it did not answer 2 of 3 messages that it must know"),
        (Reason::Vanish(2, 5), "2 of 5 rows of running pods vanished"),
    ] {
        assert_eq!(reason.to_string(), words);
    }
    let seen = asked(Fared::default(), ended(fared(10, 1, ms(1)), 2, 0, 0));
    assert_eq!(summary(&seen), "10 asks answered, 2 not, nine of ten within 0.001 s");
}

#[test]
fn one_that_does_not_outlast_its_probation_has_to_stay_away_longer_each_time() {
    for (lasted, probation, before, rest) in [
        (s(60), s(60), s(0), s(0)),
        (s(3600), s(60), s(480), s(0)),
        (s(59), s(60), s(0), s(60)),
        (s(1), s(60), s(60), s(120)),
        (s(1), s(60), s(120), s(240)),
        (s(1), s(60), s(480), s(600)),
        (s(1), s(3600), s(0), s(600)),
        (s(1), s(0), s(0), s(0)),
    ] {
        assert_eq!(next_rest(lasted, probation, before, s(600)), rest, "{lasted:?} of {probation:?} after {before:?}");
    }
}
