//! No container of a pod runs twice at one time, and of two static pods of one name never both, whatever happens to the daemon
//! between them.

use std::collections::BTreeMap;

use crate::history::{Fact, History, Of, short};

pub(super) fn check(history: &History) -> Vec<(i64, String)> {
    let mut running: BTreeMap<(&str, &str), Vec<&Of>> = BTreeMap::new();
    let mut found = Vec::new();
    for (at, fact) in &history.facts {
        match fact {
            Fact::Started(of) => {
                let others = running.entry((&of.pod, &of.name)).or_default();
                if let Some(other) = others.first() {
                    found.push((*at, format!("{} starts while {} runs", of.label(), short(&other.id))));
                }
                others.push(of);
            }
            Fact::Ended(of, ..) | Fact::Removed(of) => {
                if let Some(others) = running.get_mut(&(of.pod.as_str(), of.name.as_str())) {
                    others.retain(|other| other.id != of.id);
                }
            }
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use crate::check::made::{ended, history, of, started};
    use crate::history::{Fact, Of};

    #[test]
    fn a_second_one_may_start_when_the_first_has_ended() {
        let fine = history([(1, started(0)), (2, ended(0, 1)), (3, started(1))]);
        assert!(super::check(&fine).is_empty());
        let twice = history([(1, started(0)), (3, started(1)), (4, ended(0, 1))]);
        assert_eq!(super::check(&twice).len(), 1);
        let over_a_death = history([(1, started(0)), (2, Fact::Down), (3, started(1))]);
        assert_eq!(super::check(&over_a_death).len(), 1, "a pod's own containers are known to the next daemon");
        let next = || Fact::Started(Of { uid: "next".to_owned(), ..of("a", 1) });
        assert_eq!(super::check(&history([(1, started(0)), (3, next())])).len(), 1);
        assert_eq!(super::check(&history([(1, started(0)), (2, Fact::Down), (3, next())])).len(), 1, "nor then");
    }
}
