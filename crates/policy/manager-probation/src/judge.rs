//! The rules of a probation.

use std::fmt;
use std::time::Duration;

use model::fared::Fared;

/// An ask that waits so long is taken for lost, if those before took less. Also the least that is granted.
const SLOWEST: Duration = Duration::from_secs(2);
/// An ask may take so many times as long as nearly all before it.
const TIMES_SLOWER: u32 = 10;
/// Nobody minds an answer that comes within this time. A manager that takes a place is asked for all pods at once, as each of its
/// rows wakes a worker: 110 asks behind one another took half a second on a machine that had other work, of one that was as good
/// as the one before. Answers are counted by powers of two, so this begins to count above half a second.
const FAST_ENOUGH: Duration = Duration::from_secs(1);
/// Answers that say something about how long answers take.
const ENOUGH: u64 = 10;
/// Rows that are late by a race, of pods that have just gone.
const LATE_ROWS: u64 = 32;
/// Asks without answer, in percent, that are borne beyond those of the one before.
const BORNE_UNANSWERED: u64 = 5;
/// Answers that are failures, in percent, beyond those of the one before: pods come whose images are missing.
const BORNE_FAILURES: u64 = 25;
/// Of the rows that it found, in percent, those that may vanish while their pods run.
const BORNE_ROWS: u64 = 20;

/// One kind of message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// Its name.
    pub message: &'static str,
    /// How long its answer may take, as declared.
    pub deadline: Duration,
    /// How asks fared with the manager that had the place.
    pub before: Fared,
    /// How they fare with this one.
    pub now: Fared,
}

/// What is known of a manager on probation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seen {
    /// How long it has had the place.
    pub lasted: Duration,
    /// How long its probation is.
    pub probation: Duration,
    /// It is not there, and why.
    pub away: Option<String>,
    /// Times that its connection was made.
    pub lives: u64,
    /// By message.
    pub asked: Vec<Asked>,
    /// What it was told when it began, and how much of that it did not answer.
    pub reminders: (u64, u64),
    /// What it said that no honest manager says.
    pub lies: u64,
    /// Rows of pods that are not here.
    pub late_rows: u64,
    /// Rows of running pods that it found, and how many of them are gone.
    pub rows: (u64, u64),
}

/// Why a manager loses the place again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// It went.
    Gone(String),
    /// It came and went.
    Restless(u64),
    /// It says what its role does not say.
    Lies(u64),
    /// It posts rows of pods that are not here.
    Strangers(u64),
    /// It does not take what it has to know.
    Deaf(u64, u64),
    /// It has a message and does not answer.
    Hangs(&'static str, Duration),
    /// Asks expire.
    Expires(&'static str, u64, u64),
    /// Asks end without an answer.
    Drops(&'static str, u64, u64),
    /// More answers are failures than before.
    Fails(&'static str, u64, u64),
    /// Answers take longer than before.
    Slow(&'static str, Duration, Duration),
    /// Rows vanish.
    Vanish(u64, u64),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone(why) => write!(f, "it is away: {why}"),
            Self::Restless(lives) => write!(f, "it ended and began again, {lives} times in all"),
            Self::Lies(n) => write!(f, "it said {n} things that its role may not say"),
            Self::Strangers(n) => write!(f, "it posted {n} rows of pods that are not here"),
            Self::Deaf(all, unanswered) => {
                write!(f, "it did not answer {unanswered} of {all} messages that it must know")
            }
            Self::Hangs(message, waited) => {
                write!(f, "{message} has waited {:.1} s for an answer", waited.as_secs_f64())
            }
            Self::Expires(message, n, all) => write!(f, "{n} of {all} {message} had no answer in time"),
            Self::Drops(message, n, all) => write!(f, "{n} of {all} {message} ended without an answer"),
            Self::Fails(message, n, all) => write!(f, "{n} of {all} {message} failed, more than before"),
            Self::Slow(message, now, before) => write!(
                f,
                "{message} takes up to {:.3} s, with the one before it was {:.3} s",
                now.as_secs_f64(),
                before.as_secs_f64()
            ),
            Self::Vanish(gone, all) => write!(f, "{gone} of {all} rows of running pods vanished"),
        }
    }
}

/// What becomes of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing speaks against it so far.
    Wait,
    /// It has the place for good.
    Keep,
    /// The one before has the place again.
    RollBack(Reason),
}

/// Decides.
#[must_use]
pub fn judge(seen: &Seen) -> Verdict {
    let against = of_itself(seen).or_else(|| seen.asked.iter().find_map(of_message)).or_else(|| of_rows(seen));
    match against {
        Some(reason) => Verdict::RollBack(reason),
        None if seen.lasted >= seen.probation => Verdict::Keep,
        None => Verdict::Wait,
    }
}

fn of_itself(seen: &Seen) -> Option<Reason> {
    let (reminders, unanswered) = seen.reminders;
    if let Some(why) = &seen.away {
        return Some(Reason::Gone(why.clone()));
    }
    if seen.lives > 2 {
        return Some(Reason::Restless(seen.lives));
    }
    if seen.lies > 0 {
        return Some(Reason::Lies(seen.lies));
    }
    if seen.late_rows > LATE_ROWS {
        return Some(Reason::Strangers(seen.late_rows));
    }
    (unanswered * 100 > reminders * BORNE_UNANSWERED).then_some(Reason::Deaf(reminders, unanswered))
}

/// So many percent of all; 0 of none.
fn percent(some: u64, all: u64) -> u64 {
    (some * 100).checked_div(all).unwrap_or(0)
}

fn of_message(asked: &Asked) -> Option<Reason> {
    let Asked { message, before, now, .. } = asked;
    if let Some(waited) = now.oldest.filter(|waited| *waited > patience(asked)) {
        return Some(Reason::Hangs(message, waited));
    }
    let worse = |of: fn(&Fared) -> u64, all: fn(&Fared) -> u64, borne: u64| {
        percent(of(now), all(now)) > percent(of(before), all(before)) + borne
    };
    if worse(|f| f.expired, Fared::ended, BORNE_UNANSWERED) {
        return Some(Reason::Expires(message, now.expired, now.ended()));
    }
    let dropped: fn(&Fared) -> u64 = |f| f.crashed + f.unheard;
    if dropped(now) > 1 && worse(dropped, Fared::ended, BORNE_UNANSWERED) {
        return Some(Reason::Drops(message, dropped(now), now.ended()));
    }
    if now.failed > 4 && worse(|f| f.failed, Fared::answers, BORNE_FAILURES) {
        return Some(Reason::Fails(message, now.failed, now.answers()));
    }
    let (was, is) = (usual(asked), now.within(90).filter(|_| now.answers() >= ENOUGH)?);
    (is > FAST_ENOUGH && is > was * TIMES_SLOWER).then_some(Reason::Slow(message, is, was))
}

/// How long nearly all answers took before; of a message that was hardly asked a part of what is declared.
fn usual(asked: &Asked) -> Duration {
    let known = asked.before.within(90).filter(|_| asked.before.answers() >= ENOUGH);
    known.unwrap_or(asked.deadline / 4 / TIMES_SLOWER)
}

/// How long one ask may wait: nobody waits for the deadline of a day when an answer used to take a second.
fn patience(asked: &Asked) -> Duration {
    let longest = asked.before.within(100).unwrap_or_default().max(usual(asked));
    (longest * TIMES_SLOWER).clamp(SLOWEST, asked.deadline.max(SLOWEST))
}

fn of_rows(seen: &Seen) -> Option<Reason> {
    let (all, gone) = seen.rows;
    (percent(gone, all) > BORNE_ROWS).then_some(Reason::Vanish(gone, all))
}

/// How it did, in one line.
#[must_use]
pub fn summary(seen: &Seen) -> String {
    let sum = |of: fn(&Fared) -> u64| seen.asked.iter().map(|a| of(&a.now)).sum::<u64>();
    let unanswered = sum(Fared::ended) - sum(Fared::answers);
    let slowest = seen.asked.iter().filter_map(|a| a.now.within(90)).max();
    let slowest = slowest.map(|t| format!(", nine of ten within {:.3} s", t.as_secs_f64())).unwrap_or_default();
    format!("{} asks answered, {unanswered} not{slowest}", sum(Fared::answers))
}

/// How long one stays away that was to have the place whenever it answers: not at all after it outlasted its probation; else as
/// long as that, and twice as long each time, up to `longest`.
#[must_use]
pub fn next_rest(lasted: Duration, probation: Duration, before: Duration, longest: Duration) -> Duration {
    if lasted >= probation { Duration::ZERO } else { probation.max(before * 2).min(longest) }
}

#[cfg(test)]
mod tests;
