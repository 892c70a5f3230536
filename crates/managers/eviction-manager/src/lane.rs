//! Two lanes, in each of which one pass follows another: memory can be gone in a second, and so nobody waits for a disk who looks at it.

use std::collections::BTreeSet;

use eviction::{Resource, Signal};
use model::PodUid;

/// What is looked at together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    /// Memory: the kernel's own files, which wait for nobody.
    Memory,
    /// Disks and processes, and what pods allow themselves of a disk.
    Others,
}

impl Lane {
    /// In which a signal is looked at.
    pub(crate) fn of(signal: Signal) -> Self {
        match signal.resource() {
            Resource::Memory => Lane::Memory,
            _ => Lane::Others,
        }
    }
}

/// Where a lane is.
#[derive(Debug, Default)]
pub(crate) struct Pass {
    /// One is under way.
    running: bool,
    /// Somebody wants another look meanwhile.
    again: bool,
    /// Number of the timer that counts: an older one is passed over.
    timer: u64,
    /// Pods that it ended and that are not gone yet, as long as they take no longer than they may.
    victims: BTreeSet<PodUid>,
}

impl Pass {
    pub(crate) fn is_running(&self) -> bool {
        self.running
    }

    /// A pass begins; `false`: one is under way, and another one follows it.
    pub(crate) fn begin(&mut self) -> bool {
        let before = std::mem::replace(&mut self.running, true);
        self.again |= before;
        !before
    }

    /// It is over. Answers whether another one is to follow at once.
    pub(crate) fn end(&mut self) -> bool {
        self.running = false;
        self.victims.clear();
        std::mem::take(&mut self.again)
    }

    /// A timer is set, and any before it does not count any more.
    pub(crate) fn set_timer(&mut self) -> u64 {
        self.timer += 1;
        self.timer
    }

    pub(crate) fn counts(&self, timer: u64) -> bool {
        self.timer == timer
    }

    pub(crate) fn victims(&self) -> &BTreeSet<PodUid> {
        &self.victims
    }

    pub(crate) fn add_victim(&mut self, uid: PodUid) {
        self.victims.insert(uid);
    }

    /// They take longer than they may: nobody counts on their end any more.
    pub(crate) fn forget_victims(&mut self) {
        self.victims.clear();
    }
}
