//! Is the code in the shape that its readers rely on: short files and functions, no banned words, charters, true docs?

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, bail};

use crate::workspace;

mod citations;
mod dependencies;
mod docs;
mod map;
mod sizes;
mod words;

/// Checks sizes, banned words and charters of the code, and documents against the code: paths, citations of `docs/spec`,
/// the stops of `docs/life-of-a-pod.md`, and the tables of crates, dependencies and invariants in `ARCHITECTURE.md`.
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

/// The texts that are looked at, by path from the root.
#[derive(Default)]
struct Tree {
    files: BTreeMap<String, String>,
    /// Every path that exists, folders too; what documents may name.
    paths: std::collections::BTreeSet<String>,
    /// Packages from outside, and which crates use them.
    used: dependencies::Used,
}

impl Tree {
    /// What git tracks or would track: new files count, ignored ones do not.
    fn read(root: &Path) -> anyhow::Result<Self> {
        let list = std::process::Command::new("git")
            .args(["ls-files", "--cached", "--others", "--exclude-standard"])
            .current_dir(root)
            .output()
            .context("git ls-files")?;
        let manifest = std::fs::read_to_string(root.join("Cargo.toml")).context("Cargo.toml")?;
        let used = dependencies::read(&workspace::metadata()?, &manifest)?;
        let mut tree = Tree { used, ..Tree::default() };
        for path in String::from_utf8(list.stdout)?.lines() {
            let full = root.join(path);
            if !full.exists() {
                continue;
            }
            let mut at = Some(Path::new(path));
            while let Some(p) = at.filter(|p| !p.as_os_str().is_empty()) {
                tree.paths.insert(p.to_string_lossy().into_owned());
                at = p.parent();
            }
            let wanted = path.ends_with(".rs") || path.ends_with(".md") || path == sizes::RATCHET;
            if wanted && let Ok(text) = std::fs::read_to_string(&full) {
                tree.files.insert(path.to_owned(), text);
            }
        }
        Ok(tree)
    }

    fn rust(&self) -> impl Iterator<Item = Source<'_>> {
        let tests = self.test_modules();
        let rust = self.files.iter().filter(|(p, _)| p.ends_with(".rs"));
        rust.map(move |(path, text)| {
            let source = Source::new(path, text);
            let is_test =
                tests.iter().any(|t| path.strip_prefix(t.as_str()).is_some_and(|r| r.starts_with(['.', '/'])));
            if is_test { Source { product: "", ..source } } else { source }
        })
    }

    /// Modules that exist in tests only (`#[cfg(test)] mod name;`), as paths without `.rs`.
    fn test_modules(&self) -> Vec<String> {
        let mut found = Vec::new();
        for (path, text) in self.files.iter().filter(|(p, _)| p.ends_with(".rs")) {
            let own = path.trim_end_matches(".rs");
            let folder = own.strip_suffix("/lib").or_else(|| own.strip_suffix("/main")).unwrap_or(own);
            let lines: Vec<&str> = text.lines().collect();
            let declared = lines.windows(2).filter(|w| w[0].trim() == "#[cfg(test)]");
            let names = declared.filter_map(|w| w[1].trim().strip_prefix("mod ")?.strip_suffix(';'));
            found.extend(names.map(|name| format!("{folder}/{name}")));
        }
        found
    }
}

/// One Rust file.
struct Source<'a> {
    path: &'a str,
    text: &'a str,
    /// The text before an inline test module; empty for a file of tests.
    product: &'a str,
}

impl<'a> Source<'a> {
    fn new(path: &'a str, text: &'a str) -> Self {
        let is_test = path.ends_with("/tests.rs")
            || path.starts_with("tests/")
            || ["/tests/", "/benches/", "/examples/"].iter().any(|f| path.contains(f));
        let inline = text.find("\n#[cfg(test)]\nmod tests {");
        let product = if is_test { "" } else { inline.map_or(text, |at| &text[..at]) };
        Source { path, text, product }
    }

    /// The folder that makes its layer: `policy`, `managers` ..., `xtask`, `tests`.
    fn layer(&self) -> &'a str {
        let mut parts = self.path.split('/');
        match parts.next() {
            Some("crates") => parts.next().unwrap_or_default(),
            Some(first) => first,
            None => "",
        }
    }

    fn krate(&self) -> &'a str {
        self.path.split('/').nth(2).unwrap_or_default()
    }
}

/// Everything untidy: `path:line: what, and why it matters`.
fn check(tree: &Tree) -> Vec<String> {
    let mut found = sizes::check(tree);
    for source in tree.rust() {
        found.extend(words::check(&source));
        found.extend(form(&source));
    }
    found.extend(docs::life_of_a_pod(tree));
    found.extend(docs::paths(tree));
    found.extend(citations::check(tree));
    found.extend(map::check(tree));
    let architecture = tree.files.get(map::ARCHITECTURE).map_or("", String::as_str);
    found.extend(dependencies::check(architecture, &tree.used));
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
