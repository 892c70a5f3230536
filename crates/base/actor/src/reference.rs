//! The stable address of an actor.

use crate::control::Order;
use crate::info::ActorInfo;
use crate::record::Record;
use actix::{Actor, Addr};
use std::fmt;
use std::sync::Arc;

/// Address of an actor. Stays valid over restarts; keeps nobody alive: an actor lives until [`ActorRef::stop`].
pub struct ActorRef<A: Actor> {
    inner: Arc<Inner<A>>,
}

struct Inner<A: Actor> {
    addr: Addr<A>,
    record: Arc<Record>,
}

impl<A: Actor> Clone for ActorRef<A> {
    fn clone(&self) -> Self {
        ActorRef { inner: self.inner.clone() }
    }
}

impl<A: Actor> fmt::Debug for ActorRef<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ActorRef").field(&self.inner.record.name).finish()
    }
}

impl<A: Actor> ActorRef<A> {
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
