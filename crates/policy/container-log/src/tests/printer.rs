use model::Timestamp;

use crate::{Fed, LONG_LINE, MAX_JSON_LINE, Printer, Stamp, Streams, Wanted};

/// Prints `input` shown in pieces that grow by `step` bytes, as a reader would with a buffer that never is large enough.
pub(super) fn printed(wanted: Wanted, input: &[u8], step: usize) -> (Vec<u8>, Fed) {
    let mut printer = Printer::new(wanted);
    let (mut out, mut from, mut to) = (Vec::new(), 0, 0);
    loop {
        to = (to + step).min(input.len());
        let (used, fed) = printer.feed(&input[from..to], &mut out);
        from += used;
        if fed != Fed::More {
            return (out, fed);
        }
        if to == input.len() {
            let fed = printer.finish(&input[from..], &mut out);
            return (out, fed);
        }
    }
}

fn text(wanted: Wanted, input: &str) -> String {
    let (out, fed) = printed(wanted, input.as_bytes(), 7);
    assert_eq!(fed, Fed::Done);
    assert_eq!(printed(wanted, input.as_bytes(), usize::MAX / 2).0, out, "the size of the pieces must not show");
    String::from_utf8(out).unwrap()
}

const LOG: &str = "2026-01-01T00:00:00.5Z stdout F one\n\
    2026-01-01T00:00:01Z stderr P tw\n\
    2026-01-01T00:00:02Z stderr F o\n\
    garbage\n\
    2026-01-01T00:00:03Z stdout F three\n";

fn at(text: &str) -> Option<Timestamp> {
    Some(Stamp::parse(text.as_bytes()).unwrap().instant())
}

#[test]
fn prints_what_is_wanted() {
    let all = Wanted::default();
    let rows = [
        ("all", all, "one\ntwo\nthree\n"),
        ("stdout alone", Wanted { streams: Streams::Stdout, ..all }, "one\nthree\n"),
        ("stderr alone", Wanted { streams: Streams::Stderr, ..all }, "two\n"),
        ("since a time", Wanted { since: at("2026-01-01T00:00:02Z"), ..all }, "o\nthree\n"),
        ("since the very nanosecond", Wanted { since: at("2026-01-01T00:00:00.5Z"), ..all }, "one\ntwo\nthree\n"),
        ("some lines, chunks are lines", Wanted { max_lines: Some(2), ..all }, "one\ntw"),
        ("no lines", Wanted { max_lines: Some(0), ..all }, ""),
        ("left out lines count", Wanted { since: at("2026-01-01T00:00:02Z"), max_lines: Some(3), ..all }, "o\n"),
        ("garbage does not count", Wanted { max_lines: Some(4), ..all }, "one\ntwo\nthree\n"),
        ("some bytes", Wanted { limit_bytes: Some(6), ..all }, "one\ntw"),
        (
            "time once for a logical line",
            Wanted { timestamps: true, ..all },
            "2026-01-01T00:00:00.500000000Z one\n2026-01-01T00:00:01.000000000Z two\n2026-01-01T00:00:03.000000000Z three\n",
        ),
        ("bytes of the time count", Wanted { timestamps: true, limit_bytes: Some(5), ..all }, "2026-"),
        (
            "the limit ends in a later line",
            Wanted { timestamps: true, limit_bytes: Some(37), ..all },
            "2026-01-01T00:00:00.500000000Z one\n20",
        ),
    ];
    for (name, wanted, out) in rows {
        assert_eq!(text(wanted, LOG), out, "{name}");
    }
}

#[test]
fn the_last_line_may_lack_its_end() {
    assert_eq!(text(Wanted::default(), "2026-01-01T00:00:00Z stdout F a\n2026-01-01T00:00:00Z stdout F b"), "a\nb");
    assert_eq!(text(Wanted::default(), "2026-01-01T00:00:00Z stdout F a\n2026-01-01T00:0"), "a\n");
}

#[test]
fn chunks_of_another_output_do_not_take_the_time_away() {
    let log = "2026-01-01T00:00:00Z stderr P a\n2026-01-01T00:00:00Z stdout F b\n";
    let wanted = Wanted { streams: Streams::Stdout, timestamps: true, ..Wanted::default() };
    assert_eq!(text(wanted, log), "2026-01-01T00:00:00.000000000Z b\n");
}

#[test]
fn a_file_in_no_known_format_is_an_error() {
    let (out, fed) = printed(Wanted::default(), b"hello \"you\"\n", 100);
    assert_eq!(out, b"");
    let text = "failed to get parse function: unsupported log format: \"hello \\\"you\\\"\\n\"";
    assert_eq!(fed, Fed::Failed(text.to_owned()));
}

#[test]
fn json_with_an_unknown_output_is_an_error() {
    let fed = printed(Wanted::default(), b"{\"log\":\"x\\n\",\"stream\":\"weird\"}\n", 100).1;
    assert_eq!(fed, Fed::Failed("unexpected stream type \"weird\"".to_owned()));
}

#[test]
fn a_line_of_any_length_is_printed_through_a_small_buffer() {
    let long = "x".repeat(3 * LONG_LINE);
    for (tag, end) in [("F", "\n"), ("P", "")] {
        let log = format!("2026-01-01T00:00:00Z stdout {tag} {long}\n2026-01-01T00:00:01Z stdout F y\n");
        for step in [LONG_LINE / 3, LONG_LINE + 1, 2 * LONG_LINE] {
            let (out, fed) = printed(Wanted { timestamps: true, ..Wanted::default() }, log.as_bytes(), step);
            let second = if tag == "F" { "2026-01-01T00:00:01.000000000Z y\n" } else { "y\n" };
            assert!(out == format!("2026-01-01T00:00:00.000000000Z {long}{end}{second}").as_bytes(), "{tag} {step}");
            assert_eq!(fed, Fed::Done);
        }
    }
}

#[test]
fn limits_hold_within_a_long_line_too() {
    let long = "x".repeat(3 * LONG_LINE);
    let log = format!("2026-01-01T00:00:00Z stdout F {long}\n2026-01-01T00:00:01Z stdout F y\n");
    let half = LONG_LINE as u64 * 2;
    let (out, fed) = printed(Wanted { limit_bytes: Some(half), ..Wanted::default() }, log.as_bytes(), LONG_LINE);
    assert_eq!((out.len() as u64, fed), (half, Fed::Done));
    let (out, _) = printed(Wanted { max_lines: Some(1), ..Wanted::default() }, log.as_bytes(), LONG_LINE);
    assert_eq!(out.len(), long.len() + 1);
    let since = at("2026-01-01T00:00:01Z");
    assert_eq!(printed(Wanted { since, ..Wanted::default() }, log.as_bytes(), LONG_LINE).0, b"y\n");
}

#[test]
fn a_long_line_that_is_none_is_skipped() {
    let log =
        format!("2026-01-01T00:00:00Z stdout F a\n{}\n2026-01-01T00:00:01Z stdout F y\n", "x".repeat(3 * LONG_LINE));
    assert_eq!(printed(Wanted::default(), log.as_bytes(), LONG_LINE).0, b"a\ny\n");
}

#[test]
fn a_json_line_that_is_too_long_is_skipped() {
    let line = |n: usize| {
        format!("{{\"log\":\"{}\\n\",\"stream\":\"stdout\",\"time\":\"2026-01-01T00:00:00Z\"}}\n", "x".repeat(n))
    };
    let log = format!("{}{}{}", line(2 * LONG_LINE), line(MAX_JSON_LINE + LONG_LINE), line(3));
    let (out, _) = printed(Wanted::default(), log.as_bytes(), LONG_LINE);
    assert_eq!(out.len(), 2 * LONG_LINE + 1 + 4);
}

#[test]
fn a_line_that_was_begun_in_a_former_file_is_over() {
    let mut printer = Printer::new(Wanted { timestamps: true, ..Wanted::default() });
    let mut out = Vec::new();
    let begun = format!("2026-01-01T00:00:00Z stdout F {}", "x".repeat(LONG_LINE));
    assert_eq!(printer.feed(begun.as_bytes(), &mut out).0, begun.len());
    printer.reset_line();
    out.clear();
    printer.feed(b"2026-01-01T00:00:01Z stdout F y\n", &mut out);
    assert_eq!(out, b"2026-01-01T00:00:01.000000000Z y\n");
}
