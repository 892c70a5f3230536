//! A declared edge that nobody uses: the declaration would allow, and ARCHITECTURE.md would tell, what is not so.

use std::collections::BTreeSet;

use contract::{DECLARATIONS, Declaration};

/// Roles that share a crate: files and folders of each. What is common to them is nobody's.
const SHARED: &[(&str, &[&str])] = &[
    (
        "Server",
        &[
            "crates/app/server/",
            "crates/app/endpoints/",
            "crates/app/streaming/",
            "crates/app/container-logs/",
            "crates/app/metrics-endpoint/",
            "crates/app/stats-endpoint/",
            "crates/app/bosun/src/run",
        ],
    ),
    ("Supervisor", &["crates/app/bosun/src/node/crashes.rs"]),
    ("FolderSource", &["crates/managers/config-sources/src/folder"]),
    ("HttpSource", &["crates/managers/config-sources/src/http"]),
    ("ApiSource", &["crates/managers/config-sources/src/api"]),
    ("StatusManager", &["crates/managers/status-manager/src/actor", "crates/managers/status-manager/src/store"]),
    ("StatusSyncer", &["crates/managers/status-manager/src/syncer", "crates/managers/status-manager/src/pod_sync"]),
    ("NodeLease", &["crates/managers/node-manager/src/lease"]),
    ("NodeManager", &["crates/managers/node-manager/src/actor", "crates/managers/node-manager/src/networks"]),
];

/// Where the code of a role is: beginnings of paths.
fn places(role: &str) -> Vec<String> {
    match SHARED.iter().find(|(shared, _)| *shared == role) {
        Some((_, places)) => places.iter().map(|p| (*p).to_owned()).collect(),
        None => vec![format!("crates/managers/{}/", kebab(role))],
    }
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
        let places = places(d.role);
        let is_own = |path: &str| places.iter().any(|p| path.starts_with(p.as_str()));
        let own = || files.iter().filter(|(path, _)| is_own(path)).map(|(_, words)| words);
        let says = |what: &str| own().any(|words| words.contains(what));
        let uses = |what: &str| says(what) || THROUGH.iter().any(|(by, rows)| rows.contains(&what) && says(by));
        for (edges, verb) in [(d.asks, "asks"), (d.reads, "reads")] {
            let idle = edges.iter().filter(|e| !uses(e.what));
            found.extend(idle.map(|e| {
                format!(
                    "{}: {} {verb} {}.{} by its declaration only; take it away",
                    places.join(", "),
                    d.role,
                    e.role,
                    e.what
                )
            }));
        }
    }
    found
}

/// Words of the code, without comments and without `use`: what is brought in is not yet used.
fn words(text: &str) -> BTreeSet<&str> {
    let mut importing = false;
    let code = text.lines().map(|l| l.split("//").next().unwrap_or_default()).filter(move |line| {
        let begins = line.trim_start().trim_start_matches("pub ").starts_with("use ");
        let import = importing || begins;
        importing = import && !line.contains(';');
        !import
    });
    code.flat_map(|l| l.split(|c: char| !c.is_alphanumeric() && c != '_')).filter(|w| !w.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use contract::{HttpSource, ProbeManager, Role};

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
        let imported = found("use contract::{\n    StatusEntry,\n};\nask(ExecSync); emit(event)");
        assert!(imported.len() == 1 && imported[0].contains("StatusEntry"), "{imported:?}");
    }

    #[test]
    fn an_edge_that_a_neighbour_in_the_same_crate_uses_is_idle_all_the_same() {
        let of = |path| unused(&[HttpSource::DECLARATION], &[(path, words("tell(SetPods { .. })"))]);
        assert_eq!(of("crates/managers/config-sources/src/http.rs"), Vec::<String>::new());
        assert_eq!(of("crates/managers/config-sources/src/folder.rs").len(), 1);
    }
}
