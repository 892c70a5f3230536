//! Names of the files that a certificate is kept in.

use std::path::{Path, PathBuf};

/// Files of one certificate in the certificate folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    dir: PathBuf,
    prefix: &'static str,
}

impl Files {
    /// Of the client certificate.
    #[must_use]
    pub fn client(dir: &Path) -> Self {
        Self { dir: dir.to_owned(), prefix: "kubelet-client" }
    }

    /// Of the serving certificate.
    #[must_use]
    pub fn serving(dir: &Path) -> Self {
        Self { dir: dir.to_owned(), prefix: "kubelet-server" }
    }

    fn file(&self, rest: &str) -> PathBuf {
        self.dir.join(format!("{}{rest}", self.prefix))
    }

    /// The folder.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Link to the pair in force.
    #[must_use]
    pub fn current(&self) -> PathBuf {
        self.file("-current.pem")
    }

    /// The next link, before it takes the place of `current`.
    #[must_use]
    pub fn updated(&self) -> PathBuf {
        self.file("-updated.pem")
    }

    /// Certificate of an older layout.
    #[must_use]
    pub fn old_certificate(&self) -> PathBuf {
        self.file(".crt")
    }

    /// Key of an older layout.
    #[must_use]
    pub fn old_key(&self) -> PathBuf {
        self.file(".key")
    }

    /// Key of a bootstrap without rotation, while its request is open.
    #[must_use]
    pub fn bootstrap_key(&self) -> PathBuf {
        self.file(".key.tmp")
    }

    /// Key and name of the open request, for the next life of the daemon.
    #[must_use]
    pub fn pending(&self) -> PathBuf {
        self.file("-pending.json")
    }

    /// The pair that was stored at this moment (UTC).
    #[must_use]
    pub fn dated(&self, now_s: i64) -> PathBuf {
        let at = jiff::Timestamp::from_second(now_s).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
        self.file(&format!("-{}.pem", at.strftime("%Y-%m-%d-%H-%M-%S")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_a_kubelet() {
        let (client, serving) = (Files::client(Path::new("/pki")), Files::serving(Path::new("/pki")));
        assert_eq!(client.dated(1_795_178_709), Path::new("/pki/kubelet-client-2026-11-20-12-45-09.pem"));
        assert_eq!(client.current(), Path::new("/pki/kubelet-client-current.pem"));
        assert_eq!(client.updated(), Path::new("/pki/kubelet-client-updated.pem"));
        assert_eq!(client.old_certificate(), Path::new("/pki/kubelet-client.crt"));
        assert_eq!(client.bootstrap_key(), Path::new("/pki/kubelet-client.key.tmp"));
        assert_eq!(serving.current(), Path::new("/pki/kubelet-server-current.pem"));
    }
}
