//! Addresses of unix sockets.

use std::fmt;
use std::path::{Component, Path, PathBuf};

/// A unix socket: `unix:///absolute/path`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnixAddress(PathBuf);

/// Why a text is no address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnixAddressError {
    /// Another transport, or none.
    #[error("only unix sockets are spoken to")]
    Scheme,
    /// Not absolute, or one that leads up.
    #[error("must be an absolute path to a socket without '.' and '..'")]
    Path,
}

impl UnixAddress {
    /// Reads one.
    ///
    /// # Errors
    /// See [`UnixAddressError`].
    pub fn parse(text: &str) -> Result<Self, UnixAddressError> {
        let path = Path::new(text.strip_prefix("unix://").ok_or(UnixAddressError::Scheme)?);
        let plain = path.components().all(|c| matches!(c, Component::RootDir | Component::Normal(_)));
        let clean: PathBuf = path.components().collect();
        let fine = plain && path.is_absolute() && path.file_name().is_some() && clean.as_os_str() == path.as_os_str();
        if fine { Ok(UnixAddress(clean)) } else { Err(UnixAddressError::Path) }
    }

    /// The socket.
    #[must_use]
    pub fn socket(&self) -> &Path {
        &self.0
    }
}

impl fmt::Display for UnixAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unix://{}", self.0.display())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_an_absolute_path_to_a_socket() {
        let address = UnixAddress::parse("unix:///run/acme/probes.sock").unwrap();
        assert_eq!(address.to_string(), "unix:///run/acme/probes.sock");
        for (text, why) in [
            ("", UnixAddressError::Scheme),
            ("/run/a.sock", UnixAddressError::Scheme),
            ("http://1.2.3.4:80", UnixAddressError::Scheme),
            ("unix://", UnixAddressError::Path),
            ("unix:///", UnixAddressError::Path),
            ("unix://run/a.sock", UnixAddressError::Path),
            ("unix:///run/../a.sock", UnixAddressError::Path),
            ("unix:///run/./a.sock", UnixAddressError::Path),
            ("unix:///run//a.sock", UnixAddressError::Path),
            ("unix:///run/a/", UnixAddressError::Path),
        ] {
            assert_eq!(UnixAddress::parse(text), Err(why), "{text:?}");
        }
    }
}
