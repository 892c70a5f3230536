//! Where the runtime listens (`containerRuntimeEndpoint`, `imageServiceEndpoint`).

use std::fmt;
use std::path::{Path, PathBuf};

/// Longest path that fits into a unix socket address, without its closing zero.
const MAX_SOCKET_PATH: usize = 107;

/// A unix socket that speaks CRI.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Endpoint {
    path: PathBuf,
    bare: bool,
}

/// Why an endpoint is refused.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum EndpointError {
    /// Nothing given.
    #[error("the runtime endpoint is empty")]
    Empty,
    /// tcp.
    #[error(
        "runtime endpoint {0:?}: tcp is refused, the CRI has no authentication and whoever reaches it is root on this node; \
         use unix:///path/to/socket"
    )]
    Tcp(String),
    /// Any other scheme.
    #[error("runtime endpoint {endpoint:?}: protocol {scheme:?} is not supported, use unix:///path/to/socket")]
    Scheme {
        /// As given.
        endpoint: String,
        /// The scheme in it.
        scheme: String,
    },
    /// unix://host/path and relative paths.
    #[error("runtime endpoint {0:?}: the socket path must be absolute")]
    Relative(String),
    /// Longer than the kernel takes.
    #[error("runtime endpoint {0:?}: a socket path has at most {MAX_SOCKET_PATH} bytes")]
    TooLong(String),
}

impl Endpoint {
    /// Reads an endpoint: `unix:///path`, or a bare absolute path, which is deprecated.
    ///
    /// # Errors
    /// Any other scheme, and paths that cannot be a socket's.
    pub fn parse(text: &str) -> Result<Self, EndpointError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(EndpointError::Empty);
        }
        let (path, bare) = match text.split_once(':') {
            Some(("unix", rest)) => (rest.strip_prefix("//").unwrap_or(rest), false),
            Some(("tcp", _)) => return Err(EndpointError::Tcp(text.to_owned())),
            Some((scheme, _)) if is_scheme(scheme) => {
                return Err(EndpointError::Scheme { endpoint: text.to_owned(), scheme: scheme.to_owned() });
            }
            _ => (text, true),
        };
        if !path.starts_with('/') {
            return Err(EndpointError::Relative(text.to_owned()));
        }
        if path.len() > MAX_SOCKET_PATH {
            return Err(EndpointError::TooLong(text.to_owned()));
        }
        Ok(Self { path: PathBuf::from(path), bare })
    }

    /// The socket.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What to tell an operator who left the scheme out.
    #[must_use]
    pub fn deprecation(&self) -> Option<String> {
        self.bare.then(|| format!("endpoint without a scheme is deprecated, write {self}"))
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unix://{}", self.path.display())
    }
}

fn is_scheme(s: &str) -> bool {
    s.starts_with(|c: char| c.is_ascii_alphabetic())
        && s.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
}

#[cfg(test)]
mod tests;
