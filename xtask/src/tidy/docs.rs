//! Documents tell the truth: the stops of a pod's life are where they say, and paths that they name exist.

use std::collections::BTreeSet;

use super::map::rows;
use super::tree::Tree;

/// A pod comes in by two doors, so that the way has two first stops.
const STOPS: &[&str] = &["1a", "1b", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12"];
const GUIDE: &str = "docs/life-of-a-pod.md";
const TITLE: &str = "# Life of a pod";
const MARK: &str = "LIFE-OF-A-POD ";

/// Each stop stands exactly once in the code, and the guide's table names it with its file and function.
pub(super) fn life_of_a_pod(tree: &Tree) -> Vec<String> {
    let mut found = Vec::new();
    let rows = rows(tree.files.get(GUIDE).map_or("", String::as_str), TITLE);
    for stop in STOPS {
        let mark = format!("{MARK}{stop}/12");
        // `1/12` would be the end of `11/12` too: nothing but the mark's own blank may stand before the number.
        let homes: Vec<String> = tree
            .rust()
            .filter(|s| s.path.starts_with("crates/"))
            .flat_map(|s| s.text.match_indices(&mark).map(|(at, _)| home(s.path, &s.text[at..])).collect::<Vec<_>>())
            .collect();
        let told =
            rows.iter().find(|row| row.first() == Some(&format!("`{mark}`").as_str())).and_then(|row| row.get(1));
        match (homes.as_slice(), told) {
            ([home], Some(told)) if home == told => {}
            ([home], Some(told)) => found.push(format!("{GUIDE}: `{mark}` is at {home}, not at {told}")),
            ([_], None) => found.push(format!("{GUIDE}: does not tell of `{mark}`")),
            ([], _) => found.push(format!("`{mark}` stands nowhere in crates/: a stop of {GUIDE} has no home")),
            (many, _) => found.push(format!("`{mark}` stands {} times: {}", many.len(), many.join(", "))),
        }
    }
    found
}

/// Where a mark is, as the guide says it: its file, and the function that follows the mark.
fn home(path: &str, after: &str) -> String {
    let function = after.split_once("fn ").and_then(|(_, rest)| rest.split(['(', '<']).next()).unwrap_or_default();
    format!("`{path}` `{function}`")
}

/// First folders of paths that are checked.
const ROOTS: &[&str] = &["crates/", "docs/", "config/", "proto/", "tests/", "xtask/", ".ci/", ".cargo/"];

/// Every path in backticks, or behind a link, in a document of ours exists.
pub(super) fn paths(tree: &Tree) -> Vec<String> {
    let mut found = Vec::new();
    let documents =
        tree.files.iter().filter(|(p, _)| p.ends_with(".md") && (!p.contains('/') || p.starts_with("docs/")));
    for (document, text) in documents {
        for (n, line) in text.lines().enumerate() {
            let missing = candidates(line).filter(|path| !tree.paths.contains(path.trim_end_matches('/')));
            found.extend(missing.map(|path| format!("{document}:{}: `{path}` does not exist", n + 1)));
        }
    }
    found
}

/// Documents that name what is not ours: a kubelet's metrics, libraries' functions, the API.
const OTHERS_WORDS: &[&str] = &["docs/compat.md", "docs/decisions/", "docs/spec/"];

/// Every name of code in backticks, in a document that says how things are, is there in the code.
pub(super) fn names(tree: &Tree) -> Vec<String> {
    let mut known: BTreeSet<&str> = BTreeSet::new();
    for (_, text) in tree.files.iter().filter(|(path, _)| path.ends_with(".rs")) {
        known.extend(text.split(|c: char| !is_of_a_name(c)));
    }
    let ours = |path: &str| {
        !path.contains('/') || path.starts_with("docs/") && !OTHERS_WORDS.iter().any(|o| path.starts_with(o))
    };
    let mut found = Vec::new();
    for (document, text) in tree.files.iter().filter(|(p, _)| p.ends_with(".md") && ours(p)) {
        for (n, line) in text.lines().enumerate() {
            let quoted = line.split('`').skip(1).step_by(2).filter_map(code_name);
            let missing = quoted.filter(|name| name.split("::").any(|part| !known.contains(part)));
            found.extend(missing.map(|name| format!("{document}:{}: `{name}` is no name in the code", n + 1)));
        }
    }
    found
}

fn is_of_a_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// The name in `crate::module::name(arguments)`, when it looks like one of Rust's and not like a word.
fn code_name(text: &str) -> Option<&str> {
    let name = text.split('(').next().unwrap_or_default();
    let whole = name.len() == text.len() || text.ends_with(')');
    let legal =
        name.split("::").all(|p| p.starts_with(|c: char| c.is_ascii_alphabetic()) && p.chars().all(is_of_a_name));
    let camel = name.as_bytes().windows(2).any(|w| w[0].is_ascii_lowercase() && w[1].is_ascii_uppercase());
    (whole && legal && (name.contains(['_', ':']) || camel || name.len() < text.len())).then_some(name)
}

fn candidates(line: &str) -> impl Iterator<Item = &str> {
    let quoted = line.split('`').skip(1).step_by(2);
    let linked = line.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let path =
        |text: &str| ROOTS.iter().any(|root| text.starts_with(root)) && !text.contains(['*', '<', '{', ' ', '$', '…']);
    quoted.chain(linked).filter(move |t| path(t)).map(|t| t.split(['#', ':']).next().unwrap_or(t))
}
