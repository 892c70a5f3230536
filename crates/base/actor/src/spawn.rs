//! Where actors are born.

use crate::context::{Ctx, Managed};
use crate::group::Group;
use crate::kernel::Kernel;
use crate::record::Record;
use crate::reference::ActorRef;
use crate::supervise::Supervisee;
use actix::Addr;
use actix::dev::{Mailbox, channel::channel};
use futures::future::BoxFuture;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

/// Birth certificate of an actor.
pub struct Spec {
    name: Arc<str>,
    group: Option<Group>,
    mailbox: Option<usize>,
    stuck_after: Option<Duration>,
    after: Option<BoxFuture<'static, ()>>,
}

impl fmt::Debug for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spec").field("name", &self.name).field("group", &self.group).finish_non_exhaustive()
    }
}

impl Spec {
    /// An actor of that name, in the root group, on this thread.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Spec { name: name.into(), group: None, mailbox: None, stuck_after: None, after: None }
    }

    /// Puts it under another group than the root.
    #[must_use]
    pub fn group(mut self, group: &Group) -> Self {
        self.group = Some(group.clone());
        self
    }

    /// How many messages may be queued (at least 1).
    #[must_use]
    pub fn mailbox(mut self, capacity: usize) -> Self {
        self.mailbox = Some(capacity.max(1));
        self
    }

    /// With messages queued, and no turn for that long, it is treated as crashed.
    #[must_use]
    pub fn stuck_after(mut self, patience: Duration) -> Self {
        self.stuck_after = Some(patience);
        self
    }

    /// It is built when this is over; messages wait meanwhile.
    #[must_use]
    pub fn after(mut self, first: impl Future<Output = ()> + Send + 'static) -> Self {
        self.after = Some(Box::pin(first));
        self
    }
}

impl Kernel {
    /// Starts an actor. `factory` builds generation 0 in the actor's own first turn, and each later one after a crash;
    /// it runs before the former state is dropped, so take exclusive things (sockets, locks) in `started`, not here.
    /// The actor lives until it is stopped.
    ///
    /// # Panics
    /// Outside of a `LocalSet`.
    pub fn spawn<A: Managed>(&self, spec: Spec, factory: impl FnMut(u64) -> A + Send + 'static) -> ActorRef<A> {
        let group = spec.group.unwrap_or_else(|| self.root().clone());
        let capacity = spec.mailbox.unwrap_or(self.config().mailbox).max(1);
        let stuck_after = spec.stuck_after.unwrap_or(self.config().stuck_after);
        let id = self.next_id();
        let is_timed = !self.config().simulated_time;
        let record = Arc::new(Record::new(id, spec.name, group.path().clone(), capacity, is_timed));
        self.directory().add(record.clone());
        group.join(&record);
        // Capacity 0 is "unbounded" to actix: the record's semaphore is the bound.
        let (tx, rx) = channel(0);
        let this = ActorRef::new(Addr::new(tx), record);
        let ctx = Ctx::new(self.clone(), group, this.clone(), Box::new(factory));
        tokio::task::spawn_local(Supervisee::new(ctx, Mailbox::new(rx), stuck_after, spec.after));
        this
    }
}
