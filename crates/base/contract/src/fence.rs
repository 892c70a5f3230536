//! Who may post now: each role has one fence, and only the newest token passes it. A role with an actor per pod has a newest
//! token per pod.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockWriteGuard};

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
    role: Option<Epoch>,
    /// Tokens of a family of actors, by member.
    members: BTreeMap<Arc<str>, Epoch>,
}

impl Newest {
    fn of(&self, member: Option<&Arc<str>>) -> Option<Epoch> {
        member.map_or(self.role, |m| self.members.get(m).copied())
    }

    fn next(&mut self) -> u64 {
        self.issued += 1;
        self.issued
    }

    fn set(&mut self, member: Option<&Arc<str>>, epoch: Epoch) {
        match member {
            Some(member) => drop(self.members.insert(member.clone(), epoch)),
            None => self.role = Some(epoch),
        }
    }
}

/// Numbers of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Epoch {
    /// That of the first token of its line: of the one with which this actor took the place. Its later generations succeed
    /// each other; once another actor has taken the place, none of them does.
    line: u64,
    /// Its own.
    token: u64,
}

/// A right to post, until the next one is issued.
#[derive(Clone)]
pub struct FenceToken {
    fence: Fence,
    /// Of a role with an actor per pod: which one.
    member: Option<Arc<str>>,
    epoch: Epoch,
}

impl fmt::Debug for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fence({}, {} refused)", self.0.role, self.refused())
    }
}

impl fmt::Debug for FenceToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FenceToken({} {})", self.fence.0.role, self.epoch.token)
    }
}

impl Fence {
    pub(crate) fn new(role: &'static str, recorder: Arc<ArcSwapOption<Box<dyn Recorder>>>) -> Self {
        Fence(Arc::new(Inner { role, newest: RwLock::default(), refused: AtomicU64::new(0), recorder }))
    }

    /// A new right to post, for an actor that takes the place of the role's one actor or of one member of its family. Whoever
    /// had the place posts no more from now on, and neither do generations that follow it.
    #[must_use]
    pub fn issue(&self, member: Option<Arc<str>>) -> FenceToken {
        let mut newest = self.newest();
        let token = newest.next();
        let epoch = Epoch { line: token, token };
        newest.set(member.as_ref(), epoch);
        FenceToken { fence: self.clone(), member, epoch }
    }

    fn newest(&self) -> RwLockWriteGuard<'_, Newest> {
        self.0.newest.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the right to post of a member of the family, and of its later generations.
    pub(crate) fn revoke(&self, member: &str) {
        self.newest().members.remove(member);
    }

    /// Tells the recorder of a post, if there is one; before readers see it, so that what they do about it is noted later.
    pub(crate) fn record(&self, what: &'static str, body: impl FnOnce() -> String) {
        if let Some(recorder) = self.0.recorder.load().as_ref() {
            recorder.entry(&Entry { from: self.0.role, to: "", what, body: body() });
        }
    }

    /// Posts that were refused as another token was the newest.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.0.refused.load(Ordering::Relaxed)
    }
}

impl FenceToken {
    /// Whether this token passes.
    #[must_use]
    pub fn is_current(&self) -> bool {
        self.fence.0.newest.read().unwrap_or_else(PoisonError::into_inner).of(self.member.as_ref()) == Some(self.epoch)
    }

    /// Does `post` if this token passes; else notes the refusal, and counts and tells it where another has the place now. Answers
    /// whether it was done.
    pub(crate) fn pass(&self, what: &'static str, post: impl FnOnce(&Fence)) -> bool {
        let inner = &self.fence.0;
        let newest = inner.newest.read().unwrap_or_else(PoisonError::into_inner);
        if newest.of(self.member.as_ref()) == Some(self.epoch) {
            post(&self.fence);
            return true;
        }
        self.fence.record(what, || "refused".to_owned());
        let member = self.member.as_deref();
        if newest.of(self.member.as_ref()).is_some() {
            inner.refused.fetch_add(1, Ordering::Relaxed);
            tracing::warn!(role = inner.role, member, what, "a post of a former generation is refused");
        } else {
            // Of a member that has done its work, such as the worker of a pod that is gone: its last words.
            tracing::debug!(role = inner.role, member, what, "a post after the end is refused");
        }
        false
    }

    /// The right to post of the next generation, which ends this one. When another actor has taken the place, or after
    /// [`Fence::revoke`], there is none: the token never passes.
    pub(crate) fn succeed(&self) -> FenceToken {
        let mut newest = self.fence.newest();
        let epoch = Epoch { line: self.epoch.line, token: newest.next() };
        if newest.of(self.member.as_ref()).is_some_and(|now| now.line == epoch.line) {
            newest.set(self.member.as_ref(), epoch);
        }
        FenceToken { fence: self.fence.clone(), member: self.member.clone(), epoch }
    }
}
