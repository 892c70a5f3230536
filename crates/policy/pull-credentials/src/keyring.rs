//! Credentials of several places, in the order in which a pull tries them (pod-lifecycle 5.3).

use std::collections::BTreeMap;

use model::core::Secret;
use model::go_json;
use sha2::{Digest, Sha256};

use crate::docker_config::{Auth, AuthMap, CredentialError, parse_config_json, parse_dockercfg};
use crate::location::matches;

#[cfg(test)]
mod tests;

/// Key under which credentials of Docker Hub are found.
const HUB: &str = "index.docker.io";

/// Where a credential comes from.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Source {
    /// The node: every pod on it may use what was pulled with it.
    Node,
    /// A pull secret of the pod.
    Secret {
        /// UID.
        uid: String,
        /// Namespace.
        namespace: String,
        /// Name.
        name: String,
    },
    /// A plugin that was given a token of the pod's service account.
    ServiceAccount {
        /// UID.
        uid: String,
        /// Namespace.
        namespace: String,
        /// Name.
        name: String,
    },
}

/// One thing to try.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Credential {
    /// What to send.
    pub auth: Auth,
    /// Where it comes from.
    pub source: Source,
}

impl Credential {
    /// Hash that pull records compare: SHA-256 over the JSON that a kubelet writes of the credential.
    #[must_use]
    pub fn hash(&self) -> String {
        let Auth { username, password, email, identity_token } = &self.auth;
        let fields =
            [("username", username), ("password", password), ("email", email), ("identitytoken", identity_token)];
        let set = fields.iter().filter(|(_, v)| !v.is_empty()).map(|(k, v)| {
            let mut field = format!("\"{k}\":");
            go_json::push_string(&mut field, v);
            field
        });
        let text = format!("{{{}}}", set.collect::<Vec<_>>().join(","));
        hex(&Sha256::digest(text.as_bytes()))
    }
}

/// Lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// Credentials by location, more specific ones first.
#[derive(Clone, Default, Debug)]
pub struct Keyring {
    by_location: BTreeMap<String, Vec<Credential>>,
}

impl Keyring {
    /// Adds credentials of one place. Later ones are tried after earlier ones of the same location.
    pub fn add(&mut self, auths: AuthMap, source: &Source) {
        for (registry, auth) in auths {
            let credential = Credential { auth, source: source.clone() };
            self.by_location.entry(location(&registry)).or_default().push(credential);
        }
    }

    /// Credentials for a repository (`registry.io/team/app`, without tag), in the order of trying.
    #[must_use]
    pub fn lookup(&self, repository: &str) -> Vec<Credential> {
        let fitting = self.by_location.iter().rev().filter(|(location, _)| matches(location, repository));
        let found: Vec<_> = fitting.flat_map(|(_, list)| list.clone()).collect();
        if found.is_empty() && is_hub(repository) {
            return self.by_location.get(HUB).cloned().unwrap_or_default();
        }
        found
    }
}

/// Location of a registry as clients write it: without scheme, and the paths of the two API versions are the host.
fn location(registry: &str) -> String {
    let rest = registry.strip_prefix("https://").or_else(|| registry.strip_prefix("http://")).unwrap_or(registry);
    let rest = rest.split(['?', '#']).next().unwrap_or(rest);
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let path = if path.starts_with("/v1/") || path.starts_with("/v2/") { &path[3..] } else { path };
    if path == "/" { host.to_owned() } else { format!("{host}{path}") }
}

/// Images of Docker Hub: no registry, or one of its own names.
fn is_hub(image: &str) -> bool {
    match image.split_once('/') {
        None => !image.is_empty(),
        Some(("docker.io" | "index.docker.io", _)) => true,
        Some((first, _)) => !first.is_empty() && !first.contains(['.', ':']),
    }
}

/// Credentials of a pod's pull secrets. Secrets of other types count as having none.
///
/// # Errors
/// A secret of the right type is malformed.
pub fn keyring_of_secrets<'a>(secrets: impl IntoIterator<Item = &'a Secret>) -> Result<Keyring, CredentialError> {
    let mut keyring = Keyring::default();
    for secret in secrets {
        let content = |key: &str| secret.data.as_ref()?.get(key).map(|v| v.0.as_slice()).filter(|v| !v.is_empty());
        let auths = match secret.type_.as_deref() {
            Some("kubernetes.io/dockerconfigjson") => content(".dockerconfigjson").map(parse_config_json),
            Some("kubernetes.io/dockercfg") => content(".dockercfg").map(parse_dockercfg),
            _ => None,
        };
        let m = &secret.metadata;
        let source = Source::Secret {
            uid: m.uid.clone().unwrap_or_default(),
            namespace: m.namespace.clone().unwrap_or_default(),
            name: m.name.clone().unwrap_or_default(),
        };
        if let Some(auths) = auths {
            keyring.add(auths?, &source);
        }
    }
    Ok(keyring)
}
