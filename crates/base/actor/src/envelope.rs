//! The envelope of every message: what the kernel knows about it between sender and turn.

use crate::context::{Ctx, Later, Managed};
use crate::control::locked;
use crate::faults::Action;
use crate::passages::Point;
use crate::poison::Subject;
use crate::record::Record;
use crate::turn::{Mail, Turn};
use crate::type_name::short;
use actix::dev::{Envelope, EnvelopeProxy, MessageResponse, ToEnvelope};
use actix::{AsyncContext, Handler};
use std::any::type_name;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tracing::Span;

impl<A: Managed> ToEnvelope<A, Turn<A>> for Ctx<A> {
    fn pack(turn: Turn<A>, _: Option<oneshot::Sender<()>>) -> Envelope<A> {
        Envelope::with_proxy(turn.into_proxy())
    }
}

/// How far an ask got; tells the asker what an absent answer means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Stage {
    Queued,
    Started,
    Expired,
}

#[derive(Debug)]
pub(crate) struct Ticket(AtomicU8);

impl Ticket {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Ticket(AtomicU8::new(Stage::Queued as u8)))
    }

    fn set(&self, stage: Stage) {
        self.0.store(stage as u8, Ordering::Release);
    }

    pub(crate) fn stage(&self) -> Stage {
        match self.0.load(Ordering::Acquire) {
            0 => Stage::Queued,
            1 => Stage::Started,
            _ => Stage::Expired,
        }
    }
}

/// A taken place in a mailbox; free again when dropped.
pub(crate) struct Slot(Arc<Record>);

impl Slot {
    /// The caller has taken a permit of `record.room` and forgotten it.
    pub(crate) fn new(record: &Arc<Record>) -> Self {
        Slot(record.clone())
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.room.add_permits(1);
    }
}

/// Where the answer goes, and until when it is wanted.
pub(crate) struct Answer<R> {
    pub(crate) tx: oneshot::Sender<R>,
    pub(crate) ticket: Arc<Ticket>,
    pub(crate) until: Instant,
}

struct Parcel<M: Mail> {
    message: M,
    answer: Option<Answer<M::Result>>,
    slot: Slot,
    queued: Option<std::time::Instant>,
    origin: Span,
    /// The trace that an ask is a part of.
    trace: Option<trace::Context>,
}

/// Option: `EnvelopeProxy::handle` takes `&mut self`, the parcel is opened once.
struct Sealed<M: Mail>(Option<Parcel<M>>);

pub(crate) fn seal<A, M>(message: M, answer: Option<Answer<M::Result>>, slot: Slot) -> Turn<A>
where
    A: Managed + Handler<M>,
    M: Mail,
{
    // A span costs two look-ups in the subscriber, so callers are followed at trace level only.
    let origin = if tracing::enabled!(tracing::Level::TRACE) { Span::current() } else { Span::none() };
    let queued = slot.0.begin();
    let trace = answer.as_ref().and_then(|_| trace::current());
    Turn::new(Sealed(Some(Parcel { message, answer, slot, queued, origin, trace })))
}

impl<A, M> EnvelopeProxy<A> for Sealed<M>
where
    A: Managed + Handler<M>,
    M: Mail,
{
    fn handle(&mut self, actor: &mut A, ctx: &mut Ctx<A>) {
        let Some(Parcel { message, answer, slot, queued, origin, trace }) = self.0.take() else { return };
        ctx.spend();
        drop(slot);
        let began = ctx.record().begin();
        ctx.record().note_wait(queued, began);
        let tx = match answer {
            Some(a) if a.until <= Instant::now() => {
                ctx.record().count.expired_asks.fetch_add(1, Ordering::Relaxed);
                a.ticket.set(Stage::Expired);
                return;
            }
            Some(a) => {
                a.ticket.set(Stage::Started);
                Some(a.tx)
            }
            None => None,
        };
        *locked(&ctx.record().message) = type_name::<M>();
        let subject = message.subject();
        if let Some(rest) = subject.as_ref().and_then(|s| ctx.record().poison.rest(type_name::<M>(), s)) {
            return set_aside(message, tx, subject, rest, ctx);
        }
        let before = ctx.set_during(type_name::<M>());
        let nobody = ctx.set_subject(subject);
        let entered = trace::enter(trace);
        if ctx.kernel().faults().on() {
            intercept(message, tx, actor, ctx);
        } else if origin.is_none() {
            deliver(message, tx, actor, ctx);
        } else {
            let span = tracing::trace_span!(target: "actor", "turn", message = short(type_name::<M>()));
            span.follows_from(&origin);
            span.in_scope(|| deliver(message, tx, actor, ctx));
        }
        drop(entered);
        ctx.set_subject(nobody);
        ctx.set_during(before);
        ctx.record().note_turn(type_name::<M>(), began);
    }
}

fn deliver<A, M>(message: M, tx: Option<oneshot::Sender<M::Result>>, actor: &mut A, ctx: &mut Ctx<A>)
where
    A: Managed + Handler<M>,
    M: Mail,
{
    ctx.strike_subject();
    // Unlike actix, a message is not skipped because its caller gave up: the deadline alone decides.
    <A as Handler<M>>::handle(actor, message, ctx).handle(ctx, tx);
}

/// A message that crashed this actor before: its asker is told so at once, a tell tries again later.
fn set_aside<A, M>(
    message: M,
    tx: Option<oneshot::Sender<M::Result>>,
    subject: Option<Subject>,
    rest: Duration,
    ctx: &mut Ctx<A>,
) where
    A: Managed + Handler<M>,
    M: Mail,
{
    ctx.record().count.set_aside.fetch_add(1, Ordering::Relaxed);
    if tx.is_some() {
        return;
    }
    let label = type_name::<M>();
    let parked = ctx.park(label, rest, move |actor, ctx| {
        let nobody = ctx.set_subject(subject);
        deliver(message, None, actor, ctx);
        ctx.set_subject(nobody);
    });
    if !parked {
        tracing::error!(target: "actor", message = short(label), "dropped: too many messages are set aside");
    }
}

/// Delivers a message by the rules of the fault plan.
fn intercept<A, M>(message: M, tx: Option<oneshot::Sender<M::Result>>, actor: &mut A, ctx: &mut Ctx<A>)
where
    A: Managed + Handler<M>,
    M: Mail,
{
    let point = Point::Turn(type_name::<M>());
    let faults = ctx.faults();
    match faults.decide(point) {
        None => {}
        Some(Action::Drop) => {
            if tx.is_none() && faults.may_drop::<M>() {
                return;
            }
            tracing::warn!(target: "actor", %point, "drop fault refused: only tells of permitted messages may be lost");
        }
        Some(Action::Duplicate) => match faults.duplicate(&message) {
            Some(twin) => deliver(twin, None, actor, ctx),
            None => tracing::warn!(target: "actor", %point, "duplicate fault refused: message is not permitted"),
        },
        Some(Action::Delay(d)) => {
            let label = type_name::<M>();
            ctx.later(label, d, move |actor, ctx| deliver(message, tx, actor, ctx));
            return;
        }
        Some(Action::Stall(d)) => {
            let label = type_name::<M>();
            ctx.wait(Later::new(label, d, move |actor: &mut A, ctx: &mut Ctx<A>| deliver(message, tx, actor, ctx)));
            return;
        }
        Some(action @ (Action::Panic | Action::Kill | Action::Block(_))) => action.strike(&point.to_string()),
    }
    deliver(message, tx, actor, ctx);
}
