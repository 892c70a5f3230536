//! A declared edge that nobody uses: the declaration would allow, and ARCHITECTURE.md would tell, what is not so.

use std::collections::BTreeSet;

use contract::{DECLARATIONS, Declaration};

/// The folder of a role's code.
fn folder(role: &str) -> String {
    let krate = match role {
        "Server" => return "crates/app/".to_owned(),
        "FolderSource" | "HttpSource" | "ApiSource" => "config-sources".to_owned(),
        "StatusSyncer" => "status-manager".to_owned(),
        "NodeLease" => "node-manager".to_owned(),
        other => kebab(other),
    };
    format!("crates/managers/{krate}/")
}

fn kebab(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !out.is_empty() {
            out.push('-');
        }
        out.extend(c.to_lowercase());
    }
    out
}

/// What in the contract uses an edge in the name of whoever calls it.
const THROUGH: &[(&str, &[&str])] =
    &[("PodLookup", &["DesiredPod", "StatusEntry", "Observed"]), ("emit", &["RecordEvent"])];

/// `product`: path and text without tests of every file.
pub(super) fn check<'a>(product: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<String> {
    let files: Vec<(&str, BTreeSet<&str>)> = product.map(|(path, text)| (path, words(text))).collect();
    unused(DECLARATIONS, &files)
}

fn unused(declarations: &[Declaration], files: &[(&str, BTreeSet<&str>)]) -> Vec<String> {
    let mut found = Vec::new();
    for d in declarations {
        let folder = folder(d.role);
        let own = || files.iter().filter(|(path, _)| path.starts_with(&folder)).map(|(_, words)| words);
        let says = |what: &str| own().any(|words| words.contains(what));
        let uses = |what: &str| says(what) || THROUGH.iter().any(|(by, rows)| rows.contains(&what) && says(by));
        for (edges, verb) in [(d.asks, "asks"), (d.reads, "reads")] {
            let idle = edges.iter().filter(|e| !uses(e.what));
            found.extend(idle.map(|e| {
                format!("{folder}: {} {verb} {}.{} by its declaration only; take it away", d.role, e.role, e.what)
            }));
        }
    }
    found
}

/// Words of the code, without comments.
fn words(text: &str) -> BTreeSet<&str> {
    let code = text.lines().map(|l| l.split("//").next().unwrap_or_default());
    code.flat_map(|l| l.split(|c: char| !c.is_alphanumeric() && c != '_')).filter(|w| !w.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use contract::{ProbeManager, Role};

    use super::*;

    #[test]
    fn a_declared_edge_that_nobody_uses_is_found() {
        let found = |text: &str| {
            let files = [("crates/managers/probe-manager/src/lib.rs", words(text))];
            unused(&[ProbeManager::DECLARATION], &files)
        };
        assert_eq!(found("ask(ExecSync { .. }); emit(event); board::<StatusEntry>()"), Vec::<String>::new());
        let missing = found("ask(ExecSync { .. }); // StatusEntry\nRecordEvents");
        assert!(missing.len() == 2 && missing[1].contains("reads StatusManager.StatusEntry"), "{missing:?}");
    }
}
