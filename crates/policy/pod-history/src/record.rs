//! What is recorded, and what is counted with what is there.

use std::sync::Arc;

use model::Timestamp;
use model::history::{End, PodHistory, Reason, Transition, What};

/// Most entries of a pod; the oldest goes when another one comes.
pub const MOST: usize = 200;
/// Most entries that keep their text: the newest ones.
pub const TEXTS: usize = 16;
/// Longest text.
pub const TEXT_BYTES: usize = 240;
/// Most names of containers. A pod that has more (ephemeral ones come without end) has the rest told of without a name.
const NAMES: usize = 255;
/// How far back an entry is looked for that is the same: failures that take turns are counted, each in its place.
const LOOK_BACK: usize = 6;

/// Something new.
#[derive(Clone, Copy, Debug)]
pub struct New<'a> {
    /// What.
    pub what: What,
    /// Why.
    pub reason: Reason,
    /// Container; empty: the pod.
    pub of: &'a str,
    /// See [`What`].
    pub number: i32,
    /// How long it lasts, where that is known beforehand.
    pub lasts_ms: u32,
    /// For people.
    pub text: &'a str,
}

impl<'a> New<'a> {
    /// Of the pod, without a reason.
    #[must_use]
    pub fn of_pod(what: What) -> Self {
        Self::of(what, "")
    }

    /// Of a container, without a reason.
    #[must_use]
    pub fn of(what: What, of: &'a str) -> Self {
        New { what, reason: Reason::None, of, number: 0, lasts_ms: 0, text: "" }
    }
}

/// Notes what takes no time, or is known to last.
pub fn note(history: &mut PodHistory, new: New<'_>, now: Timestamp) {
    let of = place(history, new.of);
    let end = if new.lasts_ms > 0 { End::Done } else { End::Point };
    let text = shortened(new.text);
    push(
        history,
        Transition {
            at: now,
            last: now,
            count: 1,
            took_ms: new.lasts_ms,
            what: new.what,
            reason: new.reason,
            end,
            of,
            number: new.number,
            text,
        },
    );
}

/// Something begins that takes time.
pub fn begin(history: &mut PodHistory, what: What, of: &str, now: Timestamp) {
    note(history, New::of(what, of), now);
    if let Some(last) = history.transitions.last_mut() {
        last.end = End::Open;
    }
}

/// What began has ended; without a beginning nothing is noted. A failure that was there before is counted with it.
pub fn end(history: &mut PodHistory, what: What, of: &str, outcome: Result<(), &str>, now: Timestamp) {
    let of = place(history, of);
    let is_it = |t: &Transition| t.end == End::Open && t.what == what && t.of == of;
    let Some(at) = history.transitions.iter().rposition(is_it) else { return };
    let mut ended = history.transitions.remove(at);
    ended.took_ms = millis(ended.last, now);
    match outcome {
        Ok(()) => {
            ended.end = End::Done;
            // What every step does and takes its time again is one entry.
            let is_usual = matches!(ended.what, What::Look | What::Cgroup | What::Volumes);
            if !is_usual || !counted(history, &ended) {
                history.transitions.insert(at, ended);
            }
        }
        Err(text) => {
            ended.end = End::Failed;
            ended.text = shortened(text);
            if !counted(history, &ended) {
                history.transitions.insert(at, ended);
                bound_texts(history);
            }
        }
    }
}

/// The worker begins anew: what was under way, nobody knows the end of.
pub fn close_open(history: &mut PodHistory) {
    for t in history.transitions.iter_mut().filter(|t| t.end == End::Open) {
        t.end = End::Lost;
    }
}

/// What is under way, oldest first.
pub fn open(history: &PodHistory) -> impl Iterator<Item = &Transition> {
    history.transitions.iter().filter(|t| t.end == End::Open)
}

/// Whether it was done before: that it is done once more is worth a word only when it takes its time.
#[must_use]
pub fn was_done(history: &PodHistory, what: What, of: &str) -> bool {
    history.transitions.iter().any(|t| t.what == what && t.end == End::Done && history.name(t) == of)
}

fn millis(from: Timestamp, to: Timestamp) -> u32 {
    u32::try_from(to.nanos_since(from).max(0) / 1_000_000).unwrap_or(u32::MAX)
}

fn place(history: &mut PodHistory, name: &str) -> Option<u8> {
    if name.is_empty() {
        return None;
    }
    let known = history.names.iter().position(|n| **n == *name);
    let place = known.or_else(|| {
        (history.names.len() < NAMES).then(|| {
            history.names.push(name.into());
            history.names.len() - 1
        })
    });
    place.and_then(|place| u8::try_from(place).ok())
}

fn shortened(text: &str) -> Option<Arc<str>> {
    if text.is_empty() {
        return None;
    }
    if text.len() <= TEXT_BYTES {
        return Some(text.into());
    }
    let mut end = TEXT_BYTES - 3;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    Some(format!("{}...", &text[..end]).into())
}

fn push(history: &mut PodHistory, new: Transition) {
    // What happens at a moment is told each time.
    if new.what.is_decision() && counted(history, &new) {
        return;
    }
    history.transitions.push(new);
    bound(history);
    bound_texts(history);
}

/// The oldest entries go, those that are under way last.
fn bound(history: &mut PodHistory) {
    while history.transitions.len() > MOST {
        let oldest = history.transitions.iter().position(|t| t.end != End::Open).unwrap_or(0);
        history.transitions.remove(oldest);
        history.dropped = history.dropped.saturating_add(1);
    }
}

fn bound_texts(history: &mut PodHistory) {
    let with_text = history.transitions.iter_mut().rev().filter(|t| t.text.is_some());
    for t in with_text.skip(TEXTS) {
        t.text = None;
    }
}

/// Counts an entry with the same one that is there, when nothing but failures and what is decided about them came between.
fn counted(history: &mut PodHistory, new: &Transition) -> bool {
    let same = |t: &Transition| {
        (t.what, t.reason, t.of, t.number) == (new.what, new.reason, new.of, new.number)
            && (t.end, &t.text) == (new.end, &new.text)
            && (t.what != What::Hold || t.took_ms == new.took_ms)
    };
    let is_progress = |t: &Transition| !(t.end == End::Failed || t.end == End::Open || t.what.is_decision());
    for t in history.transitions.iter_mut().rev().take(LOOK_BACK) {
        if same(t) && t.end != End::Open {
            t.count = t.count.saturating_add(1);
            t.last = new.last;
            t.took_ms = new.took_ms;
            return true;
        }
        if is_progress(t) {
            return false;
        }
    }
    false
}
