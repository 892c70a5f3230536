//! The last status that the API server holds is true, once the node is at rest: it names the containers that run and no others.

use std::collections::BTreeMap;

use crate::history::{Fact, History, Of, SECOND, short};

/// What changed so short before the end need not be told yet.
const TOLD: i64 = 30 * SECOND;

pub(super) fn check(history: &History) -> Vec<(i64, String)> {
    if history.end == 0 {
        return Vec::new();
    }
    open(history).into_iter().map(|text| (history.end, text)).collect()
}

/// What the API server has and does not run, or the other way round, as far as `history` goes.
pub(crate) fn open(history: &History) -> Vec<String> {
    let mut running: BTreeMap<&str, &Of> = BTreeMap::new();
    let mut changed: BTreeMap<&str, i64> = BTreeMap::new();
    for (at, fact) in &history.facts {
        match fact {
            Fact::Started(of) => drop(running.insert(&of.id, of)),
            Fact::Ended(of, ..) | Fact::Removed(of) => drop(running.remove(of.id.as_str())),
            _ => continue,
        }
        changed.extend(fact.pod().map(|pod| (pod, *at)));
    }
    let told = history.last_told();
    let is_young = |pod: &str| history.end > 0 && changed.get(pod).is_some_and(|at| at + TOLD > history.end);
    let mut found = Vec::new();
    for (pod, status) in told.iter().filter(|(pod, _)| !is_young(pod)) {
        for c in &status.containers {
            if let Some(id) = c.running.as_deref().filter(|id| !running.contains_key(id)) {
                found.push(format!("the API server has {pod}/{} running as {}, which does not run", c.name, short(id)));
            }
        }
    }
    for of in running.values().filter(|of| !is_young(&of.pod)) {
        let Some(status) = told.get(of.pod.as_str()) else { continue };
        if !status.containers.iter().any(|c| c.running.as_deref() == Some(&of.id)) {
            found.push(format!("the API server does not know that {} runs ({})", of.label(), status.phase));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use crate::check::made::{ended, history, running, started, told};

    #[test]
    fn what_is_told_is_what_runs() {
        assert!(super::check(&history([(1, started(0)), (2, told("Running", running(0)))])).is_empty());
        let old = history([(1, started(0)), (2, told("Running", running(0))), (3, ended(0, 1))]);
        assert_eq!(super::check(&old).len(), 1);
        let other = history([(1, started(0)), (2, told("Running", running(0))), (3, ended(0, 1)), (4, started(1))]);
        assert_eq!(super::check(&other).len(), 2);
    }
}
