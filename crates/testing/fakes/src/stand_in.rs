//! Roles that a test plays: closures answer what the declaration says that the role answers, and all that was asked is kept.

use std::any::{Any, TypeId};
use std::fmt;
use std::future::{Future, ready};
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use actor::{ActorRef, AskError, Kernel, Route, Spec, TellError};

use contract::event::RecordEvent;
use contract::{Answers, Crew, EventRecorder, Role, RoleMessage, Wiring};
use futures::future::BoxFuture;
use model::event::NodeEvent;

/// As those of a node.
const MAILBOX: usize = 1024;

/// Spawns the actor of a role under the name that is declared for it, and sends it every message of the role. `factory` is
/// called again for each restart, with the capabilities of that generation.
pub fn start<R: Role, A: Answers<R>>(
    kernel: &Kernel,
    wiring: &Wiring,
    mut factory: impl FnMut(Crew<R>) -> A + Send + 'static,
) -> ActorRef<A> {
    let crew = wiring.crew::<R>();
    let actor =
        kernel.spawn(Spec::new(R::DECLARATION.actor).mailbox(MAILBOX), move |_generation| factory(crew.succeed()));
    wiring.connect::<R, A>(&actor);
    actor
}

/// What plays the role `R`. Messages without an answer of the test's are not delivered, as when nobody is there.
pub struct StandIn<R: Role> {
    wiring: Wiring,
    asked: Asked,
    crashes: Arc<Mutex<Vec<TypeId>>>,
    role: PhantomData<fn() -> R>,
}

/// What came, in order, whatever its type.
type Asked = Arc<Mutex<Vec<Box<dyn Any + Send>>>>;

impl<R: Role> Clone for StandIn<R> {
    fn clone(&self) -> Self {
        let (wiring, asked, crashes) = (self.wiring.clone(), self.asked.clone(), self.crashes.clone());
        Self { wiring, asked, crashes, role: self.role }
    }
}

impl<R: Role> fmt::Debug for StandIn<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StandIn({})", R::NAME)
    }
}

impl<R: Role> StandIn<R> {
    /// Plays the role on this wiring. Nothing is answered yet.
    #[must_use]
    pub fn on(wiring: &Wiring) -> Self {
        Self { wiring: wiring.clone(), asked: Arc::default(), crashes: Arc::default(), role: PhantomData }
    }

    /// From now on `M` is answered so.
    pub fn answer<M: RoleMessage<To = R>>(&self, mut answer: impl FnMut(&M) -> M::Result + Send + 'static)
    where
        M::Result: Send,
    {
        self.answer_later(move |message| ready(answer(message)));
    }

    /// From now on `M` is answered with what such a future gives. A deadline ends it, as it would end the work of an actor that
    /// nobody waits for any more.
    pub fn answer_later<M, F>(&self, mut answer: impl FnMut(&M) -> F + Send + 'static)
    where
        M: RoleMessage<To = R>,
        F: Future<Output = M::Result> + Send + 'static,
    {
        let answer: Answer<M> = Box::new(move |message| Box::pin(answer(message)));
        let (asked, crashes) = (self.asked.clone(), self.crashes.clone());
        let scripted = Scripted { asked, crashes, answer: Mutex::new(answer) };
        self.wiring.inlet::<M>().connect_route(Arc::new(scripted));
    }

    /// The next `M` ends its actor, as a bug would: it is not kept, nobody answers it, and a successor answers as before.
    pub fn crash_at_next<M: RoleMessage<To = R>>(&self) {
        lock(&self.crashes).push(TypeId::of::<M>());
    }

    /// From now on nobody answers `M`.
    pub fn leave<M: RoleMessage<To = R>>(&self) {
        self.wiring.inlet::<M>().disconnect();
    }

    /// Every `M` so far, in order of arrival.
    #[must_use]
    pub fn asked<M: RoleMessage<To = R>>(&self) -> Vec<M> {
        let asked = lock(&self.asked);
        asked.iter().filter_map(|message| message.downcast_ref::<M>().cloned()).collect()
    }

    /// Forgets what was asked so far, whatever it was.
    pub fn forget(&self) {
        lock(&self.asked).clear();
    }
}

fn lock<T>(m: &Mutex<T>) -> MutexGuard<'_, T> {
    m.lock().unwrap_or_else(PoisonError::into_inner)
}

type Answer<M> = Box<dyn FnMut(&M) -> BoxFuture<'static, <M as actor::Message>::Result> + Send>;

struct Scripted<M: RoleMessage> {
    asked: Asked,
    crashes: Arc<Mutex<Vec<TypeId>>>,
    answer: Mutex<Answer<M>>,
}

impl<M: RoleMessage> Scripted<M> {
    /// `None`: it crashes over it.
    fn answer(&self, message: M) -> Option<BoxFuture<'static, M::Result>> {
        let mut crashes = lock(&self.crashes);
        if let Some(at) = crashes.iter().position(|id| *id == TypeId::of::<M>()) {
            crashes.remove(at);
            return None;
        }
        let answer = (lock(&self.answer))(&message);
        lock(&self.asked).push(Box::new(message));
        Some(answer)
    }
}

impl<M: RoleMessage> Route<M> for Scripted<M> {
    fn tell(&self, message: M) -> Result<(), TellError> {
        if let Some(work) = self.answer(message) {
            // What takes time is done to its end though nobody waits.
            tokio::spawn(work);
        }
        Ok(())
    }

    fn ask(self: Arc<Self>, message: M, deadline: Duration) -> BoxFuture<'static, Result<M::Result, AskError>> {
        Box::pin(async move {
            // An actor has its turn after the asker's.
            tokio::task::yield_now().await;
            let work = self.answer(message).ok_or(AskError::Crashed)?;
            tokio::time::timeout(deadline, work).await.map_err(|_| AskError::Timeout { started: true })
        })
    }
}

/// An event recorder that keeps all it is told.
#[derive(Clone, Debug)]
pub struct Events(StandIn<EventRecorder>);

impl Events {
    /// Plays the event recorder on this wiring.
    #[must_use]
    pub fn on(wiring: &Wiring) -> Self {
        let recorder = StandIn::on(wiring);
        recorder.answer(|_: &RecordEvent| ());
        Self(recorder)
    }

    /// As [`Events::all`], and forgets them.
    #[must_use]
    pub fn taken(&self) -> Vec<NodeEvent> {
        let all = self.all();
        self.0.forget();
        all
    }

    /// Forgets them all.
    pub fn forget(&self) {
        self.0.forget();
    }

    /// All since they were last taken or forgotten.
    #[must_use]
    pub fn all(&self) -> Vec<NodeEvent> {
        self.0.asked::<RecordEvent>().into_iter().map(|m| m.event).collect()
    }

    /// All of them, as `Warning Failed: what went wrong`.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        self.all().iter().map(|e| format!("{} {}: {}", e.kind.as_str(), e.reason, e.message)).collect()
    }
}
