//! The one reading of a request's path: router and authorizer get the same, or the request is refused.

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
        escape(&segment, &mut path);
        if at == 0 {
            first = segment;
        }
    }
    Ok(Canonical { path, first })
}

fn decode(segment: &str) -> Result<String, Refused> {
    if !segment.contains(['%', '\0']) {
        return Ok(segment.to_owned());
    }
    let mut bytes = Vec::with_capacity(segment.len());
    let mut rest = segment.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        rest = tail;
        let byte = if *first == b'%' {
            let (Some(high), Some(low)) = (tail.first().and_then(hex), tail.get(1).and_then(hex)) else {
                return Err(Refused::BrokenEscape);
            };
            rest = &tail[2..];
            high << 4 | low
        } else {
            *first
        };
        if byte == b'/' || byte == 0 {
            return Err(Refused::HiddenSeparator);
        }
        bytes.push(byte);
    }
    String::from_utf8(bytes).map_err(|_| Refused::NotUtf8)
}

fn hex(digit: &u8) -> Option<u8> {
    char::from(*digit).to_digit(16).and_then(|d| u8::try_from(d).ok())
}

/// Appends a segment, with everything escaped that RFC 3986 does not let stand in one.
fn escape(segment: &str, out: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for byte in segment.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push('%');
            out.push(char::from(DIGITS[usize::from(byte >> 4)]));
            out.push(char::from(DIGITS[usize::from(byte & 15)]));
        }
    }
}
