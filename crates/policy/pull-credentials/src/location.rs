//! Registry locations with wildcards, and which images they speak of (interfaces 8.6).

#[cfg(test)]
mod tests;

/// Why a location is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LocationError {
    /// Nothing.
    #[error("must not be empty")]
    Empty,
    /// Has a scheme.
    #[error("must not have a scheme")]
    Scheme,
    /// `%` without two hexadecimal digits.
    #[error("invalid URL escape {0:?}")]
    Escape(String),
    /// A character that no host has.
    #[error("invalid character {0:?} in host name")]
    Host(char),
    /// The port is no number.
    #[error("invalid port {0:?} after host")]
    Port(String),
    /// A wildcard that nobody can match.
    #[error("syntax error in pattern")]
    Pattern,
}

/// Host and path of a location without scheme.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Location<'a> {
    host: &'a str,
    port: &'a str,
    path: &'a str,
}

fn parse(text: &str) -> Result<Location<'_>, LocationError> {
    let (authority, path) = text.split_at(text.find('/').unwrap_or(text.len()));
    if let Some(at) = text.find('%') {
        let hex = |i: usize| text.as_bytes().get(i).is_some_and(u8::is_ascii_hexdigit);
        if !(hex(at + 1) && hex(at + 2)) {
            return Err(LocationError::Escape(text.chars().skip(text[..at].chars().count()).take(3).collect()));
        }
    }
    if let Some(c) = authority.chars().find(|c| c.is_whitespace() || c.is_control() || "\"<>^`{|}\\".contains(*c)) {
        return Err(LocationError::Host(c));
    }
    let port_at = match authority.rfind(']') {
        Some(end) => authority[end..].find(':').map(|i| end + i),
        None => authority.rfind(':'),
    };
    let (host, port) = match port_at {
        Some(i) => (&authority[..i], &authority[i + 1..]),
        None => (authority, ""),
    };
    if !port.bytes().all(|b| b.is_ascii_digit()) {
        return Err(LocationError::Port(format!(":{port}")));
    }
    Ok(Location { host, port, path })
}

/// Whether a text can be a pattern of images, e.g. `*.registry.example.com/team`.
///
/// # Errors
/// See [`LocationError`].
pub fn check_pattern(pattern: &str) -> Result<(), LocationError> {
    if pattern.is_empty() {
        return Err(LocationError::Empty);
    }
    if pattern.contains("://") {
        return Err(LocationError::Scheme);
    }
    let location = parse(pattern)?;
    location.host.split('.').try_for_each(|label| glob(label, "").map(drop).ok_or(LocationError::Pattern))
}

/// Whether the pattern speaks of this image (a repository without tag): as many labels in the host, each of which fits,
/// the same port, and a path that begins with the pattern's. Nothing matches what cannot be parsed.
#[must_use]
pub fn matches(pattern: &str, image: &str) -> bool {
    let (Ok(p), Ok(i)) = (parse(pattern), parse(image)) else { return false };
    let (want, have): (Vec<_>, Vec<_>) = (p.host.split('.').collect(), i.host.split('.').collect());
    p.port == i.port
        && want.len() == have.len()
        && i.path.starts_with(p.path)
        && want.iter().zip(have).all(|(w, h)| glob(w, h) == Some(true))
}

/// `*`, `?`, `[a-z]`, `[^a]` and `\x` over one label; `None` when the pattern is broken.
fn glob(pattern: &str, text: &str) -> Option<bool> {
    let pattern: Vec<char> = pattern.chars().collect();
    let text: Vec<char> = text.chars().collect();
    well_formed(&pattern).then(|| fits(&pattern, &text))
}

fn well_formed(mut p: &[char]) -> bool {
    while let Some((first, rest)) = p.split_first() {
        p = match first {
            '\\' if rest.is_empty() => return false,
            '\\' => &rest[1..],
            '[' => match class(rest, '\0') {
                Some((_, after)) => after,
                None => return false,
            },
            _ => rest,
        };
    }
    true
}

fn fits(p: &[char], t: &[char]) -> bool {
    let Some((first, rest)) = p.split_first() else { return t.is_empty() };
    if *first == '*' {
        return (0..=t.len()).any(|n| fits(rest, &t[n..]));
    }
    let Some((c, t)) = t.split_first() else { return false };
    match first {
        '?' => fits(rest, t),
        '[' => class(rest, *c).is_some_and(|(inside, after)| inside && fits(after, t)),
        '\\' => rest.split_first().is_some_and(|(literal, after)| literal == c && fits(after, t)),
        literal => literal == c && fits(rest, t),
    }
}

/// Reads a class behind its bracket: whether `c` is in, and what follows.
fn class(p: &[char], c: char) -> Option<(bool, &[char])> {
    let (negated, mut p) = match p.split_first() {
        Some(('^', rest)) => (true, rest),
        _ => (false, p),
    };
    let (mut inside, mut ranges) = (false, 0);
    loop {
        if ranges > 0 && p.first() == Some(&']') {
            return Some((inside != negated, &p[1..]));
        }
        let (low, rest) = class_char(p)?;
        let (high, rest) = match rest.split_first() {
            Some(('-', rest)) => class_char(rest)?,
            _ => (low, rest),
        };
        inside |= (low..=high).contains(&c);
        ranges += 1;
        p = rest;
    }
}

fn class_char(p: &[char]) -> Option<(char, &[char])> {
    match p {
        [] | ['-' | ']', ..] | ['\\'] => None,
        ['\\', c, rest @ ..] | [c, rest @ ..] => Some((*c, rest)),
    }
}
