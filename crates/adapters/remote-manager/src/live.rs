//! One life of the connection: what the other process says, and what becomes of it.

use std::sync::Arc;
use std::time::Duration;

use actor::{Class, Effects};
use contract::seam::Refusal;
use contract::{Crew, Role};
use futures::future::AbortHandle;
use model::PodUid;
use ports::journal::{Journal, JournalError};
use seam::v1::{Call, FromManager, Keep, Kept, Ping, Rows, Unanswered, from_manager, to_manager};
use seam::{Boards, Desk, MAX_CALLS};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use trace::Context;

use crate::judge::Rate;
use crate::keep::{self, checked};
use crate::link::{Link, Session, Status};

/// Silence after which it counts as gone.
pub(crate) const SILENCE: Duration = Duration::from_secs(10);

/// Why a message is refused.
const NOT_SENT: &str = "a message that its role does not send, or that cannot be read";

/// What is known of the pods of this node.
pub(crate) type IsHere = Arc<dyn Fn(&PodUid) -> bool + Send + Sync>;

/// What a life works with.
pub(crate) struct World {
    pub(crate) link: Link,
    pub(crate) is_here: IsHere,
    pub(crate) journal: Option<Arc<dyn Journal>>,
    pub(crate) effects: Effects,
}

/// Its end ends every call that waits and all work for the other side.
pub(crate) struct Live {
    /// Which of all lives.
    pub(crate) number: u64,
    pub(crate) session: Arc<Session>,
    pub(crate) reader: Option<AbortHandle>,
    /// When it said something last.
    pub(crate) heard: Duration,
    pub(crate) rate: Rate,
    pub(crate) is_ready: bool,
    world: World,
    tables: &'static [&'static str],
    boards: Boards,
    desk: Desk,
    tasks: JoinSet<()>,
    /// Its calls to others that are under way.
    room: Arc<Semaphore>,
}

impl Live {
    pub(crate) fn new<R: Role>(
        number: u64,
        session: Arc<Session>,
        crew: &Crew<R>,
        world: World,
        now: Duration,
    ) -> Self {
        Live {
            number,
            session,
            reader: None,
            heard: now,
            rate: Rate::new(now),
            is_ready: false,
            world,
            tables: R::DECLARATION.keeps,
            boards: Boards::posts_of(crew),
            desk: Desk::asks_of(crew),
            tasks: JoinSet::new(),
            room: Arc::new(Semaphore::new(MAX_CALLS)),
        }
    }

    /// Work that ends with this life.
    pub(crate) fn spawn(&mut self, work: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(work);
    }

    /// Asks for a sign of life, or says that it has been missed.
    pub(crate) fn tick(&mut self, now: Duration) -> Result<(), &'static str> {
        while let Some(done) = self.tasks.try_join_next() {
            if let Err(e) = done {
                tracing::error!(error = %e, "work for a manager in another process panicked");
            }
        }
        if now.saturating_sub(self.heard) > SILENCE {
            return Err("it has been silent for 10 s");
        }
        let number = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        let _too_much_waits = self.session.out.say_now(to_manager::What::Ping(Ping { number }).into());
        Ok(())
    }

    /// What it says. `true`: it is ready from now on.
    pub(crate) fn hear(&mut self, frame: FromManager, now: Duration) -> bool {
        self.heard = now;
        match frame.what {
            Some(from_manager::What::Ready(_)) => return !std::mem::replace(&mut self.is_ready, true),
            Some(from_manager::What::Rows(rows)) => self.rows(rows),
            Some(from_manager::What::Answer(answer)) => {
                if !self.session.calls.answered(answer) {
                    self.refuse("an answer that nobody asked for", |s| &mut s.refused_answers);
                }
            }
            Some(from_manager::What::Call(call)) => self.call(call),
            Some(from_manager::What::Keep(call)) => self.keep(call),
            Some(from_manager::What::Pong(_)) | None => {}
        }
        false
    }

    fn rows(&mut self, rows: Rows) {
        let taken = self.boards.take(rows, &*self.world.is_here);
        for why in taken.refused {
            if matches!(why, Refusal::NoSuchPod(_) | Refusal::Fenced) {
                self.world.link.count(|s| s.late_rows += 1);
            }
            self.refuse(&format!("a row: {why}"), |s| &mut s.refused_rows);
        }
    }

    /// Counts, and tells of the first, the second, the fourth and so on: who lies all the time fills no log.
    fn refuse(&self, what: &str, counter: impl FnOnce(&mut Status) -> &mut u64) {
        refuse(&self.world.link, what, counter);
    }

    fn permit(&self) -> Option<OwnedSemaphorePermit> {
        self.room.clone().try_acquire_owned().ok()
    }

    fn call(&mut self, call: Call) {
        let Call { id, message, body, within_ms, traceparent, .. } = call;
        if id == 0 {
            if self.desk.tell(&message, &body) == Err(Unanswered::Refused) {
                self.refuse(NOT_SENT, |s| &mut s.refused_calls);
            }
            return;
        }
        let permit = self.permit();
        let asked = self.desk.ask(&message, &body, Duration::from_millis(within_ms));
        let asked = trace::within(Context::parse(&traceparent), asked);
        let (session, link) = (self.session.clone(), self.world.link.clone());
        self.tasks.spawn(async move {
            let answer = match permit {
                Some(_until_answered) => asked.await,
                None => Err(Unanswered::Overloaded),
            };
            if answer == Err(Unanswered::Refused) {
                refuse(&link, NOT_SENT, |s| &mut s.refused_calls);
            }
            let _it_is_gone = session.out.answer(id, answer).await;
        });
    }

    fn keep(&mut self, call: Keep) {
        let id = call.id;
        let soon = matches!(call.what, Some(seam::v1::keep::What::PutSoon(_)));
        let failed = |message: &str| keep::answer(id, Err(JournalError { message: message.to_owned() }));
        let journal = match (checked(self.tables, &call), self.world.journal.clone()) {
            (Err(keep::Refused), _) => {
                self.refuse("a key of the journal that its role does not keep, or too large a value", |s| {
                    &mut s.refused_keys
                });
                if !soon {
                    self.kept(failed("not a key of this role, or too large"));
                }
                return;
            }
            (Ok(()), None) if soon => return,
            (Ok(()), None) => return self.kept(failed("this node keeps no journal for this role")),
            (Ok(()), Some(journal)) => journal,
        };
        if soon {
            // In the order in which it was said; by contract it does not wait.
            let _nobody_asked = keep::done(&journal, call);
            return;
        }
        let Some(permit) = self.permit() else { return self.kept(failed("too many calls at once")) };
        let (session, effects) = (self.session.clone(), self.world.effects.clone());
        self.tasks.spawn(async move {
            let _until_answered = permit;
            let done = effects.attempt(Class::Journal, move || keep::done(&journal, call)).await;
            let kept = done.unwrap_or_else(|e| keep::answer(id, Err(JournalError { message: e.to_string() })));
            let _it_is_gone = session.out.say(to_manager::What::Kept(kept)).await;
        });
    }

    fn kept(&mut self, kept: Kept) {
        let session = self.session.clone();
        self.tasks.spawn(async move {
            let _it_is_gone = session.out.say(to_manager::What::Kept(kept)).await;
        });
    }
}

fn refuse(link: &Link, what: &str, counter: impl FnOnce(&mut Status) -> &mut u64) {
    let mut now = 0;
    link.count(|status| {
        let counter = counter(status);
        *counter += 1;
        now = *counter;
    });
    if now.is_power_of_two() {
        tracing::warn!(count = now, "refused of a manager in another process: {what}");
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.session.calls.end();
        if let Some(reader) = &self.reader {
            reader.abort();
        }
    }
}
