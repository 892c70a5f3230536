//! Which events are alike, and which are too many. Pure: time comes in.

use std::collections::BTreeSet;
use std::time::Duration;

use contract::event::EventEntry;
use model::Timestamp;
use model::event::{EventObject, EventType, NodeEvent};

use crate::recent::Recent;

#[cfg(test)]
mod tests;

/// More texts than this, of one reason on one object, are shown as one line.
const SIMILAR_MAX: usize = 10;
/// Texts are forgotten when none came for longer than this.
const SIMILAR_WINDOW: Duration = Duration::from_secs(600);
/// Events of one object that pass at once.
const BURST: i64 = 25;
/// Then one per this.
const REFILL: Duration = Duration::from_secs(300);
/// Objects, reasons and events remembered, each.
pub(crate) const REMEMBERED: usize = 4096;
/// What an aggregated line begins with; tools look for it.
const COMBINED: &str = "(combined from similar events): ";

/// What the events of one line of the list have in common.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct LineKey {
    kind: EventType,
    reason: String,
    object: EventObject,
    /// `None`: an aggregated line, whatever the text.
    message: Option<String>,
}

/// What is done with an event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Show it: this line is new, or takes the place of the one with the same key.
    Show(EventEntry),
    /// Too many of this object.
    Drop,
}

#[derive(Debug, Default)]
struct Similar {
    messages: BTreeSet<String>,
    last: Timestamp,
}

#[derive(Debug)]
struct Counted {
    count: u32,
    first: Timestamp,
}

#[derive(Debug)]
struct Credit {
    /// Nanoseconds of refill time saved up; an event costs [`REFILL`].
    saved: i64,
    at: Timestamp,
}

/// Remembers what it needs to judge the next event. Bounded.
#[derive(Debug)]
pub struct Correlator {
    similar: Recent<LineKey, Similar>,
    counted: Recent<LineKey, Counted>,
    credits: Recent<EventObject, Credit>,
}

impl Default for Correlator {
    fn default() -> Self {
        Self { similar: Recent::new(REMEMBERED), counted: Recent::new(REMEMBERED), credits: Recent::new(REMEMBERED) }
    }
}

impl Correlator {
    /// Goes on counting where these lines, oldest first, left off.
    #[must_use]
    pub fn recovered<'a>(lines: impl IntoIterator<Item = &'a EventEntry>) -> Self {
        let mut correlator = Self::default();
        for line in lines {
            let fresh = || Counted { count: line.count, first: line.first };
            correlator.counted.touch(&key_of(line), fresh);
        }
        correlator
    }

    /// Judges one occurrence. Dropped ones are counted too: the line shows the true number once another one is shown.
    pub fn judge(&mut self, event: &NodeEvent, now: Timestamp) -> Verdict {
        let (key, message) = self.aggregate(event, now);
        let counted = self.counted.touch(&key, || Counted { count: 0, first: now });
        counted.count = counted.count.saturating_add(1);
        let (count, first) = (counted.count, counted.first);
        if !self.spend(without_container(&event.object), now) {
            return Verdict::Drop;
        }
        let (reason, object) = (event.reason.to_string(), event.object.clone());
        Verdict::Show(EventEntry { kind: event.kind, reason, message, object, count, first, last: now })
    }

    /// The line that the event belongs to, and its text.
    fn aggregate(&mut self, event: &NodeEvent, now: Timestamp) -> (LineKey, String) {
        // Containers of one pod are one object here, as in the Go client.
        let group = LineKey {
            kind: event.kind,
            reason: event.reason.to_string(),
            object: without_container(&event.object),
            message: None,
        };
        let similar = self.similar.touch(&group, Similar::default);
        if now.nanos_since(similar.last) > nanos(SIMILAR_WINDOW) {
            similar.messages.clear();
        }
        similar.last = now;
        if similar.messages.len() < SIMILAR_MAX || similar.messages.contains(&event.message) {
            similar.messages.insert(event.message.clone());
            let message = Some(event.message.clone());
            return (LineKey { object: event.object.clone(), message, ..group }, event.message.clone());
        }
        (group, format!("{COMBINED}{}", event.message))
    }

    fn spend(&mut self, object: EventObject, now: Timestamp) -> bool {
        let (cost, full) = (nanos(REFILL), nanos(REFILL) * BURST);
        let credit = self.credits.touch(&object, || Credit { saved: full, at: now });
        // A wall clock that was set back earns nothing.
        let earned = now.nanos_since(credit.at).max(0);
        credit.saved = credit.saved.saturating_add(earned).min(full);
        credit.at = now;
        if credit.saved < cost {
            return false;
        }
        credit.saved -= cost;
        true
    }
}

/// The key of a line that is shown.
pub(crate) fn key_of(line: &EventEntry) -> LineKey {
    let (kind, reason) = (line.kind, line.reason.clone());
    if line.message.starts_with(COMBINED) {
        return LineKey { kind, reason, object: without_container(&line.object), message: None };
    }
    LineKey { kind, reason, object: line.object.clone(), message: Some(line.message.clone()) }
}

/// The object without the container inside it.
fn without_container(object: &EventObject) -> EventObject {
    match object {
        EventObject::Pod { namespace, name, uid, .. } => EventObject::Pod {
            namespace: namespace.clone(),
            name: name.clone(),
            uid: uid.clone(),
            field_path: String::new(),
        },
        EventObject::Node | EventObject::Claim { .. } | EventObject::Unknown => object.clone(),
    }
}

fn nanos(d: Duration) -> i64 {
    i64::try_from(d.as_nanos()).unwrap_or(i64::MAX)
}
