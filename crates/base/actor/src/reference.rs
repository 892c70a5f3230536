//! The stable address of an actor.

use crate::context::Ctx;
use crate::control::Order;
use crate::directory::ActorInfo;
use crate::envelope::{Answer, Mail, Slot, Stage, Ticket, Turn, seal};
use crate::error::{AskError, TellError};
use crate::record::Record;
use actix::{Actor, Addr, Handler, Supervised};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio::sync::{TryAcquireError, oneshot};
use tokio::time::{Instant, timeout_at};

/// What a deadline beyond the clock's range becomes.
const FOREVER: Duration = Duration::from_secs(30 * 365 * 86_400);

/// An actor type that the kernel can run; `supervised!` makes one.
pub trait Managed: Actor<Context = Ctx<Self>> + Supervised + Handler<Turn<Self>> {}
impl<A: Actor<Context = Ctx<A>> + Supervised + Handler<Turn<A>>> Managed for A {}

/// Address of an actor. Stays valid over restarts; keeps nobody alive: an actor lives until [`ActorRef::stop`].
pub struct ActorRef<A: Managed> {
    inner: Arc<Inner<A>>,
}

struct Inner<A: Managed> {
    addr: Addr<A>,
    record: Arc<Record>,
}

impl<A: Managed> Clone for ActorRef<A> {
    fn clone(&self) -> Self {
        ActorRef { inner: self.inner.clone() }
    }
}

impl<A: Managed> fmt::Debug for ActorRef<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ActorRef").field(&self.inner.record.name).finish()
    }
}

impl<A: Managed> ActorRef<A> {
    pub(crate) fn new(addr: Addr<A>, record: Arc<Record>) -> Self {
        ActorRef { inner: Arc::new(Inner { addr, record }) }
    }

    pub(crate) fn record(&self) -> &Arc<Record> {
        &self.inner.record
    }

    pub(crate) fn addr(&self) -> &Addr<A> {
        &self.inner.addr
    }

    /// Name given at spawn.
    pub fn name(&self) -> &Arc<str> {
        &self.inner.record.name
    }

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
        self.inner.addr.try_send(turn).map_err(|_| ())
    }

    /// No more messages from now on; the queued ones are handled, then the actor stops for good. Effects and deferred
    /// answers that are not finished by then are cancelled.
    pub fn stop(&self) {
        self.record().close();
    }

    /// Crashes the actor, as an injected panic would: it is rebuilt, and its queue kept.
    pub fn kill(&self) {
        self.record().control.give(Order::Kill("killed by request".into()));
    }

    /// Completes when the actor has stopped for good.
    pub async fn stopped(&self) {
        self.record().until_gone().await
    }

    /// Snapshot of its counters.
    pub fn info(&self) -> ActorInfo {
        self.record().info()
    }
}
