//! A host that may have an image.

use std::path::PathBuf;

use model::url::Url;

/// Files for TLS with a host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TlsFiles {
    /// Authorities beside those of the machine.
    pub ca: Vec<PathBuf>,
    /// What this side shows: a certificate, and its key where that is another file.
    pub client: Option<(PathBuf, Option<PathBuf>)>,
    /// Believe anybody.
    pub skip_verify: bool,
}

/// A registry or a mirror of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Where its API begins: `https://registry-1.docker.io/v2`.
    pub root: Url,
    /// May say which image a tag means.
    pub resolves: bool,
    /// May give content.
    pub pulls: bool,
    /// For TLS.
    pub tls: TlsFiles,
    /// Sent with each request.
    pub headers: Vec<(String, String)>,
    /// The registry it stands for, where it is a mirror: told as `ns`.
    pub mirror_of: Option<String>,
}

impl Endpoint {
    /// Where something of a repository is: `manifests/latest`.
    pub(crate) fn url(&self, repository: &str, what: &str) -> Url {
        let ns = self.mirror_of.as_ref().map(|host| format!("?ns={}", model::url::escape(host))).unwrap_or_default();
        let base = self.root.path.trim_end_matches('/');
        Url { path: format!("{base}/{repository}/{what}{ns}"), ..self.root.clone() }
    }

    /// Its name for people: host and port.
    pub(crate) fn name(&self) -> String {
        self.root.host_header()
    }
}

/// Whether two URLs are of one server, which may know the same secrets.
pub(crate) fn same_server(a: &Url, b: &Url) -> bool {
    a.tls == b.tls && a.host.eq_ignore_ascii_case(&b.host) && a.port() == b.port()
}
