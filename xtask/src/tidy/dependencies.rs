//! The dependency table of `ARCHITECTURE.md` says what the manifests say.

use std::collections::{BTreeMap, BTreeSet};

use cargo_metadata::{DependencyKind, Metadata};

use super::map::{ARCHITECTURE, rows};
use crate::layers;

const TABLE: &str = "## Dependencies";
/// Up to so many crates are named; more are named by layer.
const NAMED: usize = 8;

/// Packages from outside: what `[workspace.dependencies]` lists, and what the crates use.
#[derive(Debug, Default)]
pub(super) struct Used {
    pub(super) declared: BTreeSet<String>,
    pub(super) users: BTreeMap<String, Users>,
}

/// Who uses one package, as (layer, crate). A crate stands once: a normal use counts before a build script's, that
/// before one of tests.
#[derive(Debug, Default)]
pub(super) struct Users {
    pub(super) normal: BTreeSet<(String, String)>,
    pub(super) build: BTreeSet<(String, String)>,
    pub(super) dev: BTreeSet<(String, String)>,
}

pub(super) fn read(metadata: &Metadata, manifest: &str) -> anyhow::Result<Used> {
    let mut used = Used { declared: declared(manifest), ..Used::default() };
    let own: BTreeSet<&str> = metadata.packages.iter().map(|p| p.name.as_str()).collect();
    for kind in [DependencyKind::Normal, DependencyKind::Build, DependencyKind::Development] {
        for package in &metadata.packages {
            let (layer, _) = layers::place(&metadata.workspace_root, package)?;
            let user = (layer.to_owned(), package.name.to_string());
            let outside = package.dependencies.iter().filter(|d| d.kind == kind && !own.contains(d.name.as_str()));
            for dependency in outside {
                let users = used.users.entry(dependency.name.clone()).or_default();
                if [&users.normal, &users.build].iter().all(|known| !known.contains(&user)) {
                    users.of(kind).insert(user.clone());
                }
            }
        }
    }
    Ok(used)
}

/// Names below `[workspace.dependencies]`.
fn declared(manifest: &str) -> BTreeSet<String> {
    let after = manifest.split("\n[workspace.dependencies]\n").nth(1).unwrap_or_default();
    let lines = after.lines().take_while(|l| !l.starts_with('['));
    lines.filter(|l| !l.starts_with('#')).filter_map(|l| Some(l.split_once(" = ")?.0.to_owned())).collect()
}

impl Users {
    fn of(&mut self, kind: DependencyKind) -> &mut BTreeSet<(String, String)> {
        match kind {
            DependencyKind::Build => &mut self.build,
            DependencyKind::Development => &mut self.dev,
            _ => &mut self.normal,
        }
    }

    /// The cell of the table.
    fn cell(&self) -> String {
        let lists = [("", &self.normal), ("build: ", &self.build), ("dev: ", &self.dev)];
        let filled = lists.iter().filter(|(_, users)| !users.is_empty());
        filled.map(|(kind, users)| format!("{kind}{}", names(users))).collect::<Vec<_>>().join("; ")
    }
}

/// `a`, `b`; or by layer when there are many: a layer's name stands for two or more crates of it.
fn names(users: &BTreeSet<(String, String)>) -> String {
    let of = |layer: &str| users.iter().filter(|(l, _)| l == layer).count();
    let name = |(layer, name): &(String, String)| match users.len() > NAMED && of(layer) > 1 {
        true => layer.clone(),
        false => format!("`{name}`"),
    };
    let mut all: Vec<String> = users.iter().map(name).collect();
    all.dedup();
    all.join(", ")
}

/// Each dependency has its row, in order, with the crates that use it; each row is one.
pub(super) fn check(document: &str, used: &Used) -> Vec<String> {
    let mut found = Vec::new();
    let rows = rows(document, TABLE);
    let names: Vec<&str> = rows.iter().filter_map(|r| r.first().copied()).collect();
    found.extend(names.windows(2).filter(|w| w[0] >= w[1]).map(|w| {
        format!("{ARCHITECTURE}: dependency `{}` stands after `{}`: rows are in the order of names", w[1], w[0])
    }));
    for row in rows {
        let [name, buys, by] = row.as_slice() else { continue };
        let users = used.users.get(*name).map(Users::cell).unwrap_or_default();
        if buys.is_empty() {
            found.push(format!("{ARCHITECTURE}: dependency `{name}`: what does it buy?"));
        }
        if users != *by && used.declared.contains(*name) {
            found.push(format!("{ARCHITECTURE}: dependency `{name}`: used by is not `{by}` but: {users}"));
        }
        if !used.declared.contains(*name) {
            found.push(format!("{ARCHITECTURE}: `{name}` is no dependency: [workspace.dependencies] does not have it"));
        }
    }
    for name in &used.declared {
        if !used.users.contains_key(name) {
            found.push(format!("Cargo.toml: no crate uses `{name}`: remove it"));
        }
        if !names.contains(&name.as_str()) {
            let by = used.users.get(name).map(Users::cell).unwrap_or_default();
            found.push(format!("{ARCHITECTURE}: no row says what `{name}` buys; used by: {by}"));
        }
    }
    let strangers = used.users.keys().filter(|name| !used.declared.contains(*name));
    found.extend(strangers.map(|name| format!("Cargo.toml: `{name}` is used but not in [workspace.dependencies]")));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(users: &[(&str, &str)]) -> BTreeSet<(String, String)> {
        users.iter().map(|(layer, name)| ((*layer).to_owned(), (*name).to_owned())).collect()
    }

    /// `bytes` in one crate and its tests, `tokio` in ten managers and an adapter, `prost` in a build script.
    fn used() -> Used {
        let managers: Vec<String> = (0..10).map(|n| format!("m{n}")).collect();
        let mut many = set(&[("adapters", "journal")]);
        many.extend(managers.iter().map(|m| ("managers".to_owned(), m.clone())));
        Used {
            declared: declared(
                "[workspace]\n[workspace.dependencies]\n# c = 1\nbytes = \"1\"\nprost = { a = 1 }\ntokio = \"1\"\n[x]\ny = 1\n",
            ),
            users: BTreeMap::from([
                (
                    "bytes".to_owned(),
                    Users { normal: set(&[("base", "ports")]), dev: set(&[("app", "server")]), ..Users::default() },
                ),
                ("prost".to_owned(), Users { build: set(&[("base", "cri-api")]), ..Users::default() }),
                ("tokio".to_owned(), Users { normal: many, ..Users::default() }),
            ]),
        }
    }

    const TRUE: &str = "## Dependencies\n\n| dependency | what it buys | used by |\n|---|---|---|\n\
        | bytes | bodies | `ports`; dev: `server` |\n| prost | CRI | build: `cri-api` |\n\
        | tokio | time | `journal`, managers |\n";

    #[test]
    fn a_true_table_is_fine_and_a_false_row_is_not() {
        assert_eq!(check(TRUE, &used()), Vec::<String>::new());
        let rows = [
            ("`ports`; dev: `server`", "`ports`, `server`", "but: `ports`; dev: `server`"),
            ("`journal`, managers", "managers", "but: `journal`, managers"),
            ("`journal`, managers", "adapters, managers", "but: `journal`, managers"),
            ("build: `cri-api`", "`cri-api`", "but: build: `cri-api`"),
            ("| bytes | bodies |", "| bytes | |", "what does it buy"),
            ("| bytes |", "| bites |", "`bites` is no dependency"),
            ("| bytes |", "| bites |", "no row says what `bytes` buys"),
            ("| bytes |", "| zbytes |", "in the order of names"),
        ];
        for (from, to, want) in rows {
            let found = check(&TRUE.replace(from, to), &used());
            assert!(found.iter().any(|f| f.contains(want)), "{to}: {found:?}");
        }
    }

    #[test]
    fn a_dependency_of_nobody_is_refused_and_one_outside_of_the_list() {
        let mut nobody = used();
        nobody.users.remove("bytes");
        assert!(check(TRUE, &nobody).iter().any(|f| f == "Cargo.toml: no crate uses `bytes`: remove it"));
        let mut stranger = used();
        stranger.users.insert("nix".to_owned(), Users::default());
        assert!(check(TRUE, &stranger).iter().any(|f| f.contains("`nix` is used but not in")));
    }
}
