//! Which events are alike, and which are too many. Pure: time comes in.

use std::collections::BTreeMap;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hash};
use std::sync::LazyLock;
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
const BURST: u32 = 25;
/// Then one per this.
const REFILL: Duration = Duration::from_secs(300);
/// Objects, reasons and events remembered, each.
pub(crate) const REMEMBERED: usize = 4096;
/// Who serves a manager's role is told beside that: a node that says the same of each pod would keep it from being told at all.
const PLACES: &str = "Manager";
/// What an aggregated line begins with; tools look for it.
const COMBINED: &str = "(combined from similar events): ";

/// What the events of one line of the list have in common: kind, reason, object and, unless the line is an aggregated one,
/// text. Kept as a fingerprint under keys of this process, as thousands are remembered and nobody can make two alike.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct LineKey(u64, u64);

impl LineKey {
    fn of(what: &impl Hash) -> Self {
        static KEYS: LazyLock<[RandomState; 2]> = LazyLock::new(Default::default);
        let [one, other] = KEYS.each_ref().map(|key| key.hash_one(what));
        Self(one, other)
    }

    fn line(kind: EventType, reason: &str, object: &EventObject, message: Option<&str>) -> Self {
        // A claim of another version is the same claim.
        if let EventObject::Claim { namespace, name, uid, .. } = object {
            return Self::of(&(kind, reason, namespace, name, uid, message));
        }
        Self::of(&(kind, reason, object, message))
    }
}

/// What is done with an event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Show it: this line is new, or takes the place of the one with the same key.
    Show(EventEntry),
    /// Too many of this object.
    Drop,
}

/// When something happened.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// As people read it, and as it may be set by them.
    pub wall: Timestamp,
    /// Since the first event, whatever becomes of the wall clock: what comes too often is a matter of this.
    pub uptime: Duration,
}

#[derive(Debug, Default)]
struct Similar {
    messages: Vec<LineKey>,
    last: Duration,
}

#[derive(Debug)]
struct Counted {
    count: u32,
    first: Timestamp,
}

#[derive(Debug)]
struct Credit {
    /// Refill time saved up; an event costs [`REFILL`].
    saved: Duration,
    at: Duration,
}

/// Remembers what it needs to judge the next event. Bounded.
#[derive(Debug)]
pub struct Correlator {
    similar: Recent<LineKey, Similar>,
    counted: Recent<LineKey, Counted>,
    credits: Recent<LineKey, Credit>,
}

impl Default for Correlator {
    fn default() -> Self {
        Self { similar: Recent::new(REMEMBERED), counted: Recent::new(REMEMBERED), credits: Recent::new(REMEMBERED) }
    }
}

impl Correlator {
    /// Goes on counting where these lines, oldest first, left off; what it has counted itself stands.
    pub fn recall<'a>(&mut self, lines: impl IntoIterator<Item = &'a EventEntry>) {
        for line in lines {
            self.counted.touch(&key_of(line), || Counted { count: line.count, first: line.first });
        }
    }

    /// Judges one occurrence. Dropped ones are counted too: the line shows the true number once another one is shown.
    pub fn judge(&mut self, event: &NodeEvent, now: Moment) -> Verdict {
        let (key, message) = self.aggregate(event, now.uptime);
        let counted = self.counted.touch(&key, || Counted { count: 0, first: now.wall });
        counted.count = counted.count.saturating_add(1);
        let (count, first) = (counted.count, counted.first);
        if !self.spend(event, now.uptime) {
            return Verdict::Drop;
        }
        let (reason, object) = (event.reason.to_string(), event.object.clone());
        Verdict::Show(EventEntry {
            kind: event.kind,
            reason,
            message,
            object,
            count,
            first,
            last: now.wall,
            annotations: BTreeMap::new(),
        })
    }

    /// The line that the event belongs to, and its text.
    fn aggregate(&mut self, event: &NodeEvent, now: Duration) -> (LineKey, String) {
        // Containers of one pod are one object here, as in the Go client.
        let group = LineKey::line(event.kind, &event.reason, &without_container(&event.object), None);
        let similar = self.similar.touch(&group, Similar::default);
        if now.saturating_sub(similar.last) > SIMILAR_WINDOW {
            similar.messages.clear();
        }
        similar.last = now;
        let text = LineKey::of(&event.message);
        let told = similar.messages.contains(&text);
        if !told && similar.messages.len() >= SIMILAR_MAX {
            return (group, format!("{COMBINED}{}", event.message));
        }
        if !told {
            similar.messages.push(text);
        }
        let key = LineKey::line(event.kind, &event.reason, &event.object, Some(&event.message));
        (key, event.message.clone())
    }

    fn spend(&mut self, event: &NodeEvent, now: Duration) -> bool {
        let full = REFILL * BURST;
        let is_of_a_place = event.object == EventObject::Node && event.reason.starts_with(PLACES);
        let key = LineKey::of(&(without_container(&event.object), is_of_a_place));
        let credit = self.credits.touch(&key, || Credit { saved: full, at: now });
        credit.saved = (credit.saved + now.saturating_sub(credit.at)).min(full);
        credit.at = now;
        if credit.saved < REFILL {
            return false;
        }
        credit.saved -= REFILL;
        true
    }
}

/// The key of a line that is shown.
pub(crate) fn key_of(line: &EventEntry) -> LineKey {
    if line.message.starts_with(COMBINED) {
        return LineKey::line(line.kind, &line.reason, &without_container(&line.object), None);
    }
    LineKey::line(line.kind, &line.reason, &line.object, Some(&line.message))
}

/// The object without the container inside it, and without its version.
fn without_container(object: &EventObject) -> EventObject {
    match object {
        EventObject::Pod { namespace, name, uid, .. } => EventObject::Pod {
            namespace: namespace.clone(),
            name: name.clone(),
            uid: uid.clone(),
            field_path: String::new(),
        },
        EventObject::Claim { namespace, name, uid, .. } => EventObject::Claim {
            namespace: namespace.clone(),
            name: name.clone(),
            uid: uid.clone(),
            resource_version: String::new(),
        },
        EventObject::Node | EventObject::Unknown => object.clone(),
    }
}
