//! The kernel's log as the test has it.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures::StreamExt as _;
use futures::channel::mpsc;
use ports::kernel_log::{KernelLine, KernelLines, KernelLog};

/// Keeps all that was said, and tells whoever opens it from the first line on, as the kernel's own does.
#[derive(Debug, Default)]
pub struct FakeKernelLog(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    said: Vec<KernelLine>,
    readers: Vec<mpsc::UnboundedSender<io::Result<KernelLine>>>,
    refusals: u32,
    opens: u32,
}

impl FakeKernelLog {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The kernel says these lines.
    pub fn say(&self, lines: &[&str]) {
        let mut state = self.state();
        for text in lines {
            let line = KernelLine { number: state.said.len() as u64, text: (*text).to_owned() };
            state.said.push(line.clone());
            state.readers.retain(|reader| reader.unbounded_send(Ok(line.clone())).is_ok());
        }
    }

    /// How many lines it has.
    #[must_use]
    pub fn lines(&self) -> usize {
        self.state().said.len()
    }

    /// Whoever reads gets an error, and nothing more.
    pub fn fail(&self) {
        for reader in self.state().readers.drain(..) {
            // Who is gone needs no error.
            reader.unbounded_send(Err(io::ErrorKind::Other.into())).unwrap_or_default();
        }
    }

    /// The machine boots: lines are numbered anew.
    pub fn boot(&self) {
        *self.state() = State::default();
    }

    /// So many of the next opens fail.
    pub fn refuse(&self, times: u32) {
        self.state().refusals = times;
    }

    /// How often it was opened, or tried to be.
    #[must_use]
    pub fn opens(&self) -> u32 {
        self.state().opens
    }
}

impl KernelLog for FakeKernelLog {
    fn open(&self) -> io::Result<KernelLines> {
        let mut state = self.state();
        state.opens += 1;
        if state.refusals > 0 {
            state.refusals -= 1;
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let (reader, lines) = mpsc::unbounded();
        for line in &state.said {
            reader.unbounded_send(Ok(line.clone())).map_err(io::Error::other)?;
        }
        state.readers.push(reader);
        Ok(lines.boxed_local())
    }
}
