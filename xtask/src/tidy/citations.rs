//! Citations of `docs/spec`: each names a section that is there, and all have one form.
//!
//! The form is the name of the file without `.md`, then the numbers of sections: `pod-lifecycle 2.7`, or
//! `interfaces 3.9, 3.10`, or `pod-lifecycle 9.1 to 9.5`. A section has its number as anchor in its heading.

use std::collections::{BTreeMap, BTreeSet};

use super::tree::Tree;

const SPEC: &str = "docs/spec/";

/// Numbers of the sections of each book, by its name.
type Books<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

pub(super) fn check(tree: &Tree) -> Vec<String> {
    let mut found = Vec::new();
    let books = books(tree, &mut found);
    for (path, text) in &tree.files {
        let own = path.strip_prefix(SPEC).and_then(|p| p.strip_suffix(".md"));
        if let Some(sections) = own.and_then(|name| books.get(name)) {
            found.extend(inside(path, text, sections));
        } else if path.ends_with(".md") || (path.ends_with(".rs") && !path.starts_with("xtask/src/tidy")) {
            let prose = prose(path, text);
            for (n, (line, words)) in prose.iter().enumerate() {
                // A citation may go over the end of a line: its numbers then begin the next one.
                let next = prose.get(n + 1).filter(|(l, _)| *l == line + 1).map_or("", |(_, w)| w);
                let mut wrong = wrong(words, next, &books);
                wrong.extend(elsewhere(path, words, &tree.paths));
                found.extend(wrong.into_iter().map(|what| format!("{path}:{line}: {what}")));
            }
        }
    }
    found
}

/// What people read in a file: comments of Rust, all of a document. Lines count from 1.
fn prose<'a>(path: &str, text: &'a str) -> Vec<(usize, &'a str)> {
    let lines = text.lines().enumerate().map(|(n, line)| (n + 1, line));
    if path.ends_with(".md") {
        return lines.collect();
    }
    let comment = |line: &'a str| Some(line.split_once("//")?.1.trim_start_matches(['/', '!']).trim());
    lines.filter_map(|(n, line)| Some((n, comment(line)?))).collect()
}

/// The books, and headings whose anchor is missing, differs from the number or stands twice.
fn books<'a>(tree: &'a Tree, found: &mut Vec<String>) -> Books<'a> {
    let mut books = Books::new();
    for (path, text) in &tree.files {
        let Some(name) = path.strip_prefix(SPEC).and_then(|p| p.strip_suffix(".md")) else { continue };
        let sections = books.entry(name).or_default();
        for (n, line) in text.lines().enumerate().filter(|(_, l)| l.starts_with("##")) {
            let at = format!("{path}:{}", n + 1);
            let heading = line.trim_start_matches('#').trim_start();
            let anchor = heading.strip_prefix("<a id=\"").and_then(|rest| rest.split_once("\"></a>"));
            match anchor {
                Some((id, title)) if title.starts_with(&format!("{id} ")) => {
                    if !sections.insert(id) {
                        found.push(format!("{at}: section {id} is there twice"));
                    }
                }
                _ => found.push(format!("{at}: a heading is `## <a id=\"2.7\"></a>2.7 Title`, with its number twice")),
            }
        }
    }
    books
}

/// References inside of a book: `[2.7](#2.7)` and `(2.7)` mean its own sections.
fn inside(path: &str, text: &str, sections: &BTreeSet<&str>) -> Vec<String> {
    let mut found = Vec::new();
    for (n, line) in text.lines().enumerate() {
        let links = line.split("](#").skip(1).filter_map(|rest| rest.split(')').next());
        let missing = links.chain(bare(line)).filter(|number| !sections.contains(number));
        found.extend(missing.map(|number| format!("{path}:{}: section {number} is not in this file", n + 1)));
        if line.contains('§') {
            found.push(format!("{path}:{}: write `[2.7](#2.7)` instead of `§2.7`", n + 1));
        }
    }
    found
}

/// What is wrong with the citations of one line.
fn wrong(line: &str, next: &str, books: &Books<'_>) -> Vec<String> {
    let mut found = Vec::new();
    for (name, sections) in books {
        for (at, _) in line.match_indices(name).filter(|(at, _)| is_word(line, *at, name.len())) {
            let here = &line[at + name.len()..];
            let joined = if here.is_empty() { format!(" {next}") } else { here.to_owned() };
            found.extend(citation(name, &line[..at], &joined, sections));
        }
    }
    let cited = |number: &&str| books.values().any(|sections| sections.contains(number));
    found.extend(bare(line).filter(cited).map(|n| format!("`({n})` does not say of which book: `pod-lifecycle {n}`")));
    let lower = line.to_lowercase();
    for word in ["book", "books"] {
        let named = |(at, _): (usize, _)| is_word(&lower, at, word.len()) && !lower[..at].ends_with('`');
        if lower.match_indices(word).any(named) {
            found.push("`book`: which one? Cite a section of docs/spec, as `pod-lifecycle 2.7`".to_owned());
        }
    }
    if line.contains("shared/spec") || line.contains("../shared") {
        found.push("a clone stands alone: cite docs/spec, as `pod-lifecycle 2.7`".to_owned());
    }
    found
}

/// Documents that are named in comments and are in no clone. A path counts from the root, or from a folder of ours.
fn elsewhere(path: &str, line: &str, paths: &BTreeSet<String>) -> Vec<String> {
    if path.ends_with(".md") {
        return Vec::new(); // checked as paths
    }
    let words = line.split(|c: char| !(c.is_alphanumeric() || "/._-".contains(c)));
    let named = words.map(|w| w.trim_end_matches('.')).filter(|w| w.ends_with(".md") && w.contains('/'));
    // A path that leaves the tree is refused for that.
    let missing = named.filter(|w| !w.starts_with("../") && !paths.contains(*w));
    missing.map(|w| format!("`{w}`: a clone stands alone, and has no such document")).collect()
}

/// One citation: `rest` is what follows the name of the book.
fn citation(name: &str, before: &str, rest: &str, sections: &BTreeSet<&str>) -> Vec<String> {
    if rest.starts_with(".md") && before.ends_with(SPEC) {
        return Vec::new(); // a path, which is checked as one
    }
    let (numbers, rest) = list(rest);
    if numbers.is_empty() {
        // A word of plain English, unless it has a hyphen or goes on as a citation would.
        let meant = name.contains('-') || rest.starts_with(".md") || rest.trim_start().starts_with("chapter");
        return meant.then(|| format!("`{name}` without a section: `{name} 2.7`")).into_iter().collect();
    }
    let missing = numbers.iter().filter(|n| !sections.contains(*n));
    let mut found: Vec<String> =
        missing.map(|n| format!("`{name} {n}`: {SPEC}{name}.md has no such section")).collect();
    if rest.strip_prefix(" and ").is_some_and(|r| r.starts_with(|c: char| c.is_ascii_digit())) {
        found.push(format!("`{name} {} and ...`: sections are listed with commas", numbers.join(", ")));
    }
    found
}

/// ` 2.7, 2.9 to 2.11 and so on`: the numbers, and what follows them.
fn list(text: &str) -> (Vec<&str>, &str) {
    let (mut numbers, mut rest) = (Vec::new(), text);
    loop {
        let before: &[&str] = if numbers.is_empty() { &[" "] } else { &[", ", " to "] };
        let after = before.iter().find_map(|sign| rest.strip_prefix(sign)).unwrap_or_default();
        let number = number(after);
        if number.is_empty() {
            return (numbers, rest);
        }
        numbers.push(number);
        rest = &after[number.len()..];
    }
}

/// `2` or `2.7` at the beginning of a text.
fn number(text: &str) -> &str {
    let digits = |t: &str| t.find(|c: char| !c.is_ascii_digit()).unwrap_or(t.len());
    let whole = digits(text);
    match text[whole..].strip_prefix('.').map_or(0, digits) {
        0 => &text[..whole],
        part => &text[..whole + 1 + part],
    }
}

/// The numbers of `(2.7)` and `(2.7, 2.8)`: parentheses with nothing but sections in them, which are no call.
fn bare(line: &str) -> impl Iterator<Item = &str> {
    let opened = line.match_indices('(').filter(|(at, _)| !line[..*at].ends_with(char::is_alphanumeric));
    let groups = opened.filter_map(|(at, _)| Some(line[at + 1..].split_once(')')?.0));
    let whole = |text: &str| text.contains('.') && !text.is_empty() && number(text).len() == text.len();
    groups.filter(move |inner| inner.split(", ").all(whole)).flat_map(|inner| inner.split(", "))
}

fn is_word(line: &str, at: usize, len: usize) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    !line[..at].ends_with(part) && !line[at + len..].starts_with(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIFE: &str = "# Life\n\n## <a id=\"2\"></a>2 Workers\n\n### <a id=\"2.7\"></a>2.7 Truth\n\nsee (2.7), [2](#2)\n\
        ### <a id=\"2.10\"></a>2.10 Kill\n";
    const FACES: &str = "## <a id=\"3\"></a>3 Servers\n### <a id=\"3.1\"></a>3.1 Ports\n";

    fn found(path: &str, text: &str) -> Vec<String> {
        let mut tree = Tree::default();
        for (path, text) in [("docs/spec/pod-lifecycle.md", LIFE), ("docs/spec/interfaces.md", FACES), (path, text)] {
            tree.files.insert(path.to_owned(), text.to_owned());
        }
        check(&tree)
    }

    #[test]
    fn a_citation_names_a_section_that_exists() {
        let rows = [
            ("/// Truth (pod-lifecycle 2.7).", None),
            ("//! Truth: pod-lifecycle 2, 2.7 to 2.10; interfaces 3.1.", None),
            ("let x = 1; // as in pod-lifecycle 2.7", None),
            ("//! The tables of pod-lifecycle\n//! 2.7 and what follows.", None),
            ("/// Truth (pod-lifecycle 2.8).", Some("no such section")),
            ("/// Truth (pod-lifecycle 2.7, 2.8).", Some("`pod-lifecycle 2.8`")),
            ("/// Truth (pod-lifecycle 2.7 to 2.9).", Some("`pod-lifecycle 2.9`")),
            ("//! The tables of pod-lifecycle\n//! 2.8 and what follows.", Some("no such section")),
            ("/// Ports (interfaces 2.7).", Some("`interfaces 2.7`")),
        ];
        for (text, want) in rows {
            let found = found("crates/app/a/src/x.rs", text);
            match want {
                None => assert_eq!(found, Vec::<String>::new(), "{text}"),
                Some(want) => assert!(found.len() == 1 && found[0].contains(want), "{text}: {found:?}"),
            }
        }
    }

    #[test]
    fn there_is_one_form_of_citation() {
        let refused = [
            "/// Truth (book 2.7).",
            "/// First row of the book's table.",
            "/// Truth (pod-lifecycle.md 2.7).",
            "/// Truth (pod-lifecycle chapter 2).",
            "/// Ports (interfaces chapter 3).",
            "/// Ports (interfaces.md 3.1).",
            "/// Truth (pod-lifecycle 2.7 and 2.10).",
            "/// Truth (2.7).",
            "/// Truth, see ../shared/design/plan.md.",
        ];
        for text in refused {
            assert_eq!(found("crates/app/a/src/x.rs", text).len(), 1, "{text}");
            assert_eq!(found("docs/testing.md", text).len(), 1, "{text}");
        }
        let fine = [
            "/// New in Kubernetes (1.35), half of it (0.5).",
            "/// Messages of managers that only book-keep, as [`Books`] does.",
            "/// The interfaces of this machine.",
            "let book = \"interfaces chapter 3\";",
        ];
        for text in fine {
            assert_eq!(found("crates/app/a/src/x.rs", text), Vec::<String>::new(), "{text}");
        }
        assert_eq!(found("docs/testing.md", "see `docs/spec/pod-lifecycle.md`"), Vec::<String>::new());
    }

    #[test]
    fn a_document_that_a_comment_names_is_in_the_tree() {
        let paths = BTreeSet::from(["docs/testing.md".to_owned()]);
        let of = |line| elsewhere("crates/app/a/src/x.rs", line, &paths).len();
        assert_eq!(
            [of("See docs/testing.md."), of("best (design/test-bed.md); they"), of("README.md or a.md")],
            [0, 1, 0]
        );
    }

    #[test]
    fn sections_are_numbered_once_and_refer_to_each_other_truly() {
        let rows = [
            ("## 2 Workers\n", "with its number twice"),
            ("## <a id=\"2.7\"></a>2.8 Truth\n", "with its number twice"),
            ("## <a id=\"2\"></a>2 A\n## <a id=\"2\"></a>2 B\n", "is there twice"),
            ("## <a id=\"2\"></a>2 A\nsee (2.9)\n", "section 2.9 is not in this file"),
            ("## <a id=\"2\"></a>2 A\nsee [there](#2.9)\n", "section 2.9 is not in this file"),
            ("## <a id=\"2\"></a>2 A\nsee §2\n", "instead of"),
        ];
        for (text, want) in rows {
            let found = found("docs/spec/other.md", text);
            assert!(found.len() == 1 && found[0].contains(want), "{text}: {found:?}");
        }
    }
}
