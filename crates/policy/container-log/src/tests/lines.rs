use crate::{Format, Source, Stamp};

fn rendered(text: &str) -> Option<String> {
    let mut out = Vec::new();
    Stamp::parse(text.as_bytes())?.render(&mut out);
    Some(String::from_utf8(out).unwrap())
}

#[test]
fn a_time_is_shown_with_nine_digits_and_its_own_offset() {
    let rows = [
        ("2026-01-02T03:04:05Z", Some("2026-01-02T03:04:05.000000000Z")),
        ("2026-01-02T03:04:05.1Z", Some("2026-01-02T03:04:05.100000000Z")),
        ("2026-01-02T03:04:05.123456789Z", Some("2026-01-02T03:04:05.123456789Z")),
        ("2026-01-02T03:04:05.1234567891Z", Some("2026-01-02T03:04:05.123456789Z")),
        ("2026-01-02T03:04:05.5+02:30", Some("2026-01-02T03:04:05.500000000+02:30")),
        ("2026-01-02T03:04:05.5-11:00", Some("2026-01-02T03:04:05.500000000-11:00")),
        ("2026-01-02T03:04:05+00:00", Some("2026-01-02T03:04:05.000000000Z")),
        ("2024-02-29T00:00:00Z", Some("2024-02-29T00:00:00.000000000Z")),
        ("2026-02-29T00:00:00Z", None),
        ("2026-01-02T24:04:05Z", None),
        ("2026-01-02T03:60:05Z", None),
        ("2026-13-02T03:04:05Z", None),
        ("2026-01-02T03:04:05", None),
        ("2026-01-02T03:04:05.Z", None),
        ("2026-01-02 03:04:05Z", None),
        ("2026-01-02T03:04:05.1+2:30", None),
        ("", None),
    ];
    for (text, shown) in rows {
        assert_eq!(rendered(text).as_deref(), shown, "{text}");
    }
}

#[test]
fn instants_are_those_of_the_calendar() {
    for text in
        ["2026-01-02T03:04:05.678Z", "1970-01-01T00:00:00Z", "1969-12-31T23:59:59.5Z", "2000-02-29T12:00:00+05:45"]
    {
        let known: jiff::Timestamp = text.parse().unwrap();
        let ours = Stamp::parse(text.as_bytes()).unwrap().instant();
        assert_eq!(i128::from(ours.0), known.as_nanosecond(), "{text}");
    }
}

#[test]
fn takes_lines_apart() {
    const T: &str = "2026-01-02T03:04:05Z";
    let rows: &[(&str, Option<(Source, &str)>)] = &[
        ("stdout F hello\n", Some((Source::Stdout, "hello\n"))),
        ("stderr P hello\n", Some((Source::Stderr, "hello"))),
        ("stdout P:x hello\n", Some((Source::Stdout, "hello"))),
        ("stdout F:P hello\n", Some((Source::Stdout, "hello\n"))),
        ("stdout X hello\n", Some((Source::Stdout, "hello\n"))),
        ("stdout F \n", Some((Source::Stdout, "\n"))),
        ("stdout F  two spaces \n", Some((Source::Stdout, " two spaces \n"))),
        ("stdout F hello", Some((Source::Stdout, "hello"))),
        ("stdout F\n", None),
        ("stdin F hello\n", None),
        ("stdout\n", None),
    ];
    for (rest, parts) in rows {
        let text = format!("{T} {rest}");
        let line = Format::Cri.parse(text.as_bytes()).ok();
        let found = line.map(|l| (l.source.unwrap(), String::from_utf8(l.content.into_owned()).unwrap()));
        assert_eq!(found, parts.map(|(s, c)| (s, c.to_owned())), "{text}");
    }
}

#[test]
fn json_lines_are_understood_as_docker_writes_them() {
    let text = br#"{"log":"a \"b\"\n","stream":"stderr","time":"2016-10-20T18:39:20.57606443Z"}"#;
    assert_eq!(Format::of(text), Some(Format::Json));
    let line = Format::Json.parse(text).unwrap();
    assert_eq!((line.source, &*line.content), (Ok(Source::Stderr), &b"a \"b\"\n"[..]));
    assert_eq!(Format::Json.parse(b"{}\n").unwrap().stamp, Stamp::ZERO);
    assert_eq!(Format::Json.parse(b"{}\n").unwrap().source, Err(String::new()));
    assert_eq!(Format::of(b"plain text\n"), None);
    assert_eq!(Format::of(b"2026-01-02T03:04:05Z stdout F {}\n"), Some(Format::Cri));
}

#[test]
fn quotes_as_go_does() {
    assert_eq!(crate::quote(b"a\"b\\\n\t\x01\xff\x7f\xc3\xa9"), "\"a\\\"b\\\\\\n\\t\\x01\\xff\\x7f\u{e9}\"");
}
