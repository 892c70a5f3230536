//! Messages by their names: what the other side may ask for.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use actor::AskError;
use contract::seam::Visit;
use contract::{Asks, Crew, Role, RoleMessage, Wiring};
use futures::FutureExt;
use futures::future::BoxFuture;

use crate::v1::Unanswered;

/// What becomes of a message that was asked for by name.
pub type Asked = BoxFuture<'static, Result<Vec<u8>, Unanswered>>;

type Ask = Box<dyn Fn(&[u8], Duration) -> Asked + Send + Sync>;
type Tell = Box<dyn Fn(&[u8]) -> Result<(), Unanswered> + Send + Sync>;

/// The messages that may be asked for, and nothing else.
#[derive(Default)]
pub struct Desk {
    by_name: BTreeMap<&'static str, (Ask, Tell)>,
}

impl fmt::Debug for Desk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.by_name.keys()).finish()
    }
}

impl Desk {
    /// What a role may ask of others, asked in its name.
    #[must_use]
    pub fn asks_of<R: Role>(crew: &Crew<R>) -> Self {
        let mut meeting = Asking { crew: crew.clone(), desk: Desk::default() };
        R::meet(&mut meeting);
        meeting.desk
    }

    /// What a role answers, asked of whoever serves it in `wiring`.
    #[must_use]
    pub fn answers_of<R: Role>(wiring: &Wiring) -> Self {
        let mut meeting = Answering { wiring: wiring.clone(), desk: Desk::default() };
        R::meet(&mut meeting);
        meeting.desk
    }

    /// Has a message answered; `within` is what the other side would wait, and never more than what is declared.
    ///
    /// # Errors
    /// There is no such message, or it cannot be read.
    pub fn ask(&self, message: &str, body: &[u8], within: Duration) -> Asked {
        match self.by_name.get(message) {
            Some((ask, _)) => ask(body, within),
            None => refused(),
        }
    }

    /// Leaves a message.
    ///
    /// # Errors
    /// There is no such message, it cannot be read, or nobody takes it.
    pub fn tell(&self, message: &str, body: &[u8]) -> Result<(), Unanswered> {
        self.by_name.get(message).map_or(Err(Unanswered::Refused), |(_, tell)| tell(body))
    }
}

fn refused() -> Asked {
    futures::future::ready(Err(Unanswered::Refused)).boxed()
}

fn why(e: AskError) -> Unanswered {
    match e {
        AskError::NotDelivered => Unanswered::NotDelivered,
        AskError::Overloaded => Unanswered::Overloaded,
        AskError::Crashed => Unanswered::Crashed,
        AskError::Timeout { .. } => Unanswered::Timeout,
    }
}

fn written<M: RoleMessage>(answer: Result<M::Result, AskError>) -> Result<Vec<u8>, Unanswered> {
    let answer = answer.map_err(why)?;
    serde_json::to_vec(&answer).map_err(|e| {
        tracing::error!(message = M::NAME, error = %e, "an answer has no JSON");
        Unanswered::Crashed
    })
}

/// A message by its way in: read first, and asked for no longer than is declared.
fn entry<M: RoleMessage, A, E>(
    ask: impl Fn(M, Duration) -> A + Send + Sync + 'static,
    tell: impl Fn(M) -> Result<(), E> + Send + Sync + 'static,
) -> (Ask, Tell)
where
    A: Future<Output = Result<M::Result, AskError>> + Send + 'static,
{
    let ask = move |body: &[u8], within: Duration| {
        let Ok(message) = serde_json::from_slice::<M>(body) else { return refused() };
        let within = within.min(message.deadline());
        let answer = ask(message, within);
        async move { written::<M>(answer.await) }.boxed()
    };
    let tell = move |body: &[u8]| {
        let message = serde_json::from_slice::<M>(body).map_err(|_| Unanswered::Refused)?;
        tell(message).map_err(|_| Unanswered::Overloaded)
    };
    (Box::new(ask), Box::new(tell))
}

struct Asking<R: Role> {
    crew: Crew<R>,
    desk: Desk,
}

impl<R: Role> Visit<R> for Asking<R> {
    fn asks<M: RoleMessage>(&mut self)
    where
        R: Asks<M>,
    {
        let (asking, telling) = (self.crew.clone(), self.crew.clone());
        let ask = move |message: M, within| {
            let crew = asking.clone();
            async move { crew.ask_within(message, within).await }
        };
        self.desk.by_name.insert(M::NAME, entry(ask, move |message| telling.tell(message)));
    }
}

struct Answering {
    wiring: Wiring,
    desk: Desk,
}

impl<R: Role> Visit<R> for Answering {
    fn answers<M: RoleMessage<To = R>>(&mut self) {
        let (asking, telling) = (self.wiring.clone(), self.wiring.clone());
        let ask = move |message: M, within| {
            let inlet = asking.inlet::<M>().clone();
            async move { inlet.ask(message, within).await }
        };
        self.desk.by_name.insert(M::NAME, entry(ask, move |message| telling.tell(message)));
    }
}
