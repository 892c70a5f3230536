//! The threads of one class.

use super::class::Class;
use crate::control::locked;
use crate::crash::{Caught, guarded};
use crate::record::Record;
use serde::Serialize;
use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::panic::resume_unwind;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::Instant;

/// A thread without work ends after this.
const IDLE: Duration = Duration::from_secs(5);
/// Stack of a thread, in bytes; only what is used of it takes memory.
const STACK: usize = 1 << 20;

/// What the pool of a class is at; plain data.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClassInfo {
    /// Which.
    pub class: Class,
    /// Threads it has now.
    pub threads: usize,
    /// Calls on a thread.
    pub running: usize,
    /// Calls that wait for a thread.
    pub waiting: usize,
    /// Calls asked for longer ago than the patience, and not back.
    pub overdue: usize,
    /// Calls that came back.
    pub finished: u64,
    /// Time that those took on their threads, in nanoseconds.
    pub busy_ns: u64,
    /// Age of the oldest call that is not back.
    pub oldest: Duration,
    /// False: a call is overdue, and none has come back since it became so.
    pub progresses: bool,
}

/// The pool of a class.
#[derive(Debug)]
pub(super) struct Pool {
    class: Class,
    room: Arc<Semaphore>,
    /// A call that runs for longer hangs.
    hangs_after: Duration,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    class: Class,
    state: Mutex<State>,
    /// A job came.
    work: Condvar,
    /// A call ended.
    ended: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// No longer than the class has threads: a job has its permit already.
    jobs: VecDeque<Job>,
    threads: usize,
    /// Threads that wait for a job.
    idle: usize,
    /// Calls that hang and have given their place away, the thread apart.
    hanging: usize,
    /// Threads outside that wait for calls to end.
    settling: usize,
    /// Calls not back, by order of arrival.
    calls: BTreeMap<u64, Call>,
    next: u64,
    finished: u64,
    busy_ns: u64,
    last_end: Option<Instant>,
}

#[derive(Debug)]
struct Call {
    actor: Arc<Record>,
    since: Instant,
    /// On its thread.
    began: Option<Instant>,
    /// It has no place any more.
    hangs: bool,
    told: bool,
}

struct Job {
    call: u64,
    work: Box<dyn FnOnce() + Send>,
    room: OwnedSemaphorePermit,
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Job({})", self.call)
    }
}

/// A call that waits for a thread; forgotten when nobody waits for it any more.
struct Waiting<'a> {
    shared: &'a Shared,
    call: Option<u64>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Some(call) = self.call {
            locked(&self.shared.state).calls.remove(&call);
            self.shared.ended.notify_all();
        }
    }
}

/// Payload that unwinds a call which shall never return: what a hung disk is in simulated time.
struct Hung;

thread_local! {
    static HANGING: Cell<bool> = const { Cell::new(false) };
    static INLINE: Cell<bool> = const { Cell::new(false) };
}

/// Whether the work that unwinds now is one that never returns: what it holds stays held.
pub(super) fn hangs() -> bool {
    HANGING.get()
}

/// Whether this thread runs blocking work in the middle of a poll, where waiting would stop everything.
pub(crate) fn is_inline() -> bool {
    INLINE.get()
}

/// Ends the call under work as one that never returns.
pub(crate) fn hang() -> ! {
    HANGING.set(true);
    resume_unwind(Box::new(Hung))
}

impl Pool {
    pub(super) fn new(class: Class, hangs_after: Duration) -> Self {
        let shared = Shared { class, state: Mutex::default(), work: Condvar::new(), ended: Condvar::new() };
        Pool { class, room: Arc::new(Semaphore::new(class.threads())), hangs_after, shared: Arc::new(shared) }
    }

    pub(super) fn class(&self) -> Class {
        self.class
    }

    /// Runs work on a thread; its panic comes back as a value.
    pub(super) async fn run<R: Send + 'static>(
        &self,
        actor: &Arc<Record>,
        work: impl FnOnce() -> R + Send + 'static,
    ) -> Result<R, Caught> {
        let call = self.shared.open(actor.clone());
        let mut waiting = Waiting { shared: &self.shared, call: Some(call) };
        let room = self.place().await;
        waiting.call = None;
        let (tx, rx) = oneshot::channel();
        let name = actor.name.clone();
        let class = self.class.name();
        let work = move || {
            if let Err(Err(caught)) = tx.send(guarded(work)) {
                tracing::error!(target: "actor", actor = %name, class, cause = %caught.cause,
                    at = caught.location.as_deref(), "blocking work panicked, and nobody waited for it any more");
            }
        };
        self.shared.submit(Job { call, work: Box::new(work), room });
        let lost = |_| Err(Caught::of(format!("no thread can be started for {class}")));
        rx.await.unwrap_or_else(lost)
    }

    /// Waits for a place, which a call that hangs may have to give up.
    async fn place(&self) -> OwnedSemaphorePermit {
        if let Ok(room) = self.room.clone().try_acquire_owned() {
            return room;
        }
        let mut place = std::pin::pin!(self.room.clone().acquire_owned());
        loop {
            let next = tokio::time::timeout_at(self.next_to_hang(), place.as_mut());
            match next.await {
                Ok(room) => return room.expect("the semaphore of a class is never closed"),
                Err(_) => self.make_room(),
            }
        }
    }

    /// When there may be a call to take the place of.
    fn next_to_hang(&self) -> Instant {
        let state = locked(&self.shared.state);
        let none = Instant::now() + self.hangs_after;
        if state.hanging >= self.class.hanging() {
            return none;
        }
        let began = state.calls.values().filter(|c| !c.hangs).filter_map(|c| c.began);
        began.min().map_or(none, |at| at + self.hangs_after)
    }

    /// Takes its place from each call that hangs, as long as the class may have threads for them.
    fn make_room(&self) {
        let now = Instant::now();
        let mut state = locked(&self.shared.state);
        let left = self.class.hanging() - state.hanging;
        let hangs = |c: &&mut Call| !c.hangs && c.began.is_some_and(|at| now >= at + self.hangs_after);
        let places = state.calls.values_mut().filter(hangs).take(left).map(|c| c.hangs = true).count();
        state.hanging += places;
        drop(state);
        self.room.add_permits(places);
    }

    /// Runs work here and now. `None`: it hangs, and stays among the calls that are not back.
    pub(super) fn inline<R>(&self, actor: &Arc<Record>, work: impl FnOnce() -> R) -> Option<Result<R, Caught>> {
        let call = self.shared.open(actor.clone());
        let outer = INLINE.replace(true);
        let out = guarded(work);
        INLINE.set(outer);
        if HANGING.replace(false) {
            return None;
        }
        self.shared.close(call, Duration::ZERO);
        Some(out)
    }

    /// Whose call is out for longest, while the class finishes nothing.
    pub(super) fn stands_still(&self, now: Instant, patience: Duration) -> Option<Arc<str>> {
        let state = locked(&self.shared.state);
        Some(state.standing(now, patience).next()?.actor.name.clone())
    }

    pub(super) fn info(&self, now: Instant, patience: Duration) -> ClassInfo {
        let state = locked(&self.shared.state);
        let running = state.calls.values().filter(|c| c.began.is_some()).count();
        ClassInfo {
            class: self.class,
            threads: state.threads,
            running,
            waiting: state.calls.len() - running,
            overdue: state.overdue(now, patience).count(),
            finished: state.finished,
            busy_ns: state.busy_ns,
            oldest: state.calls.values().next().map_or(Duration::ZERO, |c| now.saturating_duration_since(c.since)),
            progresses: state.standing(now, patience).next().is_none(),
        }
    }

    pub(super) fn overdue(&self, actor: u64, now: Instant, patience: Duration) -> Vec<String> {
        let state = locked(&self.shared.state);
        let of_actor = state.overdue(now, patience).filter(|c| c.actor.id == actor);
        of_actor.map(|c| format!("{} for {} s", self.class.name(), (now - c.since).as_secs())).collect()
    }

    pub(super) fn log_overdue(&self, now: Instant, patience: Duration) {
        let mut state = locked(&self.shared.state);
        let late = |c: &&mut Call| !c.told && now.saturating_duration_since(c.since) > patience;
        for call in state.calls.values_mut().filter(late) {
            call.told = true;
            tracing::warn!(target: "actor", actor = %call.actor.name, class = self.class.name(), since = ?(now - call.since),
                running = call.began.is_some(), "a blocking call does not come back");
        }
        if !state.jobs.is_empty() {
            self.shared.staff(state);
        }
    }

    pub(super) fn settle(&self, until: Instant) -> bool {
        let mut state = locked(&self.shared.state);
        while !state.calls.is_empty() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            state.settling += 1;
            state = self.shared.ended.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
            state.settling -= 1;
        }
        true
    }
}

impl State {
    /// Calls that are overdue and after which nothing has come back any more. One that hangs among others that do is its own
    /// affair.
    fn standing(&self, now: Instant, patience: Duration) -> impl Iterator<Item = &Call> {
        let last = self.last_end;
        self.overdue(now, patience).filter(move |c| last.is_none_or(|end| end < c.since + patience))
    }

    fn overdue(&self, now: Instant, patience: Duration) -> impl Iterator<Item = &Call> {
        self.calls.values().filter(move |c| now.saturating_duration_since(c.since) > patience)
    }
}

impl Shared {
    fn open(&self, actor: Arc<Record>) -> u64 {
        let mut state = locked(&self.state);
        let call = state.next;
        state.next += 1;
        state.calls.insert(call, Call { actor, since: Instant::now(), began: None, hangs: false, told: false });
        call
    }

    fn close(&self, call: u64, took: Duration) {
        let mut state = locked(&self.state);
        state.calls.remove(&call);
        state.finished += 1;
        state.busy_ns += u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        state.last_end = Some(Instant::now());
        // A notification is a system call, whether anybody waits or not.
        if state.settling > 0 {
            self.ended.notify_all();
        }
    }

    /// Gives the place of a call back, unless it was taken.
    fn leave(&self, call: u64, room: OwnedSemaphorePermit) {
        let mut state = locked(&self.state);
        if state.calls.get(&call).is_some_and(|c| c.hangs) {
            state.hanging -= 1;
            room.forget();
        }
    }

    fn submit(self: &Arc<Self>, job: Job) {
        let mut state = locked(&self.state);
        state.jobs.push_back(job);
        self.staff(state);
    }

    /// Sees to it that a thread gets to the jobs that wait.
    fn staff(self: &Arc<Self>, mut state: MutexGuard<'_, State>) {
        if state.idle >= state.jobs.len() {
            // Who is woken finds the lock free.
            drop(state);
            self.work.notify_one();
            return;
        }
        if state.threads >= self.class.threads() + state.hanging {
            // A job comes with its permit: one of the threads has ended its call, and is about to look for the next.
            return;
        }
        let shared = self.clone();
        let thread = std::thread::Builder::new().name(self.class.name().to_owned()).stack_size(STACK);
        match thread.spawn(move || shared.serve()) {
            Ok(_) => state.threads += 1,
            // Another thread of the class gets to it, or the next look of the watchdog.
            Err(err) if state.threads > 0 => tracing::warn!(target: "actor", %err, "no further thread can be started"),
            Err(err) => {
                tracing::error!(target: "actor", %err, class = self.class.name(), "no thread can be started");
                for job in state.jobs.drain(..).collect::<Vec<_>>() {
                    state.calls.remove(&job.call);
                }
            }
        }
    }

    /// A thread's life.
    fn serve(&self) {
        let mut state = locked(&self.state);
        while let Some(job) = self.next_job(state) {
            let started = Instant::now();
            let Job { call, work, room } = job;
            // The work catches its own panics; what is left is a drop of its output that panics.
            let dropped = guarded(work);
            if let Err(caught) = dropped {
                tracing::error!(target: "actor", cause = %caught.cause, "dropping the output of blocking work panicked");
            }
            self.leave(call, room);
            self.close(call, started.elapsed());
            state = locked(&self.state);
        }
    }

    /// `None` after a while without work: the thread is counted out.
    fn next_job<'a>(&'a self, mut state: MutexGuard<'a, State>) -> Option<Job> {
        let until = Instant::now() + IDLE;
        loop {
            if let Some(job) = state.jobs.pop_front() {
                if let Some(call) = state.calls.get_mut(&job.call) {
                    call.began = Some(Instant::now());
                }
                return Some(job);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                state.threads -= 1;
                return None;
            }
            state.idle += 1;
            state = self.work.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
            state.idle -= 1;
        }
    }
}
