use std::time::Duration;

use proptest::prelude::*;

use model::go_duration::{DurationError, format, parse};

#[test]
fn reads_durations_as_go_does() {
    let rows: &[(&str, Result<u64, DurationError>)] = &[
        ("0", Ok(0)),
        ("0s", Ok(0)),
        ("-0", Ok(0)),
        ("20s", Ok(20_000_000_000)),
        ("1m30s", Ok(90_000_000_000)),
        ("1h0m0s", Ok(3_600_000_000_000)),
        ("1.5h", Ok(5_400_000_000_000)),
        (".5s", Ok(500_000_000)),
        ("5.s", Ok(5_000_000_000)),
        ("+3ms", Ok(3_000_000)),
        ("100\u{b5}s", Ok(100_000)),
        ("7us", Ok(7_000)),
        ("1ns", Ok(1)),
        ("30s1m", Ok(90_000_000_000)),
        ("", Err(DurationError::Syntax)),
        ("+", Err(DurationError::Syntax)),
        ("s", Err(DurationError::Syntax)),
        (".s", Err(DurationError::Syntax)),
        ("1.2.3s", Err(DurationError::Syntax)),
        ("1d", Err(DurationError::Syntax)),
        ("1 s", Err(DurationError::Syntax)),
        ("10", Err(DurationError::NoUnit)),
        ("1m30", Err(DurationError::NoUnit)),
        ("-1s", Err(DurationError::Negative)),
        ("300000000h", Err(DurationError::TooLong)),
        ("99999999999999999999999999999999999999999999h", Err(DurationError::TooLong)),
    ];
    for (text, expected) in rows {
        assert_eq!(parse(text), expected.map(Duration::from_nanos), "{text:?}");
    }
}

#[test]
fn writes_durations_as_go_does() {
    let rows = [
        (0, "0s"),
        (1, "1ns"),
        (1_500, "1.5\u{b5}s"),
        (100_000_000, "100ms"),
        (1_000_000_000, "1s"),
        (90_000_000_000, "1m30s"),
        (61_500_000_000, "1m1.5s"),
        (7_200_000_000_000, "2h0m0s"),
    ];
    for (nanos, text) in rows {
        assert_eq!(format(Duration::from_nanos(nanos)), text);
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(nanos in 0u64..9_000_000_000_000_000_000) {
        let d = Duration::from_nanos(nanos);
        prop_assert_eq!(parse(&format(d)), Ok(d));
    }

    #[test]
    fn no_text_makes_it_panic(text in "\\PC{0,20}|[-+0-9.hmsun]{0,40}") {
        let _any_answer = parse(&text);
    }
}
