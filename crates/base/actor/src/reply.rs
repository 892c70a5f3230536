//! Answers that come later than the turn.

use crate::context::{Ctx, Managed};
use crate::unattended::caught;
use actix::dev::MessageResponse;
use actix::fut::{ActorFuture, LocalBoxActorFuture};
use actix::{Actor, ActorFutureExt, AsyncContext, Message};
use futures::FutureExt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::sync::oneshot;

/// An answer that the actor works out asynchronously, its mailbox open meanwhile: check the state again after each await.
/// A panic is a panic of the actor; a restart cancels it and the asker gets `Crashed`.
pub struct Deferred<A: Actor, R>(Due<A, R>);

enum Due<A: Actor, R> {
    Now(R),
    /// `None`: there will be no answer.
    Later(LocalBoxActorFuture<A, Option<R>>),
}

impl<A: Managed, R: 'static> Deferred<A, R> {
    /// Answers with what `fut` gives.
    pub fn new(fut: impl Future<Output = R> + 'static) -> Self {
        Self::if_any(fut.map(Some))
    }

    /// Answers with what `fut` gives. When that is nothing, whoever should have said it being gone, the asker hears what it
    /// hears of a crash: whether the effect happened is unknown.
    pub fn if_any(fut: impl Future<Output = Option<R>> + 'static) -> Self {
        Deferred(Due::Later(Box::pin(actix::fut::wrap_future::<_, A>(fut))))
    }

    /// Answers with what `then` makes of the actor and the output of `fut`. The compiler wants the actor's type said:
    /// `Deferred::then(fut, |this: &mut Self, out, ctx| ..)`.
    pub fn then<T: 'static>(
        fut: impl Future<Output = T> + 'static,
        then: impl FnOnce(&mut A, T, &mut Ctx<A>) -> R + 'static,
    ) -> Self {
        let fut = actix::fut::wrap_future::<_, A>(fut).map(move |out, actor, ctx| Some(then(actor, out, ctx)));
        Deferred(Due::Later(Box::pin(fut)))
    }

    /// Answers at once.
    pub fn ready(value: R) -> Self {
        Deferred(Due::Now(value))
    }
}

impl<A, M> MessageResponse<A, M> for Deferred<A, M::Result>
where
    A: Managed,
    M: Message,
{
    fn handle(self, ctx: &mut Ctx<A>, tx: Option<oneshot::Sender<M::Result>>) {
        let answer = move |result: Option<M::Result>| {
            if let (Some(tx), Some(result)) = (tx, result) {
                let _ = tx.send(result);
            }
        };
        match self.0 {
            Due::Now(result) => answer(Some(result)),
            Due::Later(fut) => {
                let traced = Traced { context: trace::current(), fut };
                ctx.spawn(traced.map(move |result, _, _| answer(result)));
            }
        }
    }
}

/// Work on an answer is a part of the trace of its ask.
struct Traced<A: Actor, R> {
    context: Option<trace::Context>,
    fut: LocalBoxActorFuture<A, Option<R>>,
}

impl<A: Actor, R> ActorFuture<A> for Traced<A, R> {
    type Output = Option<R>;

    fn poll(mut self: Pin<&mut Self>, actor: &mut A, ctx: &mut A::Context, cx: &mut Context<'_>) -> Poll<Option<R>> {
        let _entered = trace::enter(self.context);
        self.fut.as_mut().poll(actor, ctx, cx)
    }
}

/// An answer worked out by a task of its own: survives the death of the actor and still reaches the asker. Its panic is
/// logged and counted, and the asker gets `Crashed`.
pub struct Detached<R>(Pin<Box<dyn Future<Output = R> + Send>>);

impl<R: Send + 'static> Detached<R> {
    /// Answers with what `fut` gives.
    pub fn new(fut: impl Future<Output = R> + Send + 'static) -> Self {
        Detached(Box::pin(fut))
    }
}

impl<A, M> MessageResponse<A, M> for Detached<M::Result>
where
    A: Managed,
    M: Message<Result: Send>,
{
    fn handle(self, ctx: &mut Ctx<A>, tx: Option<oneshot::Sender<M::Result>>) {
        let work = caught(ctx.record().clone(), ctx.during(), self.0);
        tokio::spawn(trace::within(trace::current(), work).map(move |result| {
            if let (Some(tx), Some(result)) = (tx, result) {
                let _ = tx.send(result);
            }
        }));
    }
}
