//! The streams that are open now.

use std::sync::Arc;

use tokio::sync::watch;

/// Counts open streams and ends them all. Clones are the same.
#[derive(Clone, Debug)]
pub struct Streams {
    state: Arc<watch::Sender<State>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    open: usize,
    closed: bool,
}

impl Default for Streams {
    fn default() -> Self {
        Self { state: Arc::new(watch::Sender::new(State::default())) }
    }
}

impl Streams {
    /// How many are open.
    #[must_use]
    pub fn open(&self) -> usize {
        self.state.borrow().open
    }

    /// Ends all streams, those that come later too, and returns when the last one is over.
    pub async fn close(&self) {
        self.state.send_modify(|s| s.closed = true);
        // The sender lives as long as `self`.
        let _ = self.state.subscribe().wait_for(|s| s.open == 0).await;
    }

    /// Returns when [`Self::open`] is `count`.
    pub async fn wait_for(&self, count: usize) {
        let _ = self.state.subscribe().wait_for(|s| s.open == count).await;
    }

    /// Runs a stream in a task of its own, until it ends or all are ended.
    pub(crate) fn spawn(&self, stream: impl Future<Output = ()> + Send + 'static) {
        self.state.send_modify(|s| s.open += 1);
        let guard = Guard(self.clone());
        tokio::spawn(async move {
            let mut closed = guard.0.state.subscribe();
            // Cancel-safe: whichever is dropped is over.
            tokio::select! {
                () = stream => {}
                _ = closed.wait_for(|s| s.closed) => {}
            }
            drop(guard);
        });
    }
}

struct Guard(Streams);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.state.send_modify(|s| s.open -= 1);
    }
}
