//! Users.

use std::collections::BTreeMap;

use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer;

#[cfg(test)]
mod tests;

const ANONYMOUS: &str = "system:anonymous";
const AUTHENTICATED: &str = "system:authenticated";
const UNAUTHENTICATED: &str = "system:unauthenticated";

/// Who asks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// Name.
    pub name: String,
    /// UID; empty: none.
    pub uid: String,
    /// Groups.
    pub groups: Vec<String>,
    /// Anything else that the authenticator knows.
    pub extra: BTreeMap<String, Vec<String>>,
}

/// A certificate that names no user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadSubject {
    /// Not a certificate.
    #[error("certificate cannot be read: {0}")]
    Unreadable(String),
    /// The subject has no common name.
    #[error("certificate has no common name")]
    NoName,
}

impl User {
    /// Who shows nothing.
    #[must_use]
    pub fn anonymous() -> Self {
        Self { name: ANONYMOUS.to_owned(), groups: vec![UNAUTHENTICATED.to_owned()], ..Self::default() }
    }

    /// Whether this is nobody in particular.
    #[must_use]
    pub fn is_anonymous(&self) -> bool {
        self.name == ANONYMOUS
    }

    /// The user whom a certificate (DER) names: common name, and each organization a group. The certificate must have been
    /// verified before.
    ///
    /// # Errors
    /// It cannot be read, or names nobody.
    pub fn of_certificate(der: &[u8]) -> Result<Self, BadSubject> {
        let (_, certificate) = X509Certificate::from_der(der).map_err(|e| BadSubject::Unreadable(e.to_string()))?;
        let subject = certificate.subject();
        // The last one counts where there are more.
        let name = subject.iter_common_name().filter_map(|n| n.as_str().ok()).last().unwrap_or_default();
        if name.is_empty() {
            return Err(BadSubject::NoName);
        }
        let groups = subject.iter_organization().filter_map(|o| o.as_str().ok()).map(str::to_owned).collect();
        Ok(Self { name: name.to_owned(), groups, ..Self::default() })
    }

    /// Adds `system:authenticated`, unless the user is anonymous or has such a group already.
    #[must_use]
    pub fn authenticated(mut self) -> Self {
        let has = self.groups.iter().any(|g| g == AUTHENTICATED || g == UNAUTHENTICATED);
        if !has && !self.is_anonymous() {
            self.groups.push(AUTHENTICATED.to_owned());
        }
        self
    }
}
