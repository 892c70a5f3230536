//! Whether the other process is there, and what was refused to it: what people and the rest of the node see of it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use metrics::prometheus::proto::MetricFamily;
use seam::v1::{Description, MetricsRequest, ToManager};
use seam::{Calls, Out};
use tokio::sync::{OwnedMutexGuard, watch};
use tokio::time::timeout;
use tonic::transport::Channel;
use tonic::{Code, Request};

use crate::stub::manager_client::ManagerClient;

/// How long a scrape waits for one manager.
const SCRAPED: Duration = Duration::from_secs(1);

/// How it stands with the other process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Life {
    /// Not there, and why.
    Away(String),
    /// It answers.
    Up {
        /// Name of its program.
        program: String,
        /// Version of its contract crate.
        version: String,
    },
}

/// Counts since the link was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Status {
    /// Times that it was there.
    pub lives: u64,
    /// What it was told before it served, in all lives.
    pub reminders: u64,
    /// Reminders that it did not answer.
    pub unanswered_reminders: u64,
    /// Rows that were refused: not its own, not readable, too many, of pods that are not here, or of one that has been replaced.
    pub refused_rows: u64,
    /// Those of them that may come of a race: of pods that are not here, or of one that has been replaced.
    pub late_rows: u64,
    /// Messages that it may not send, or that cannot be read.
    pub refused_calls: u64,
    /// Answers that nobody asked for or that cannot be read.
    pub refused_answers: u64,
    /// Keys of the journal that are not its own, and values that are too large.
    pub refused_keys: u64,
}

/// What a manager elsewhere answers to whoever asks what it has counted.
#[derive(Debug, Clone, PartialEq)]
pub enum Counted {
    /// Nobody is there.
    Away,
    /// It does not answer, or not in time.
    Silent,
    /// So much, in the life of this number.
    So(u64, Vec<MetricFamily>),
}

/// A connected manager, for those who call it.
pub(crate) struct Session {
    /// No two of one node have the same.
    pub(crate) generation: u64,
    /// `None`: in tests.
    pub(crate) client: Option<ManagerClient<Channel>>,
    pub(crate) out: Out<ToManager>,
    pub(crate) calls: Arc<Calls>,
    pub(crate) description: Description,
}

/// The link to one manager; it outlives the generations of its stand-in. Clones share it.
#[derive(Clone)]
pub struct Link(Arc<Inner>);

struct Inner {
    session: watch::Sender<Option<Arc<Session>>>,
    /// Whose turn it is to be sent: messages that wait for the manager are sent in the order in which they came.
    turn: Arc<tokio::sync::Mutex<()>>,
    life: watch::Sender<Life>,
    status: Mutex<Status>,
    answers: Arc<AtomicU64>,
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Link({:?})", *self.0.life.borrow())
    }
}

impl Default for Link {
    fn default() -> Self {
        let life = watch::channel(Life::Away("not connected yet".to_owned())).0;
        let (session, turn) = (watch::channel(None).0, Arc::default());
        Link(Arc::new(Inner { session, turn, life, status: Mutex::default(), answers: Arc::default() }))
    }
}

impl Status {
    /// What was refused that no honest manager says.
    #[must_use]
    pub fn lies(&self) -> u64 {
        self.refused_rows - self.late_rows + self.refused_calls + self.refused_answers + self.refused_keys
    }
}

impl Link {
    /// Follows whether it is there.
    #[must_use]
    pub fn life(&self) -> watch::Receiver<Life> {
        self.0.life.subscribe()
    }

    /// What was counted.
    #[must_use]
    pub fn status(&self) -> Status {
        let status = *self.0.status.lock().unwrap_or_else(PoisonError::into_inner);
        Status { refused_answers: status.refused_answers + self.0.answers.load(Ordering::Relaxed), ..status }
    }

    pub(crate) fn count(&self, count: impl FnOnce(&mut Status)) {
        count(&mut self.0.status.lock().unwrap_or_else(PoisonError::into_inner));
    }

    pub(crate) fn refused_answers(&self) -> Arc<AtomicU64> {
        self.0.answers.clone()
    }

    /// It serves; `reminders`: how many there were, and how many of them it did not answer.
    pub(crate) fn up(&self, session: Arc<Session>, (reminders, unanswered): (usize, usize)) {
        self.count(|s| {
            s.lives += 1;
            s.reminders += reminders as u64;
            s.unanswered_reminders += unanswered as u64;
        });
        let Description { program, version, .. } = session.description.clone();
        self.0.life.send_replace(Life::Up { program, version });
        self.0.session.send_replace(Some(session));
    }

    /// Whether that is news.
    pub(crate) fn away(&self, why: String) -> bool {
        self.0.session.send_replace(None);
        let now = Life::Away(why);
        self.0.life.send_if_modified(|life| {
            let is_news = *life != now;
            *life = now;
            is_news
        })
    }

    /// What it has counted so far.
    pub async fn counted(&self) -> Counted {
        let session = self.0.session.borrow().clone();
        let Some((generation, mut client)) = session.and_then(|s| Some((s.generation, s.client.clone()?))) else {
            return Counted::Away;
        };
        match timeout(SCRAPED, client.metrics(Request::new(MetricsRequest {}))).await {
            Ok(Ok(answer)) => Counted::So(generation, seam::numbers::heard(answer.into_inner())),
            // It counts nothing.
            Ok(Err(status)) if status.code() == Code::Unimplemented => Counted::So(generation, Vec::new()),
            Ok(Err(_)) | Err(_) => Counted::Silent,
        }
    }

    /// The connected manager, now or when it comes, and the turn to say something to it: nobody who comes later has it before
    /// that is let go.
    pub(crate) async fn session(&self, waits: bool) -> Option<(Arc<Session>, OwnedMutexGuard<()>)> {
        let mut session = self.0.session.subscribe();
        if !waits {
            session.borrow().as_ref()?;
        }
        let turn = self.0.turn.clone().lock_owned().await;
        let there =
            if waits { session.wait_for(Option::is_some).await.ok()?.clone() } else { session.borrow().clone() };
        Some((there?, turn))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures::FutureExt;
    use tokio::time::timeout;

    use super::*;

    fn session() -> Arc<Session> {
        let (out, _said) = Out::new(Vec::new());
        let (calls, description) = (Arc::new(Calls::new(1)), Description::default());
        Arc::new(Session { generation: 1, client: None, out, calls, description })
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_for_the_manager_has_its_turn_in_the_order_of_coming() {
        let link = Link::default();
        let (mut first, mut second) = (Box::pin(link.session(true)), Box::pin(link.session(true)));
        assert!(first.as_mut().now_or_never().is_none() && second.as_mut().now_or_never().is_none());
        // One with less time behind one with more gives up, and takes nobody's turn with it.
        assert!(timeout(Duration::from_secs(1), link.session(true)).await.is_err());
        link.up(session(), (0, 0));
        assert!(second.as_mut().now_or_never().is_none(), "the first has not said anything yet");
        let (_, turn) = first.await.unwrap();
        assert!(second.as_mut().now_or_never().is_none());
        drop(turn);
        assert!(second.await.is_some());
        assert!(link.session(true).now_or_never().flatten().is_some(), "who is gone holds no turn");
    }

    #[test]
    fn who_does_not_wait_is_told_at_once_that_nobody_is_there() {
        let link = Link::default();
        let held = link.session(true);
        assert!(link.session(false).now_or_never().unwrap().is_none());
        drop(held);
        link.up(session(), (0, 0));
        let (_, turn) = link.session(false).now_or_never().flatten().unwrap();
        let mut behind = Box::pin(link.session(false));
        assert!(behind.as_mut().now_or_never().is_none());
        link.away("killed".to_owned());
        drop(turn);
        assert!(behind.now_or_never().unwrap().is_none(), "it went meanwhile");
    }
}
