//! Who speaks of whom.

use super::{check_pattern, matches};

#[test]
fn matching_table() {
    for (pattern, image, expected) in [
        ("registry.io", "registry.io/a/b", true),
        ("registry.io", "registry.io", true),
        ("registry.io", "other.io/a", false),
        ("registry.io/a", "registry.io/a/b", true),
        ("registry.io/a", "registry.io/ab", true),
        ("registry.io/a", "registry.io/b", false),
        ("*.registry.io", "eu.registry.io/a", true),
        ("*.registry.io", "registry.io/a", false),
        ("*.registry.io", "a.b.registry.io/a", false),
        ("*.*.registry.io", "a.b.registry.io/a", true),
        ("app*.registry.io", "app7.registry.io/x", true),
        ("app?.registry.io", "app.registry.io/x", false),
        ("[a-c]x.io", "bx.io/i", true),
        ("[^a-c]x.io", "bx.io/i", false),
        ("registry.*", "registry.io/a", true),
        ("registry.io:5000", "registry.io:5000/a", true),
        ("registry.io", "registry.io:5000/a", false),
        ("registry.io:5000", "registry.io/a", false),
        ("*", "localhost/a", true),
        ("*.io:5000/team", "r.io:5000/team/x", true),
        ("[::1]:5000", "[::1]:5000/x", false),
        ("bad[.io", "bad[.io/x", false),
        ("%zz", "%zz", false),
    ] {
        assert_eq!(matches(pattern, image), expected, "{pattern} {image}");
    }
}

#[test]
fn patterns_that_are_refused() {
    for (pattern, error) in [
        ("", "must not be empty"),
        ("https://registry.io", "must not have a scheme"),
        ("%invalid%", "invalid URL escape \"%in\""),
        ("a b", "invalid character ' ' in host name"),
        ("registry.io:port", "invalid port \":port\" after host"),
        ("a[.io", "syntax error in pattern"),
        ("registry.io:5000/path", ""),
        ("*.registry.io", ""),
    ] {
        let got = check_pattern(pattern).map_or_else(|e| e.to_string(), |()| String::new());
        assert_eq!(got, error, "{pattern}");
    }
}
