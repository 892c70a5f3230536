//! What the actor knows of each certificate.

use std::sync::Arc;

use actor::SpawnHandle;
use cert_rotation::{Facts, Files, Template, rotation};
use contract::certificates::KeyPair;

use crate::store::StoredPair;

/// Which certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Client,
    Serving,
}

/// What is under way.
#[derive(Debug, Default)]
pub(crate) enum Phase {
    /// Files are being read.
    #[default]
    Loading,
    /// Nothing.
    Idle,
    /// A failed request is tried again later.
    Pausing,
    /// A request.
    Requesting { effect: SpawnHandle, template: Template },
}

/// A certificate in force.
#[derive(Clone, Debug)]
pub(crate) struct Current {
    pub(crate) pair: Arc<KeyPair>,
    pub(crate) facts: Facts,
    pub(crate) deadline_s: i64,
    pub(crate) imported: bool,
}

impl Current {
    pub(crate) fn new(stored: StoredPair, chance: f64, imported: bool) -> Self {
        let deadline_s = rotation::deadline_s(&stored.facts, chance);
        Self { pair: Arc::new(stored.pair), facts: stored.facts, deadline_s, imported }
    }

    fn in_force(&self) -> rotation::InForce<'_> {
        rotation::InForce { facts: &self.facts, deadline_s: self.deadline_s, imported: self.imported }
    }
}

/// One certificate that is kept by requests.
#[derive(Debug)]
pub(crate) struct Rotated {
    pub(crate) files: Files,
    /// Asked for once only.
    pub(crate) once: bool,
    pub(crate) phase: Phase,
    pub(crate) current: Option<Current>,
    /// Failures in a row.
    pub(crate) failures: u32,
    pub(crate) error: Option<String>,
}

impl Rotated {
    pub(crate) fn new(files: Files, once: bool) -> Self {
        Self { files, once, phase: Phase::Loading, current: None, failures: 0, error: None }
    }

    /// Whether there is a certificate that is not expired.
    pub(crate) fn is_valid(&self, now_s: i64) -> bool {
        self.current.as_ref().is_some_and(|c| !c.facts.is_expired(now_s))
    }

    /// Why a request is needed now.
    pub(crate) fn due(&self, now_s: i64, template: &Template) -> Option<String> {
        if self.once && self.current.is_some() {
            return None;
        }
        rotation::due(now_s, self.current.as_ref().map(Current::in_force), template)
    }

    pub(crate) fn pair(&self) -> Option<Arc<KeyPair>> {
        self.current.as_ref().map(|c| c.pair.clone())
    }
}

/// The serving certificate that no request is made for (configured files, self-signed), as it was read last.
#[derive(Debug, Default)]
pub(crate) struct Unrotated {
    pub pair: Option<Arc<KeyPair>>,
    /// Why it could not be read.
    pub error: Option<String>,
    pub reading: bool,
}
