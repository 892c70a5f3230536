//! What was said of a pod is not taken back: a pod that ended has ended, restart counts only grow, and so do versions of statuses
//! within a life of the daemon.
//!
//! Not judged for a while: mirrors of a static pod whose manifest was written anew, or went and came again. The status of the new pod
//! goes to whatever mirror is there under its name until that is found to be of the old one, and a last word about the old pod may come
//! to it after the change (a kubelet finds the mirror of a status by the pod's name, too: `TranslatePodUID`). A pod whose manifest went
//! begins anew, restart counts of init containers among it, though its UID is the same.

use std::collections::BTreeMap;

use crate::history::{FORGOTTEN, Fact, History, SECOND, Told};

/// After a backup was restored, or another manifest was there, mirrors come to say what is.
const AFTER: i64 = 300 * SECOND;

pub(super) fn check(history: &History) -> Vec<(i64, String)> {
    let mut versions: BTreeMap<&str, u64> = BTreeMap::new();
    let mut told: BTreeMap<&str, &Told> = BTreeMap::new();
    let spans = history.disturbed(AFTER);
    // Until when mirrors of a pod are not judged.
    let mut another: BTreeMap<&str, i64> = BTreeMap::new();
    let until = |at: i64| {
        spans.iter().find(|(from, to)| *from <= at && at < *to).map_or(at + AFTER, |(_, to)| to.saturating_add(AFTER))
    };
    let (mut restored, mut found) = (i64::MIN, Vec::new());
    for (at, fact) in &history.facts {
        match fact {
            Fact::Version(uid, version) => {
                let last = versions.insert(uid, *version).unwrap_or_default();
                if *version < last {
                    found.push((*at, format!("the status of {uid} was of version {last} and is of version {version}")));
                }
            }
            Fact::Down => versions.clear(),
            // Whatever a backup says of a static pod may be about an earlier life of it.
            Fact::Restored => (restored, told) = (*at + AFTER, BTreeMap::new()),
            // Static pods run again with the machine.
            Fact::Rebooted => told.retain(|_, old| !(old.mirror && is_over(old))),
            // Nothing but its containers tells a later daemon that a static pod has ended.
            Fact::Struck(what) if what == FORGOTTEN => told.retain(|_, old| !(old.mirror && is_over(old))),
            // What one daemon refused the next one decides anew, of pods that are not the API server's.
            Fact::Up => told.retain(|_, old| !(old.mirror && is_over(old) && !old.reason.is_empty())),
            Fact::Edited(pod) | Fact::SourceGone(pod) => {
                another.insert(pod, until(*at));
                told.retain(|_, old| old.pod != *pod);
            }
            Fact::Wanted(pod, _) => {
                another.entry(pod).and_modify(|until_then| *until_then = until(*at));
            }
            Fact::Status(new) => {
                let old = told.insert(&new.uid, new);
                let until = another.get(new.pod.as_str()).copied().unwrap_or(i64::MIN).max(restored);
                let old = old.filter(|_| !new.mirror || *at > until);
                found.extend(old.and_then(|old| taken_back(old, new)).map(|text| (*at, text)));
            }
            _ => {}
        }
    }
    found
}

fn is_over(told: &Told) -> bool {
    matches!(told.phase.as_str(), "Succeeded" | "Failed")
}

fn taken_back(old: &Told, new: &Told) -> Option<String> {
    if is_over(old) && old.phase != new.phase {
        return Some(format!("{} was {} and is {}", new.pod, old.phase, new.phase));
    }
    new.containers.iter().find_map(|c| {
        let before = old.containers.iter().find(|o| o.name == c.name)?;
        (c.restarts < before.restarts)
            .then(|| format!("{}/{} had {} restarts and has {}", new.pod, c.name, before.restarts, c.restarts))
    })
}

#[cfg(test)]
mod tests {
    use crate::check::made::{history, running, told};
    use crate::history::Fact;

    #[test]
    fn a_static_pod_whose_ended_containers_the_runtime_has_lost_may_run_again() {
        let of_mirror = |phase: &str| {
            let Fact::Status(status) = told(phase, running(0)) else { unreachable!("it is a status") };
            Fact::Status(crate::history::Told { mirror: true, ..status })
        };
        let with =
            |between| super::check(&history([(1, of_mirror("Succeeded")), (2, between), (3, of_mirror("Pending"))]));
        assert!(with(Fact::Struck(super::FORGOTTEN.to_owned())).is_empty());
        assert_eq!(with(Fact::Up).len(), 1, "it was not refused");
        assert_eq!(with(Fact::Struck("pod-manager".to_owned())).len(), 1);
    }

    #[test]
    fn a_mirror_speaks_of_another_pod_some_time_after_its_manifest_was_written_anew() {
        let of_mirror = |phase: &str| {
            let Fact::Status(status) = told(phase, running(0)) else { unreachable!("it is a status") };
            Fact::Status(crate::history::Told { mirror: true, ..status })
        };
        let with = |seconds: i64| {
            let facts = [
                (1, of_mirror("Running")),
                (2, Fact::Edited("p-sim".to_owned())),
                (3, of_mirror("Succeeded")),
                (seconds, of_mirror("Pending")),
            ];
            super::check(&history(facts)).len()
        };
        assert_eq!((with(4), with(302), with(303)), (0, 0, 1));
    }

    #[test]
    fn nothing_goes_back() {
        let version = |n| Fact::Version("u".to_owned(), n);
        assert!(super::check(&history([(1, version(1)), (2, version(2))])).is_empty());
        assert_eq!(super::check(&history([(1, version(2)), (2, version(1))])).len(), 1);
        assert!(super::check(&history([(1, version(2)), (2, Fact::Down), (3, version(1))])).is_empty());
        let cases = [
            (told("Running", running(0)), told("Running", running(1)), 0),
            (told("Running", running(1)), told("Running", running(0)), 1),
            (told("Running", running(0)), told("Failed", running(0)), 0),
            (told("Failed", running(0)), told("Running", running(0)), 1),
            (told("Succeeded", running(0)), told("Failed", running(0)), 1),
        ];
        for (old, new, count) in cases {
            let text = format!("{old:?} {new:?}");
            assert_eq!(super::check(&history([(1, old), (2, new)])).len(), count, "{text}");
        }
    }
}
