//! Differences that may show, as documents list them: a table whose rows are `| cases | difference | why |`. Cases are names or
//! `all`; a difference is a line of the comparison, in which `*` stands for any text.

/// A document, and the title of its section that holds the table.
pub type Place = (&'static str, &'static str);

/// What differs on every runtime.
pub const EVERYWHERE: Place = ("docs/compat.md", "## On the test bed");
/// What differs on bosun's own runtime besides.
pub const ON_OWN_RUNTIME: Place = ("docs/runtime.md", "## Beside what a kubelet did");

/// One row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Names; empty: all.
    pub cases: Vec<String>,
    /// Pattern.
    pub difference: String,
    /// Reason.
    pub why: String,
    /// It does not show each time: the reason begins with "at times".
    pub at_times: bool,
    /// Minor version of the API servers that can hold it: the reason begins with "from 1.27 on".
    pub since: u32,
}

impl Row {
    /// Whether a difference of a case is meant.
    pub fn covers(&self, case: &str, difference: &str) -> bool {
        self.is_about(case) && matches(&self.difference, difference)
    }

    /// Whether a case is meant.
    pub fn is_about(&self, case: &str) -> bool {
        self.cases.is_empty() || self.cases.iter().any(|c| c == case)
    }
}

/// Whether `text` is the pattern with something in the place of each `*`.
pub fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// Reads `from 1.27 on, `: the minor version, and what follows.
fn since(why: &str) -> Option<(u32, &str)> {
    let (minor, rest) = why.strip_prefix("from 1.")?.split_once(" on")?;
    Some((minor.parse().ok()?, rest.trim_start_matches([',', ':', ' '])))
}

/// The rows of a section of a document's text, or what is wrong with one.
pub fn rows(text: &str, title: &str) -> Result<Vec<Row>, String> {
    let Some((_, section)) = text.split_once(title) else { return Err(format!("no section {title:?}")) };
    let section = section.split("\n## ").next().unwrap_or_default();
    let mut out = Vec::new();
    for line in section.lines().filter(|l| l.starts_with('|')).skip(2) {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let [cases, difference, why] = cells[..] else { return Err(format!("not three cells: {line}")) };
        let unquoted = |s: &str| s.trim().trim_matches('`').to_owned();
        let cases: Vec<String> = cases.split(',').map(unquoted).filter(|c| c != "all").collect();
        if why.is_empty() || difference.len() < 3 {
            return Err(format!("a row without difference or reason: {line}"));
        }
        let (since, rest) = since(why).unwrap_or((0, why));
        let at_times = rest.starts_with("at times");
        out.push(Row { cases, difference: unquoted(difference), why: why.to_owned(), at_times, since });
    }
    Ok(out)
}
