//! Who makes room for a critical pod.

use super::*;
use model::resources::QosClass;

/// A pod of a class with cpu in cores and memory; Guaranteed ones limit what they request.
fn running(name: &str, class: QosClass, cpu: &str, memory: &str) -> Pod {
    let mut p = if class == QosClass::BestEffort { pod(|_| ()) } else { asks(cpu, memory) };
    if class == QosClass::Guaranteed {
        let r = spec(&mut p).containers[0].resources.as_mut().unwrap();
        r.limits = r.requests.clone();
    }
    p.metadata.uid = Some(name.into());
    p
}

fn critical(cpu: &str, memory: &str) -> Pod {
    let mut p = asks(cpu, memory);
    spec(&mut p).priority = Some(2_000_001_000);
    p
}

fn big() -> NodeFacts {
    let mut n = node();
    for (k, v) in [(CPU, "8"), (MEMORY, "4Gi"), ("pods", "5")] {
        n.allocatable.insert(k.to_owned(), v.parse().unwrap());
    }
    n
}

fn victims(pod: &Pod, active: &[Pod]) -> Vec<String> {
    match decide(pod, active.iter(), &big()) {
        Verdict::Preempt { victims } => victims.iter().map(ToString::to_string).collect(),
        other => vec![format!("{other:?}")],
    }
}

/// Edge 70.
#[test]
fn the_pod_at_the_least_distance_goes() {
    use QosClass::{BestEffort, Burstable};
    // 3 of 4 GiB are taken; 2 GiB are wanted; 1 GiB is short.
    let active = [
        running("be", BestEffort, "0", "0"),
        running("small-1", Burstable, "0", "512Mi"),
        running("large", Burstable, "0", "2Gi"),
        running("small-2", Burstable, "0", "512Mi"),
    ];
    assert_eq!(victims(&critical("0", "2Gi"), &active), ["large"]);
}

#[test]
fn one_row_per_rule_of_choice() {
    use QosClass::{BestEffort, Burstable, Guaranteed};
    let mut spared = running("spared", Burstable, "0", "4Gi");
    spec(&mut spared).priority = Some(2_000_001_000);
    let table: Vec<(&str, Pod, Vec<Pod>, Vec<&str>)> = vec![
        (
            "guaranteed pods only for what the others cannot give",
            critical("0", "3Gi"),
            vec![running("g", Guaranteed, "1", "2Gi"), running("bu", Burstable, "0", "2Gi")],
            vec!["bu", "g"],
        ),
        (
            "burstable before guaranteed",
            critical("0", "2Gi"),
            vec![running("g", Guaranteed, "1", "2Gi"), running("bu", Burstable, "0", "2Gi")],
            vec!["bu"],
        ),
        (
            "of two that suffice the smaller",
            critical("0", "2Gi"),
            vec![running("two", Burstable, "0", "2Gi"), running("one", Burstable, "0", "1Gi")],
            vec!["one"],
        ),
        (
            "then the smaller cpu request",
            critical("0", "2Gi"),
            vec![running("slow", Burstable, "1", "2Gi"), running("fast", Burstable, "2", "2Gi")],
            vec!["slow"],
        ),
        (
            "a place among the pods costs a best-effort pod",
            critical("0", "0"),
            vec![
                running("bu", Burstable, "0", "1Mi"),
                running("be-1", BestEffort, "0", "0"),
                running("g", Guaranteed, "1", "1Mi"),
                running("be-2", BestEffort, "0", "0"),
                running("bu-2", Burstable, "0", "1Mi"),
            ],
            vec!["be-2"],
        ),
        (
            "as many as it takes, nearest first",
            critical("8", "0"),
            vec![
                running("a", Burstable, "1", "0"),
                running("b", Burstable, "5", "0"),
                running("c", Burstable, "2", "0"),
            ],
            vec!["b", "c", "a"],
        ),
    ];
    for (what, pod, active, expected) in table {
        assert_eq!(victims(&pod, &active), expected, "{what}");
    }
    let r = victims(&critical("0", "1Gi"), &[spared]);
    assert!(r[0].contains("(res: memory, q: 1073741824), ]"), "critical pods are spared: {}", r[0]);
}

#[test]
fn who_cannot_be_helped_hears_why() {
    let r = admit(&critical("9", "0"), [running("a", QosClass::Burstable, "1", "0")].iter(), &big()).unwrap_err();
    assert_eq!(r.reason, "UnexpectedAdmissionError");
    assert_eq!(
        r.message,
        "Unexpected error while attempting to recover from admission failure: preemption: error finding a set of pods to \
         preempt: no set of running pods found to reclaim resources: [(res: cpu, q: 1000), ]"
    );
}

/// Edge 71.
#[test]
fn nobody_dies_for_a_pod_that_does_not_run_anyway() {
    let active = [running("a", QosClass::Burstable, "8", "0")];
    let mut astray = critical("1", "0");
    spec(&mut astray).node_selector = Some([("no".into(), "such".into())].into());
    let mut facts = big();
    assert!(
        matches!(decide(&astray, active.iter(), &facts), Verdict::Reject(r) if r.reason == "NodeAffinity" && !r.with_fresh_node)
    );
    facts.shutting_down = true;
    assert!(
        matches!(decide(&critical("1", "0"), active.iter(), &facts), Verdict::Reject(r) if r.reason == "NodeShutdown")
    );
}

#[test]
fn only_critical_pods_displace_others() {
    let mut high = asks("1", "0");
    spec(&mut high).priority = Some(1_000_000);
    let active = [running("a", QosClass::Burstable, "8", "0")];
    assert!(matches!(decide(&high, active.iter(), &big()), Verdict::Reject(r) if r.reason == "OutOfcpu"));
}

#[test]
fn a_caller_that_cannot_preempt_hears_what_is_short() {
    let active = [running("a", QosClass::Burstable, "8", "0")];
    assert_eq!(admit(&critical("1", "0"), active.iter(), &big()).unwrap_err().reason, "OutOfcpu");
}
