//! What a member of the crew may do.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use actor::{AskError, TellError};
use model::event::NodeEvent;

use crate::board::{BoardPoster, BoardReader, ValuePoster, ValueReader};
use crate::event::RecordEvent;
use crate::feed::Feed;
use crate::fence::FenceToken;
use crate::memory::Told;
use crate::role::{Asks, Endpoint, Posted, Reads, Role, RoleMessage, SingleValue, TableRow};
use crate::taker::Taker;
use crate::wiring::Wiring;

/// What one generation of a role may do: send what it declares, read what it declares, post what is its own.
///
/// Made by the wiring, one per generation of the actor. The next one ends this one's right to post: a predecessor whose work
/// goes on somewhere, or a replaced manager that still runs, changes nothing any more.
pub struct Crew<R: Role> {
    wiring: Wiring,
    token: FenceToken,
    role: PhantomData<fn() -> R>,
}

impl<R: Role> Clone for Crew<R> {
    fn clone(&self) -> Self {
        Crew { wiring: self.wiring.clone(), token: self.token.clone(), role: PhantomData }
    }
}

impl<R: Role> fmt::Debug for Crew<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Crew<{}>", R::NAME)
    }
}

impl<R: Role> Crew<R> {
    pub(crate) fn new(wiring: Wiring, member: Option<Arc<str>>) -> Self {
        let token = wiring.endpoint::<R>().fence().issue(member);
        Crew { wiring, token, role: PhantomData }
    }

    /// The capabilities of the next generation of the same actor. Its right to post ends that of this one; once another actor
    /// has taken the place, or the member was retired, it has none.
    #[must_use]
    pub fn succeed(&self) -> Self {
        Crew { wiring: self.wiring.clone(), token: self.token.succeed(), role: PhantomData }
    }

    /// Sends a message and waits for the answer, at most as long as is declared.
    ///
    /// # Errors
    /// See [`AskError`]; what to do then is [`RoleMessage::UNANSWERED`].
    pub async fn ask<M: RoleMessage>(&self, message: M) -> Result<M::Result, AskError>
    where
        R: Asks<M>,
    {
        let deadline = message.deadline();
        self.ask_within(message, deadline).await
    }

    /// As [`Self::ask`], where the caller has less patience than is declared.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub async fn ask_within<M: RoleMessage>(&self, message: M, deadline: Duration) -> Result<M::Result, AskError>
    where
        R: Asks<M>,
    {
        self.wiring.exchange(R::NAME, message, deadline).await
    }

    /// As [`Self::ask`], for answers that can be failures themselves.
    ///
    /// # Errors
    /// The receiver's failure, or what the absence of an answer means in its words.
    pub fn call<M, T, E>(&self, message: M) -> impl Future<Output = Result<T, E>> + Send + 'static
    where
        R: Asks<M>,
        M: RoleMessage<Result = Result<T, E>>,
        E: From<AskError>,
    {
        let deadline = message.deadline();
        let wiring = self.wiring.clone();
        async move { wiring.exchange(R::NAME, message, deadline).await? }
    }

    /// Leaves a message; never waits.
    ///
    /// # Errors
    /// See [`TellError`].
    pub fn tell<M: RoleMessage>(&self, message: M) -> Result<(), TellError>
    where
        R: Asks<M>,
    {
        self.wiring.leave(R::NAME, message)
    }

    /// A table that is read.
    #[must_use]
    pub fn board<T: TableRow>(&self) -> BoardReader<T::Key, T>
    where
        R: Reads<T>,
    {
        self.wiring.board::<T>()
    }

    /// A single value that is read.
    #[must_use]
    pub fn value<T: SingleValue>(&self) -> ValueReader<T>
    where
        R: Reads<T>,
    {
        self.wiring.value::<T>()
    }

    /// What is read, or posted by the role itself, for a reader in another process.
    #[must_use]
    pub fn feed<P: Posted>(&self) -> Box<dyn Feed>
    where
        R: Reads<P>,
    {
        self.wiring.feed::<P>()
    }

    /// What the role posts, for its actor in another process.
    #[must_use]
    pub fn own_feed<P: Posted<By = R>>(&self) -> Box<dyn Feed> {
        self.wiring.feed::<P>()
    }

    /// Posts what its actor posted in another process.
    #[must_use]
    pub fn taker<P: Posted<By = R>>(&self) -> Box<dyn Taker> {
        P::taker(self.wiring.endpoint::<R>(), self.token.clone())
    }

    /// What an actor that begins in the place of another one must be told: for one in another process, whom nobody else tells.
    #[must_use]
    pub fn remembered(&self) -> Vec<Told> {
        self.wiring.place::<R>().get().map(|seat| seat.told()).unwrap_or_default()
    }

    /// An own table, to post on.
    #[must_use]
    pub fn poster<T: TableRow<By = R>>(&self) -> BoardPoster<T::Key, T> {
        T::board(self.wiring.endpoint::<R>()).poster(self.token.clone())
    }

    /// An own value, to publish.
    #[must_use]
    pub fn publisher<T: SingleValue<By = R>>(&self) -> ValuePoster<T> {
        T::value(self.wiring.endpoint::<R>()).poster(self.token.clone())
    }

    /// Whether this is the newest generation: what an older one posts is refused.
    #[must_use]
    pub fn is_current(&self) -> bool {
        self.token.is_current()
    }
}

impl<R: Asks<RecordEvent>> Crew<R> {
    /// Records an event; never waits. A lost event is counted by the kernel and is no error for the caller.
    pub fn emit(&self, event: NodeEvent) {
        self.emit_annotated(event, BTreeMap::new());
    }

    /// As [`Self::emit`], with annotations for programs.
    pub fn emit_annotated(&self, event: NodeEvent, annotations: BTreeMap<String, String>) {
        let _counted_by_the_kernel = self.tell(RecordEvent { event, annotations });
    }
}

impl Wiring {
    /// The capabilities of a role, for an actor that takes its place: what another one posts is refused from now on, its later
    /// generations included.
    #[must_use]
    pub fn crew<R: Role>(&self) -> Crew<R> {
        Crew::new(self.clone(), None)
    }

    /// As [`Self::crew`], for one member of a role with an actor per pod: each has a right to post of its own.
    #[must_use]
    pub fn member_crew<R: Role>(&self, member: &str) -> Crew<R> {
        Crew::new(self.clone(), Some(member.into()))
    }
}

#[cfg(test)]
pub(crate) mod tests;
