//! Rates from two samples.

use model::Timestamp;

use crate::Samples;

const SECOND: i64 = 1_000_000_000;

#[test]
fn a_rate_needs_two_samples_a_second_apart() {
    // time in ms, counter, rate
    let table = [
        ("the first", 0, 100, None),
        ("too soon", 900, 200, None),
        ("a second later", 1000, 1_000_100, Some(1_000_000)),
        ("too soon after nothing moved the base: the whole time counts", 2000, 2_000_100, Some(1_000_000)),
        ("idle", 4000, 2_000_100, Some(500_000)),
        ("ten seconds: the base moves", 10_000, 10_000_100, Some(1_000_000)),
        ("too soon after that: the last one", 10_500, 99_000_100, Some(1_000_000)),
        ("only since the new base", 11_000, 13_000_100, Some(3_000_000)),
        ("the counter went back: another one of that name", 12_000, 5, None),
        ("and again from there", 13_000, 1005, Some(1000)),
        ("the clock went back", 11_900, 2000, None),
    ];
    let mut samples = Samples::default();
    for (row, ms, total, expected) in table {
        assert_eq!(samples.rate("/a", Timestamp(SECOND + ms * 1_000_000), total), expected, "{row}");
    }
}

#[test]
fn cgroups_do_not_share_samples() {
    let mut samples = Samples::default();
    assert_eq!(samples.rate("/a", Timestamp(SECOND), 0), None);
    assert_eq!(samples.rate("/b", Timestamp(2 * SECOND), 900), None);
    assert_eq!(samples.rate("/a", Timestamp(2 * SECOND), 7), Some(7));
}

#[test]
fn who_was_not_asked_about_for_ten_minutes_is_forgotten() {
    let mut samples = Samples::default();
    samples.rate("/old", Timestamp(SECOND), 0);
    samples.rate("/new", Timestamp(300 * SECOND), 0);
    samples.forget(Timestamp(600 * SECOND));
    assert_eq!(samples.len(), 2);
    samples.forget(Timestamp(601 * SECOND));
    assert_eq!(samples.len(), 1);
    assert!(!samples.is_empty());
}

#[test]
fn counters_of_any_size_do_not_overflow() {
    let mut samples = Samples::default();
    samples.rate("/a", Timestamp(1), 0);
    assert_eq!(samples.rate("/a", Timestamp(1 + SECOND), u64::MAX), Some(u64::MAX));
}
