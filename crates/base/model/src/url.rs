//! URLs of `http` and `https`: their parts, where a redirect leads, and escapes.

use std::fmt;

mod escape;

pub use escape::{BadEscape, Query, escape, escape_segment, unescape, unescape_query};

/// An absolute URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    /// Whether its scheme is `https`.
    pub tls: bool,
    /// Name or address, without brackets.
    pub host: String,
    /// `None`: it names no port.
    pub port: Option<u16>,
    /// Path and query; begins with `/`.
    pub path: String,
}

/// `host:port`, with brackets round an IPv6 address.
#[must_use]
pub fn authority(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

/// Whether a `Location` names its scheme, and so its host.
#[must_use]
pub fn is_absolute(location: &str) -> bool {
    location.split_once("://").is_some_and(|(scheme, _)| is_scheme(scheme))
}

impl Url {
    /// `None`: no such URL. User and password are dropped, and so is the fragment.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (scheme, rest) = text.split_once("://")?;
        let tls = match scheme.to_ascii_lowercase().as_str() {
            "http" => false,
            "https" => true,
            _ => return None,
        };
        Self::after_scheme(tls, rest.split('#').next().unwrap_or_default())
    }

    /// Where a `Location` leads from here; `None` when it cannot be understood or is of another scheme.
    #[must_use]
    pub fn join(&self, location: &str) -> Option<Self> {
        let location = location.split('#').next().unwrap_or_default();
        if let Some(rest) = location.strip_prefix("//") {
            return Self::after_scheme(self.tls, rest);
        }
        if is_absolute(location) {
            return Self::parse(location);
        }
        let base = self.path.split('?').next().unwrap_or_default();
        let path = match location.chars().next() {
            Some('/') => location.to_owned(),
            Some('?') => format!("{base}{location}"),
            _ => format!("{}{location}", base.rfind('/').map_or("/", |at| &base[..=at])),
        };
        Some(Self { path: without_dots(&path), ..self.clone() })
    }

    fn after_scheme(tls: bool, rest: &str) -> Option<Self> {
        let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let (host, port) = host_and_port(authority.rsplit('@').next().unwrap_or_default())?;
        let port = if port.is_empty() { None } else { Some(port.parse().ok()?) };
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        (!host.is_empty()).then(|| Self { tls, host: host.to_owned(), port, path })
    }

    /// The port, also where the URL names none.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port.unwrap_or(self.default_port())
    }

    fn default_port(&self) -> u16 {
        if self.tls { 443 } else { 80 }
    }

    /// As the `Host` header has it: without the port of the scheme.
    #[must_use]
    pub fn host_header(&self) -> String {
        let whole = authority(&self.host, self.port());
        match whole.strip_suffix(&format!(":{}", self.default_port())) {
            Some(host) => host.to_owned(),
            None => whole,
        }
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls { "https" } else { "http" };
        let authority = self.port.map_or_else(|| self.host_header(), |port| authority(&self.host, port));
        write!(f, "{scheme}://{authority}{}", self.path)
    }
}

/// Host and port (empty: none given).
fn host_and_port(authority: &str) -> Option<(&str, &str)> {
    if let Some(rest) = authority.strip_prefix('[') {
        let (host, port) = rest.split_once(']')?;
        return if port.is_empty() { Some((host, "")) } else { Some((host, port.strip_prefix(':')?)) };
    }
    Some(authority.split_once(':').unwrap_or((authority, "")))
}

fn is_scheme(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
}

/// Resolves `.` and `..` in a path; the query stays.
fn without_dots(path: &str) -> String {
    let (path, query) = path.split_at(path.find('?').unwrap_or(path.len()));
    let mut out: Vec<&str> = Vec::new();
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    let last = parts.len().saturating_sub(1);
    for (i, part) in parts.into_iter().enumerate() {
        if part == ".." {
            out.pop();
        }
        match part {
            "." | ".." if i == last => out.push(""),
            "." | ".." => {}
            part => out.push(part),
        }
    }
    format!("/{}{query}", out.join("/"))
}

#[cfg(test)]
mod tests;
