//! The node comes to rest: some time after all trouble is over, what is wanted runs, what is over is told, and nothing else is left.

use std::collections::{BTreeMap, BTreeSet};

use crate::history::{Fact, History, Refusals, SHUTDOWN, Told};
use crate::shape::{Rest, Restart, Shape};

pub(super) fn check(history: &History) -> Vec<(i64, String)> {
    if history.end == 0 {
        return Vec::new();
    }
    open(history).into_iter().map(|text| (history.end, text)).collect()
}

/// What keeps the node from rest, as far as `history` goes.
pub(crate) fn open(history: &History) -> Vec<String> {
    let touched = touched_pods(history);
    let (told, wanted) = (history.last_told(), history.wanted());
    let mut refused = Refusals::default();
    let mut running: BTreeMap<&str, (&str, &str)> = BTreeMap::new();
    let mut left = Vec::new();
    let (mut were_over, mut shapes) = (BTreeSet::new(), BTreeMap::new());
    for (_, fact) in &history.facts {
        refused.note(fact);
        match fact {
            Fact::Started(of) => drop(running.insert(&of.id, (&of.pod, &of.name))),
            Fact::Ended(of, ..) | Fact::Removed(of) => drop(running.remove(of.id.as_str())),
            Fact::Left(text) => left.push(text.clone()),
            // A mirror of what has ended is made once, also when the same manifest comes again.
            Fact::Status(told) if told.mirror && is_over(told) => drop(were_over.insert(told.pod.as_str())),
            Fact::Wanted(pod, shape) if shapes.insert(pod.as_str(), shape) != Some(shape) => {
                were_over.remove(pod.as_str());
            }
            _ => {}
        }
    }
    for pod in wanted.keys().filter(|pod| refused.has(pod)) {
        // Of a static pod that was refused at once there is no mirror.
        if let Some(told) = told.get(pod).filter(|told| !is_over(told)) {
            left.push(format!("{pod} does not run by the node's decision, and is told to be {}", told.phase));
        }
    }
    let is_open = |pod: &str| told.contains_key(pod) || !were_over.contains(pod);
    for (pod, shape) in wanted.iter().filter(|(pod, _)| !refused.has(pod) && is_open(pod)) {
        left.extend(lacks(shape, told.get(pod).copied(), touched.contains(pod)).map(|text| format!("{pod} {text}")));
    }
    for (pod, name) in running.values().filter(|(pod, _)| !wanted.contains_key(pod)) {
        left.push(format!("{pod}/{name} runs, and nobody wants it"));
    }
    for pod in told.keys().filter(|pod| !wanted.contains_key(*pod)) {
        left.push(format!("the API server still has {pod}, which nobody wants"));
    }
    left
}

fn touched_pods(history: &History) -> BTreeSet<&str> {
    let (mut all, mut pods) = (BTreeSet::new(), BTreeSet::new());
    for (_, fact) in &history.facts {
        all.extend(touched(fact));
        match fact {
            Fact::Wanted(pod, _) => drop(pods.insert(pod.as_str())),
            // All are ended.
            Fact::Struck(what) if what == SHUTDOWN => all.extend(&pods),
            _ => {}
        }
    }
    all
}

/// The pod that something was done to of which a pod without restarts does not recover.
fn touched(fact: &Fact) -> Option<&str> {
    match fact {
        // Of a manifest that comes again the containers have been stopped, and that is how they ended: the UID is the same.
        Fact::Touched(pod) | Fact::Edited(pod) | Fact::SourceGone(pod) => Some(pod),
        // Whatever ran then has ended.
        Fact::Ended(of, _, fakes::runtime::Cause::Lost) => Some(&of.pod),
        _ => None,
    }
}

fn is_over(told: &Told) -> bool {
    matches!(told.phase.as_str(), "Succeeded" | "Failed")
}

/// What a wanted pod lacks.
fn lacks(shape: &Shape, told: Option<&Told>, touched: bool) -> Option<String> {
    let Some(told) = told else { return Some("is not known to the API server".to_owned()) };
    let is_over = is_over(told);
    if is_over && !told.reason.is_empty() {
        // Refused, evicted, preempted: the node's own decision.
        return None;
    }
    if touched && shape.restart != Restart::Always {
        return None;
    }
    match shape.rest() {
        Rest::Open => None,
        Rest::Over if is_over => None,
        Rest::Over => Some(format!("is {} and should be over", told.phase)),
        Rest::Ready => {
            let all = told.containers.iter().filter(|c| shape.containers.iter().any(|part| part.name == c.name));
            let ready = all.filter(|c| c.running.is_some() && c.ready).count();
            let fine = told.phase == "Running" && told.ready && ready == shape.containers.len();
            (!fine).then(|| format!("is {}, ready {}: {:?}", told.phase, told.ready, told.containers))
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::check::made::{history, running, shape, started, told, unwanted, wanted};
    use crate::history::{Fact, Told, ToldContainer};
    use crate::shape::{Does, Part, Restart, Shape};

    #[test]
    fn what_is_wanted_is_ready_and_what_is_not_is_gone() {
        let fine = history([(0, wanted(shape())), (1, started(0)), (2, told("Running", running(0)))]);
        assert!(super::check(&fine).is_empty());
        let pending = history([(0, wanted(shape())), (2, told("Pending", ToldContainer::default()))]);
        assert_eq!(super::check(&pending).len(), 1);
        let unknown = history([(0, wanted(shape()))]);
        assert_eq!(super::check(&unknown).len(), 1);
        let left = history([(0, wanted(shape())), (1, started(0)), (2, told("Running", running(0))), (3, unwanted())]);
        assert_eq!(super::check(&left).len(), 2, "a container and an object");
        assert_eq!(super::check(&history([(1, Fact::Left("a row".to_owned()))])).len(), 1);
    }

    #[test]
    fn a_static_pod_that_has_ended_has_a_mirror_once() {
        let mirror = || match told("Succeeded", ToldContainer::default()) {
            Fact::Status(told) => Fact::Status(Told { mirror: true, ..told }),
            other => other,
        };
        let gone = || Fact::Gone("p-sim".to_owned(), "u".to_owned());
        let again = |second: Shape| {
            let facts = [(0, wanted(shape())), (1, mirror()), (2, wanted(second)), (3, gone())];
            super::check(&history(facts)).len()
        };
        assert_eq!(again(shape()), 0);
        assert_eq!(again(Shape { restart: Restart::Never, ..shape() }), 1, "another pod, which was never told of");
        let told_of = [(0, wanted(shape())), (1, told("Succeeded", ToldContainer::default())), (3, gone())];
        assert_eq!(super::check(&history(told_of)).len(), 1, "no mirror");
    }

    #[test]
    fn what_the_node_refuses_is_told_to_be_over() {
        let refused = || Fact::Refused("p-sim".to_owned());
        let with = |phase: &str| {
            let told = told(phase, ToldContainer::default());
            super::check(&history([(0, wanted(shape())), (1, refused()), (2, told)])).len()
        };
        assert_eq!((with("Failed"), with("Running")), (0, 1));
    }

    #[test]
    fn a_job_is_over_unless_somebody_ended_its_containers() {
        let part = Part { does: vec![Does::Exits { after_ms: 1000, code: 0 }], ..crate::check::made::part("a") };
        let job = || Shape { restart: Restart::Never, containers: vec![part.clone()], ..shape() };
        let over = history([(0, wanted(job())), (2, told("Succeeded", ToldContainer::default()))]);
        assert!(super::check(&over).is_empty());
        let on = history([(0, wanted(job())), (2, told("Running", running(0)))]);
        assert_eq!(super::check(&on).len(), 1);
        let touched = [(0, wanted(job())), (1, Fact::Touched("p-sim".to_owned())), (2, told("Running", running(0)))];
        assert!(super::check(&history(touched)).is_empty());
    }
}
