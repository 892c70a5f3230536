//! One kind of result: the last one, and the gathering that is under way.

use std::sync::Arc;
use std::time::Duration;

use actor::watch;
use contract::stats::StatsError;
use tokio::time::Instant;

/// What a gathering ends with.
pub(crate) type Outcome<T> = Result<Arc<T>, StatsError>;

/// Where askers wait for it; empty until it ends.
pub(crate) type Waiting<T> = watch::Receiver<Option<Outcome<T>>>;

#[derive(Debug)]
pub(crate) struct Slot<T: ?Sized> {
    last: Option<(Instant, Arc<T>)>,
    running: Option<watch::Sender<Option<Outcome<T>>>>,
}

impl<T: ?Sized> Default for Slot<T> {
    fn default() -> Self {
        Self { last: None, running: None }
    }
}

/// What an asker gets.
#[derive(Debug)]
pub(crate) enum Answer<T: ?Sized> {
    /// Take this.
    Fresh(Arc<T>),
    /// Somebody gathers: wait for it.
    Join(Waiting<T>),
    /// Start gathering, then wait for it.
    Start(Waiting<T>),
}

impl<T: ?Sized> Slot<T> {
    /// The last result when its gathering began within `bound`, else the one under way, else a new one.
    pub(crate) fn answer(&mut self, now: Instant, bound: Duration) -> Answer<T> {
        if let Some((at, last)) = &self.last
            && now.duration_since(*at) < bound
        {
            return Answer::Fresh(last.clone());
        }
        if let Some(running) = &self.running {
            return Answer::Join(running.subscribe());
        }
        // Two of a full node are a megabyte.
        self.last = None;
        let (tx, rx) = watch::channel(None);
        self.running = Some(tx);
        Answer::Start(rx)
    }

    /// The gathering that began at `began` has ended. A failure is for those who waited; the next asker tries again.
    pub(crate) fn done(&mut self, began: Instant, outcome: Outcome<T>) {
        if let Ok(value) = &outcome {
            self.last = Some((began, value.clone()));
        }
        if let Some(waiting) = self.running.take() {
            waiting.send_replace(Some(outcome));
        }
    }
}

/// Waits for the end of a gathering.
pub(crate) async fn wait<T: ?Sized>(mut waiting: Waiting<T>) -> Outcome<T> {
    let ended = waiting.wait_for(Option::is_some).await.ok().and_then(|outcome| outcome.clone());
    ended.unwrap_or_else(|| Err(StatsError { message: "the gathering was given up".to_owned() }))
}
