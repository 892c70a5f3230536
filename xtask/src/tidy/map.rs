//! Tables of `ARCHITECTURE.md` that name crates and tests: each crate once, no test that is not there.

use std::collections::BTreeSet;

use super::tree::Tree;

pub(super) const ARCHITECTURE: &str = "ARCHITECTURE.md";
const CODE_MAP: &str = "## Code map";
const CREW: &str = "## The crew";
const INVARIANTS: &str = "## Invariants";

pub(super) fn check(tree: &Tree) -> Vec<String> {
    let document = tree.files.get(ARCHITECTURE).map_or("", String::as_str);
    let crates: BTreeSet<&str> = tree.paths.iter().filter_map(|p| p.strip_suffix("/Cargo.toml")).collect();
    let mut found = code_map(document, &crates);
    found.extend(crew(document, &crates));
    found.extend(invariants(document, tree));
    found
}

/// The cells of the rows of the first table below a heading, without its head.
pub(super) fn rows<'a>(document: &'a str, heading: &str) -> Vec<Vec<&'a str>> {
    let below = document.lines().skip_while(|l| *l != heading).skip(1).take_while(|l| !l.starts_with("## "));
    let table = below.skip_while(|l| !l.starts_with('|')).take_while(|l| l.starts_with('|'));
    let cells = |l: &'a str| l.strip_prefix('|')?.strip_suffix('|').map(|l| l.split('|').map(str::trim).collect());
    table.skip(2).filter_map(cells).collect()
}

/// The texts between backticks.
fn quoted(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

/// Each crate has one row; a row may name several, or all of a folder (`crates/managers/*`).
fn code_map(document: &str, crates: &BTreeSet<&str>) -> Vec<String> {
    let mut found = Vec::new();
    let named: Vec<&str> =
        rows(document, CODE_MAP).iter().filter_map(|r| r.first().copied()).flat_map(quoted).collect();
    let covers = |row: &str, krate: &str| match row.strip_suffix("/*") {
        Some(folder) => krate.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/')),
        None => row == krate,
    };
    for krate in crates {
        let times = named.iter().filter(|row| covers(row, krate)).count();
        if times != 1 {
            found.push(format!("{ARCHITECTURE}: {krate} is {times} times in the code map; each crate has one row"));
        }
    }
    let empty = named.iter().filter(|row| !crates.iter().any(|krate| covers(row, krate)));
    found.extend(empty.map(|row| format!("{ARCHITECTURE}: the code map has `{row}`, which is no crate")));
    found
}

/// Each manager has one row in the table of the crew.
fn crew(document: &str, crates: &BTreeSet<&str>) -> Vec<String> {
    let managers: BTreeSet<&str> = crates.iter().filter_map(|c| c.strip_prefix("crates/managers/")).collect();
    let named: Vec<&str> = rows(document, CREW).iter().filter_map(|r| r.get(1).copied()).collect();
    let once = |m: &&&str| named.iter().filter(|n| n == m).count() != 1;
    let mut found: Vec<String> =
        managers.iter().filter(once).map(|m| format!("{ARCHITECTURE}: the crew needs one row for `{m}`")).collect();
    // A row without a manager's crate says in backticks where its code is.
    let strange = named.iter().filter(|n| !managers.contains(*n) && !n.starts_with('`'));
    found.extend(strange.map(|n| format!("{ARCHITECTURE}: the crew names `{n}`, which is no manager")));
    found
}

/// Each test that an invariant names is a function of a file with tests.
fn invariants(document: &str, tree: &Tree) -> Vec<String> {
    let tests: BTreeSet<&str> =
        tree.files.iter().filter(|(p, _)| p.ends_with(".rs")).flat_map(|(_, t)| tests(t)).collect();
    let mut found = Vec::new();
    for row in rows(document, INVARIANTS) {
        let [id, _, named] = row.as_slice() else {
            found.push(format!("{ARCHITECTURE}: an invariant is a number, a sentence, and tests: {}", row.join(" | ")));
            continue;
        };
        if quoted(named).next().is_none() {
            found.push(format!("{ARCHITECTURE}: {id} is held by no test"));
        }
        let missing = quoted(named).filter(|name| !tests.contains(name));
        found.extend(missing.map(|name| format!("{ARCHITECTURE}: {id} names `{name}`, which is no test")));
    }
    found
}

/// Names of the test functions of a file: a function right below `#[test]` or `#[tokio::test]`, other attributes or
/// the head of `proptest!` between.
fn tests(text: &str) -> impl Iterator<Item = &str> {
    let mut marked = false;
    text.lines().filter_map(move |line| {
        let line = line.trim();
        if line.starts_with("#[") {
            marked |= line.contains("test]") || line.contains("test(");
            return None;
        }
        let was = std::mem::take(&mut marked);
        let name = line.strip_prefix("async ").unwrap_or(line).strip_prefix("fn ")?.split(['(', '<']).next()?;
        was.then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = "# A\n\n## The crew\n\n| actor | crate | owns |\n|---|---|---|\n\
        | Worker, `syncer` | worker | pods |\n| Server | `crates/app/server` (no actor) | - |\n\n## Invariants\n\n\
        | | invariant | tests |\n|---|---|---|\n| A1 | holds | `it_holds`, e2e: `it_holds_there` |\n\n## Code map\n\n\
        text\n\n| crate | what |\n|---|---|\n| `crates/managers/*` | the crew |\n| `crates/app/server`, `xtask` | rest |\n";

    fn found(document: &str) -> Vec<String> {
        let mut tree = Tree::default();
        let tests = "#[test]\nfn it_holds() {}\n    #[tokio::test(start_paused = true)]\n    #[allow(x)]\n    \
            async fn it_holds_there() {}\nfn helper() {}\n";
        tree.files.insert("crates/app/server/src/tests.rs".to_owned(), tests.to_owned());
        tree.files.insert(ARCHITECTURE.to_owned(), document.to_owned());
        for krate in ["crates/managers/worker", "crates/app/server", "xtask"] {
            tree.paths.insert(format!("{krate}/Cargo.toml"));
        }
        check(&tree)
    }

    #[test]
    fn tables_name_what_is_there_once() {
        assert_eq!(found(DOCUMENT), Vec::<String>::new());
        let rows = [
            ("`crates/app/server`, `xtask`", "`crates/app/server`", "xtask is 0 times in the code map"),
            ("`crates/managers/*`", "`crates/managers/*`, `xtask`", "xtask is 2 times in the code map"),
            (
                "`crates/app/server`, `xtask`",
                "`crates/app/server`, `xtask`, `tests/e2e`",
                "`tests/e2e`, which is no crate",
            ),
            ("| worker |", "| workers |", "the crew names `workers`"),
            ("| worker |", "| workers |", "one row for `worker`"),
            ("`it_holds`,", "`it_held`,", "A1 names `it_held`"),
            ("`it_holds`,", "`helper`,", "A1 names `helper`"),
            ("`it_holds`, e2e: `it_holds_there`", "none", "A1 is held by no test"),
        ];
        for (from, to, want) in rows {
            let found = found(&DOCUMENT.replace(from, to));
            assert!(found.iter().any(|f| f.contains(want)), "{to}: {found:?}");
        }
    }
}
