//! What is sent, and the one actix message that it travels in.

use crate::poison::Subject;
use actix::dev::EnvelopeProxy;
use actix::{Actor, Message};

/// What may be sent: owned data, answered with owned data. [`message!`](crate::message!) implements it.
pub trait Mail: Message<Result: Send> + Send + 'static {
    /// Whom it is for, if for one of many: who is blamed when the turn crashes.
    fn subject(&self) -> Option<Subject> {
        None
    }
}

/// The one actix message that all messages travel in.
pub struct Turn<A: Actor>(Box<dyn EnvelopeProxy<A> + Send>);

impl<A: Actor> Turn<A> {
    pub(crate) fn new(proxy: impl EnvelopeProxy<A> + Send + 'static) -> Self {
        Turn(Box::new(proxy))
    }

    pub(crate) fn into_proxy(self) -> Box<dyn EnvelopeProxy<A> + Send> {
        self.0
    }

    /// Hands the message inside to its handler. Called by `supervised!` only.
    #[doc(hidden)]
    pub fn run(mut self, actor: &mut A, ctx: &mut A::Context) {
        self.0.handle(actor, ctx);
    }
}

impl<A: Actor> Message for Turn<A> {
    type Result = ();
}
