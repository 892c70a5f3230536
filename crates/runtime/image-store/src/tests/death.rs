//! A process that dies between two changes of the disk: from then on none of its changes happen, its clean-up included.

use std::cell::Cell;
use std::io;

thread_local! {
    static LEFT: Cell<Option<u32>> = const { Cell::new(None) };
}

/// Runs work that dies before its change number `steps`; `true`: it did not come to that.
pub(crate) fn after(steps: u32, work: impl FnOnce()) -> bool {
    LEFT.set(Some(steps));
    work();
    LEFT.take() != Some(0)
}

/// Called before each change of the disk.
pub(crate) fn step() -> io::Result<()> {
    match LEFT.get() {
        Some(0) => Err(io::Error::other("this process is dead")),
        Some(left) => {
            LEFT.set(Some(left - 1));
            Ok(())
        }
        None => Ok(()),
    }
}
