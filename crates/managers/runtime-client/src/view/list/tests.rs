use cri_api::v1;
use model::runtime::{ContainerState, PodObservation};

use super::super::tests::{container, pod, sandbox};
use super::Lists;

fn listed_sandbox(uid: &str, id: &str, ready: bool) -> v1::PodSandbox {
    let state = if ready { v1::PodSandboxState::SandboxReady } else { v1::PodSandboxState::SandboxNotready };
    v1::PodSandbox { id: id.to_owned(), state: state.into(), labels: labels(uid), ..Default::default() }
}

fn listed_container(uid: &str, id: &str, state: v1::ContainerState) -> v1::Container {
    let pod_sandbox_id = "s1".to_owned();
    v1::Container { id: id.to_owned(), pod_sandbox_id, state: state.into(), labels: labels(uid), ..Default::default() }
}

fn labels(uid: &str) -> std::collections::BTreeMap<String, String> {
    [("io.kubernetes.pod.uid".to_owned(), uid.to_owned())].into_iter().filter(|(_, u)| !u.is_empty()).collect()
}

#[test]
fn a_relist_finds_what_differs() {
    use v1::ContainerState::{ContainerExited as Exited, ContainerRunning as Running};
    let known = || pod(vec![sandbox("s1", 0, true)], vec![container("c1", "app", ContainerState::Running)]);
    let s = |ready| vec![listed_sandbox("u1", "s1", ready)];
    let c = |state| vec![listed_container("u1", "c1", state)];
    let other = || listed_container("u1", "c2", Running);
    type Row = (&'static str, Vec<PodObservation>, Vec<v1::PodSandbox>, Vec<v1::Container>, &'static [&'static str]);
    let rows: Vec<Row> = vec![
        ("same", vec![known()], s(true), c(Running), &[]),
        ("container exited", vec![known()], s(true), c(Exited), &["u1"]),
        ("sandbox down", vec![known()], s(false), c(Running), &["u1"]),
        ("container gone", vec![known()], s(true), vec![], &["u1"]),
        ("container more", vec![known()], s(true), [c(Running), vec![other()]].concat(), &["u1"]),
        ("pod gone", vec![known()], vec![], vec![], &["u1"]),
        ("pod more", vec![], s(true), c(Running), &["u1"]),
        ("not made for a pod", vec![], vec![listed_sandbox("", "x", true)], vec![], &[]),
        ("container of a lost sandbox", vec![], vec![], c(Running), &["u1"]),
    ];
    for (name, known, sandboxes, containers, want) in rows {
        let changed = Lists::new(sandboxes, containers).changed(known.iter());
        assert_eq!(changed.iter().map(model::PodUid::as_str).collect::<Vec<_>>(), want, "{name}");
    }
}
