//! Which crates use which packages from outside, by the manifests.

use std::collections::{BTreeMap, BTreeSet};

use cargo_metadata::{DependencyKind, Metadata};

use crate::layers;

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

impl Used {
    /// Who uses what, by all manifests; `manifest` is that of the workspace.
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
}

/// Names below `[workspace.dependencies]`.
pub(super) fn declared(manifest: &str) -> BTreeSet<String> {
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
    pub(super) fn cell(&self) -> String {
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
