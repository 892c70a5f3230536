//! What is set aside: work on behalf of one subject (a pod) that crashed its actor more than once.
//!
//! A message is gone when its turn crashed, so the same message is one of the same type on behalf of the same subject. The
//! first crash is a crash like any other. From the second on, what the subject wants by that message is set aside for a
//! while, longer each time: askers get [`AskError::Crashed`](crate::AskError::Crashed) at once, tells wait. Such a crash
//! costs the actor one restart per while, and nobody's budget: one subject cannot take a group down. Many subjects can, for
//! then it is the actor that is broken: each one's first crash counts.

use crate::control::locked;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;

/// Whom a message or a piece of work is for: the UID of a pod.
pub type Subject = Arc<str>;

/// The first while; doubled by each further crash.
const FIRST: Duration = Duration::from_secs(10);
const LONGEST: Duration = Duration::from_secs(300);
/// After this long without a crash a subject begins anew.
const FORGIVEN: Duration = Duration::from_secs(600);
/// Subjects remembered per actor; the one that crashed longest ago goes first.
const REMEMBERED: usize = 256;

/// Work that was set aside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SetAside {
    /// The actor that it crashed.
    pub actor: String,
    /// Message or label of the work, short type name.
    pub what: String,
    /// For whom.
    pub subject: String,
    /// Crashes so far.
    pub crashes: u32,
    /// How long it is set aside, from now.
    #[serde(rename = "seconds", serialize_with = "seconds")]
    pub rest: Duration,
    /// The last crash.
    pub cause: String,
}

fn seconds<S: serde::Serializer>(d: &Duration, s: S) -> Result<S::Ok, S::Error> {
    s.serialize_u64(d.as_secs())
}

/// Is told each time something is set aside, in the crashed actor's own task: must not block.
pub(crate) type Told = Box<dyn Fn(&SetAside) + Send + Sync>;

#[derive(Debug)]
struct Row {
    crashes: u32,
    last: Instant,
    until: Instant,
    cause: String,
}

/// The crashes of one actor by what it was doing for whom.
#[derive(Debug)]
pub(crate) struct Poison {
    /// Nothing to look up.
    clean: AtomicBool,
    rows: Mutex<BTreeMap<(&'static str, Subject), Row>>,
}

impl Poison {
    pub(crate) fn new() -> Self {
        Poison { clean: AtomicBool::new(true), rows: Mutex::default() }
    }

    /// Accounts a crash; how long the work is set aside, if it is.
    pub(crate) fn note(&self, what: &'static str, subject: &Subject, cause: &str) -> Option<(u32, Duration)> {
        let now = Instant::now();
        let mut rows = locked(&self.rows);
        self.clean.store(false, Relaxed);
        rows.retain(|_, row| now.duration_since(row.until.min(now)) < FORGIVEN);
        if rows.len() >= REMEMBERED
            && let Some(oldest) = rows.iter().min_by_key(|(_, row)| row.last).map(|(key, _)| key.clone())
        {
            rows.remove(&oldest);
        }
        let key = (what, subject.clone());
        let row = rows.entry(key).or_insert_with(|| Row { crashes: 0, last: now, until: now, cause: String::new() });
        row.crashes = row.crashes.saturating_add(1);
        row.last = now;
        cause.clone_into(&mut row.cause);
        let rest = FIRST.saturating_mul(1 << row.crashes.saturating_sub(2).min(10)).min(LONGEST);
        if row.crashes < 2 {
            return None;
        }
        row.until = now + rest;
        Some((row.crashes, rest))
    }

    /// How long work is still set aside.
    pub(crate) fn rest(&self, what: &'static str, subject: &Subject) -> Option<Duration> {
        if self.clean.load(Relaxed) {
            return None;
        }
        let rows = locked(&self.rows);
        let row = rows.get(&(what, subject.clone()))?;
        row.until.checked_duration_since(Instant::now()).filter(|rest| !rest.is_zero())
    }

    /// What is set aside now.
    pub(crate) fn list(&self, actor: &str, short: fn(&str) -> String) -> Vec<SetAside> {
        if self.clean.load(Relaxed) {
            return Vec::new();
        }
        let now = Instant::now();
        let rows = locked(&self.rows);
        let aside = rows.iter().filter(|(_, row)| row.until > now);
        let told = aside.map(|((what, subject), row)| SetAside {
            actor: actor.to_owned(),
            what: short(what),
            subject: subject.to_string(),
            crashes: row.crashes,
            rest: row.until.duration_since(now),
            cause: row.cause.clone(),
        });
        told.collect()
    }
}
