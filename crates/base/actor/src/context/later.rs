//! Futures of an actor: timers, watches, effects. Each yields when the poll's budget is spent.

use super::alarm::Alarm;
use super::{Ctx, Managed};
use crate::poison::Subject;
use crate::watch;
use actix::fut::ActorFuture;
use futures::FutureExt;
use futures::future::LocalBoxFuture;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Interval, MissedTickBehavior, Sleep};

/// True when the poll's budget is spent; the supervisee wakes itself then.
fn must_rest<A: Managed>(ctx: &Ctx<A>) -> bool {
    ctx.spent()
}

/// Any actor future, with the fair budget and its label put on.
pub(super) struct Fair<F> {
    label: &'static str,
    subject: Option<Subject>,
    alarm: Alarm,
    fut: Pin<Box<F>>,
}

impl<F> Fair<F> {
    pub(super) fn new(label: &'static str, subject: Option<Subject>, fut: F) -> Self {
        Fair { label, subject, alarm: Alarm::new(), fut: Box::pin(fut) }
    }
}

impl<A: Managed, F: ActorFuture<A, Output = ()>> ActorFuture<A> for Fair<F> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, actor: &mut A, ctx: &mut Ctx<A>, cx: &mut Context<'_>) -> Poll<()> {
        if must_rest(ctx) {
            return Poll::Pending;
        }
        let this = self.get_mut();
        let fut = this.fut.as_mut();
        let polled = this.alarm.answer(cx, |cx| {
            let before = ctx.set_during(this.label);
            let nobody = ctx.set_subject(this.subject.clone());
            let began = ctx.record().begin();
            let poll = fut.poll(actor, ctx, cx);
            if poll.is_ready() {
                ctx.spend();
                ctx.record().note_turn(this.label, began);
            }
            ctx.set_subject(nobody);
            ctx.set_during(before);
            poll
        });
        polled.unwrap_or(Poll::Pending)
    }
}

/// A future for which the mailbox is shut.
pub(super) struct Held<F>(Pin<Box<F>>);

impl<F> Held<F> {
    pub(super) fn new(fut: F) -> Self {
        Held(Box::pin(fut))
    }
}

impl<A: Managed, F: ActorFuture<A, Output = ()>> ActorFuture<A> for Held<F> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, actor: &mut A, ctx: &mut Ctx<A>, cx: &mut Context<'_>) -> Poll<()> {
        // Else an actor that waits again and again for what is there would never yield.
        if must_rest(ctx) {
            return Poll::Pending;
        }
        let poll = self.get_mut().0.as_mut().poll(actor, ctx, cx);
        if poll.is_ready() {
            ctx.spend();
            ctx.held = ctx.held.saturating_sub(1);
        }
        poll
    }
}

/// One call, some time from now.
pub(crate) struct Later<F> {
    label: &'static str,
    /// None: at the next poll, for tokio's timers are not finer than a millisecond.
    sleep: Option<Pin<Box<Sleep>>>,
    yielded: bool,
    call: Option<F>,
}

impl<F> Later<F> {
    pub(crate) fn new<A: Managed>(label: &'static str, d: Duration, call: F) -> Self
    where
        F: FnOnce(&mut A, &mut Ctx<A>),
    {
        let sleep = (!d.is_zero()).then(|| Box::pin(tokio::time::sleep(d)));
        Later { label, sleep, yielded: false, call: Some(call) }
    }
}

impl<F> Unpin for Later<F> {}

impl<A: Managed, F: FnOnce(&mut A, &mut Ctx<A>)> ActorFuture<A> for Later<F> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, actor: &mut A, ctx: &mut Ctx<A>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        match &mut this.sleep {
            Some(sleep) => ready!(sleep.as_mut().poll(cx)),
            None if !this.yielded => {
                this.yielded = true;
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            None => {}
        }
        if must_rest(ctx) {
            return Poll::Pending;
        }
        if let Some(call) = this.call.take() {
            ctx.turn(this.label, |ctx| call(actor, ctx));
        }
        Poll::Ready(())
    }
}

/// A call per period.
pub(super) struct Ticks<F> {
    interval: Interval,
    call: F,
}

impl<F> Ticks<F> {
    pub(super) fn new<A: Managed>(period: Duration, call: F) -> Self
    where
        F: FnMut(&mut A, &mut Ctx<A>),
    {
        let period = period.max(Duration::from_millis(1));
        let mut interval = tokio::time::interval_at(tokio::time::Instant::now() + period, period);
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Ticks { interval, call }
    }
}

impl<F> Unpin for Ticks<F> {}

impl<A: Managed, F: FnMut(&mut A, &mut Ctx<A>)> ActorFuture<A> for Ticks<F> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, actor: &mut A, ctx: &mut Ctx<A>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        while !must_rest(ctx) {
            ready!(this.interval.poll_tick(cx));
            ctx.turn("tick", |ctx| (this.call)(actor, ctx));
        }
        Poll::Pending
    }
}

type Change<T> = LocalBoxFuture<'static, Option<(T, watch::Receiver<T>)>>;

/// A call per value of a watch.
pub(super) struct Changes<T, F> {
    alarm: Alarm,
    next: Change<T>,
    call: F,
}

impl<T: Clone + 'static, F> Changes<T, F> {
    pub(super) fn new<A: Managed>(mut rx: watch::Receiver<T>, call: F) -> Self
    where
        F: FnMut(&mut A, T, &mut Ctx<A>),
    {
        rx.mark_changed();
        Changes { alarm: Alarm::new(), next: change(rx), call }
    }
}

fn change<T: Clone + 'static>(mut rx: watch::Receiver<T>) -> Change<T> {
    async move {
        rx.changed().await.ok()?;
        let value = rx.borrow_and_update().clone();
        Some((value, rx))
    }
    .boxed_local()
}

impl<T, F> Unpin for Changes<T, F> {}

impl<A: Managed, T: Clone + 'static, F: FnMut(&mut A, T, &mut Ctx<A>)> ActorFuture<A> for Changes<T, F> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, actor: &mut A, ctx: &mut Ctx<A>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        while !must_rest(ctx) {
            let next = this.next.as_mut();
            let Some(polled) = this.alarm.answer(cx, |cx| next.poll(cx)) else { return Poll::Pending };
            let Some((value, rx)) = ready!(polled) else { return Poll::Ready(()) };
            this.next = change(rx);
            this.alarm.set();
            ctx.turn("watch", |ctx| (this.call)(actor, value, ctx));
        }
        Poll::Pending
    }
}
