//! What a container that the supervisor started leaves: its cgroup.

use std::io;
use std::time::{Duration, Instant};

use crate::cgroups::{Groups, Hierarchy};

/// The cgroup of a container that has ended, or could not be started.
#[derive(Debug)]
pub(super) struct Leaving {
    pub(super) cgroup: String,
    groups: Groups,
    /// When it is tried next, and how long after that again.
    next: Instant,
    pause: Duration,
    /// How long a pod that ends waits for it.
    deadline: Instant,
}

impl Leaving {
    const FIRST: Duration = Duration::from_millis(10);
    const LONGEST: Duration = Duration::from_secs(5);
    const PATIENCE: Duration = Duration::from_secs(3);

    pub(super) fn new(cgroup: String, hierarchies: &[Hierarchy]) -> io::Result<Self> {
        let (now, groups) = (Instant::now(), Groups::of(&cgroup, hierarchies)?);
        Ok(Self { cgroup, groups, next: now, pause: Self::FIRST, deadline: now + Self::PATIENCE })
    }

    /// Removes it, if it is time; answers it if it is there yet.
    ///
    /// # Errors
    /// It does not go, and its pod ends.
    pub(super) fn attempt(mut self, now: Instant, is_ending: bool) -> io::Result<Option<Self>> {
        if !self.wait(now, is_ending).is_zero() {
            return Ok(Some(self));
        }
        match self.groups.remove() {
            Ok(()) => Ok(None),
            Err(e) if is_ending && now >= self.deadline => Err(e),
            Err(_) => {
                self.next = now + self.pause;
                self.pause = (self.pause * 2).min(Self::LONGEST);
                Ok(Some(self))
            }
        }
    }

    /// How long until it is tried again: for the last time at the deadline, once its pod ends.
    pub(super) fn wait(&self, now: Instant, is_ending: bool) -> Duration {
        let next = if is_ending { self.next.min(self.deadline.max(now)) } else { self.next };
        next.saturating_duration_since(now)
    }
}
