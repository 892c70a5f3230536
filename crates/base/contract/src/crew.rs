//! Who may say what to whom: the types behind the declarations of the managers.
//!
//! Each manager's file ends with a `role!` declaration. From it come the routes, the boards, the traits [`Asks`] and
//! [`Reads`] that make an undeclared edge a compile error, and the [`Declaration`] that documents and tests are made from.

use std::fmt;
use std::fmt::Debug;
use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use actor::{ActorRef, AskError, Inlet, Mail, Managed, Subject, TellError};
use model::core::Pod;
use model::{PodUid, pod};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::board::{Board, BoardPoster, BoardReader, Key, Value, ValuePoster, ValueReader};
use crate::declaration::{Declaration, Unanswered};
use crate::fence::{Fence, FenceToken};
use crate::record::{Entry, Recorder, json};
use crate::wiring::Wiring;

/// A message of a declared role: plain data that can cross a process border, answered with plain data.
pub trait Letter:
    Mail<Result: Serialize + DeserializeOwned> + Clone + Debug + Serialize + DeserializeOwned + Sync
{
    /// Who answers it.
    type To: Role;
    /// Its name.
    const NAME: &'static str;
    /// What a caller does without an answer.
    const UNANSWERED: Unanswered;
    /// How long the answer may take, where the message itself does not say more.
    const DEADLINE: Duration;

    /// How long the answer to this very message may take.
    fn deadline(&self) -> Duration {
        Self::DEADLINE
    }

    /// Its route.
    fn inlet(desk: &<Self::To as Role>::Desk) -> &Inlet<Self>;
}

/// What says which pod a message is for: the pod that is blamed when the turn crashes.
pub(crate) trait OfPod {
    /// UID of the pod.
    fn uid(&self) -> Subject;
}

impl OfPod for PodUid {
    fn uid(&self) -> Subject {
        self.as_str().into()
    }
}

impl OfPod for Arc<Pod> {
    fn uid(&self) -> Subject {
        pod::uid(self).as_str().into()
    }
}

/// A row of a table that a role posts.
pub trait TableRow: Debug + Serialize + DeserializeOwned + Send + Sync + Sized + 'static {
    /// Who posts it.
    type By: Role;
    /// What names a row.
    type Key: Key + DeserializeOwned + Debug;

    /// Where it is posted.
    fn board(desk: &<Self::By as Role>::Desk) -> &Board<Self::Key, Self>;
}

/// A single value that a role publishes.
pub trait SingleValue: Debug + Serialize + DeserializeOwned + Send + Sync + Sized + 'static {
    /// Who publishes it.
    type By: Role;

    /// Where it is published.
    fn value(desk: &<Self::By as Role>::Desk) -> &Value<Self>;
}

/// A part of the crew that others know by what it answers and posts.
pub trait Role: Sized + 'static {
    /// Its name, as documents and logs have it.
    const NAME: &'static str;
    /// All that is declared of it.
    const DECLARATION: Declaration;
    /// Its routes and boards.
    type Desk: Desk;

    /// Its routes and boards in a wiring.
    fn desk(wiring: &Wiring) -> &Self::Desk;

    /// Shows every type that is declared: messages, answers, keys, rows, values.
    #[cfg(test)]
    fn each_type(types: &mut impl Types);
}

/// Meets the types of a role.
#[cfg(test)]
pub trait Types {
    /// A message.
    fn meet_message<M: Letter>(&mut self);
    /// Another one; errors come inside of answers.
    fn meet<T: Serialize + DeserializeOwned + Debug>(&mut self, name: &'static str);
}

/// Routes and boards of one role.
pub trait Desk: Debug {
    /// Unconnected, empty, behind this fence.
    fn new(fence: Fence) -> Self;
    /// Decides who may post on its boards.
    fn fence(&self) -> &Fence;
}

/// Whoever handles every message of a role can take its place.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the {R} of a node",
    note = "it must be an actor with a `Handler` for each message of the role; see the role's file in crates/base/contract"
)]
pub trait Answers<R: Role>: Managed {
    /// Routes every message of the role to this actor from now on.
    fn connect(actor: &ActorRef<Self>, desk: &R::Desk);
}

/// The role has declared that it sends `M`.
#[diagnostic::on_unimplemented(
    message = "{Self} does not declare that it sends `{M}`",
    note = "add it to `asks` in the declaration of the role in crates/base/contract, if the edge belongs there"
)]
pub trait Asks<M: Letter>: Role {}

/// The role has declared that it reads what another one posts.
#[diagnostic::on_unimplemented(
    message = "{Self} does not declare that it reads `{T}`",
    note = "add it to `reads` in the declaration of the role in crates/base/contract, if the edge belongs there"
)]
pub trait Reads<T>: Role {}

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
        let token = R::desk(&wiring).fence().issue(member);
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
    /// See [`AskError`]; what to do then is [`Letter::UNANSWERED`].
    pub async fn ask<M: Letter>(&self, message: M) -> Result<M::Result, AskError>
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
    pub async fn ask_within<M: Letter>(&self, message: M, deadline: Duration) -> Result<M::Result, AskError>
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
        M: Letter<Result = Result<T, E>>,
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
    pub fn tell<M: Letter>(&self, message: M) -> Result<(), TellError>
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

    /// An own table, to post on.
    #[must_use]
    pub fn poster<T: TableRow<By = R>>(&self) -> BoardPoster<T::Key, T> {
        T::board(R::desk(&self.wiring)).poster(self.token.clone())
    }

    /// An own value, to publish.
    #[must_use]
    pub fn publisher<T: SingleValue<By = R>>(&self) -> ValuePoster<T> {
        T::value(R::desk(&self.wiring)).poster(self.token.clone())
    }

    /// Whether this is the newest generation: what an older one posts is refused.
    #[must_use]
    pub fn is_current(&self) -> bool {
        self.token.is_current()
    }
}

impl Wiring {
    /// Asks in the name of a role, noted.
    pub(crate) async fn exchange<M: Letter>(
        &self,
        from: &'static str,
        message: M,
        deadline: Duration,
    ) -> Result<M::Result, AskError> {
        let recorder = self.recorder();
        if let Some(recorder) = &recorder {
            note(&***recorder, from, M::To::NAME, M::NAME, || json(&message));
        }
        let answer = M::inlet(M::To::desk(self)).ask(message, deadline).await;
        if let Some(recorder) = &recorder {
            let body = || answer.as_ref().map_or_else(|e| json(&e.to_string()), json);
            note(&***recorder, M::To::NAME, from, M::NAME, body);
        }
        answer
    }

    /// Leaves a message in the name of a role, noted.
    pub(crate) fn leave<M: Letter>(&self, from: &'static str, message: M) -> Result<(), TellError> {
        if let Some(recorder) = self.recorder() {
            note(&**recorder, from, M::To::NAME, M::NAME, || json(&message));
        }
        M::inlet(M::To::desk(self)).tell(message)
    }
}

fn note(
    recorder: &dyn Recorder,
    from: &'static str,
    to: &'static str,
    what: &'static str,
    body: impl FnOnce() -> String,
) {
    recorder.entry(&Entry { from, to, what, body: body() });
}

/// The recorder of a wiring.
pub(crate) type Noted = Arc<Box<dyn Recorder>>;

#[cfg(test)]
pub(crate) mod tests;
