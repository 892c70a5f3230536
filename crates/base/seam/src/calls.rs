//! Calls that wait for the answer of the other side.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, oneshot, watch};
use tokio::time::{Instant, timeout_at};

use crate::out::{Out, Said};
use crate::v1::{Answer, Call, Unanswered, answer};
use crate::{MAX_BODY, MAX_CALLS};

/// Why a call has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Lost {
    /// It was not sent.
    #[error("not sent")]
    NotSent,
    /// No answer came in time.
    #[error("no answer in time")]
    Late,
    /// The other side went over it.
    #[error("the other side is gone")]
    Gone,
    /// The other side says that there is none.
    #[error("the other side says {}", .0.as_str_name())]
    Said(Unanswered),
}

/// Those of one life of the border.
pub struct Calls {
    /// Numbers them, and is a part of their keys.
    life: u64,
    next: AtomicU64,
    room: Semaphore,
    /// Whether no answer will come any more: who is about to say something to a side that does not read stops waiting then.
    ended: watch::Sender<bool>,
    waiting: Mutex<BTreeMap<u64, oneshot::Sender<Answer>>>,
}

impl fmt::Debug for Calls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Calls({:x}, {} wait)", self.life, self.waiting().len())
    }
}

impl Calls {
    /// None yet. `life` must be another one each time.
    #[must_use]
    pub fn new(life: u64) -> Self {
        let (room, ended) = (Semaphore::new(MAX_CALLS), watch::channel(false).0);
        Calls { life, next: AtomicU64::new(1), room, ended, waiting: Mutex::default() }
    }

    fn waiting(&self) -> MutexGuard<'_, BTreeMap<u64, oneshot::Sender<Answer>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a message, after the rows that were posted before, and waits for the answer. `turn` is let go when the message is
    /// sent: the guard of whoever wants no later message before it, or `()`.
    ///
    /// # Errors
    /// See [`Lost`].
    pub async fn call<T>(
        self: &Arc<Self>,
        out: &Out<T>,
        message: &'static str,
        body: Vec<u8>,
        within: Duration,
        turn: impl Sized,
    ) -> Result<Vec<u8>, Lost>
    where
        T: From<Said> + Send + 'static,
    {
        if body.len() >= MAX_BODY {
            tracing::error!(message, size = body.len(), "a message is too large for another process");
            return Err(Lost::NotSent);
        }
        let now = Instant::now();
        let until = now.checked_add(within).unwrap_or(now + Duration::from_secs(365 * 86_400));
        let Ok(Ok(_room)) = timeout_at(until, self.room.acquire()).await else { return Err(Lost::NotSent) };
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (tx, rx) = oneshot::channel();
        self.waiting().insert(id, tx);
        let _forgotten = Forget { calls: self, id };
        let call = Call {
            id,
            message: message.to_owned(),
            body,
            within_ms: u64::try_from(within.as_millis()).unwrap_or(u64::MAX),
            key: format!("{:x}-{id:x}", self.life),
            traceparent: trace::current().map(|c| c.traceparent()).unwrap_or_default(),
        };
        let mut ended = self.ended.subscribe();
        tokio::select! {
            sent = timeout_at(until, out.say(Said::Call(call))) => {
                sent.map_err(|_| Lost::NotSent)?.map_err(|_| Lost::Gone)?;
            }
            _ = ended.wait_for(|ended| *ended) => return Err(Lost::Gone),
        }
        drop(turn);
        let answer = timeout_at(until, rx).await.map_err(|_| Lost::Late)?.map_err(|_| Lost::Gone)?;
        match answer.what {
            Some(answer::What::Body(body)) => Ok(body),
            Some(answer::What::Unanswered(why)) => {
                Err(Lost::Said(Unanswered::try_from(why).unwrap_or(Unanswered::Crashed)))
            }
            None => Err(Lost::Said(Unanswered::Crashed)),
        }
    }

    /// An answer has come; whether somebody waited for it. Who gave up waiting is somebody too: only a number that no call
    /// has had is a lie.
    #[must_use]
    pub fn answered(&self, answer: Answer) -> bool {
        let was_asked = (1..self.next.load(Ordering::Relaxed)).contains(&answer.id);
        if let Some(waiting) = self.waiting().remove(&answer.id) {
            let _gave_up = waiting.send(answer);
        }
        was_asked
    }

    /// No answer will come any more.
    pub fn end(&self) {
        self.room.close();
        self.ended.send_replace(true);
        self.waiting().clear();
    }
}

/// Nobody waits any more.
struct Forget<'a> {
    calls: &'a Calls,
    id: u64,
}

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        self.calls.waiting().remove(&self.id);
    }
}
