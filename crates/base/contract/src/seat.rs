//! The seat of a role whose actor may be replaced while the node runs. What is asked of the role passes here: it is counted, what
//! a later actor must know is remembered, a message whose receiver was replaced over it is sent again where that is declared,
//! and a candidate may be shown all of it.
//!
//! A role has a seat from [`Wiring::seat`](crate::Wiring::seat) on; asks of all others go their way as if there was none.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use actor::{AskError, Clock, Inlet, Subject, TellError};
use arc_swap::ArcSwapOption;
use futures::FutureExt;
use futures::future::BoxFuture;
use model::fared::Fared;
use tokio::sync::{Semaphore, oneshot};

use crate::declaration::{Declaration, Unanswered};
use crate::memory::{Memories, Told};
use crate::record::content;
use crate::role::{Endpoint, Keeper, RoleMessage, endpoint_of};
use crate::tally::Tally;

/// Messages that a candidate may be busy with; it is not shown what comes while there are more.
const SHOWN_AT_ONCE: usize = 256;

/// The seat of one role.
#[derive(Debug)]
pub struct Seat {
    clock: Clock,
    tally: Tally,
    memories: Memories,
    /// How often another actor took it.
    taken: AtomicU64,
    shadow: ArcSwapOption<Shadow>,
}

/// What was answered to the same message, here and by a candidate, as JSON; a digest where it is kept secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    /// Name of the message.
    pub message: &'static str,
    /// Its pod.
    pub subject: Option<Subject>,
    /// The answer of the one in force.
    pub ours: Result<String, AskError>,
    /// That of the candidate.
    pub theirs: Result<String, AskError>,
}

/// Hears what a candidate answered.
pub trait Compare: Send + Sync + 'static {
    /// Does what asks the candidate and compares; whoever asked the one in force does not wait for it.
    fn run(&self, work: BoxFuture<'static, ()>);
    /// Both have answered, or will not.
    fn answered(&self, answered: Answered);
    /// A message was not shown, for the candidate is too slow.
    fn passed_over(&self, message: &'static str);
}

/// Who is shown what the role is asked.
struct Shadow {
    /// Where the candidate is the role, and its seat there.
    there: Arc<dyn Keeper>,
    seat: Arc<Seat>,
    compare: Arc<dyn Compare>,
    room: Arc<Semaphore>,
}

impl fmt::Debug for Shadow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Shadow")
    }
}

impl Seat {
    pub(crate) fn of(declaration: &Declaration, clock: &Clock) -> Self {
        Seat {
            clock: clock.clone(),
            tally: Tally::of(declaration, clock),
            memories: Memories::default(),
            taken: AtomicU64::new(0),
            shadow: ArcSwapOption::empty(),
        }
    }

    /// How asks fared since the node began, by message.
    #[must_use]
    pub fn fared(&self) -> BTreeMap<&'static str, Fared> {
        self.tally.fared()
    }

    /// Messages with an ask that is open though its answer was due, and for how long it was: none, unless whoever asked is not
    /// polled any more.
    #[must_use]
    pub fn overdue(&self) -> Vec<(&'static str, Duration)> {
        self.tally.overdue()
    }

    /// Messages that are remembered.
    #[must_use]
    pub fn remembered(&self) -> usize {
        self.memories.len()
    }

    pub(crate) fn told(&self) -> Vec<Told> {
        self.memories.told()
    }

    /// Another actor has been connected.
    pub(crate) fn changed_hands(&self) {
        self.taken.fetch_add(1, Ordering::SeqCst);
        self.tally.begin_anew();
    }

    /// Tells whoever has been connected what it must know.
    pub(crate) fn remind(&self, of_role: &dyn Endpoint) -> usize {
        self.memories.tell_again(of_role)
    }

    /// See [`Wiring::show`](crate::Wiring::show).
    pub(crate) fn show(&self, (there, seat): (Arc<dyn Keeper>, Arc<Seat>), compare: Arc<dyn Compare>) {
        self.memories.note_in(&seat.memories);
        let room = Arc::new(Semaphore::new(SHOWN_AT_ONCE));
        self.shadow.store(Some(Arc::new(Shadow { there, seat, compare, room })));
    }

    /// Shows nobody anything any more.
    pub fn show_nobody(&self) {
        self.shadow.store(None);
    }

    /// Leaves a message.
    pub(crate) fn tell<M: RoleMessage>(&self, inlet: &Inlet<M>, message: M) -> Result<(), TellError> {
        self.memories.note(&message);
        if let Some(shadow) = &*self.shadow.load()
            && shadow.seat.tell(shadow.inlet(), message.clone()).is_err()
        {
            shadow.compare.passed_over(M::NAME);
        }
        inlet.tell(message)
    }

    /// Asks, and again when the actor was replaced over it and the message may be repeated.
    pub(crate) async fn ask<M: RoleMessage>(
        &self,
        inlet: &Inlet<M>,
        message: M,
        deadline: Duration,
    ) -> Result<M::Result, AskError> {
        let until = self.clock.now().checked_add(deadline);
        self.memories.note(&message);
        let shown = self.shadow.load().as_ref().and_then(|shadow| shadow.ask(&message, deadline));
        let answer = loop {
            let taken = self.taken.load(Ordering::SeqCst);
            let open = self.tally.open(M::NAME, until);
            let left = until.map_or(deadline, |until| until.saturating_duration_since(self.clock.now()));
            let answer = inlet.ask(message.clone(), left).await;
            if let Some(open) = open {
                open.end(&answer);
            }
            let is_lost = matches!(answer, Err(AskError::Crashed | AskError::NotDelivered));
            let is_replaced = is_lost && self.taken.load(Ordering::SeqCst) != taken;
            if !is_replaced || M::UNANSWERED != Unanswered::Repeat {
                break answer;
            }
        };
        if let Some(shown) = shown {
            let _nobody_compares = shown.send(answer.as_ref().map(|a| content(M::SECRET, a)).map_err(Clone::clone));
        }
        answer
    }
}

/// Where the answer in force goes to be compared.
type Shown = oneshot::Sender<Result<String, AskError>>;

impl Shadow {
    /// The way to the candidate.
    fn inlet<M: RoleMessage>(&self) -> &Inlet<M> {
        M::inlet(endpoint_of::<M::To>(self.there.endpoint()))
    }

    /// Asks the candidate, too.
    fn ask<M: RoleMessage>(self: &Arc<Self>, message: &M, deadline: Duration) -> Option<Shown> {
        let Ok(room) = self.room.clone().try_acquire_owned() else {
            self.compare.passed_over(M::NAME);
            return None;
        };
        let (tx, ours) = oneshot::channel();
        let (shadow, subject) = (self.clone(), message.subject());
        let theirs = message.clone();
        let work = async move {
            let _until_compared = room;
            let (theirs, ours) = futures::join!(shadow.seat.ask(shadow.inlet(), theirs, deadline), ours);
            // Whoever asked gave up: there is nothing to compare with.
            let Ok(ours) = ours else { return };
            let theirs = theirs.as_ref().map(|a| content(M::SECRET, a)).map_err(Clone::clone);
            shadow.compare.answered(Answered { message: M::NAME, subject, ours, theirs });
        };
        self.compare.run(work.boxed());
        Some(tx)
    }
}

#[cfg(test)]
mod tests;
