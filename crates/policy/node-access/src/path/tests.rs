use proptest::prelude::*;

use super::*;
use crate::{Rules, subresources};

#[test]
fn one_reading_or_none() {
    let good = [
        ("/", "/", ""),
        ("/pods", "/pods", "pods"),
        ("/pods/", "/pods/", "pods"),
        ("/%70ods", "/pods", "pods"),
        ("/Pods", "/Pods", "Pods"),
        ("/metrics;x", "/metrics;x", "metrics;x"),
        ("/metrics%3Bx", "/metrics;x", "metrics;x"),
        ("/metrics%20", "/metrics%20", "metrics "),
        ("/metrics%3fa", "/metrics%3Fa", "metrics?a"),
        ("/logs/a%20b", "/logs/a%20b", "logs"),
        ("/logs/..a", "/logs/..a", "logs"),
        ("/logs/...", "/logs/...", "logs"),
        ("/logs/%25%32e", "/logs/%252e", "logs"),
        ("/logs/%252e%252e", "/logs/%252e%252e", "logs"),
        ("/logs/a\\..\\b", "/logs/a%5C..%5Cb", "logs"),
        ("/logs/%C3%BC", "/logs/%C3%BC", "logs"),
    ];
    for (raw, path, first) in good {
        let wanted = Canonical { path: path.to_owned(), first: first.to_owned() };
        assert_eq!(canonical(raw), Ok(wanted), "{raw}");
    }
    let bad = [
        ("", Refused::NotAbsolute),
        ("*", Refused::NotAbsolute),
        ("host:443", Refused::NotAbsolute),
        ("pods", Refused::NotAbsolute),
        ("//", Refused::EmptySegment),
        ("//exec", Refused::EmptySegment),
        ("/metrics//", Refused::EmptySegment),
        ("/metrics//exec", Refused::EmptySegment),
        ("/pods/../exec/ns/p/c", Refused::DotSegment),
        ("/metrics/../exec", Refused::DotSegment),
        ("/metrics/./x", Refused::DotSegment),
        ("/metrics/..", Refused::DotSegment),
        ("/metrics/%2e%2e/exec", Refused::DotSegment),
        ("/metrics/.%2E/exec", Refused::DotSegment),
        ("/metrics/%2e", Refused::DotSegment),
        ("/metrics%2fcadvisor", Refused::HiddenSeparator),
        ("/metrics%2F..%2Fexec", Refused::HiddenSeparator),
        ("/%2fexec", Refused::HiddenSeparator),
        ("/logs/a%00b", Refused::HiddenSeparator),
        ("/logs/%", Refused::BrokenEscape),
        ("/logs/%2", Refused::BrokenEscape),
        ("/logs/%zz", Refused::BrokenEscape),
        ("/logs/%ff", Refused::NotUtf8),
        ("/logs/%c0%af", Refused::NotUtf8),
    ];
    for (raw, refused) in bad {
        assert_eq!(canonical(raw), Err(refused), "{raw}");
    }
}

/// Cleans a path as careless servers do: decodes all of it first, then walks its segments.
fn careless(raw: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = raw.as_bytes();
    while let Some((byte, tail)) = rest.split_first() {
        rest = tail;
        let pair = tail.get(..2).and_then(|h| std::str::from_utf8(h).ok()).and_then(|h| u8::from_str_radix(h, 16).ok());
        match (byte, pair) {
            (b'%', Some(decoded)) => {
                bytes.push(decoded);
                rest = &tail[2..];
            }
            (other, _) => bytes.push(*other),
        }
    }
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let mut walked: Vec<&str> = Vec::new();
    for segment in text.split('/') {
        match segment {
            "" | "." => {}
            ".." => {
                walked.pop();
            }
            other => walked.push(other),
        }
    }
    walked.first().map(|s| (*s).to_owned())
}

fn pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "/", "//", ".", "..", "%2e", "%2E", "%2f", "%2F", "%5c", "\\", "%00", "%", "%25", ";", "metrics", "exec",
        "pods", "%65xec", "run", "stats", "log", "s", "Exec", "ns", "?", "#", "%c0%af", " ",
    ]);
    prop::collection::vec(piece, 0..10).prop_map(|all| format!("/{}", all.concat()))
}

proptest! {
    #[test]
    fn what_is_let_through_reads_the_same_for_everybody(raw in pieces()) {
        if let Ok(read) = canonical(&raw) {
            prop_assert_eq!(careless(&raw).unwrap_or_default(), read.first.clone());
            prop_assert_eq!(careless(&read.path).unwrap_or_default(), read.first.clone());
            // Reading it again changes nothing.
            let again = canonical(&read.path).unwrap();
            prop_assert_eq!(&again, &read);
            // The router compares bytes: what it can see as `/exec` is authorised as `/exec`.
            let routed = read.path[1..].split('/').next().unwrap();
            if ["exec", "metrics", "pods", "stats", "run", "logs"].contains(&routed) {
                prop_assert_eq!(subresources(routed, Rules::FineGrained), subresources(&read.first, Rules::FineGrained));
            }
        }
    }

    #[test]
    fn no_path_breaks_it(raw in "\\PC*") {
        let _ = canonical(&raw);
    }
}
