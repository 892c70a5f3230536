//! The container's cgroups, which its first process is in before what it mounts shows them.

use std::io;

use rustix::thread::UnshareFlags;

use crate::hold;
use crate::next::Gate;

/// Its cgroups, which it is in once it has entered them.
pub(super) struct Joined {
    /// `None`: it is.
    gate: Option<Gate>,
    /// Whether they are the top of all cgroups for it.
    is_top: bool,
}

impl Joined {
    pub(super) fn new(gate: Gate, is_top: bool) -> Self {
        Self { gate: Some(gate), is_top }
    }

    /// Enters them.
    pub(super) fn enter(&mut self) -> io::Result<()> {
        let Some(gate) = self.gate.take() else { return Ok(()) };
        gate.pass()?;
        if self.is_top { hold::leave(UnshareFlags::NEWCGROUP) } else { Ok(()) }
    }
}
