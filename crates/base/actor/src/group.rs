//! The supervision tree: who restarts together, how often, and who is told when that is not enough.

use crate::control::{Order, locked};
use crate::record::Record;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;
use tokio::time::Instant;

/// Who is restarted when a member crashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Strategy {
    /// The crashed one.
    #[default]
    OneForOne,
    /// All members, and all groups below.
    OneForAll,
    /// The crashed one, which backs off alone: its crashes count for nobody else and are never passed to the parent. For
    /// many actors of one kind, each for somebody else.
    Isolated,
}

/// Restart rules of a group.
#[derive(Debug, Clone)]
pub struct Policy {
    /// Who is restarted.
    pub strategy: Strategy,
    /// Crashes within `period`, of all members together, before the parent is told to restart the whole group.
    pub max_restarts: usize,
    /// See `max_restarts`; also the calm after which an actor's back-off starts anew.
    pub period: Duration,
    /// Delay before the first restart. Zero restarts within the same poll.
    pub backoff_first: Duration,
    /// Delay before the second restart; doubled for each further one.
    pub backoff_min: Duration,
    /// Ceiling of the delay.
    pub backoff_max: Duration,
}

impl Default for Policy {
    fn default() -> Self {
        Policy {
            strategy: Strategy::OneForOne,
            max_restarts: 10,
            period: Duration::from_secs(60),
            backoff_first: Duration::ZERO,
            backoff_min: Duration::from_millis(10),
            backoff_max: Duration::from_secs(30),
        }
    }
}

impl Policy {
    /// Delay before the restart after the `nth` crash in a row (1 = first).
    pub(crate) fn backoff(&self, nth: u32) -> Duration {
        match nth {
            0 | 1 => self.backoff_first.min(self.backoff_max),
            _ => self.backoff_min.saturating_mul(1 << (nth - 2).min(30)).min(self.backoff_max),
        }
    }
}

/// What the group decided about a crash.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    RestartAfter(Duration),
    /// The budget of the root is exhausted.
    Fatal,
}

pub(crate) type OnFatal = Arc<dyn Fn(&str) + Send + Sync>;

/// A node of the supervision tree. Cheap to clone.
#[derive(Clone)]
pub struct Group(Arc<Inner>);

struct Inner {
    path: Arc<str>,
    policy: Policy,
    parent: Option<Group>,
    recent: Mutex<VecDeque<Instant>>,
    members: Mutex<BTreeMap<u64, Weak<Record>>>,
    children: Mutex<Vec<Weak<Inner>>>,
    on_fatal: Option<OnFatal>,
    /// Who crashed last when it gave up.
    fatal: OnceLock<Arc<str>>,
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Group").field(&self.0.path).finish()
    }
}

impl Group {
    pub(crate) fn root(policy: Policy, on_fatal: Option<OnFatal>) -> Group {
        Self::make("root".into(), policy, None, on_fatal)
    }

    fn make(path: Arc<str>, policy: Policy, parent: Option<Group>, on_fatal: Option<OnFatal>) -> Group {
        Group(Arc::new(Inner {
            path,
            policy,
            parent,
            recent: Mutex::default(),
            members: Mutex::default(),
            children: Mutex::default(),
            on_fatal,
            fatal: OnceLock::new(),
        }))
    }

    /// A group below this one.
    pub fn child(&self, name: &str, policy: Policy) -> Group {
        let path = if self.0.parent.is_none() { name.into() } else { format!("{}/{name}", self.0.path).into() };
        let child = Self::make(path, policy, Some(self.clone()), None);
        let mut children = locked(&self.0.children);
        children.retain(|c| c.strong_count() > 0);
        children.push(Arc::downgrade(&child.0));
        child
    }

    /// Path from below the root, `/` between levels; `root` for the root.
    pub fn path(&self) -> &Arc<str> {
        &self.0.path
    }

    /// Stops all members, and those of all groups below, as [`crate::ActorRef::stop`] does.
    pub fn stop(&self) {
        self.each(&mut |record| record.close());
    }

    /// Completes when all members of now, and of all groups below, have stopped for good.
    pub async fn stopped(&self) {
        let mut members = Vec::new();
        self.each(&mut |record| members.push(record.clone()));
        for member in members {
            member.until_gone().await;
        }
    }

    /// Effects of [`crate::Ctx::run`] under way and messages queued, at all members of now and of all groups below.
    pub fn under_way(&self) -> u64 {
        let mut sum = 0;
        self.each(&mut |record| {
            let queued = u64::try_from(record.depth()).unwrap_or(u64::MAX);
            sum += record.count.under_way.load(Relaxed) + queued;
        });
        sum
    }

    /// Members first, then groups below, each in order of birth.
    fn each(&self, f: &mut dyn FnMut(&Arc<Record>)) {
        for member in locked(&self.0.members).values().filter_map(Weak::upgrade) {
            f(&member);
        }
        let children: Vec<_> = locked(&self.0.children).iter().filter_map(Weak::upgrade).collect();
        for child in children {
            Group(child).each(f);
        }
    }

    pub(crate) fn policy(&self) -> &Policy {
        &self.0.policy
    }

    /// It has given up; who crashed last then.
    pub(crate) fn failed(&self) -> Option<Arc<str>> {
        self.0.fatal.get().cloned()
    }

    pub(crate) fn join(&self, record: &Arc<Record>) {
        locked(&self.0.members).insert(record.id, Arc::downgrade(record));
    }

    pub(crate) fn leave(&self, id: u64) {
        locked(&self.0.members).remove(&id);
    }

    /// A member crashed for the `nth` time in a row.
    pub(crate) fn report(&self, who: &str, nth: u32) -> Decision {
        let inner = &self.0;
        if inner.policy.strategy == Strategy::Isolated {
            return Decision::RestartAfter(inner.policy.backoff(nth));
        }
        let crashes = self.count(Instant::now());
        if crashes > inner.policy.max_restarts {
            return self.escalate(who, crashes);
        }
        match inner.policy.strategy {
            Strategy::OneForOne | Strategy::Isolated => Decision::RestartAfter(inner.policy.backoff(nth)),
            Strategy::OneForAll => {
                let after = inner.policy.backoff(u32::try_from(crashes).unwrap_or(u32::MAX));
                self.restart_all(after);
                Decision::RestartAfter(after)
            }
        }
    }

    fn count(&self, now: Instant) -> usize {
        let mut recent = locked(&self.0.recent);
        while recent.front().is_some_and(|t| now.duration_since(*t) > self.0.policy.period) {
            recent.pop_front();
        }
        recent.push_back(now);
        recent.len()
    }

    fn escalate(&self, who: &str, crashes: usize) -> Decision {
        let inner = &self.0;
        tracing::error!(target: "actor", group = %inner.path, actor = who, crashes, period = ?inner.policy.period,
            "restart budget exhausted, escalating");
        let Some(parent) = &inner.parent else {
            self.give_up(who);
            return Decision::Fatal;
        };
        // The parent sees one crash of the group, the first of a row unless its own budget says otherwise.
        let nth = u32::try_from(locked(&parent.0.recent).len() + 1).unwrap_or(u32::MAX);
        let decision = parent.report(&inner.path, nth);
        if let Decision::RestartAfter(after) = decision {
            locked(&inner.recent).clear();
            self.restart_all(after);
        }
        decision
    }

    /// Nothing below can be relied on any more. Of the root.
    pub(crate) fn give_up(&self, who: &str) {
        if self.0.fatal.set(who.into()).is_ok()
            && let Some(tell) = &self.0.on_fatal
        {
            tell(who);
        }
    }

    fn restart_all(&self, after: Duration) {
        self.each(&mut |record| record.control.give(Order::Restart(after)));
    }
}
