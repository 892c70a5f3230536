//! Pure parts: paths, queries, arguments.

use std::path::PathBuf;

use super::files::clean;
use super::journal::arguments;
use super::options::{Asked, Query, read};

#[test]
fn a_path_never_leads_above_its_root() {
    let rows: &[(&str, &str)] = &[
        ("/", ""),
        ("/a/b", "a/b"),
        ("/a/../b", "b"),
        ("/../../etc/passwd", "etc/passwd"),
        ("/a/../../../../etc", "etc"),
        ("//a//b/", "a/b"),
        ("/./a/.", "a"),
        ("/..", ""),
        ("/...", "..."),
        ("/a/..b", "a/..b"),
    ];
    for (path, expected) in rows {
        assert_eq!(clean(path.as_bytes()).unwrap(), PathBuf::from(expected), "{path}");
    }
    assert!(clean(b"/a\0b").is_err());
}

#[test]
fn a_query_is_read_and_judged_by_the_rules() {
    let long = format!("query={}", "a".repeat(257));
    let rows: &[(&str, u16, &str)] = &[
        ("query=", 400, "cannot be empty"),
        ("query=%20", 400, "cannot be empty"),
        ("query=a&sinceTime=yesterday", 400, "sinceTime"),
        ("query=a&untilTime=2026-01-01", 400, "untilTime"),
        ("query=a&tailLines=many", 400, "tailLines"),
        ("query=a&boot=x", 400, "boot"),
        ("tailLines=5", 406, "cannot be empty with options"),
        ("query=a&query=/b", 406, "cannot specify a file and service"),
        ("query=/a&query=/b", 406, "cannot specify more than one file"),
        ("query=/a&tailLines=5", 406, "cannot specify file with options"),
        ("query=a&query=b&query=c&query=d&query=e", 406, "maximum number of services allowed is 4"),
        ("query=a%3Bb", 406, "only [a-zA-Z0-9-_.:@]"),
        ("query=a%20b", 406, "only [a-zA-Z0-9-_.:@]"),
        ("query=%24(x)", 406, "only [a-zA-Z0-9-_.:@]"),
        ("query=a&tailLines=100001", 406, "must be from 0 to 100000"),
        ("query=a&tailLines=-1", 406, "must be from 0 to 100000"),
        ("query=a&boot=1", 406, "must be less than 1"),
        ("query=a&sinceTime=2026-01-02T00:00:00Z&untilTime=2026-01-01T00:00:00Z", 406, "must be after `sinceTime`"),
        (&long, 406, "256"),
    ];
    for (query, code, text) in rows {
        let refused = read(Some(query)).unwrap_err();
        assert_eq!(refused.code, *code, "{query}");
        assert!(refused.text.contains(text), "{query}: {}", refused.text);
    }
    assert_eq!(read(None), Ok(Asked::Nothing));
    assert_eq!(read(Some("foo=bar")), Ok(Asked::Nothing));
    assert_eq!(read(Some("query=/a.log")), Ok(Asked::File("/a.log".to_owned())));
    assert_eq!(read(Some("query=a%5Cb")), Ok(Asked::File("a\\b".to_owned())));
    let services = |query: &str| match read(Some(query)) {
        Ok(Asked::Services(query)) => query,
        other => panic!("{query}: {other:?}"),
    };
    assert_eq!(services("query=a&query=b@1.x").services, ["a", "b@1.x"]);
    let all = services("query=a&tailLines=0&boot=-1&pattern=x%2By&sinceTime=2026-01-01T01:00:00%2B01:00");
    assert_eq!((all.tail, all.boot, all.pattern.as_deref()), (Some(0), Some(-1), Some("x+y")));
    assert!(all.has_options() && !services("query=a").has_options());
}

#[test]
fn the_journal_is_asked_in_single_words() {
    let at = |text: &str| Some(text.parse().unwrap());
    let query = Query {
        services: vec!["a".to_owned()],
        since: at("2026-01-01T01:00:00+01:00"),
        until: at("2026-01-02T00:00:00.5Z"),
        tail: Some(10),
        pattern: Some("-x y".to_owned()),
        boot: Some(-1),
    };
    let expected = [
        "--utc",
        "--no-pager",
        "--output=short-precise",
        "--since=2026-01-01 00:00:00 UTC",
        "--until=2026-01-02 00:00:00 UTC",
        "--lines=10",
        "--unit=a",
        "--grep=-x y",
        "--boot=-1",
    ];
    assert_eq!(arguments(&query, &query.services), expected);
}

proptest::proptest! {
    #[test]
    fn whatever_a_query_is_it_is_answered(query in ".{0,200}") {
        let _ = read(Some(&query));
    }

    #[test]
    fn whatever_a_path_is_it_stays_below(path in proptest::collection::vec(0u8..=255, 0..200)) {
        if let Ok(path) = clean(&path) {
            proptest::prop_assert!(path.is_relative());
            proptest::prop_assert!(path.components().all(|c| matches!(c, std::path::Component::Normal(_))));
        }
    }
}
