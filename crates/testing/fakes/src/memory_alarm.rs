//! The kernel's word about memory, when the test gives it.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures::StreamExt as _;
use futures::channel::mpsc;
use ports::memory_alarm::{Armed, MemoryAlarm};

/// Tells whoever listens.
#[derive(Debug, Default)]
pub struct FakeMemoryAlarm(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    stalls: Vec<mpsc::UnboundedSender<io::Result<()>>>,
    usage: Vec<(String, u64, mpsc::UnboundedSender<io::Result<()>>)>,
    refuses: bool,
    hangs: bool,
    /// Why nobody can be told of the use of a cgroup.
    fails: Option<io::ErrorKind>,
}

impl FakeMemoryAlarm {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tasks wait for memory.
    pub fn stall(&self) {
        self.state().stalls.retain(|listener| listener.unbounded_send(Ok(())).is_ok());
    }

    /// From now on it can tell nothing.
    pub fn refuse(&self) {
        self.state().refuses = true;
    }

    /// From now on whoever sets an alarm waits for the kernel for ever (on a clock of tests, in blocking work).
    pub fn hang(&self) {
        self.state().hangs = true;
    }

    fn opened(&self) -> MutexGuard<'_, State> {
        if self.state().hangs {
            actor::testing::hang();
        }
        self.state()
    }

    /// From now on nobody can be told of the use of a cgroup, for this reason; `None`: they can again.
    pub fn fail_with(&self, error: Option<io::ErrorKind>) {
        self.state().fails = error;
    }

    /// Cgroups and amounts that somebody waits for now.
    #[must_use]
    pub fn orders(&self) -> Vec<(String, u64)> {
        let mut state = self.state();
        state.usage.retain(|(_, _, listener)| !listener.is_closed());
        state.usage.iter().map(|(cgroup, bytes, _)| (cgroup.clone(), *bytes)).collect()
    }

    /// The cgroup uses so much: whoever waits for less is told.
    pub fn uses(&self, cgroup: &str, bytes: u64) {
        for (of, at, listener) in &self.state().usage {
            if of == cgroup && bytes > *at {
                // Who is gone needs no word.
                listener.unbounded_send(Ok(())).unwrap_or_default();
            }
        }
    }
}

impl MemoryAlarm for FakeMemoryAlarm {
    fn stalls(&self) -> io::Result<Armed> {
        let mut state = self.opened();
        if state.refuses {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let (teller, told) = mpsc::unbounded();
        state.stalls.push(teller);
        Ok(Box::new(|| Ok(told.boxed_local())))
    }

    fn usage_crosses(&self, cgroup: &str, bytes: u64) -> io::Result<Armed> {
        let mut state = self.opened();
        if let Some(error) = state.fails.or(state.refuses.then_some(io::ErrorKind::Unsupported)) {
            return Err(error.into());
        }
        let (teller, told) = mpsc::unbounded();
        state.usage.push((cgroup.to_owned(), bytes, teller));
        Ok(Box::new(|| Ok(told.boxed_local())))
    }
}
