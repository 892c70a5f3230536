//! Who may post now: each role has one fence, and only the newest token passes it. A role with an actor per pod has a newest
//! token per pod.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use arc_swap::ArcSwapOption;

use crate::record::{Entry, Recorder};

/// The fence of one role. Cheap to clone.
#[derive(Clone)]
pub struct Fence(Arc<Inner>);

struct Inner {
    role: &'static str,
    /// Held for reading while a post is under way, so that no post of an older token follows the issue of a newer one.
    newest: RwLock<Newest>,
    refused: AtomicU64,
    recorder: Arc<ArcSwapOption<Box<dyn Recorder>>>,
}

/// Which tokens pass.
#[derive(Default)]
struct Newest {
    /// Number of the last token.
    issued: u64,
    /// Token of the role's one actor.
    role: u64,
    /// Tokens of a family of actors, by member.
    members: BTreeMap<Arc<str>, u64>,
}

impl Newest {
    fn of(&self, member: Option<&Arc<str>>) -> u64 {
        member.map_or(self.role, |m| self.members.get(m).copied().unwrap_or(0))
    }
}

/// A right to post, until the next one is issued.
#[derive(Clone)]
pub struct FenceToken {
    fence: Fence,
    /// Of a role with an actor per pod: which one.
    member: Option<Arc<str>>,
    epoch: u64,
}

impl fmt::Debug for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fence({}, {} refused)", self.0.role, self.refused())
    }
}

impl fmt::Debug for FenceToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FenceToken({} {})", self.fence.0.role, self.epoch)
    }
}

impl Fence {
    pub(crate) fn new(role: &'static str, recorder: Arc<ArcSwapOption<Box<dyn Recorder>>>) -> Self {
        Fence(Arc::new(Inner { role, newest: RwLock::default(), refused: AtomicU64::new(0), recorder }))
    }

    /// A new right to post, for the role's one actor or one member of its family. The earlier one ends now.
    #[must_use]
    pub fn issue(&self, member: Option<Arc<str>>) -> FenceToken {
        self.issue_if(member, |_| true)
    }

    /// A next token; it passes if `may` says so of those that pass now.
    fn issue_if(&self, member: Option<Arc<str>>, may: impl FnOnce(&Newest) -> bool) -> FenceToken {
        let mut newest = self.0.newest.write().unwrap_or_else(PoisonError::into_inner);
        newest.issued += 1;
        let epoch = newest.issued;
        match &member {
            _ if !may(&newest) => {}
            Some(member) => drop(newest.members.insert(member.clone(), epoch)),
            None => newest.role = epoch,
        }
        FenceToken { fence: self.clone(), member, epoch }
    }

    /// Ends the right to post of a member of the family, and of its later generations.
    pub(crate) fn revoke(&self, member: &str) {
        self.0.newest.write().unwrap_or_else(PoisonError::into_inner).members.remove(member);
    }

    /// Posts that were refused as their token was not the newest.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.0.refused.load(Ordering::Relaxed)
    }
}

impl FenceToken {
    /// Whether this token passes.
    #[must_use]
    pub fn is_current(&self) -> bool {
        self.fence.0.newest.read().unwrap_or_else(PoisonError::into_inner).of(self.member.as_ref()) == self.epoch
    }

    /// Does `post` if this token passes; else counts and tells it, and does nothing. Answers whether it was done.
    pub(crate) fn pass(&self, what: &'static str, post: impl FnOnce()) -> bool {
        let inner = &self.fence.0;
        let newest = inner.newest.read().unwrap_or_else(PoisonError::into_inner);
        if newest.of(self.member.as_ref()) == self.epoch {
            post();
            return true;
        }
        inner.refused.fetch_add(1, Ordering::Relaxed);
        tracing::warn!(
            role = inner.role,
            member = self.member.as_deref(),
            what,
            "a post of a former generation is refused"
        );
        false
    }

    /// A right to post that ends this one. After [`Fence::revoke`] there is no successor: the
    /// token never passes.
    pub(crate) fn succeed(&self) -> FenceToken {
        let member = self.member.clone();
        self.fence.issue_if(member, |newest| self.member.as_ref().is_none_or(|m| newest.members.contains_key(m)))
    }

    /// Tells the recorder, if there is one.
    pub(crate) fn record(&self, what: &'static str, body: impl FnOnce() -> String) {
        if let Some(recorder) = self.fence.0.recorder.load().as_ref() {
            recorder.entry(&Entry { from: self.fence.0.role, to: "", what, body: body() });
        }
    }
}
