//! Notifications of cgroup v1: which are wanted, and which are set.

use std::future::Future;
use std::time::Duration;

use eviction::{Signal, Threshold};
use futures::future::{AbortHandle, Abortable, abortable};
use tokio::time::Instant;

use crate::observe::MemoryLook;

/// They are set anew at most so often, as what counts as available moves with the page cache.
const SET_ANEW: Duration = Duration::from_secs(10);

/// Notifications that are set.
#[derive(Debug, Default)]
pub(crate) struct Notifications {
    set: Vec<AbortHandle>,
    at: Option<Instant>,
    /// They are being set.
    is_setting: bool,
    refused: bool,
    /// Setting them failed, and that was told.
    fails: bool,
}

impl Notifications {
    /// Whether they are to be set now; those of before end.
    pub(crate) fn are_due(&mut self, now: Instant) -> bool {
        let is_early = self.at.is_some_and(|at| now.saturating_duration_since(at) < SET_ANEW);
        if is_early || self.refused || self.is_setting {
            return false;
        }
        (self.at, self.is_setting) = (Some(now), true);
        self.set.drain(..).for_each(|former| former.abort());
        true
    }

    /// One is set, and is waited for until they are set anew.
    pub(crate) fn set<F: Future>(&mut self, told: F) -> Abortable<F> {
        let (told, abort) = abortable(told);
        self.set.push(abort);
        told
    }

    /// They were set, or could not be. Answers whether a failure is news.
    pub(crate) fn note(&mut self, fails: bool) -> bool {
        self.is_setting = false;
        !std::mem::replace(&mut self.fails, fails) && fails
    }

    /// There are none here.
    pub(crate) fn refuse(&mut self) {
        self.refused = true;
    }
}

/// Where and at how many bytes a threshold is crossed by the kernel's count, which has all of the page cache.
pub(crate) fn wanted(threshold: &Threshold, look: &MemoryLook, pods_cgroup: Option<&str>) -> Option<(String, u64)> {
    let seen = look.signals.get(&threshold.signal)?;
    let (cgroup, cache) = match threshold.signal {
        Signal::MemoryAvailable => ("/", look.cache?),
        Signal::AllocatableMemoryAvailable => (pods_cgroup?, look.pods_cache?),
        _ => return None,
    };
    let most = u64::try_from(seen.capacity.saturating_sub(threshold.below.at(seen.capacity))).ok()?;
    Some((cgroup.to_owned(), most.saturating_add(cache)))
}

#[cfg(test)]
mod tests {
    use eviction::{Amount, Observed};

    use super::*;

    #[test]
    fn a_threshold_is_where_the_kernels_count_has_the_page_cache_as_well() {
        let of = |signal| Threshold {
            signal,
            below: Amount::Absolute("100".parse().expect("a quantity")),
            min_reclaim: None,
            grace: Duration::ZERO,
        };
        let seen = Observed { available: 500, capacity: 1000 };
        let signals = [Signal::MemoryAvailable, Signal::AllocatableMemoryAvailable, Signal::PidAvailable];
        let look = |cache| MemoryLook {
            signals: signals.map(|signal| (signal, seen)).into(),
            cache,
            pods_cache: Some(7),
            missed: std::collections::BTreeMap::new(),
        };
        let table = [
            (Signal::MemoryAvailable, Some(50), Some("/k"), Some(("/".to_owned(), 950))),
            (Signal::MemoryAvailable, None, Some("/k"), None),
            (Signal::AllocatableMemoryAvailable, None, Some("/k"), Some(("/k".to_owned(), 907))),
            (Signal::AllocatableMemoryAvailable, None, None, None),
            (Signal::PidAvailable, Some(1), Some("/k"), None),
        ];
        for (signal, cache, pods, expected) in table {
            assert_eq!(wanted(&of(signal), &look(cache), pods), expected, "{signal:?}");
        }
    }

    #[test]
    fn they_are_set_every_ten_seconds_unless_there_are_none() {
        let (mut all, begin) = (Notifications::default(), Instant::now());
        assert!(all.are_due(begin));
        assert!(!all.are_due(begin + Duration::from_secs(99)), "they are being set");
        assert!(!all.note(false));
        let told = all.set(std::future::pending::<()>());
        assert!(!all.are_due(begin + Duration::from_secs(9)) && !told.is_aborted());
        assert!(all.are_due(begin + Duration::from_secs(10)) && told.is_aborted());
        all.note(false);
        all.refuse();
        assert!(!all.are_due(begin + Duration::from_secs(99)));
    }
}
