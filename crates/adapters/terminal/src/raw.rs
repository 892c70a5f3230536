//! Raw mode, given back whatever happens.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};

struct Saved {
    id: u64,
    terminal: OwnedFd,
    before: Termios,
}

/// Terminals that are changed now. Process-wide, so that a panic of any thread and a signal can put them back.
static SAVED: Mutex<(u64, Vec<Saved>)> = Mutex::new((0, Vec::new()));
static HOOK: Once = Once::new();

fn saved() -> MutexGuard<'static, (u64, Vec<Saved>)> {
    SAVED.lock().unwrap_or_else(PoisonError::into_inner)
}

fn put_back(saved: &Saved) {
    let _gone = tcsetattr(&saved.terminal, OptionalActions::Now, &saved.before);
}

/// A terminal in raw mode: every key arrives at once and as it is, nothing is echoed, Ctrl-C is a byte. Dropping it puts the
/// terminal back; so does a panic, before its message is printed.
#[derive(Debug)]
pub struct Raw {
    id: u64,
}

impl Raw {
    /// Sets the terminal behind a descriptor raw.
    ///
    /// # Errors
    /// It is no terminal, or does not take the mode.
    pub fn enter(terminal: impl AsFd) -> io::Result<Self> {
        let terminal = terminal.as_fd().try_clone_to_owned()?;
        let before = tcgetattr(&terminal)?;
        let mut raw = before.clone();
        raw.make_raw();
        HOOK.call_once(|| {
            let earlier = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |info| {
                restore_all();
                earlier(info);
            }));
        });
        let mut all = saved();
        all.0 += 1;
        let id = all.0;
        tcsetattr(&terminal, OptionalActions::Now, &raw)?;
        all.1.push(Saved { id, terminal, before });
        Ok(Self { id })
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        let mut all = saved();
        if let Some(at) = all.1.iter().position(|s| s.id == self.id) {
            put_back(&all.1.remove(at));
        }
    }
}

/// Puts every terminal back, for a panic that may run no destructors.
fn restore_all() {
    for mine in saved().1.drain(..).rev() {
        put_back(&mine);
    }
}
