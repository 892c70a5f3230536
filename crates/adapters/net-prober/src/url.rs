//! The few things about URLs that probes need.

use std::fmt;

/// An absolute `http` or `https` URL.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Url {
    pub(crate) tls: bool,
    pub(crate) host: String,
    pub(crate) port: u16,
    /// Path and query.
    pub(crate) path: String,
}

/// `host:port`, with brackets round an IPv6 address.
pub(crate) fn authority(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", authority(&self.host, self.port), self.path)
    }
}

impl Url {
    /// Where a `Location` leads from here; `None` when it cannot be understood or is of another scheme.
    pub(crate) fn join(&self, location: &str) -> Option<Url> {
        let location = location.split('#').next().unwrap_or_default();
        if let Some(rest) = location.strip_prefix("//") {
            return Url::absolute(self.tls, rest);
        }
        if let Some((scheme, rest)) = location.split_once("://").filter(|(s, _)| is_scheme(s)) {
            let tls = match scheme.to_ascii_lowercase().as_str() {
                "http" => false,
                "https" => true,
                _ => return None,
            };
            return Url::absolute(tls, rest);
        }
        let path = if location.starts_with('/') {
            location.to_owned()
        } else {
            let base = self.path.split('?').next().unwrap_or_default();
            if location.starts_with('?') {
                format!("{base}{location}")
            } else {
                let directory = base.rfind('/').map_or("/", |at| &base[..=at]);
                format!("{directory}{location}")
            }
        };
        Some(Url { path: squeeze(&path), ..self.clone() })
    }

    fn absolute(tls: bool, rest: &str) -> Option<Url> {
        let at = rest.find(['/', '?']).unwrap_or(rest.len());
        let (place, path) = rest.split_at(at);
        let place = place.rsplit('@').next().unwrap_or_default();
        let default = if tls { 443 } else { 80 };
        let (host, port) = if let Some(bracketed) = place.strip_prefix('[') {
            let (host, after) = bracketed.split_once(']')?;
            (host, after.strip_prefix(':'))
        } else {
            match place.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (place, None),
            }
        };
        let port = match port {
            Some(text) if !text.is_empty() => text.parse().ok()?,
            _ => default,
        };
        if host.is_empty() {
            return None;
        }
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        Some(Url { tls, host: host.to_owned(), port, path })
    }
}

/// Whether a `Location` names its host itself.
pub(crate) fn is_absolute(location: &str) -> bool {
    location.split_once("://").is_some_and(|(s, _)| is_scheme(s))
}

fn is_scheme(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
}

/// Resolves `.` and `..` in a path; the query stays.
fn squeeze(path: &str) -> String {
    let (path, query) = match path.find('?') {
        Some(at) => path.split_at(at),
        None => (path, ""),
    };
    let mut out: Vec<&str> = Vec::new();
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    let last = parts.len().saturating_sub(1);
    for (i, part) in parts.into_iter().enumerate() {
        match part {
            "." if i == last => out.push(""),
            "." => {}
            ".." => {
                out.pop();
                if i == last {
                    out.push("");
                }
            }
            part => out.push(part),
        }
    }
    format!("/{}{query}", out.join("/"))
}
