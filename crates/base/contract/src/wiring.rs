//! All routes and boards of a node.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use actor::{ActorRef, AskError, Clock, Family, Handler, Inlet, Managed, TellError};
use arc_swap::ArcSwapOption;
use model::PodUid;
use model::history::PodHistory;

use crate::board::{BoardReader, ValueReader};
use crate::feed::Feed;
use crate::fence::Fence;
use crate::pod_worker::{GrantStart, Retire, RetireWorker, UpdatePod, WorkerState};
use crate::record::{Entry, Recorder, content, json};
use crate::role::{Answers, Endpoint, Keeper, Posted, Role, RoleMessage, SingleValue, TableRow, endpoint_of};
use crate::roles::PodWorker;
use crate::seat::{Compare, Seat};

/// Who speaks where no role does: the program, a simulation, a test.
const NOBODY: &str = "";

macro_rules! endpoints {
    ($($other_field:ident: $other_role:ident),*; $($field:ident: $role:ident),* $(,)?) => {
        fn endpoints(fence: impl Fn(&'static str) -> Fence) -> Vec<Box<dyn Endpoint>> {
            vec![
                $(Box::new(<<$crate::$role as Role>::Endpoint>::new(fence(<$crate::$role as Role>::NAME))),)*
                $(Box::new(<<$crate::$other_role as Role>::Endpoint>::new(fence(<$crate::$other_role as Role>::NAME))),)*
            ]
        }
    };
}
for_each_role!(endpoints);

/// How the crew reach each other. Routes and boards live here, so they outlive every actor. Cheap to clone.
///
/// Whoever holds it may say anything to anybody: it stays with those who put a node together (the program, a simulation, a
/// test). A manager gets a [`Crew`] of its role.
#[derive(Clone)]
pub struct Wiring {
    inner: Arc<Inner>,
}

struct Inner {
    /// By [`Role::PLACE`].
    endpoints: Vec<Box<dyn Endpoint>>,
    /// As `endpoints`: of roles whose actor may be replaced while the node runs.
    seats: Vec<OnceLock<Arc<Seat>>>,
    recorder: Arc<ArcSwapOption<Box<dyn Recorder>>>,
}

/// A role of a wiring.
struct Kept {
    wiring: Wiring,
    place: usize,
}

impl Keeper for Kept {
    fn endpoint(&self) -> &dyn Endpoint {
        &*self.wiring.inner.endpoints[self.place]
    }
}

impl fmt::Debug for Wiring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.endpoints.fmt(f)
    }
}

impl Default for Wiring {
    fn default() -> Self {
        let recorder: Arc<ArcSwapOption<Box<dyn Recorder>>> = Arc::default();
        let endpoints = endpoints(|role| Fence::new(role, recorder.clone()));
        let seats = endpoints.iter().map(|_| OnceLock::new()).collect();
        Wiring { inner: Arc::new(Inner { endpoints, seats, recorder }) }
    }
}

impl Wiring {
    /// Routes every message of a role to this actor from now on. Messages that are queued elsewhere are answered there.
    pub fn connect<R: Role, A: Answers<R>>(&self, actor: &ActorRef<A>) {
        A::connect(actor, self.endpoint::<R>());
        if let Some(seat) = self.place::<R>().get() {
            seat.changed_hands();
        }
    }

    /// Where the seat of a role is, if it has one.
    pub(crate) fn place<R: Role>(&self) -> &OnceLock<Arc<Seat>> {
        &self.inner.seats[R::PLACE]
    }

    /// The seat of a role, which it has from the first call on.
    #[must_use]
    pub fn seat<R: Role>(&self, clock: &Clock) -> Arc<Seat> {
        self.place::<R>().get_or_init(|| Arc::new(Seat::of(&R::DECLARATION, clock))).clone()
    }

    /// All seats there are.
    pub fn seats(&self) -> impl Iterator<Item = &Arc<Seat>> {
        self.inner.seats.iter().filter_map(OnceLock::get)
    }

    /// Tells the actor that has just been connected what is remembered; answers how many messages it had no room for.
    #[must_use]
    pub fn remind<R: Role>(&self) -> usize {
        self.place::<R>().get().map_or(0, |seat| seat.remind(self.endpoint::<R>()))
    }

    /// How many messages [`Self::remind`] will tell.
    #[must_use]
    pub fn reminders<R: Role>(&self) -> usize {
        self.place::<R>().get().map_or(0, |seat| seat.remembered())
    }

    /// Shows a candidate, who is the role in another wiring, what is asked from now on; it knows before what is remembered.
    /// Whatever it answers is compared, and has no effect here.
    pub fn show<R: Role>(&self, there: &Self, clock: &Clock, compare: Arc<dyn Compare>) {
        let kept = Kept { wiring: there.clone(), place: R::PLACE };
        self.seat::<R>(clock).show((Arc::new(kept), there.seat::<R>(clock)), compare);
    }

    /// Routes the messages of the role PodWorker to a family with one actor per pod.
    pub fn connect_workers<A>(&self, family: &Arc<Family<PodUid, A>>)
    where
        A: Managed + Handler<UpdatePod> + Handler<GrantStart>,
    {
        family.connect::<UpdatePod>(self.inlet(), |m| &m.uid, true);
        family.connect::<GrantStart>(self.inlet(), |m| &m.uid, false);
        let endpoint = self.endpoint::<PodWorker>();
        let retire = Retire {
            family: family.clone(),
            fence: endpoint.fence().clone(),
            rows: WorkerState::board(endpoint).clone(),
            histories: PodHistory::board(endpoint).clone(),
        };
        self.inlet::<RetireWorker>().connect_route(Arc::new(retire));
    }

    /// The route of a message, for whoever answers that one alone. What is sent through it directly is not noted.
    #[must_use]
    pub fn inlet<M: RoleMessage>(&self) -> &Inlet<M> {
        M::inlet(self.endpoint::<M::To>())
    }

    /// Sends a message in nobody's name, and waits for the answer.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn ask<M: RoleMessage>(&self, message: M) -> Result<M::Result, AskError> {
        let deadline = message.deadline();
        self.exchange(NOBODY, message, deadline).await
    }

    /// As [`Self::ask`], where the caller has less patience than is declared.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub async fn ask_within<M: RoleMessage>(&self, message: M, deadline: Duration) -> Result<M::Result, AskError> {
        self.exchange(NOBODY, message, deadline).await
    }

    /// As [`Self::ask`], for answers that can be failures themselves.
    ///
    /// # Errors
    /// The receiver's failure, or what the absence of an answer means in its words.
    pub async fn call<M, T, E>(&self, message: M) -> Result<T, E>
    where
        M: RoleMessage<Result = Result<T, E>>,
        E: From<AskError>,
    {
        self.ask(message).await?
    }

    /// Leaves a message in nobody's name.
    ///
    /// # Errors
    /// See [`TellError`].
    pub fn tell<M: RoleMessage>(&self, message: M) -> Result<(), TellError> {
        self.leave(NOBODY, message)
    }

    /// A table, to read.
    #[must_use]
    pub fn board<T: TableRow>(&self) -> BoardReader<T::Key, T> {
        T::board(self.endpoint::<T::By>()).reader()
    }

    /// A single value, to read.
    #[must_use]
    pub fn value<T: SingleValue>(&self) -> ValueReader<T> {
        T::value(self.endpoint::<T::By>()).reader()
    }

    /// What is posted, for a reader in another process.
    #[must_use]
    pub fn feed<P: Posted>(&self) -> Box<dyn Feed> {
        P::feed(self.endpoint::<P::By>())
    }

    /// Posts a row in the name of its role, past its fence. For simulations and tests that play the role.
    pub fn put<T: TableRow>(&self, key: T::Key, row: T) {
        let endpoint = self.endpoint::<T::By>();
        T::board(endpoint).put(endpoint.fence(), key, Some(Arc::new(row)));
    }

    /// Takes a row away, as [`Self::put`].
    pub fn take_away<T: TableRow>(&self, key: &T::Key) {
        let endpoint = self.endpoint::<T::By>();
        T::board(endpoint).put(endpoint.fence(), key.clone(), None);
    }

    /// Publishes a value, as [`Self::put`].
    pub fn set<T: SingleValue>(&self, value: T) {
        let endpoint = self.endpoint::<T::By>();
        T::value(endpoint).put(endpoint.fence(), value);
    }

    /// Posts of former generations of a role that were refused.
    #[must_use]
    pub fn refused_posts<R: Role>(&self) -> u64 {
        self.endpoint::<R>().fence().refused()
    }

    /// Rows of all boards that were looked at so far. What is done for one pod should not depend on how many there are.
    #[must_use]
    pub fn rows_read(&self) -> u64 {
        self.inner.endpoints.iter().map(|e| e.rows_read()).sum()
    }

    /// From now on everything that is said and posted is noted. One recorder at a time.
    pub fn record(&self, recorder: impl Recorder) {
        self.inner.recorder.store(Some(Arc::new(Box::new(recorder))));
    }

    /// Routes and boards of a role.
    pub(crate) fn endpoint<R: Role>(&self) -> &R::Endpoint {
        endpoint_of::<R>(&*self.inner.endpoints[R::PLACE])
    }

    /// Asks in the name of a role, noted.
    pub(crate) async fn exchange<M: RoleMessage>(
        &self,
        from: &'static str,
        message: M,
        deadline: Duration,
    ) -> Result<M::Result, AskError> {
        let recorder = self.recorder();
        if let Some(recorder) = &recorder {
            note(&***recorder, from, M::To::NAME, M::NAME, || content(M::SECRET, &message));
        }
        let mut span = trace::child(M::NAME);
        let answer = span.run(self.carry(message, deadline)).await;
        if let Err(e) = &answer {
            span.fail(|| e.to_string());
        }
        if let Some(recorder) = &recorder {
            let body = || answer.as_ref().map_or_else(|e| json(&e.to_string()), |answer| content(M::SECRET, answer));
            note(&***recorder, M::To::NAME, from, M::NAME, body);
        }
        answer
    }

    /// To whoever answers, by way of the role's seat if it has one.
    async fn carry<M: RoleMessage>(&self, message: M, deadline: Duration) -> Result<M::Result, AskError> {
        match self.place::<M::To>().get() {
            None => self.inlet::<M>().ask(message, deadline).await,
            Some(seat) => Box::pin(seat.ask(self.inlet(), message, deadline)).await,
        }
    }

    /// Leaves a message in the name of a role, noted.
    pub(crate) fn leave<M: RoleMessage>(&self, from: &'static str, message: M) -> Result<(), TellError> {
        if let Some(recorder) = self.recorder() {
            note(&**recorder, from, M::To::NAME, M::NAME, || content(M::SECRET, &message));
        }
        match self.place::<M::To>().get() {
            None => self.inlet::<M>().tell(message),
            Some(seat) => seat.tell(self.inlet(), message),
        }
    }

    fn recorder(&self) -> Option<Arc<Box<dyn Recorder>>> {
        self.inner.recorder.load_full()
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

#[cfg(test)]
mod tests;
