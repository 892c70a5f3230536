//! The texts of the repository, as the checks look at them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::Context;

use super::used::Used;
use crate::workspace;

/// Exceptions: `"path" = lines` or `"path::function" = lines`, each with a reason after `#`. May only shrink.
pub(super) const RATCHET: &str = "xtask/ratchet.toml";

/// The texts that are looked at, by path from the root.
#[derive(Default)]
pub(super) struct Tree {
    pub(super) files: BTreeMap<String, String>,
    /// Every path that exists, folders too; what documents may name.
    pub(super) paths: BTreeSet<String>,
    /// Packages from outside, and which crates use them.
    pub(super) used: Used,
}

impl Tree {
    /// What git tracks or would track: new files count, ignored ones do not.
    pub(super) fn read(root: &Path) -> anyhow::Result<Self> {
        let list = std::process::Command::new("git")
            .args(["ls-files", "--cached", "--others", "--exclude-standard"])
            .current_dir(root)
            .output()
            .context("git ls-files")?;
        let manifest = std::fs::read_to_string(root.join("Cargo.toml")).context("Cargo.toml")?;
        let used = Used::read(&workspace::metadata()?, &manifest)?;
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
            let wanted = path.ends_with(".rs") || path.ends_with(".md") || path == RATCHET;
            if wanted && let Ok(text) = std::fs::read_to_string(&full) {
                tree.files.insert(path.to_owned(), text);
            }
        }
        Ok(tree)
    }

    pub(super) fn rust(&self) -> impl Iterator<Item = Source<'_>> {
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
pub(super) struct Source<'a> {
    pub(super) path: &'a str,
    pub(super) text: &'a str,
    /// The text before an inline test module; empty for a file of tests.
    pub(super) product: &'a str,
}

impl<'a> Source<'a> {
    pub(super) fn new(path: &'a str, text: &'a str) -> Self {
        let is_test = path.ends_with("/tests.rs")
            || path.starts_with("tests/")
            || ["/tests/", "/benches/", "/examples/"].iter().any(|f| path.contains(f));
        let inline = text.find("\n#[cfg(test)]\nmod tests {");
        let product = if is_test { "" } else { inline.map_or(text, |at| &text[..at]) };
        Source { path, text, product }
    }

    /// The folder that makes its layer: `policy`, `managers` ..., `xtask`, `tests`.
    pub(super) fn layer(&self) -> &'a str {
        let mut parts = self.path.split('/');
        match parts.next() {
            Some("crates") => parts.next().unwrap_or_default(),
            Some(first) => first,
            None => "",
        }
    }

    pub(super) fn krate(&self) -> &'a str {
        self.path.split('/').nth(2).unwrap_or_default()
    }
}
