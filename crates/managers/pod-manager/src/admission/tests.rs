use super::*;
use model::core::{Container, PodSpec};
use model::runtime::{ContainerObservation, SandboxObservation};
use std::sync::Arc;

fn pod(policy: &str, names: &[&str]) -> Pod {
    let containers = names.iter().map(|n| Container { name: (*n).to_owned(), ..Container::default() }).collect();
    let spec = PodSpec { restart_policy: Some(policy.to_owned()), containers, ..PodSpec::default() };
    Pod { spec: Some(spec), ..Pod::default() }
}

fn observed(ready: bool, containers: &[(&str, ContainerState, i32)]) -> PodObservation {
    let mut out = PodObservation::empty("u".into(), "default", "p");
    out.sandboxes.push(SandboxObservation::new("s", 0, ready));
    out.containers = containers
        .iter()
        .map(|(name, state, exit_code)| ContainerObservation {
            exit_code: *exit_code,
            ..ContainerObservation::new(*name, *name, "s", *state)
        })
        .collect();
    out
}

#[test]
fn a_pod_is_over_when_all_its_containers_have_ended_for_good() {
    use ContainerState::{Created, Exited, Running};
    type Row<'a> = (&'a str, &'a str, &'a [&'a str], bool, &'a [(&'a str, ContainerState, i32)], bool);
    let table: &[Row<'_>] = &[
        ("Never, ended", "Never", &["a"], false, &[("a", Exited, 3)], true),
        ("Never, one of two ended", "Never", &["a", "b"], false, &[("a", Exited, 0)], false),
        ("Never, created only", "Never", &["a"], false, &[("a", Created, 0)], false),
        ("Never, runs", "Never", &["a"], true, &[("a", Running, 0)], false),
        ("Never, its sandbox still stands", "Never", &["a"], true, &[("a", Exited, 0)], false),
        ("OnFailure, ended well", "OnFailure", &["a"], false, &[("a", Exited, 0)], true),
        ("OnFailure, failed", "OnFailure", &["a"], false, &[("a", Exited, 1)], false),
        ("Always", "Always", &["a"], false, &[("a", Exited, 0)], false),
        ("nothing ran", "Never", &["a"], false, &[], false),
    ];
    for (what, policy, names, ready, containers, over) in table {
        assert_eq!(has_run_to_end(&pod(policy, names), &observed(*ready, containers)), *over, "{what}");
    }
}

/// Found by the simulation: a static pod whose first container had failed for good took room from running pods when the daemon
/// came back, and one of them was refused.
#[test]
fn a_pod_is_over_when_a_container_that_begins_before_the_others_has_failed_for_good() {
    use ContainerState::{Exited, Running};
    type Row<'a> = (&'a str, &'a str, Option<&'a str>, bool, &'a [(&'a str, ContainerState, i32)], bool);
    let table: &[Row<'_>] = &[
        ("Never, failed", "Never", None, false, &[("i", Exited, 1)], true),
        ("Never, its sandbox still stands", "Never", None, true, &[("i", Exited, 1)], false),
        ("Never, ended well", "Never", None, false, &[("i", Exited, 0)], false),
        ("Never, runs", "Never", None, true, &[("i", Running, 0)], false),
        ("OnFailure, failed", "OnFailure", None, false, &[("i", Exited, 1)], false),
        ("Always, failed", "Always", None, false, &[("i", Exited, 1)], false),
        ("one that runs beside the others", "Never", Some("Always"), false, &[("i", Exited, 1)], false),
        ("its own policy says Never", "Always", Some("Never"), false, &[("i", Exited, 1)], true),
        ("its own policy starts it again", "Never", Some("OnFailure"), false, &[("i", Exited, 1)], false),
    ];
    for (what, policy, own, ready, containers, over) in table {
        let mut pod = pod(policy, &["a"]);
        let init = Container { name: "i".to_owned(), restart_policy: own.map(str::to_owned), ..Container::default() };
        pod.spec.as_mut().unwrap().init_containers = Some(vec![init]);
        assert_eq!(has_run_to_end(&pod, &observed(*ready, containers)), *over, "{what}");
    }
}

#[test]
fn changes_are_admitted_in_the_order_that_lets_running_pods_stay() {
    let pod = |uid: &str| {
        let mut pod = pod("Always", &["c"]);
        pod.metadata.uid = Some(uid.to_owned());
        Arc::new(pod)
    };
    let mut changes = [
        Change::Update(pod("changed")),
        Change::Add(pod("new")),
        Change::Add(pod("runs")),
        Change::Reconcile(pod("told")),
        Change::Remove(pod("gone")),
    ];
    sort_for_admission(&mut changes, |uid| uid.as_str() == "runs");
    let order: Vec<String> = changes.iter().map(|change| model::pod::uid(change.pod()).to_string()).collect();
    assert_eq!(order, ["gone", "runs", "new", "changed", "told"]);
}

#[test]
fn a_wait_for_room_ends_with_the_last_victim_or_with_its_time() {
    let second = |s: i64| Timestamp::from_secs(s);
    // Victims that are gone, the time, and whether the pod may start.
    let table: &[(&str, &[&str], i64, bool)] = &[
        ("nobody is gone", &[], 5, false),
        ("one of two is gone", &["v1"], 5, false),
        ("both are gone", &["v1", "v2"], 5, true),
        ("nobody is gone, the time is up", &[], 10, true),
    ];
    for (what, gone, now, ends) in table {
        let mut admission = Admission::default();
        let victims: BTreeSet<PodUid> = ["v1".into(), "v2".into()].into();
        admission.wait("u".into(), Pending::Preempting(Preemption { victims: victims.clone(), until: second(10) }));
        admission.wait("reads".into(), Pending::ReadingNode);
        let ended = admission.end_preemptions(second(*now), |uid| gone.contains(&uid.as_str()));
        let expected: Vec<_> = ends.then(|| ("u".into(), victims)).into_iter().collect();
        assert_eq!(ended, expected, "{what}");
        assert_eq!(admission.is_preempting(&"u".into()), !ends, "{what}");
        assert!(admission.is_pending(&"reads".into()), "{what}");
    }
}

#[test]
fn a_node_that_was_read_decides_only_about_a_pod_that_still_waits_for_it() {
    let mut admission = Admission::default();
    assert!(!admission.node_was_read(&"u".into()));
    admission.wait("u".into(), Pending::ReadingNode);
    assert!(admission.node_was_read(&"u".into()));
    assert!(!admission.node_was_read(&"u".into()), "once");
    admission.wait("u".into(), Pending::ReadingNode);
    admission.forget(&"u".into());
    assert!(!admission.node_was_read(&"u".into()), "it has gone");
}
