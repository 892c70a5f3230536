//! YAML or JSON text to a JSON value, as all Kubernetes tools read it; for manifests and for configuration files.

use std::fmt;

use serde_json::Value;

/// Scalars, starts and ends of a document after aliases are resolved; far beyond any pod, and parsed in a blink.
const MAX_EVENTS: usize = 200_000;
/// Longest excerpt of an offending value that an error repeats, in characters.
const VALUE_EXCERPT: usize = 80;

/// Where something stands in a text: line and column, from 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Position {
    /// Line.
    pub line: u64,
    /// Column.
    pub column: u64,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// A text that is neither YAML nor JSON.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SyntaxError {
    /// Where, if known.
    pub at: Option<Position>,
    /// What the parser says, on one line.
    pub reason: String,
}

/// The first document of a text that is not empty, if there is one.
#[derive(Clone, PartialEq, Debug)]
pub struct Document {
    /// `None`: nothing but white space and comments.
    pub value: Option<Value>,
    /// A key that is given twice in one mapping, where the last one counts: where it stands, and what to say of it.
    pub duplicate: Option<(Option<Position>, String)>,
}

/// Reads the first document of a text.
///
/// # Errors
/// The text is neither YAML nor JSON.
pub fn read(text: &str) -> Result<Document, SyntaxError> {
    let text = text.trim_start_matches('\u{feff}');
    if text.trim().is_empty() {
        return Ok(Document { value: None, duplicate: None });
    }
    // JSON first where it looks like it: JSON may hold tabs where YAML may not.
    if text.trim_start().starts_with('{')
        && let Ok(value) = serde_json::from_str(text)
    {
        return Ok(Document { value: Some(value), duplicate: None });
    }
    let (result, duplicate) = match first_document(text, false) {
        Err(error) => match error.without_snippet() {
            serde_saphyr::Error::DuplicateMappingKey { key, .. } => {
                let key = key.as_deref().unwrap_or("a key");
                let reason = format!("{key} is given twice in one mapping, the last one counts");
                (first_document(text, true), Some((position(&error), reason)))
            }
            _ => (Err(error), None),
        },
        result => (result, None),
    };
    match result {
        Ok(value) => Ok(Document { value, duplicate }),
        Err(error) => Err(SyntaxError { at: position(&error), reason: describe(&error) }),
    }
}

/// The first document that is not empty. `legacy_octal_numbers`: `0644` is 420 for every Kubernetes tool, but a float for
/// YAML 1.2.
fn first_document(text: &str, last_duplicate_wins: bool) -> Result<Option<Value>, serde_saphyr::Error> {
    use serde_saphyr::options::DuplicateKeyPolicy::{Error, LastWins};
    let options = serde_saphyr::options! {
        legacy_octal_numbers: true,
        with_snippet: false,
        emit_comments: false,
        budget: serde_saphyr::budget! { max_events: MAX_EVENTS },
        duplicate_keys: if last_duplicate_wins { LastWins } else { Error },
    };
    let mut reader = text.as_bytes();
    serde_saphyr::read_with_options::<_, Value>(&mut reader, options).next().transpose()
}

fn position(error: &serde_saphyr::Error) -> Option<Position> {
    error.location().map(|at| Position { line: at.line(), column: at.column() })
}

/// The parser's words on one line.
fn describe(error: &serde_saphyr::Error) -> String {
    error.without_snippet().to_string().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A JSON value short enough for one line.
#[must_use]
pub fn excerpt(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= VALUE_EXCERPT {
        return text;
    }
    let mut short: String = text.chars().take(VALUE_EXCERPT).collect();
    short.push_str("...");
    short
}
