//! The one reading of a request's path: router and authorizer get the same, or the request is refused.

use model::url::{escape_segment, unescape};

#[cfg(test)]
mod tests;

/// A path that can be read in one way only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Canonical {
    /// As the router must see it: `/`, then segments that are escaped where they must be and nowhere else.
    pub path: String,
    /// First segment, decoded; empty for `/`.
    pub first: String,
}

/// Why a path is refused: somebody could read it in another way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// `*`, an authority, or nothing.
    #[error("the path does not begin with a slash")]
    NotAbsolute,
    /// `//` anywhere.
    #[error("the path has an empty segment")]
    EmptySegment,
    /// `.` or `..`, escaped or not.
    #[error("the path has a dot segment")]
    DotSegment,
    /// `%` without two hexadecimal digits.
    #[error("the path has a broken escape")]
    BrokenEscape,
    /// A slash or a NUL that hides behind an escape.
    #[error("the path has an escaped slash or NUL")]
    HiddenSeparator,
    /// Not UTF-8 when decoded.
    #[error("the path is not UTF-8")]
    NotUtf8,
}

/// Reads a path as it came (without the query).
///
/// # Errors
/// It could be read in more than one way.
pub fn canonical(raw: &str) -> Result<Canonical, Refused> {
    let Some(rest) = raw.strip_prefix('/') else { return Err(Refused::NotAbsolute) };
    let mut path = String::with_capacity(raw.len());
    let mut first = String::new();
    let mut segments = rest.split('/').enumerate().peekable();
    while let Some((at, segment)) = segments.next() {
        path.push('/');
        if segment.is_empty() {
            if segments.peek().is_some() {
                return Err(Refused::EmptySegment);
            }
            break;
        }
        let segment = decode(segment)?;
        if segment == "." || segment == ".." {
            return Err(Refused::DotSegment);
        }
        path.push_str(&escape_segment(&segment).to_string());
        if at == 0 {
            first = segment;
        }
    }
    Ok(Canonical { path, first })
}

fn decode(segment: &str) -> Result<String, Refused> {
    let bytes = unescape(segment).map_err(|_| Refused::BrokenEscape)?;
    if bytes.contains(&b'/') || bytes.contains(&0) {
        return Err(Refused::HiddenSeparator);
    }
    String::from_utf8(bytes.into_owned()).map_err(|_| Refused::NotUtf8)
}
