//! Events on their way to the API server. Pure: which request comes next, and what an answer means. Bounded.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use contract::event::EventEntry;
use ports::api::ApiError;

use crate::correlate::{LineKey, REMEMBERED, key_of};
use crate::recent::Recent;
use crate::wire::name_time;

#[cfg(test)]
mod tests;

/// Events that wait at most; more are dropped.
const ROOM: usize = 1000;
/// Room that is kept while nothing waits.
const BURST_ROOM: usize = 16;
/// Tries per event.
const TRIES: u32 = 12;

/// Events that the API server has not got yet, and the names of those that it has. Made by the wiring, so that a restart of
/// the recorder loses none of them; a clone is the same outbox.
#[derive(Clone, Debug, Default)]
pub struct Outbox(Arc<Mutex<Queue>>);

impl Outbox {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One event that waits.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Waiting {
    pub(crate) line: EventEntry,
    pub(crate) key: LineKey,
    /// Version of the pod when it happened.
    pub(crate) resource_version: Option<String>,
    /// Name of the event; given once, so that a request whose answer was lost is not a second event.
    pub(crate) name: String,
    /// The API has this event: bring it up to date instead of making it.
    pub(crate) known: bool,
    pub(crate) tries: u32,
}

/// What an answer means for the event at the head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// On to the next event.
    Go,
    /// Make the event that should have been brought up to date.
    Again,
    /// Later, the same again.
    Pause,
    /// Never mind: it will not be taken.
    Refused,
}

#[derive(Debug)]
pub(crate) struct Queue {
    waiting: VecDeque<Waiting>,
    /// Names of events that the API has.
    names: Recent<LineKey, String>,
    /// Time in the last name that was given.
    last_name: i64,
    /// Dropped for want of room or given up.
    lost: u64,
}

impl Default for Queue {
    fn default() -> Self {
        Self { waiting: VecDeque::new(), names: Recent::new(REMEMBERED), last_name: 0, lost: 0 }
    }
}

impl Queue {
    /// Queues a line. One that still waits for its first try takes the newer count instead.
    pub(crate) fn push(
        &mut self,
        line: &EventEntry,
        resource_version: Option<String>,
        name: impl FnOnce(i64) -> String,
    ) {
        let key = key_of(line);
        // The head may be under way.
        if let Some(same) = self.waiting.iter_mut().skip(1).find(|w| w.key == key) {
            same.line = line.clone();
            return;
        }
        if self.waiting.len() >= ROOM {
            self.lost += 1;
            return;
        }
        let (name, known) = match self.known_name(&key, line) {
            Some(name) => (name, true),
            None => {
                self.last_name = name_time(line.first, self.last_name);
                (name(self.last_name), false)
            }
        };
        self.waiting.push_back(Waiting { line: line.clone(), key, resource_version, name, known, tries: 0 });
    }

    /// A repetition of an event that the API has or that is about to be made.
    fn known_name(&mut self, key: &LineKey, line: &EventEntry) -> Option<String> {
        if line.count < 2 {
            return None;
        }
        let under_way = self.waiting.front().filter(|w| w.key == *key).map(|w| w.name.clone());
        under_way.or_else(|| self.names.get(key).cloned())
    }

    /// The event whose turn it is.
    pub(crate) fn head(&self) -> Option<&Waiting> {
        self.waiting.front()
    }

    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    /// Takes the answer about the head in.
    pub(crate) fn answered(&mut self, answer: Result<(), &ApiError>) -> Next {
        let Some(head) = self.waiting.front_mut() else { return Next::Go };
        let next = match answer {
            Ok(()) => Next::Go,
            // An earlier request got through, though its answer did not.
            Err(error) if error.is_already_exists() && !head.known => Next::Go,
            Err(error) if error.is_not_found() && head.known => Next::Again,
            Err(error) if !error.is_transient() => Next::Refused,
            Err(_) => Next::Pause,
        };
        match next {
            Next::Go => {
                if let Some(done) = self.waiting.pop_front() {
                    *self.names.touch(&done.key, String::new) = done.name;
                }
                if self.waiting.is_empty() {
                    // The room of a burst is not kept.
                    self.waiting.shrink_to(BURST_ROOM);
                }
            }
            Next::Again => head.known = false,
            Next::Refused => self.give_up(),
            Next::Pause => {
                head.tries += 1;
                if head.tries >= TRIES {
                    self.give_up();
                    return Next::Refused;
                }
            }
        }
        next
    }

    fn give_up(&mut self) {
        self.lost += 1;
        if let Some(gone) = self.waiting.pop_front() {
            self.names.forget(&gone.key);
        }
    }
}
