//! What was said of a pod is not taken back: a pod that ended has ended, restart counts only grow, and so do versions of statuses
//! within a life of the daemon.

use std::collections::BTreeMap;

use crate::history::{FORGOTTEN, Fact, History, SECOND, Told};

/// After a backup was restored, mirrors come to say what is.
const AFTER_RESTORE: i64 = 300 * SECOND;

pub(super) fn check(history: &History) -> Vec<(i64, String)> {
    let mut versions: BTreeMap<&str, u64> = BTreeMap::new();
    let mut told: BTreeMap<&str, &Told> = BTreeMap::new();
    let (mut restored, mut found) = (0, Vec::new());
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
            Fact::Restored => (restored, told) = (*at, BTreeMap::new()),
            // Static pods run again with the machine.
            Fact::Rebooted => told.retain(|_, old| !(old.mirror && is_over(old))),
            // Nothing but its containers tells a later daemon that a static pod has ended.
            Fact::Struck(what) if what == FORGOTTEN => told.retain(|_, old| !(old.mirror && is_over(old))),
            // What one daemon refused the next one decides anew, of pods that are not the API server's.
            Fact::Up => told.retain(|_, old| !(old.mirror && is_over(old) && !old.reason.is_empty())),
            // A mirror goes on under its name for a moment, with the status of the new pod.
            Fact::Edited(pod) => told.retain(|_, old| old.pod != *pod),
            Fact::Status(new) => {
                let old = told.insert(&new.uid, new);
                let old = old.filter(|_| !new.mirror || restored == 0 || *at > restored + AFTER_RESTORE);
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
