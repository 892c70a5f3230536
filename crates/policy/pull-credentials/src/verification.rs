//! May a pod use an image that is here, or must it show its credentials to the registry first (pod-lifecycle 5.4)?

use std::collections::BTreeSet;

use crate::keyring::{Credential, Source};
use crate::records::{Access, PullRecord, access_by};

#[cfg(test)]
mod tests;

/// Records do not grow further by pods that only matched.
const SECRETS_MAX: usize = 100;

/// `imagePullCredentialsVerificationPolicy`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Policy {
    /// What is here may be used.
    NeverVerify,
    /// Images that this node did not pull may be used.
    #[default]
    NeverVerifyPreloaded,
    /// Images of the list may be used.
    NeverVerifyAllowlisted(Allowlist),
    /// Nothing may be used without a check.
    AlwaysVerify,
}

/// `preloadedImagesVerificationAllowlist`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Allowlist {
    whole: BTreeSet<String>,
    prefixes: Vec<String>,
}

/// What is wrong with the policy of a configuration.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PolicyError {
    /// No such policy.
    #[error("unknown image pull credential verification policy: {0}")]
    Unknown(String),
    /// Spaces around a pattern.
    #[error("leading/trailing spaces are not allowed: {0}")]
    Spaces(String),
    /// Nothing to compare with.
    #[error("the supplied pattern is too short: {0}")]
    TooShort(String),
    /// A wildcard elsewhere than at the end.
    #[error("not a valid wildcard pattern, only patterns ending with '/*' are allowed: {0}")]
    Wildcard(String),
    /// Only a wildcard.
    #[error("at least registry hostname is required")]
    NoHost,
    /// Not the whole name of a repository.
    #[error("neither tag nor digest is accepted in an image reference: {0}")]
    NotARepository(String),
    /// Not a name at all.
    #[error("failed to parse as an image name: {0}")]
    Name(String),
}

/// Whole name of the repository of an image, or why the text is no image.
pub type RepositoryOf = fn(&str) -> Result<String, String>;

impl Policy {
    /// From the two fields of a configuration; an empty word is the default. `repository` answers with the whole name of
    /// an image's repository, as `image_pull::reference::repository` does.
    ///
    /// # Errors
    /// See [`PolicyError`].
    pub fn parse(word: &str, allowlist: &[String], repository: RepositoryOf) -> Result<Self, PolicyError> {
        match word {
            "" | "NeverVerifyPreloadedImages" => Ok(Self::NeverVerifyPreloaded),
            "NeverVerify" => Ok(Self::NeverVerify),
            "AlwaysVerify" => Ok(Self::AlwaysVerify),
            "NeverVerifyAllowlistedImages" => Allowlist::parse(allowlist, repository).map(Self::NeverVerifyAllowlisted),
            other => Err(PolicyError::Unknown(other.to_owned())),
        }
    }

    /// Whether pods must be checked for an image of this repository.
    #[must_use]
    pub fn verifies(&self, repository: &str, pulled_here: bool) -> bool {
        match self {
            Self::NeverVerify => false,
            Self::NeverVerifyPreloaded => pulled_here,
            Self::NeverVerifyAllowlisted(list) => !list.has(repository),
            Self::AlwaysVerify => true,
        }
    }
}

impl Allowlist {
    fn parse(patterns: &[String], repository: RepositoryOf) -> Result<Self, PolicyError> {
        let mut out = Self::default();
        for pattern in patterns {
            if pattern.trim() != pattern {
                return Err(PolicyError::Spaces(pattern.clone()));
            }
            let prefix = pattern.strip_suffix('*').filter(|p| p.ends_with('/'));
            let rest = prefix.unwrap_or(pattern);
            if rest.is_empty() {
                return Err(PolicyError::TooShort(pattern.clone()));
            }
            if rest.contains('*') {
                return Err(PolicyError::Wildcard(pattern.clone()));
            }
            match prefix {
                Some("/") => return Err(PolicyError::NoHost),
                Some(prefix) => out.prefixes.push(prefix.to_owned()),
                None if repository(rest).map_err(PolicyError::Name)? != rest => {
                    return Err(PolicyError::NotARepository(pattern.clone()));
                }
                None => drop(out.whole.insert(rest.to_owned())),
            }
        }
        Ok(out)
    }

    fn has(&self, repository: &str) -> bool {
        self.whole.contains(repository) || self.prefixes.iter().any(|p| repository.starts_with(p))
    }
}

/// What the files say of an image that is here.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Trace {
    /// Nothing.
    None,
    /// A pull began.
    Intent,
    /// A pull ended well.
    Record(PullRecord),
    /// They cannot be read.
    Unreadable,
}

/// What follows for a pod.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Decision {
    /// It may use the image; with what to add to the record, if anything.
    Use(Option<Access>),
    /// It must pull.
    Pull,
}

/// Whether a pod with these credentials (those that a pull would try) may use an image of `repository` that is here.
#[must_use]
pub fn decide(policy: &Policy, repository: &str, trace: &Trace, credentials: &[Credential]) -> Decision {
    let record = match trace {
        // Whoever broke the files gains nothing by it.
        Trace::Unreadable => return Decision::Pull,
        Trace::Record(record) => Some(record),
        Trace::None | Trace::Intent => None,
    };
    if !policy.verifies(repository, *trace != Trace::None) {
        return Decision::Use(None);
    }
    let Some(access) = record.and_then(|r| r.access.get(repository)) else { return Decision::Pull };
    if access.node_pods_accessible {
        return Decision::Use(None);
    }
    for c in credentials {
        match &c.source {
            Source::Node => {}
            Source::ServiceAccount { .. } => {
                if access_by(Some(c))
                    .kubernetes_service_accounts
                    .iter()
                    .all(|a| access.kubernetes_service_accounts.contains(a))
                {
                    return Decision::Use(None);
                }
            }
            Source::Secret { uid, namespace, name } => {
                let hash = c.hash();
                let same_hash = |s: &&crate::records::SecretAccess| s.credential_hash == hash;
                let same_name =
                    |s: &&crate::records::SecretAccess| (&s.uid, &s.namespace, &s.name) == (uid, namespace, name);
                let known = access.kubernetes_secrets.iter();
                if known.clone().any(|s| same_hash(&s) && same_name(&s)) {
                    return Decision::Use(None);
                }
                if known.clone().any(|s| same_hash(&s) || same_name(&s)) {
                    let room = access.kubernetes_secrets.len() < SECRETS_MAX;
                    return Decision::Use(room.then(|| access_by(Some(c))));
                }
            }
        }
    }
    Decision::Pull
}
