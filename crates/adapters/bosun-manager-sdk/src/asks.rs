//! Messages of the manager to others, by way of the node.

use std::sync::Arc;
use std::time::Duration;

use actor::{AskError, Route, TellError};
use contract::seam::Visit;
use contract::{Asks, Role, RoleMessage, Wiring};
use futures::future::BoxFuture;
use seam::v1::{Call, FromManager, Unanswered};
use seam::{Calls, Lost, Out, Said};

/// The way of every message to the node.
#[derive(Clone)]
pub(crate) struct Forward {
    pub(crate) out: Arc<Out<FromManager>>,
    pub(crate) calls: Arc<Calls>,
}

impl Forward {
    /// Routes all that the role may ask to the node.
    pub(crate) fn connect<R: Role>(&self, wiring: &Wiring) {
        R::meet(&mut Connect { wiring, forward: Arc::new(self.clone()) });
    }
}

struct Connect<'a> {
    wiring: &'a Wiring,
    forward: Arc<Forward>,
}

impl<R: Role> Visit<R> for Connect<'_> {
    fn asks<M: RoleMessage>(&mut self)
    where
        R: Asks<M>,
    {
        self.wiring.inlet::<M>().connect_route(self.forward.clone());
    }
}

fn why(lost: Lost) -> AskError {
    match lost {
        Lost::NotSent | Lost::Said(Unanswered::NotDelivered) => AskError::NotDelivered,
        Lost::Said(Unanswered::Overloaded) => AskError::Overloaded,
        Lost::Late | Lost::Said(Unanswered::Timeout) => AskError::Timeout { started: true },
        Lost::Gone | Lost::Said(_) => AskError::Crashed,
    }
}

impl<M: RoleMessage> Route<M> for Forward {
    fn tell(&self, message: M) -> Result<(), TellError> {
        let body = serde_json::to_vec(&message).map_err(|_| TellError::Gone)?;
        let call = Call { message: M::NAME.to_owned(), body, ..Call::default() };
        self.out.say_now(Said::Call(call).into())
    }

    fn ask(self: Arc<Self>, message: M, deadline: Duration) -> BoxFuture<'static, Result<M::Result, AskError>> {
        Box::pin(async move {
            let body = serde_json::to_vec(&message).map_err(|_| AskError::NotDelivered)?;
            let answer = self.calls.call(&self.out, M::NAME, body, deadline, ()).await.map_err(why)?;
            serde_json::from_slice(&answer).map_err(|e| {
                tracing::error!(message = M::NAME, error = %e, "an answer of the node cannot be read");
                AskError::Crashed
            })
        })
    }
}
