//! The form of a history in the journal: short names, numbers for words, nothing that says nothing. A newer bosun may write
//! more: what is not known here is passed over.

use std::sync::Arc;

use model::Timestamp;
use model::history::{End, PodHistory, Reason, Transition, What};
use serde::{Deserialize, Serialize};

use crate::record::{MOST, TEXT_BYTES, TEXTS};

/// Longer lines are none of ours.
const MOST_BYTES: usize = 128 << 10;

#[derive(Serialize, Deserialize)]
struct Line {
    #[serde(rename = "n", default)]
    names: Vec<Arc<str>>,
    #[serde(rename = "t", default)]
    entries: Vec<Short>,
    #[serde(rename = "d", default, skip_serializing_if = "is_default")]
    dropped: u32,
}

#[derive(Serialize, Deserialize)]
struct Short {
    #[serde(rename = "a")]
    at: i64,
    /// Milliseconds after `at`.
    #[serde(rename = "l", default, skip_serializing_if = "is_default")]
    last: u64,
    #[serde(rename = "c", default, skip_serializing_if = "is_default")]
    more_times: u32,
    #[serde(rename = "m", default, skip_serializing_if = "is_default")]
    took_ms: u32,
    #[serde(rename = "w")]
    what: u8,
    #[serde(rename = "r", default, skip_serializing_if = "is_default")]
    reason: u8,
    #[serde(rename = "e", default, skip_serializing_if = "is_default")]
    end: u8,
    #[serde(rename = "o", default, skip_serializing_if = "is_default")]
    of: Option<u8>,
    #[serde(rename = "x", default, skip_serializing_if = "is_default")]
    number: i32,
    #[serde(rename = "s", default, skip_serializing_if = "is_default")]
    text: Option<Arc<str>>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// The line of a history. Times are kept to the millisecond, but for the first one of each entry.
///
/// # Errors
/// None that is known: it is plain data.
pub fn to_bytes(history: &PodHistory) -> Result<Vec<u8>, serde_json::Error> {
    let short = |t: &Transition| Short {
        at: t.at.0,
        last: u64::try_from(t.last.nanos_since(t.at).max(0) / 1_000_000).unwrap_or(0),
        more_times: t.count.saturating_sub(1),
        took_ms: t.took_ms,
        what: t.what.code(),
        reason: t.reason.code(),
        end: t.end.code(),
        of: t.of,
        number: t.number,
        text: t.text.clone(),
    };
    let entries = history.transitions.iter().map(short).collect();
    serde_json::to_vec(&Line { names: history.names.clone(), entries, dropped: history.dropped })
}

/// Reads a line of whatever bosun; `None`: it is none. It is held to our bounds whoever wrote it.
#[must_use]
pub fn from_bytes(bytes: &[u8]) -> Option<PodHistory> {
    if bytes.len() > MOST_BYTES {
        return None;
    }
    let mut line: Line = serde_json::from_slice(bytes).ok()?;
    let too_many = line.entries.len().saturating_sub(MOST);
    line.entries.drain(..too_many);
    line.names.truncate(usize::from(u8::MAX));
    let texts = line.entries.iter().filter(|s| s.text.is_some()).count();
    let mut without = texts.saturating_sub(TEXTS);
    let whole = |s: Short| {
        let text = s.text.filter(|t| t.len() <= TEXT_BYTES);
        let drop_it = text.is_some() && without > 0;
        without -= usize::from(drop_it);
        Transition {
            at: Timestamp(s.at),
            last: Timestamp(s.at.saturating_add(i64::try_from(s.last.saturating_mul(1_000_000)).unwrap_or(0))),
            count: s.more_times.saturating_add(1),
            took_ms: s.took_ms,
            what: What::of_code(s.what),
            reason: Reason::of_code(s.reason),
            end: End::of_code(s.end),
            of: s.of,
            number: s.number,
            text: text.filter(|_| !drop_it),
        }
    };
    let transitions = line.entries.into_iter().map(whole).collect();
    Some(PodHistory {
        names: line.names,
        transitions,
        dropped: line.dropped.saturating_add(u32::try_from(too_many).unwrap_or(u32::MAX)),
    })
}
