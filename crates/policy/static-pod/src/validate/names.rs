//! Rules for names, as RFC 1123, RFC 6335 and the API conventions give them.

/// A rule that a name must follow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Rule {
    /// RFC 1123 label.
    DnsLabel,
    /// RFC 1123 subdomain.
    DnsSubdomain,
    /// Search domain: subdomain that may hold underscores and end with a dot, or the root alone.
    SearchDomain,
    /// `[prefix/]name` of labels, annotations, conditions, resources.
    Qualified,
    /// Value of a label.
    LabelValue,
    /// IANA service name (port names).
    PortName,
    /// Environment variable (relaxed rule, locked on since 1.34).
    EnvName,
    /// HTTP header field.
    HttpHeader,
    /// Kernel parameter, dotted or slashed.
    Sysctl,
    /// UID of a pod: it becomes part of file and cgroup paths.
    Uid,
}

impl Rule {
    /// What the rule asks for, for people.
    pub(crate) const fn allowed(self) -> &'static str {
        match self {
            Rule::DnsLabel => "at most 63 of a-z, 0-9 and '-', starting and ending with a letter or digit",
            Rule::DnsSubdomain => {
                "at most 253 of a-z, 0-9, '-' and '.', each part starting and ending with a letter or digit"
            }
            Rule::SearchDomain => "a domain name of at most 253 characters, or '.'",
            Rule::Qualified => {
                "a name of at most 63 letters, digits, '-', '_' and '.', starting and ending with a letter or digit, with an optional DNS prefix and '/'"
            }
            Rule::LabelValue => {
                "empty, or at most 63 letters, digits, '-', '_' and '.', starting and ending with a letter or digit"
            }
            Rule::PortName => "at most 15 of a-z, 0-9 and single '-', with at least one letter, no '-' at the ends",
            Rule::EnvName => "printable ASCII without '='",
            Rule::HttpHeader => "letters, digits and '-'",
            Rule::Sysctl => "a kernel parameter such as net.ipv4.tcp_syncookies, at most 253 characters",
            Rule::Uid => "at most 128 letters, digits, '-' and '.', starting and ending with a letter or digit",
        }
    }

    /// Checks a name that is not empty (except label values).
    pub(crate) fn check(self, s: &str) -> Result<(), String> {
        match self {
            Rule::DnsLabel => limit(s, 63).and_then(|()| ensure(is_label(s), "is not an RFC 1123 label")),
            Rule::DnsSubdomain => {
                limit(s, 253).and_then(|()| ensure(s.split('.').all(is_label), "is not an RFC 1123 subdomain"))
            }
            Rule::SearchDomain => search_domain(s),
            Rule::Qualified => qualified(s),
            Rule::LabelValue => limit(s, 63).and_then(|()| ensure(s.is_empty() || is_loose(s), "is not a label value")),
            Rule::PortName => port_name(s),
            Rule::EnvName => {
                ensure(s.bytes().all(|b| (0x20..0x7f).contains(&b) && b != b'='), "is not a variable name")
            }
            Rule::HttpHeader => {
                ensure(s.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-'), "is not a header field name")
            }
            Rule::Sysctl => sysctl(s),
            Rule::Uid => {
                limit(s, 128).and_then(|()| ensure(is_uid(s), "is used in paths and may hold no other character"))
            }
        }
    }
}

fn ensure(good: bool, reason: &str) -> Result<(), String> {
    if good { Ok(()) } else { Err(reason.to_owned()) }
}

fn limit(s: &str, max: usize) -> Result<(), String> {
    ensure(s.len() <= max, &format!("has {} characters, more than {max}", s.len()))
}

fn is_label(s: &str) -> bool {
    s.len() <= 253 && framed(s, |b| b.is_ascii_lowercase() || b.is_ascii_digit(), |b| b == b'-')
}

fn is_loose(s: &str) -> bool {
    framed(s, |b| b.is_ascii_alphanumeric(), |b| matches!(b, b'-' | b'_' | b'.'))
}

fn is_uid(s: &str) -> bool {
    framed(s, |b| b.is_ascii_alphanumeric(), |b| matches!(b, b'-' | b'.'))
}

/// Not empty, `edge` bytes at both ends, `edge` or `inner` bytes between.
fn framed(s: &str, edge: impl Fn(u8) -> bool, inner: impl Fn(u8) -> bool) -> bool {
    let bytes = s.as_bytes();
    match (bytes.first(), bytes.last()) {
        (Some(first), Some(last)) => edge(*first) && edge(*last) && bytes.iter().all(|b| edge(*b) || inner(*b)),
        _ => false,
    }
}

fn search_domain(s: &str) -> Result<(), String> {
    limit(s, 253)?;
    let part =
        |p: &str| framed(p, |b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_', |b| b == b'-' || b == b'_');
    ensure(s == "." || s.strip_suffix('.').unwrap_or(s).split('.').all(part), "is not a domain name")
}

fn qualified(s: &str) -> Result<(), String> {
    let name = match s.split_once('/') {
        Some((prefix, name)) => {
            ensure(!prefix.is_empty(), "has an empty prefix before '/'")?;
            Rule::DnsSubdomain.check(prefix).map_err(|e| format!("prefix {prefix:?} {e}"))?;
            name
        }
        None => s,
    };
    ensure(!name.is_empty(), "has an empty name part")?;
    limit(name, 63)?;
    ensure(is_loose(name), "is not a qualified name")
}

fn port_name(s: &str) -> Result<(), String> {
    limit(s, 15)?;
    ensure(is_label(s), "is not an IANA service name")?;
    ensure(s.bytes().any(|b| b.is_ascii_lowercase()), "needs at least one letter")?;
    ensure(!s.contains("--"), "holds consecutive hyphens")
}

fn sysctl(s: &str) -> Result<(), String> {
    limit(s, 253)?;
    let part = |p: &str| framed(p, |b| b.is_ascii_lowercase() || b.is_ascii_digit(), |b| b == b'-' || b == b'_');
    ensure(s.split(['.', '/']).all(part), "is not a kernel parameter name")
}

/// Parses `metadata.labels['key']` and the like: the path before the bracket and the key in it.
pub(crate) fn subscript(path: &str) -> Option<(&str, &str)> {
    let (base, rest) = path.split_once("['")?;
    let key = rest.strip_suffix("']")?;
    Some((base, key))
}
