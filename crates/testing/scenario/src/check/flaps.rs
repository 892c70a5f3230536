//! A pod that is ready stays so: nothing that happens to the daemon alone, or between it and the API server, makes it look unready.
//!
//! Not judged: pods of which a container ended or was touched lately, or that are being deleted or preempted; times in which the runtime or the
//! network of probes is in trouble, and some time after.

use std::collections::BTreeMap;

use crate::history::{Fact, History, Refusals, SECOND};

/// After an end of one of its containers, or trouble that its probes may see.
const EXCUSED: i64 = 300 * SECOND;

pub(super) fn check(history: &History) -> Vec<(i64, String)> {
    let mut excused: BTreeMap<&str, i64> = BTreeMap::new();
    let mut refused = Refusals::default();
    let mut ready: BTreeMap<&str, bool> = BTreeMap::new();
    let (mut trouble, mut all_until, mut found) = (false, i64::MIN, Vec::new());
    for (at, fact) in &history.facts {
        refused.note(fact);
        match fact {
            Fact::Trouble => trouble = true,
            Fact::Calm => (trouble, all_until) = (false, at + EXCUSED),
            Fact::Rebooted | Fact::Restored | Fact::ClockSet => all_until = at + EXCUSED,
            Fact::Ended(of, ..) | Fact::Made(of, _) => drop(excused.insert(&of.pod, at + EXCUSED)),
            Fact::Touched(pod) | Fact::Edited(pod) | Fact::Unwanted(pod, _) => drop(excused.insert(pod, i64::MAX)),
            Fact::Status(told) => {
                let was = ready.insert(&told.uid, told.ready).unwrap_or(false);
                let is_excused = trouble
                    || *at < all_until
                    || told.deleting
                    || !told.reason.is_empty()
                    || refused.has(&told.pod)
                    || excused.get(told.pod.as_str()).is_some_and(|until| at < until);
                if was && !told.ready && !is_excused {
                    found.push((*at, format!("{} was ready and is not, and nothing was done to it", told.pod)));
                }
            }
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use crate::check::made::{ended, history, running, started, told};
    use crate::history::{Fact, Told};

    fn unready() -> Fact {
        let Fact::Status(status) = told("Running", running(0)) else { unreachable!("it is a status") };
        Fact::Status(Told { ready: false, ..status })
    }

    #[test]
    fn a_restart_of_the_daemon_is_no_reason_to_be_unready() {
        let begin = || [(1, started(0)), (2, told("Running", running(0)))];
        let flaps = |between: (i64, Fact), at: i64| {
            let [a, b] = begin();
            super::check(&history([a, b, between, (at, unready())])).len()
        };
        assert_eq!(flaps((400, Fact::Down), 401), 1);
        assert_eq!(flaps((400, Fact::Struck("x".to_owned())), 401), 1);
        assert_eq!(flaps((400, ended(0, 1)), 401), 0);
        assert_eq!(flaps((400, Fact::Refused("p-sim".to_owned())), 10_000), 0, "it is preempted");
        assert_eq!(flaps((400, Fact::Touched("p-sim".to_owned())), 10_000), 0);
        assert_eq!(flaps((400, Fact::Trouble), 401), 0);
        assert_eq!(flaps((400, Fact::Calm), 699), 0);
        assert_eq!(flaps((400, Fact::Calm), 700), 1);
    }
}
