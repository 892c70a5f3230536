//! Which credentials to begin with, and the kubeconfig that TLS bootstrap leaves behind (interfaces 3.10).

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use model::k8s_openapi::ByteString;
use serde_json::json;

use crate::kubeconfig::{self, Kubeconfig, Problem, Trust};

/// Which credentials to begin with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// No bootstrap kubeconfig: the kubeconfig as it is.
    Plain,
    /// The kubeconfig is good; the bootstrap one is not needed.
    UseExisting,
    /// Ask for a certificate with the bootstrap kubeconfig.
    Bootstrap {
        /// What is wrong with the kubeconfig.
        why: String,
    },
}

/// Decides at a given time. The kubeconfig is good when it can be read, with all files it names, and no certificate in it
/// is over. One that is not valid yet does no harm: the clock of a machine that has just started is often behind.
#[must_use]
pub fn decide(kubeconfig: &Path, bootstrap: Option<&Path>, now: Timestamp) -> Decision {
    if bootstrap.is_none_or(|path| path.as_os_str().is_empty()) {
        return Decision::Plain;
    }
    match kubeconfig::read_at(kubeconfig, None) {
        Ok(read) => match read.identity.map(|identity| identity.not_after) {
            Some(end) if end < now => Decision::Bootstrap {
                why: format!("{}: the client certificate expired at {end}", kubeconfig.display()),
            },
            _ => Decision::UseExisting,
        },
        Err(problems) => {
            let why = problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
            Decision::Bootstrap { why }
        }
    }
}

/// Where the client certificate of a node lies, with its key in the same file.
#[must_use]
pub fn client_certificate(certificates: &Path) -> PathBuf {
    certificates.join("kubelet-client-current.pem")
}

/// Writes the kubeconfig of the node: the cluster of the bootstrap kubeconfig, and a user whose certificate will lie in
/// the folder `certificates`. The certificate need not be there yet. The file appears whole or not at all, mode 0600.
///
/// # Errors
/// The folder of `path` cannot be written.
pub fn write_kubeconfig(path: &Path, bootstrap: &Kubeconfig, certificates: &Path) -> io::Result<()> {
    let mut cluster = json!({ "server": bootstrap.server.to_string().trim_end_matches('/') });
    match &bootstrap.trust {
        Trust::Authorities(pem) => {
            cluster["certificate-authority-data"] = serde_json::to_value(ByteString(pem.clone())).unwrap_or_default();
        }
        Trust::Anyone => cluster["insecure-skip-tls-verify"] = true.into(),
        Trust::System => {}
    }
    if let Some(name) = &bootstrap.server_name {
        cluster["tls-server-name"] = name.as_str().into();
    }
    if let Some(proxy) = &bootstrap.proxy {
        cluster["proxy-url"] = proxy.to_string().into();
    }
    let pem = client_certificate(certificates);
    let document = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{ "name": "default-cluster", "cluster": cluster }],
        "users": [{ "name": "default-auth", "user": { "client-certificate": pem, "client-key": pem } }],
        "contexts": [{
            "name": "default-context",
            "context": { "cluster": "default-cluster", "namespace": "default", "user": "default-auth" },
        }],
        "current-context": "default-context",
    });
    let text = serde_saphyr::to_string(&document).map_err(io::Error::other)?;
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let name = path.file_name().ok_or_else(|| io::Error::other("the kubeconfig has no file name"))?;
    let fresh = folder.join(format!(".{}.new", name.to_string_lossy()));
    // A leftover of a crash may have another mode.
    let _ = fs::remove_file(&fresh);
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&fresh, path)
}

/// Reads the bootstrap kubeconfig.
///
/// # Errors
/// All mistakes in it.
pub fn read_bootstrap(path: &Path) -> Result<Kubeconfig, Vec<Problem>> {
    kubeconfig::read(path)
}

#[cfg(test)]
mod tests;
