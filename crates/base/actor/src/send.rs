//! Sending: bounded, with a deadline.

use crate::context::Managed;
use crate::envelope::{Answer, Slot, Stage, Ticket, seal};
use crate::error::{AskError, TellError};
use crate::reference::ActorRef;
use crate::turn::{Mail, Turn};
use actix::Handler;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio::sync::{TryAcquireError, oneshot};
use tokio::time::{Instant, timeout_at};

/// What a deadline beyond the clock's range becomes.
const FOREVER: Duration = Duration::from_secs(30 * 365 * 86_400);

impl<A: Managed> ActorRef<A> {
    /// Leaves a message; never waits. A message that was taken is handled, whatever the sender does next, unless the
    /// actor crashes in that very turn or is killed for good.
    ///
    /// # Errors
    /// [`TellError::Full`] when the mailbox has no room, [`TellError::Gone`] after a stop.
    pub fn tell<M: Mail>(&self, message: M) -> Result<(), TellError>
    where
        A: Handler<M>,
    {
        let record = self.record();
        match record.room.try_acquire() {
            Ok(permit) => permit.forget(),
            Err(TryAcquireError::Closed) => return Err(TellError::Gone),
            Err(TryAcquireError::NoPermits) => {
                record.count.rejected_tells.fetch_add(1, Relaxed);
                return Err(TellError::Full);
            }
        }
        let slot = Slot::new(record);
        self.post(seal(message, None, slot)).map_err(|()| TellError::Gone)
    }

    /// Asks, and waits for the answer until `deadline` from now: for room in the mailbox first, then for the turn.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn ask<M: Mail>(&self, message: M, deadline: Duration) -> Result<M::Result, AskError>
    where
        A: Handler<M>,
    {
        let now = Instant::now();
        let until = now.checked_add(deadline).unwrap_or(now + FOREVER);
        let record = self.record();
        let room = match record.room.try_acquire() {
            Err(TryAcquireError::NoPermits) => match timeout_at(until, record.room.acquire()).await {
                Ok(room) => room.map_err(|_| AskError::NotDelivered)?,
                Err(_) => {
                    record.count.overloaded_asks.fetch_add(1, Relaxed);
                    return Err(AskError::Overloaded);
                }
            },
            Err(TryAcquireError::Closed) => return Err(AskError::NotDelivered),
            Ok(room) => room,
        };
        room.forget();
        let slot = Slot::new(record);
        let ticket = Ticket::new();
        let (tx, rx) = oneshot::channel();
        let answer = Answer { tx, ticket: ticket.clone(), until };
        self.post(seal(message, Some(answer), slot)).map_err(|()| AskError::NotDelivered)?;
        match timeout_at(until, rx).await {
            Ok(Ok(result)) => Ok(result),
            Ok(Err(_)) => Err(match ticket.stage() {
                Stage::Queued => AskError::NotDelivered,
                Stage::Started => AskError::Crashed,
                Stage::Expired => AskError::Timeout { started: false },
            }),
            Err(_) => Err(AskError::Timeout { started: ticket.stage() == Stage::Started }),
        }
    }

    fn post(&self, turn: Turn<A>) -> Result<(), ()> {
        // The channel itself is unbounded, so the only error is a closed one.
        self.addr().try_send(turn).map_err(|_| ())
    }
}
