//! What a kubeconfig comes to.

use std::path::PathBuf;

use hyper::Uri;

use super::exec::ExecPlugin;
use crate::pem::Identity;

/// How to reach an API server, and as whom.
#[derive(Clone, Debug)]
pub struct Kubeconfig {
    /// `https://10.0.0.1:6443`, perhaps with a path.
    pub server: Uri,
    /// Name that the server's certificate must carry, where it is not the host of `server`.
    pub server_name: Option<String>,
    /// Which servers are believed.
    pub trust: Trust,
    /// Client certificate and key.
    pub identity: Option<Identity>,
    /// Token or password.
    pub auth: Auth,
    /// Proxy of this cluster, before those of the environment.
    pub proxy: Option<Uri>,
}

/// Which servers are believed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Those with a certificate of these authorities (PEM).
    Authorities(Vec<u8>),
    /// Those with a certificate of the machine's authorities.
    System,
    /// Any (`insecure-skip-tls-verify`).
    Anyone,
}

/// What goes into the `Authorization` header.
#[derive(Clone, PartialEq, Eq)]
pub enum Auth {
    /// Nothing.
    None,
    /// A fixed token.
    Token(String),
    /// A token in a file that is read again each minute.
    TokenFile(PathBuf),
    /// Name and password.
    Basic(String, String),
    /// Whatever a program says; it may also give a client certificate.
    Exec(Box<ExecPlugin>),
}

impl std::fmt::Debug for Auth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::None => f.write_str("None"),
            Self::Token(_) => f.write_str("Token"),
            Self::TokenFile(path) => f.debug_tuple("TokenFile").field(path).finish(),
            Self::Basic(user, _) => f.debug_tuple("Basic").field(user).finish(),
            Self::Exec(plugin) => f.debug_tuple("Exec").field(&plugin.command).finish(),
        }
    }
}
