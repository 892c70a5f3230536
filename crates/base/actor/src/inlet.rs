//! Swappable routes: what contract handles are made of.

use crate::context::Managed;
use crate::error::{AskError, TellError};
use crate::reference::ActorRef;
use crate::turn::Mail;
use actix::Handler;
use arc_swap::ArcSwapOption;
use futures::future::BoxFuture;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Whoever takes messages of one type: an actor, a [`Family`](crate::Family) of actors, a connection to another process.
pub trait Route<M: Mail>: Send + Sync {
    /// As [`ActorRef::tell`].
    ///
    /// # Errors
    /// See [`TellError`].
    fn tell(&self, message: M) -> Result<(), TellError>;

    /// As [`ActorRef::ask`].
    fn ask(self: Arc<Self>, message: M, deadline: Duration) -> BoxFuture<'static, Result<M::Result, AskError>>;
}

impl<A, M> Route<M> for ActorRef<A>
where
    A: Managed + Handler<M>,
    M: Mail,
{
    fn tell(&self, message: M) -> Result<(), TellError> {
        ActorRef::tell(self, message)
    }

    fn ask(self: Arc<Self>, message: M, deadline: Duration) -> BoxFuture<'static, Result<M::Result, AskError>> {
        Box::pin(async move { ActorRef::ask(&self, message, deadline).await })
    }
}

/// Route to whoever serves `M` now. Clones share the route; swapping it moves new messages only: what is queued at the
/// former server is answered there.
pub struct Inlet<M: Mail> {
    name: &'static str,
    /// Twice boxed, for an atomic pointer is thin.
    route: Arc<ArcSwapOption<Arc<dyn Route<M>>>>,
}

impl<M: Mail> Clone for Inlet<M> {
    fn clone(&self) -> Self {
        Inlet { name: self.name, route: self.route.clone() }
    }
}

impl<M: Mail> fmt::Debug for Inlet<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inlet").field("name", &self.name).field("connected", &self.is_connected()).finish()
    }
}

impl<M: Mail> Inlet<M> {
    /// A route to nobody; `name` is for logs.
    pub fn unbound(name: &'static str) -> Self {
        Inlet { name, route: Arc::new(ArcSwapOption::empty()) }
    }

    /// The name given at birth.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Sends all further messages of all clones to `to`.
    pub fn connect<A: Managed + Handler<M>>(&self, to: &ActorRef<A>) {
        self.connect_route(Arc::new(to.clone()));
    }

    /// As [`Inlet::connect`], to something that is no single actor.
    pub fn connect_route(&self, to: Arc<dyn Route<M>>) {
        self.route.store(Some(Arc::new(to)));
    }

    /// Sends further messages to nobody.
    pub fn disconnect(&self) {
        self.route.store(None);
    }

    /// Whether somebody is connected.
    pub fn is_connected(&self) -> bool {
        self.route.load().is_some()
    }

    /// As [`ActorRef::tell`].
    ///
    /// # Errors
    /// [`TellError::Gone`] also when nobody is connected.
    pub fn tell(&self, message: M) -> Result<(), TellError> {
        self.route.load().as_ref().ok_or(TellError::Gone)?.tell(message)
    }

    /// As [`ActorRef::ask`].
    ///
    /// # Errors
    /// [`AskError::NotDelivered`] at once when nobody is connected.
    pub async fn ask(&self, message: M, deadline: Duration) -> Result<M::Result, AskError> {
        let route = self.route.load_full().ok_or(AskError::NotDelivered)?;
        let server: Arc<dyn Route<M>> = Arc::clone(&*route);
        server.ask(message, deadline).await
    }
}
