//! Rows of the atomic writer's first step.

use super::{check, clean};

#[test]
fn paths_table() {
    let long_name = "n".repeat(256);
    let long_path = "n/".repeat(2049);
    for (path, error) in [
        ("a", ""),
        ("a/b.txt", ""),
        (".hidden", ""),
        ("a/..b", ""),
        ("a..", ""),
        ("", "invalid path: must not be empty: \"\""),
        ("/a", "invalid path: must be relative path: /a"),
        ("..", "invalid path: must not contain '..': .."),
        ("a/../b", "invalid path: must not contain '..': a/../b"),
        ("..a", "invalid path: must not start with '..': ..a"),
        ("..data/x", "invalid path: must not start with '..': ..data/x"),
        (long_name.as_str(), "invalid path: filenames must be less than or equal to 255 characters"),
        (long_path.as_str(), "invalid path: must be less than or equal to 4096 characters"),
    ] {
        let got = check(path).map_or_else(|e| e.to_string(), |()| String::new());
        assert_eq!(got, error, "{path}");
    }
    assert!(check(&"n".repeat(255)).is_ok());
}

#[test]
fn cleaning_table() {
    for (path, expected) in [
        ("a", "a"),
        ("./a//b/", "a/b"),
        ("a/../b", "b"),
        ("a/../../b", "../b"),
        ("", "."),
        ("a/..", "."),
        ("/../a", "/a"),
        ("/", "/"),
    ] {
        assert_eq!(clean(path), expected, "{path}");
    }
}
