//! Escapes in paths and queries, as strict as Go reads them: a percent sign without two hex digits is an error.

use std::borrow::Cow;
use std::fmt::Display;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// RFC 3986 lets letters, digits and these stand anywhere.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// In a segment of a path it also lets these stand.
const NOT_IN_SEGMENT: &AsciiSet = &RESERVED
    .remove(b'!')
    .remove(b'$')
    .remove(b'&')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b'+')
    .remove(b',')
    .remove(b';')
    .remove(b'=')
    .remove(b':')
    .remove(b'@');

/// A percent sign that begins no escape; the text shows it as Go does.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid URL escape {0:?}")]
pub struct BadEscape(String);

/// Escapes all that may mean something in a URL: for names and values of a query.
pub fn escape(text: &str) -> impl Display + '_ {
    utf8_percent_encode(text, RESERVED)
}

/// Escapes what must not stand in one segment of a path.
pub fn escape_segment(text: &str) -> impl Display + '_ {
    utf8_percent_encode(text, NOT_IN_SEGMENT)
}

/// What a path, or a part of it, stands for. A plus sign is a plus sign.
///
/// # Errors
/// A percent sign begins no escape.
pub fn unescape(text: &str) -> Result<Cow<'_, [u8]>, BadEscape> {
    check(text)?;
    Ok(percent_decode_str(text).into())
}

/// What a name or value of a query stands for. A plus sign is a space; what is not UTF-8 becomes U+FFFD.
///
/// # Errors
/// A percent sign begins no escape.
pub fn unescape_query(text: &str) -> Result<String, BadEscape> {
    check(text)?;
    Ok(percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned())
}

fn check(text: &str) -> Result<(), BadEscape> {
    for (at, _) in text.match_indices('%') {
        let shown = &text.as_bytes()[at..text.len().min(at + 3)];
        if shown.len() < 3 || !shown[1..].iter().all(u8::is_ascii_hexdigit) {
            return Err(BadEscape(String::from_utf8_lossy(shown).into_owned()));
        }
    }
    Ok(())
}

/// Names and values of a query, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query(Vec<(String, String)>);

impl Query {
    /// Pairs that cannot be decoded, or that a semicolon stands in, are left out, as Go's `URL.Query` does it.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let pairs = text.split('&').filter(|pair| !pair.is_empty() && !pair.contains(';'));
        let decoded = pairs.filter_map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Some((unescape_query(name).ok()?, unescape_query(value).ok()?))
        });
        Self(decoded.collect())
    }

    /// All values of a name.
    pub fn all<'q>(&'q self, name: &'q str) -> impl DoubleEndedIterator<Item = &'q str> {
        self.0.iter().filter(move |(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    /// The first value of a name.
    #[must_use]
    pub fn first(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    /// All names and values.
    #[must_use]
    pub fn into_pairs(self) -> Vec<(String, String)> {
        self.0
    }
}
