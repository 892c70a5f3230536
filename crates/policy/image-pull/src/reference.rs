//! Image names: `[host[:port]/]path[:tag][@digest]`, by the grammar that registries, runtimes and kubelets share.

#[cfg(test)]
mod tests;

/// Why a text is no image name. Displays as a kubelet prints it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ReferenceError {
    /// Does not fit the grammar.
    #[error("invalid reference format")]
    Format,
    /// Upper case in the repository part.
    #[error("invalid reference format: repository name ({0}) must be lowercase")]
    UpperCase(String),
    /// Looks like an image id.
    #[error("invalid repository name ({0}), cannot specify 64-byte hexadecimal strings")]
    Identifier(String),
    /// Longer than 255 characters.
    #[error("repository name must not be more than 255 characters")]
    TooLong,
    /// Digest of an algorithm that nobody serves.
    #[error("unsupported digest algorithm")]
    DigestAlgorithm,
    /// Digest of the wrong length.
    #[error("invalid checksum digest length")]
    DigestLength,
    /// Digest with other characters than its algorithm has.
    #[error("invalid checksum digest format")]
    DigestFormat,
}

const DEFAULT_HOST: &str = "docker.io";
const NAME_MAX: usize = 255;
const TAG_MAX: usize = 128;

/// A name in its parts, with all that it leaves out filled in. Displays as the whole name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Reference {
    /// The registry, perhaps with a port: `docker.io`.
    pub host: String,
    /// Path of the repository there: `library/busybox`.
    pub path: String,
    /// `latest` where the name has neither tag nor digest.
    pub tag: Option<String>,
    /// Algorithm, colon, hexadecimal digits. Counts more than a tag.
    pub digest: Option<String>,
}

impl Reference {
    /// Reads a name.
    ///
    /// # Errors
    /// The text is no image name.
    pub fn parse(image: &str) -> Result<Self, ReferenceError> {
        let whole = repository(image)?;
        let (host, path) = whole.split_once('/').ok_or(ReferenceError::Format)?;
        let (rest, digest) = match image.split_once('@') {
            Some((rest, digest)) => (rest, Some(digest.to_owned())),
            None => (image, None),
        };
        let last = rest.rsplit('/').next().unwrap_or(rest);
        let tag = last.split_once(':').map(|(_, tag)| tag.to_owned());
        let latest = || digest.is_none().then(|| "latest".to_owned());
        Ok(Self { host: host.to_owned(), path: path.to_owned(), tag: tag.or_else(latest), digest })
    }

    /// The whole name of the repository, without tag and digest.
    #[must_use]
    pub fn repository(&self) -> String {
        format!("{}/{}", self.host, self.path)
    }
}

impl std::fmt::Display for Reference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let part = |mark, text: &Option<String>| text.as_ref().map(|t| format!("{mark}{t}")).unwrap_or_default();
        write!(f, "{}{}{}", self.repository(), part(':', &self.tag), part('@', &self.digest))
    }
}

/// The name with `:latest` appended when it has neither tag nor digest; nothing else is changed.
///
/// # Errors
/// The text is no image name.
pub fn with_default_tag(image: &str) -> Result<String, ReferenceError> {
    let (tag, digest) = parse(image)?;
    Ok(if tag || digest { image.to_owned() } else { format!("{image}:latest") })
}

/// The whole name of the repository: `docker.io/library/busybox` for `busybox:1.36`.
///
/// # Errors
/// The text is no image name.
pub fn repository(image: &str) -> Result<String, ReferenceError> {
    parse(image)?;
    let (host, rest) = split_host(image);
    let path = rest.split(['@', ':']).next().unwrap_or(rest);
    let library = if host == DEFAULT_HOST && !path.contains('/') { "library/" } else { "" };
    Ok(format!("{host}/{library}{path}"))
}

/// Whether there is a tag, and whether there is a digest.
fn parse(image: &str) -> Result<(bool, bool), ReferenceError> {
    if image.len() == 64 && image.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
        return Err(ReferenceError::Identifier(image.to_owned()));
    }
    let (host, rest) = split_host(image);
    let remote = rest.split(':').next().unwrap_or_default();
    if remote.chars().any(char::is_uppercase) {
        return Err(ReferenceError::UpperCase(remote.to_owned()));
    }
    let (rest, digest) = match rest.split_once('@') {
        Some((rest, digest)) => (rest, Some(digest)),
        None => (rest, None),
    };
    let (path, tag) = match rest.split_once(':') {
        Some((path, tag)) => (path, Some(tag)),
        None => (rest, None),
    };
    let fits =
        is_host(host) && path.split('/').all(is_component) && tag.is_none_or(is_tag) && digest.is_none_or(is_digest);
    if !fits {
        return Err(ReferenceError::Format);
    }
    let library = if host == DEFAULT_HOST && !path.contains('/') { "library/".len() } else { 0 };
    if host.len() + 1 + library + path.len() > NAME_MAX {
        return Err(ReferenceError::TooLong);
    }
    if let Some(d) = digest {
        check_digest(d)?;
    }
    Ok((tag.is_some(), digest.is_some()))
}

/// The first component is a host when it cannot be part of a path: it has a dot, a port, upper case, or is `localhost`.
fn split_host(image: &str) -> (&str, &str) {
    match image.split_once('/') {
        Some((first, rest))
            if first.contains(['.', ':']) || first == "localhost" || first.chars().any(char::is_uppercase) =>
        {
            (if first == "index.docker.io" { DEFAULT_HOST } else { first }, rest)
        }
        _ => (DEFAULT_HOST, image),
    }
}

fn is_host(host: &str) -> bool {
    if let Some(inner) = host.strip_prefix('[') {
        let Some((address, port)) = inner.split_once(']') else { return false };
        let digits = |b: u8| b.is_ascii_hexdigit() || b == b':';
        return !address.is_empty() && address.bytes().all(digits) && (port.is_empty() || is_port(port));
    }
    let (name, port) = match host.find(':') {
        Some(at) => host.split_at(at),
        None => (host, ""),
    };
    name.split('.').all(is_host_label) && (port.is_empty() || is_port(port))
}

fn is_port(with_colon: &str) -> bool {
    with_colon.strip_prefix(':').is_some_and(|p| !p.is_empty() && p.bytes().all(|b| b.is_ascii_digit()))
}

fn is_host_label(label: &str) -> bool {
    let ends = |b: Option<u8>| b.is_some_and(|b| b.is_ascii_alphanumeric());
    ends(label.bytes().next())
        && ends(label.bytes().last())
        && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

/// Lower-case letters and digits, parted by `.`, `_`, `__` or any number of `-`.
fn is_component(part: &str) -> bool {
    let word = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let bytes = part.as_bytes();
    let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else { return false };
    if !word(*first) || !word(*last) {
        return false;
    }
    part.split(|c: char| c.is_ascii() && word(c as u8))
        .all(|gap| matches!(gap, "" | "." | "_" | "__") || gap.bytes().all(|b| b == b'-'))
}

fn is_tag(tag: &str) -> bool {
    let word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    tag.bytes().next().is_some_and(word)
        && tag.len() <= TAG_MAX
        && tag.bytes().all(|b| word(b) || b == b'.' || b == b'-')
}

fn is_digest(digest: &str) -> bool {
    let Some((algorithm, hex)) = digest.split_once(':') else { return false };
    let part = |p: &str| {
        p.bytes().next().is_some_and(|b| b.is_ascii_alphabetic()) && p.bytes().all(|b| b.is_ascii_alphanumeric())
    };
    algorithm.split(['-', '_', '+', '.']).all(part) && hex.len() >= 32 && hex.bytes().all(|b| b.is_ascii_hexdigit())
}

fn check_digest(digest: &str) -> Result<(), ReferenceError> {
    let (algorithm, hex) = digest.split_once(':').unwrap_or((digest, ""));
    let length = match algorithm {
        "sha256" => 64,
        "sha384" => 96,
        "sha512" => 128,
        _ => return Err(ReferenceError::DigestAlgorithm),
    };
    if hex.len() != length {
        return Err(ReferenceError::DigestLength);
    }
    let lower = hex.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    if lower { Ok(()) } else { Err(ReferenceError::DigestFormat) }
}
