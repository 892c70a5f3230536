//! Limits of files and functions, with a ratchet for what was too long when the limit came.

use std::collections::BTreeMap;

use super::tree::{RATCHET, Source, Tree};

/// Lines of a file without its tests.
const FILE: usize = 600;
/// Lines of a function.
const FUNCTION: usize = 70;

pub(super) fn check(tree: &Tree) -> Vec<String> {
    let mut found = Vec::new();
    let mut allowed = ratchet(tree.files.get(RATCHET).map_or("", String::as_str), &mut found);
    for source in tree.rust().filter(|s| !s.product.is_empty()) {
        let lines = source.product.lines().count();
        judge(&mut found, &mut allowed, source.path.to_owned(), lines, FILE);
        for (name, lines) in functions(&source) {
            judge(&mut found, &mut allowed, format!("{}::{name}", source.path), lines, FUNCTION);
        }
    }
    found.extend(allowed.into_keys().map(|key| format!("{RATCHET}: {key} is short enough or gone: remove the line")));
    found
}

fn judge(found: &mut Vec<String>, allowed: &mut BTreeMap<String, usize>, key: String, lines: usize, limit: usize) {
    match allowed.get(&key).copied() {
        _ if lines <= limit => return, // an exception that is no longer needed stays in `allowed` and is reported
        Some(most) if lines > most => found.push(format!("{key}: grew to {lines} lines; {RATCHET} allows {most}")),
        Some(most) if lines < most => found.push(format!("{RATCHET}: {key} has only {lines} lines now: lower it")),
        Some(_) => {}
        None => found.push(format!("{key}: {lines} lines, limit {limit}; split it where a name offers itself")),
    }
    allowed.remove(&key);
}

fn ratchet(text: &str, found: &mut Vec<String>) -> BTreeMap<String, usize> {
    let mut allowed = BTreeMap::new();
    for line in text.lines().filter(|l| l.starts_with('"')) {
        let parsed = line.split_once('=').and_then(|(key, rest)| {
            let (number, reason) = rest.split_once('#')?;
            (!reason.trim().is_empty()).then_some(())?;
            Some((key.trim().trim_matches('"').to_owned(), number.trim().parse().ok()?))
        });
        match parsed {
            Some((key, number)) => drop(allowed.insert(key, number)),
            None => found.push(format!("{RATCHET}: `{line}` is not `\"path\" = lines # reason`")),
        }
    }
    allowed
}

/// Functions and their lengths. rustfmt puts the closing brace under the first word, which is all we need.
fn functions(source: &Source<'_>) -> Vec<(String, usize)> {
    let lines: Vec<&str> = source.product.lines().collect();
    let mut found = Vec::new();
    for (start, line) in lines.iter().enumerate() {
        let Some(name) = function_name(line) else { continue };
        let indent = line.len() - line.trim_start().len();
        let same_indent = |l: &&str| l.len() > indent && l[..indent].trim().is_empty() && !l[indent..].starts_with(' ');
        let close = format!("{}}}", " ".repeat(indent));
        // The next line at our indent that ends the item: a brace, or the semicolon of a mere declaration.
        let mut after = lines[start..].iter().enumerate().skip(1).filter(|(_, l)| same_indent(l));
        let end = after.find(|(_, l)| **l == close || l.ends_with(';')).filter(|(_, l)| **l == close).map(|(n, _)| n);
        if let Some(length) = end {
            found.push((name.to_owned(), length + 1));
        }
    }
    found
}

fn function_name(line: &str) -> Option<&str> {
    let mut rest = line.trim_start();
    let words = ["pub(crate) ", "pub(super) ", "pub ", "const ", "async ", "unsafe ", "extern \"C\" "];
    while let Some(after) = words.iter().find_map(|w| rest.strip_prefix(w)) {
        rest = after;
    }
    let name = rest.strip_prefix("fn ")?;
    // Declarations and one-liners have no body worth counting.
    if line.trim_end().ends_with([';', '}']) {
        return None;
    }
    name.split(['(', '<']).next()
}
