//! URLs of `http` and `https`, and where a redirect leads.

use std::fmt;

/// An absolute URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Url {
    pub(crate) tls: bool,
    /// Name or address, without brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// Path and query; begins with `/`.
    pub(crate) path: String,
}

impl Url {
    /// `None`: no such URL.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (scheme, rest) = text.split_once("://")?;
        let tls = match scheme.to_ascii_lowercase().as_str() {
            "http" => false,
            "https" => true,
            _ => return None,
        };
        let rest = rest.split('#').next().unwrap_or_default();
        let (place, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let (host, port) = split_port(place.rsplit('@').next().unwrap_or_default())?;
        let port = if port.is_empty() { if tls { 443 } else { 80 } } else { port.parse().ok()? };
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        (!host.is_empty()).then(|| Self { tls, host: host.to_owned(), port, path })
    }

    /// Where a `Location` leads from here.
    pub(crate) fn join(&self, location: &str) -> Option<Self> {
        if location.contains("://") {
            return Self::parse(location);
        }
        let scheme = if self.tls { "https" } else { "http" };
        if let Some(rest) = location.strip_prefix("//") {
            return Self::parse(&format!("{scheme}://{rest}"));
        }
        let path = location.split('#').next().unwrap_or_default();
        let own = self.path.split('?').next().unwrap_or_default();
        let path = match path.chars().next() {
            Some('/') => path.to_owned(),
            Some('?') => format!("{own}{path}"),
            _ => format!("{}{path}", &own[..=own.rfind('/').unwrap_or(0)]),
        };
        Some(Self { path, ..self.clone() })
    }

    /// As the `Host` header has it.
    pub(crate) fn host_header(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        let default = if self.tls { 443 } else { 80 };
        if self.port == default { host } else { format!("{host}:{}", self.port) }
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.host_header(), self.path)
    }
}

/// Host and port (empty: none given).
fn split_port(place: &str) -> Option<(&str, &str)> {
    if let Some(rest) = place.strip_prefix('[') {
        let (host, port) = rest.split_once(']')?;
        return if port.is_empty() { Some((host, "")) } else { Some((host, port.strip_prefix(':')?)) };
    }
    Some(place.split_once(':').unwrap_or((place, "")))
}
