//! The actor that answers in this process for one in another.

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use actor::{Actor, Ctx, Deferred, Handler, supervised};
use futures::FutureExt;
use futures::future::{LocalBoxFuture, ready};

use crate::role::{Role, RoleMessage};

/// A message on its way to the other process.
#[derive(Debug)]
pub struct Forwarded {
    /// Its name.
    pub message: &'static str,
    /// Itself, as JSON.
    pub body: Vec<u8>,
    /// How long the answer may take.
    pub within: Duration,
}

/// The way to the other process.
pub trait Far<R: Role>: Sized + Unpin + 'static {
    /// The stand-in was built: it connects.
    fn started(stand_in: &mut StandIn<R, Self>, ctx: &mut Ctx<StandIn<R, Self>>);
    /// Has a message answered; `None`: it will not be, and nobody knows whether it had its effect. What is returned is polled once
    /// for each message before the next one comes: whoever keeps that order keeps the order of messages.
    fn forward(&mut self, message: Forwarded) -> LocalBoxFuture<'static, Option<Vec<u8>>>;
    /// Counts what came from there and was not believed.
    fn refused(&self) -> Arc<AtomicU64>;
}

/// Answers every message of a role with what `F` brings from elsewhere.
pub struct StandIn<R: Role, F: Far<R>> {
    /// The way there.
    pub far: F,
    role: PhantomData<fn() -> R>,
}

impl<R: Role, F: Far<R>> StandIn<R, F> {
    /// For what is reached by `far`.
    #[must_use]
    pub fn new(far: F) -> Self {
        StandIn { far, role: PhantomData }
    }
}

impl<R: Role, F: Far<R>> Actor for StandIn<R, F> {
    type Context = Ctx<Self>;

    fn started(&mut self, ctx: &mut Ctx<Self>) {
        F::started(self, ctx);
    }
}

supervised!(<R: Role, F: Far<R>> StandIn<R, F>);

impl<R: Role, F: Far<R>, M: RoleMessage<To = R>> Handler<M> for StandIn<R, F> {
    type Result = Deferred<Self, M::Result>;

    fn handle(&mut self, message: M, _: &mut Ctx<Self>) -> Self::Result {
        let within = message.deadline();
        let body = match serde_json::to_vec(&message) {
            Ok(body) => body,
            Err(e) => {
                tracing::error!(role = R::NAME, message = M::NAME, error = %e, "a message has no JSON");
                return Deferred::if_any(async { None });
            }
        };
        let answer = begun(self.far.forward(Forwarded { message: M::NAME, body, within }));
        let refused = self.far.refused();
        Deferred::if_any(async move {
            let answer = answer.await?;
            let read = serde_json::from_slice(&answer);
            if let Err(e) = &read {
                refused.fetch_add(1, Ordering::Relaxed);
                tracing::warn!(role = R::NAME, message = M::NAME, error = %e, "an answer of another process cannot be read");
            }
            read.ok()
        })
    }
}

/// Begins now. What an actor waits for goes on in any order, and messages have to be forwarded in the order in which they came.
fn begun(mut forwarded: LocalBoxFuture<'static, Option<Vec<u8>>>) -> LocalBoxFuture<'static, Option<Vec<u8>>> {
    match forwarded.poll_unpin(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => ready(answer).boxed_local(),
        Poll::Pending => forwarded,
    }
}
