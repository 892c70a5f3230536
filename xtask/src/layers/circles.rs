//! Do files of one crate use each other in a ring? Then none of them can be read, moved or tested alone.
//!
//! An edge is a path (`crate::..`, `super::..`, a child's name, an imported name) in product code that leads to an item of another file.
//! A re-export is no edge: who goes through one depends on the file behind it. Methods and macros by textual scope are not seen.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::Context;
use cargo_metadata::Metadata;
use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};

/// Every ring of the workspace.
pub(super) fn check(metadata: &Metadata) -> anyhow::Result<Vec<String>> {
    let mut found = Vec::new();
    for package in metadata.workspace_packages() {
        for target in package.targets.iter().filter(|t| t.is_lib() || t.is_bin()) {
            let tree = Tree::read(target.src_path.as_std_path())?;
            found.extend(tree.rings().into_iter().map(|(ring, edges)| refused(&package.name, &ring, &edges)));
        }
    }
    Ok(found)
}

/// The modules of each ring, with the edges between them.
type Rings = BTreeMap<String, String>;

fn refused(package: &str, ring: &str, edges: &str) -> String {
    format!("{package}: {ring}: they use each other in a ring; move what they share below, or into one file:{edges}")
}

/// Words before the name of an item.
const ITEMS: &[&str] = &["struct", "enum", "union", "trait", "type", "const", "static", "fn", "macro_rules"];

/// How many imports may lead to one another before a name counts as unknown.
const MAX_IMPORTS: usize = 5;

/// A path of names; empty for the crate's root.
type Name = Vec<String>;

/// A module, in a file of its own or within its parent's.
#[derive(Default)]
struct Module {
    /// The module whose file it stands in.
    file: Name,
    items: BTreeSet<String>,
    imports: Vec<Import>,
    /// Paths that the code names.
    paths: BTreeSet<Name>,
}

/// One leaf of a `use`.
struct Import {
    path: Name,
    /// The name it has here; `*` for all.
    alias: String,
    /// A re-export.
    public: bool,
}

/// One crate without its tests.
#[derive(Default)]
struct Tree {
    modules: BTreeMap<Name, Module>,
}

impl Tree {
    fn read(root: &Path) -> anyhow::Result<Self> {
        let mut tree = Tree::default();
        let mut files = vec![(Name::new(), root.to_owned(), root.parent().unwrap_or(root).to_owned())];
        while let Some((name, file, folder)) = files.pop() {
            let text = std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
            let tokens = text.parse().map_err(|e| anyhow::anyhow!("{}: {e}", file.display()))?;
            for child in tree.add(&name, &name, tokens) {
                let below = folder.join(child[name.len()..].join("/"));
                files.push((child, below.with_extension("rs"), below));
            }
        }
        Ok(tree)
    }

    /// Takes in a module of a file; returns those it declares that lie in files of their own.
    fn add(&mut self, name: &Name, file: &Name, tokens: TokenStream) -> Vec<Name> {
        let (mut module, mut children) = (Module { file: file.clone(), ..Module::default() }, Children::new());
        scan(&mut module, &mut children, tokens, true);
        self.modules.insert(name.clone(), module);
        let mut files = Vec::new();
        for (child, body) in children {
            let child = [name.as_slice(), &[child]].concat();
            match body {
                Some(body) => files.extend(self.add(&child, file, body)),
                None => files.push(child),
            }
        }
        files
    }

    /// The module that defines what a path names when it stands in `at`; nothing for what other crates define.
    fn defines(&self, at: &Name, path: &[String]) -> Option<&Module> {
        // The longest beginning that is known: items that a macro makes are unknown, their module is not.
        let known = (1..=path.len()).rev().find_map(|n| self.resolve(at, &path[..n], MAX_IMPORTS))?;
        self.modules.get(&known)
    }

    fn resolve(&self, at: &[String], path: &[String], depth: usize) -> Option<Name> {
        match path.first()?.as_str() {
            "crate" => self.find(&[], &path[1..], depth),
            "self" => self.find(at, &path[1..], depth),
            _ => self.find(at, path, depth),
        }
    }

    /// As [`Tree::resolve`], for a path that goes on from inside of `at`.
    fn find(&self, at: &[String], path: &[String], depth: usize) -> Option<Name> {
        let Some((first, rest)) = path.split_first() else { return Some(at.to_vec()) };
        if first == "super" {
            return self.find(at.split_last()?.1, rest, depth);
        }
        let child = [at, std::slice::from_ref(first)].concat();
        if self.modules.contains_key(&child) {
            return self.find(&child, rest, depth);
        }
        let module = self.modules.get(at)?;
        if module.items.contains(first) {
            return Some(at.to_vec());
        }
        let depth = depth.checked_sub(1)?;
        let through = |import: &Import| match import.alias.as_str() {
            "*" => self.resolve(at, &[&import.path, path].concat(), depth),
            alias if alias == first => self.resolve(at, &[&import.path, rest].concat(), depth),
            _ => None,
        };
        module.imports.iter().find_map(through)
    }

    /// Which file uses which.
    fn edges(&self) -> BTreeMap<&Name, BTreeSet<&Name>> {
        let mut edges: BTreeMap<&Name, BTreeSet<&Name>> = BTreeMap::new();
        for (at, module) in &self.modules {
            let imports = module.imports.iter().filter(|i| !i.public).map(|i| &i.path);
            let used = imports.chain(&module.paths).filter_map(|path| self.defines(at, path));
            let others = used.map(|m| &m.file).filter(|file| **file != module.file);
            edges.entry(&module.file).or_default().extend(others);
        }
        edges
    }

    fn rings(&self) -> Rings {
        let edges = self.edges();
        let reach: BTreeMap<&Name, BTreeSet<&Name>> = edges.keys().map(|from| (*from, reach(&edges, from))).collect();
        let mut rings = Rings::new();
        for (from, to) in reach.iter().filter(|(from, to)| to.contains(*from)) {
            let ring: BTreeSet<&Name> = to.iter().filter(|to| reach[*to].contains(from)).copied().collect();
            let inside =
                ring.iter().map(|from| format!("\n  {} -> {}", shown([from]), shown(ring.intersection(&edges[from]))));
            rings.insert(shown(&ring), inside.collect());
        }
        rings
    }
}

fn shown<'a>(names: impl IntoIterator<Item = &'a &'a Name>) -> String {
    let one = |name: &&Name| if name.is_empty() { "lib".to_owned() } else { name.join("::") };
    names.into_iter().map(one).collect::<Vec<_>>().join(" ")
}

/// All that can be reached by at least one edge.
fn reach<'a>(edges: &BTreeMap<&'a Name, BTreeSet<&'a Name>>, from: &Name) -> BTreeSet<&'a Name> {
    let mut reached = BTreeSet::new();
    let mut ahead: Vec<&Name> = edges[from].iter().copied().collect();
    while let Some(name) = ahead.pop() {
        if reached.insert(name) {
            ahead.extend(&edges[name]);
        }
    }
    reached
}

/// Modules that a module declares, with their bodies where they stand in the same file.
type Children = Vec<(String, Option<TokenStream>)>;

/// Goes through the code of one module, functions and macros included. `top` says that items here are the module's own.
fn scan(module: &mut Module, children: &mut Children, tokens: TokenStream, top: bool) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut at = 0;
    while at < tokens.len() {
        let word = word(&tokens, at);
        at = match word.as_deref() {
            None if is_test(&tokens, at) => after_item(&tokens, at + 2),
            None => {
                // `pub(in crate::a)` says who may look, not who is used.
                let visibility =
                    at.checked_sub(1).and_then(|before| self::word(&tokens, before)).is_some_and(|w| w == "pub");
                if let TokenTree::Group(group) = &tokens[at]
                    && !visibility
                {
                    scan(module, children, group.stream(), false);
                }
                at + 1
            }
            Some("mod") if top => {
                let body = match tokens.get(at + 2) {
                    Some(TokenTree::Group(body)) => Some(body.stream()),
                    _ => None,
                };
                children.extend(self::word(&tokens, at + 1).map(|name| (name, body)));
                at + 3
            }
            Some("use") if !is_punct(&tokens, at + 1, '<') => {
                let end = (at..tokens.len()).find(|i| is_punct(&tokens, *i, ';')).unwrap_or(tokens.len());
                let public = tokens[..at].iter().rev().take(2).any(|t| t.to_string() == "pub");
                leaves(&tokens[at + 1..end], &[], public, &mut module.imports);
                end + 1
            }
            Some(word) => {
                if top && ITEMS.contains(&word) {
                    let name = at + if is_punct(&tokens, at + 1, '!') { 2 } else { 1 };
                    module.items.extend(self::word(&tokens, name));
                }
                let (path, end) = path(&tokens, at);
                let call =
                    matches!(tokens.get(end), Some(TokenTree::Group(g)) if g.delimiter() == Delimiter::Parenthesis);
                let own = at.checked_sub(1).is_some_and(|before| is_punct(&tokens, before, '.'));
                if path.len() > 1 || word.starts_with(char::is_uppercase) || (call && !own) {
                    module.paths.insert(path);
                }
                end
            }
        };
    }
}

fn word(tokens: &[TokenTree], at: usize) -> Option<String> {
    match tokens.get(at)? {
        TokenTree::Ident(ident) => Some(ident.to_string()),
        _ => None,
    }
}

fn is_punct(tokens: &[TokenTree], at: usize, char: char) -> bool {
    matches!(tokens.get(at), Some(TokenTree::Punct(p)) if p.as_char() == char)
}

fn is_colons(tokens: &[TokenTree], at: usize) -> bool {
    matches!(tokens.get(at), Some(TokenTree::Punct(p)) if p.as_char() == ':' && p.spacing() == Spacing::Joint)
        && is_punct(tokens, at + 1, ':')
}

/// Whether `#[cfg(test)]` stands here.
fn is_test(tokens: &[TokenTree], at: usize) -> bool {
    let attribute = tokens.get(at + 1).map(|t| t.to_string().replace(' ', ""));
    is_punct(tokens, at, '#') && attribute.as_deref() == Some("[cfg(test)]")
}

/// Where the item ends that begins here.
fn after_item(tokens: &[TokenTree], from: usize) -> usize {
    let ends = |at: &usize| match &tokens[*at] {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        _ => is_punct(tokens, *at, ';'),
    };
    (from..tokens.len()).find(ends).map_or(tokens.len(), |end| end + 1)
}

/// The path that begins here, and where it ends.
fn path(tokens: &[TokenTree], mut at: usize) -> (Name, usize) {
    let mut path: Name = word(tokens, at).into_iter().collect();
    while is_colons(tokens, at + 1)
        && let Some(next) = word(tokens, at + 3)
    {
        path.push(next);
        at += 3;
    }
    (path, at + 1)
}

/// The leaves of a `use` tree.
fn leaves(tokens: &[TokenTree], prefix: &[String], public: bool, found: &mut Vec<Import>) {
    for branch in tokens.split(|t| t.to_string() == ",") {
        let mut path = prefix.to_vec();
        let mut alias = None;
        for (at, token) in branch.iter().enumerate() {
            match token {
                TokenTree::Group(group) => {
                    let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                    leaves(&inner, &path, public, found);
                    path.clear();
                }
                TokenTree::Ident(ident) if ident == "as" => alias = word(branch, at + 1),
                TokenTree::Ident(ident) if alias.is_none() => path.push(ident.to_string()),
                TokenTree::Punct(star) if star.as_char() == '*' => alias = Some("*".to_owned()),
                _ => {}
            }
        }
        if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
            path.pop();
        }
        let alias = alias.or_else(|| path.last().cloned());
        found.extend(alias.filter(|_| !path.is_empty()).map(|alias| Import { path, alias, public }));
    }
}

#[cfg(test)]
mod tests;
