//! The container's cgroups, which its first process is moved into while it makes mounts.

use std::io;

use rustix::thread::UnshareFlags;

use crate::helper::Settled;
use crate::hold;

/// Its cgroups, which it is in once that was waited for.
pub(super) struct Joined {
    /// `None`: it was.
    settled: Option<Settled>,
    /// Whether they are the top of all cgroups for it.
    is_top: bool,
}

impl Joined {
    pub(super) fn new(settled: Settled, is_top: bool) -> Self {
        Self { settled: Some(settled), is_top }
    }

    /// Waits until it is in them.
    pub(super) fn wait(&mut self) -> io::Result<()> {
        let Some(settled) = self.settled.take() else { return Ok(()) };
        settled.wait()?;
        if self.is_top { hold::leave(UnshareFlags::NEWCGROUP) } else { Ok(()) }
    }
}
