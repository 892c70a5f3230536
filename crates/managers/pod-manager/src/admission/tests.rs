use super::*;
use model::Timestamp;
use model::core::{Container, PodSpec};
use model::runtime::{ContainerObservation, SandboxObservation};

fn pod(policy: &str, names: &[&str]) -> Pod {
    let containers = names.iter().map(|n| Container { name: (*n).to_owned(), ..Container::default() }).collect();
    let spec = PodSpec { restart_policy: Some(policy.to_owned()), containers, ..PodSpec::default() };
    Pod { spec: Some(spec), ..Pod::default() }
}

fn observed(ready: bool, containers: &[(&str, ContainerState, i32)]) -> PodObservation {
    let mut out = PodObservation::empty("u".into(), "default", "p");
    out.sandboxes.push(SandboxObservation {
        id: "s".into(),
        attempt: 0,
        ready,
        created_at: Timestamp::ZERO,
        host_network: None,
        ips: None,
        runtime_handler: String::new(),
    });
    out.containers = containers
        .iter()
        .map(|(name, state, exit_code)| ContainerObservation {
            id: (*name).into(),
            name: (*name).to_owned(),
            sandbox: "s".into(),
            state: *state,
            created_at: Timestamp::ZERO,
            started_at: Timestamp::ZERO,
            finished_at: Timestamp::ZERO,
            exit_code: *exit_code,
            image: String::new(),
            image_ref: String::new(),
            reason: String::new(),
            message: String::new(),
            restart_count: 0,
            hash: None,
            annotations: Default::default(),
            mounts: Arc::from([]),
            log_path: String::new(),
            resources: None,
            user: None,
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
