//! How the asks of a role fare: counted where they are sent, so that it is the same for an actor here and one elsewhere.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use actor::{AskError, Clock};
use model::fared::Fared;
use tokio::time::Instant;

use crate::declaration::{Declaration, Outcome};

/// Counts by message.
#[derive(Debug)]
pub(crate) struct Tally {
    clock: Clock,
    by_message: BTreeMap<&'static str, Mutex<Counts>>,
}

#[derive(Debug, Default)]
struct Counts {
    fared: Fared,
    /// Asks that are not answered yet, by number: since when, and until when they may be open.
    open: BTreeMap<u64, (Instant, Option<Instant>)>,
    next: u64,
}

/// An ask that is not answered yet. Dropped without [`Self::end`] it is given up by whoever asked, and counted nowhere.
#[derive(Debug)]
pub(crate) struct Open<'a> {
    counts: &'a Mutex<Counts>,
    number: u64,
    since: Instant,
}

fn locked(counts: &Mutex<Counts>) -> MutexGuard<'_, Counts> {
    counts.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Tally {
    pub(crate) fn of(declaration: &Declaration, clock: &Clock) -> Self {
        let by_message = declaration.answers.iter().map(|m| (m.name, Mutex::default())).collect();
        Tally { clock: clock.clone(), by_message }
    }

    /// `until`: when the answer is due.
    pub(crate) fn open(&self, message: &'static str, until: Option<Instant>) -> Option<Open<'_>> {
        let counts = self.by_message.get(message)?;
        let since = self.clock.now();
        let mut now = locked(counts);
        now.next += 1;
        let number = now.next;
        now.open.insert(number, (since, until));
        Some(Open { counts, number, since })
    }

    /// What was counted, by message.
    pub(crate) fn fared(&self) -> BTreeMap<&'static str, Fared> {
        let of = |counts: &Mutex<Counts>| {
            let now = locked(counts);
            let mut fared = now.fared.clone();
            fared.oldest = now.open.values().map(|(since, _)| since).min().map(Instant::elapsed);
            fared
        };
        self.by_message.iter().map(|(message, counts)| (*message, of(counts))).collect()
    }

    /// Messages with an ask that is open though its answer was due, and for how long it was.
    pub(crate) fn overdue(&self) -> Vec<(&'static str, Duration)> {
        let now = self.clock.now();
        let late = |counts: &Mutex<Counts>| {
            let due = locked(counts).open.values().filter_map(|(_, until)| *until).min()?;
            Some(now.saturating_duration_since(due)).filter(|late| !late.is_zero())
        };
        self.by_message.iter().filter_map(|(message, counts)| Some((*message, late(counts)?))).collect()
    }

    /// What is asked from now on is another one's: who waits for the former one counts no more.
    pub(crate) fn begin_anew(&self) {
        self.by_message.values().for_each(|counts| locked(counts).open.clear());
    }
}

impl Open<'_> {
    /// It came to its end.
    pub(crate) fn end<T: Outcome>(self, answer: &Result<T, AskError>) {
        let mut now = locked(self.counts);
        if now.open.remove(&self.number).is_none() {
            return;
        }
        match answer {
            Ok(answer) => now.fared.answered(answer.is_failure(), self.since.elapsed()),
            Err(AskError::Crashed) => now.fared.crashed += 1,
            Err(AskError::Timeout { .. }) => now.fared.expired += 1,
            Err(AskError::NotDelivered | AskError::Overloaded) => now.fared.unheard += 1,
        }
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        locked(self.counts).open.remove(&self.number);
    }
}
