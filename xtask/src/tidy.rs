//! Is the code in the shape that its readers rely on: short files and functions, no banned words, charters, true docs?

use anyhow::bail;

use crate::workspace;

mod citations;
mod dependencies;
mod docs;
mod edges;
mod gates;
mod map;
mod sizes;
mod sleeps;
mod tree;
mod used;
mod words;

use tree::{Source, Tree};

/// Checks sizes, banned words, sleeps of tests and charters of the code, and documents against the code: paths, names, citations of `docs/spec`,
/// the stops of `docs/life-of-a-pod.md`, declared edges that nobody uses, feature gates that are told otherwise than they are, and the tables of crates, dependencies and invariants in `ARCHITECTURE.md`.
#[derive(clap::Args)]
pub(crate) struct Args {}

pub(crate) fn run(_args: &Args) -> anyhow::Result<()> {
    let tree = Tree::read(&workspace::root())?;
    let found = check(&tree);
    if !found.is_empty() {
        bail!("{} untidy places:\n{}", found.len(), found.join("\n"));
    }
    println!("{} files are tidy", tree.files.len());
    Ok(())
}

/// Everything untidy: `path:line: what, and why it matters`.
fn check(tree: &Tree) -> Vec<String> {
    let mut found = sizes::check(tree);
    for source in tree.rust() {
        found.extend(words::check(&source));
        found.extend(sleeps::check(&source));
        found.extend(form(&source));
    }
    found.extend(docs::life_of_a_pod(tree));
    found.extend(docs::paths(tree));
    found.extend(docs::names(tree));
    found.extend(citations::check(tree));
    found.extend(map::check(tree));
    found.extend(gates::check(&tree.rust().collect::<Vec<_>>()));
    let architecture = tree.files.get(map::ARCHITECTURE).map_or("", String::as_str);
    found.extend(dependencies::check(architecture, &tree.used));
    if !architecture.is_empty() {
        found.extend(crate::map::check(architecture));
        let sources: Vec<Source<'_>> = tree.rust().collect();
        found.extend(edges::check(sources.iter().map(|s| (s.path, s.product))));
    }
    found
}

fn form(source: &Source<'_>) -> Vec<String> {
    let path = source.path;
    let mut found = Vec::new();
    let name = path.rsplit('/').next().unwrap_or_default();
    if name == "mod.rs" {
        found.push(format!("{path}: modules are `foo.rs` beside `foo/`, so that tabs and searches tell them apart"));
    }
    if ["util", "utils", "common", "helpers", "misc"].contains(&name.trim_end_matches(".rs")) {
        found.push(format!("{path}: a name that says nothing collects everything; name what it does"));
    }
    let is_root = path.ends_with("/src/lib.rs") && path.starts_with("crates/");
    if is_root && source.text.lines().take_while(|l| l.starts_with("//!")).filter(|l| l.len() > 4).count() < 2 {
        found.push(format!("{path}: starts without a charter (what the crate owns, what it never does)"));
    }
    found
}

#[cfg(test)]
mod tests;
