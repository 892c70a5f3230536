//! Documents tell the truth: the stops of a pod's life are where they say, and paths that they name exist.

use super::tree::Tree;

const STOPS: usize = 12;
const GUIDE: &str = "docs/life-of-a-pod.md";
const MARK: &str = "LIFE-OF-A-POD ";

/// Each stop stands exactly once in the code, and the guide names it with the file that holds it.
pub(super) fn life_of_a_pod(tree: &Tree) -> Vec<String> {
    let mut found = Vec::new();
    let guide = tree.files.get(GUIDE).map_or("", String::as_str);
    for stop in 1..=STOPS {
        let mark = format!("{MARK}{stop}/{STOPS}");
        // `1/12` is the end of `11/12` too: nothing but the mark's own blank may stand before the number.
        let places: Vec<&str> = tree
            .rust()
            .filter(|s| s.path.starts_with("crates/"))
            .flat_map(|s| vec![s.path; s.text.matches(&mark).count()])
            .collect();
        match places.as_slice() {
            [place] if !guide.contains(place) => {
                found.push(format!("{GUIDE}: stop {stop} is in {place}, which the guide does not name"));
            }
            [_] => {}
            [] => found.push(format!("`{mark}` stands nowhere in crates/: a stop of {GUIDE} has no home")),
            many => found.push(format!("`{mark}` stands {} times: {}", many.len(), many.join(", "))),
        }
        if !guide.contains(&mark) {
            found.push(format!("{GUIDE}: does not tell of `{mark}`"));
        }
    }
    found
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

fn candidates(line: &str) -> impl Iterator<Item = &str> {
    let quoted = line.split('`').skip(1).step_by(2);
    let linked = line.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let path =
        |text: &str| ROOTS.iter().any(|root| text.starts_with(root)) && !text.contains(['*', '<', '{', ' ', '$', '…']);
    quoted.chain(linked).filter(move |t| path(t)).map(|t| t.split(['#', ':']).next().unwrap_or(t))
}
