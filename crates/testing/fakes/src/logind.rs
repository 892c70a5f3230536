//! A login manager as the test has it.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt as _;
use futures::channel::mpsc;
use ports::logind::{DelayLock, Logind, ShutdownNews};

/// Grants as long a delay as its configuration says, which is the test's; counts locks.
#[derive(Clone, Debug, Default)]
pub struct FakeLogind(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    delay: Duration,
    delay_after_reload: Option<Duration>,
    going_down: bool,
    away: bool,
    listeners: Vec<mpsc::UnboundedSender<io::Result<bool>>>,
    held: u32,
    taken: u32,
    calls: Vec<&'static str>,
}

/// Counts itself out.
struct Held(FakeLogind);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.state().held -= 1;
    }
}

impl FakeLogind {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a call, and answers it if it is there.
    fn call(&self, name: &'static str) -> io::Result<MutexGuard<'_, State>> {
        let mut state = self.state();
        state.calls.push(name);
        if state.away { Err(io::ErrorKind::NotConnected.into()) } else { Ok(state) }
    }

    /// The longest delay that it grants now, and the one after it is made to read its configuration again.
    pub fn grant(&self, now: Duration, after_reload: Duration) {
        let mut state = self.state();
        (state.delay, state.delay_after_reload) = (now, Some(after_reload));
    }

    /// The machine goes down, or stays up after all.
    pub fn say(&self, going_down: bool) {
        let mut state = self.state();
        state.going_down = going_down;
        state.listeners.retain(|listener| listener.unbounded_send(Ok(going_down)).is_ok());
    }

    /// The way to it is gone, or there again. Locks stay.
    pub fn set_away(&self, away: bool) {
        let mut state = self.state();
        state.away = away;
        for listener in state.listeners.drain(..).filter(|_| away) {
            // Who is gone needs no error.
            listener.unbounded_send(Err(io::ErrorKind::UnexpectedEof.into())).unwrap_or_default();
        }
    }

    /// The longest delay that it grants now.
    #[must_use]
    pub fn granted(&self) -> Duration {
        self.state().delay
    }

    /// Locks that are held now.
    #[must_use]
    pub fn held(&self) -> u32 {
        self.state().held
    }

    /// Locks that were ever taken.
    #[must_use]
    pub fn taken(&self) -> u32 {
        self.state().taken
    }

    /// Every call so far.
    #[must_use]
    pub fn calls(&self) -> Vec<&'static str> {
        self.state().calls.clone()
    }
}

#[async_trait(?Send)]
impl Logind for FakeLogind {
    async fn longest_delay(&self) -> io::Result<Duration> {
        Ok(self.call("longest_delay")?.delay)
    }

    async fn reload(&self) -> io::Result<()> {
        let mut state = self.call("reload")?;
        if let Some(delay) = state.delay_after_reload.take() {
            state.delay = delay;
        }
        Ok(())
    }

    async fn hold_back(&self) -> io::Result<DelayLock> {
        let mut state = self.call("hold_back")?;
        if state.going_down {
            return Err(io::Error::other("the operation is already running"));
        }
        state.held += 1;
        state.taken += 1;
        Ok(DelayLock::new(Held(self.clone())))
    }

    async fn follow(&self) -> io::Result<ShutdownNews> {
        let mut state = self.call("follow")?;
        let (listener, news) = mpsc::unbounded();
        listener.unbounded_send(Ok(state.going_down)).map_err(io::Error::other)?;
        state.listeners.push(listener);
        Ok(news.boxed_local())
    }
}
