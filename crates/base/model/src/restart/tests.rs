use super::*;
use crate::core::{ContainerRestartRuleOnExitCodes, PodSpec};
use crate::k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use crate::runtime::ContainerObservation;
use crate::{PodUid, Timestamp};

fn rule(action: &str, operator: &str, values: &[i32]) -> ContainerRestartRule {
    ContainerRestartRule {
        action: action.into(),
        exit_codes: Some(ContainerRestartRuleOnExitCodes { operator: operator.into(), values: Some(values.to_vec()) }),
    }
}

fn pod(policy: &str, own: Option<&str>, rules: Vec<ContainerRestartRule>) -> Pod {
    let container = Container {
        name: "c".into(),
        restart_policy: own.map(str::to_owned),
        restart_policy_rules: (!rules.is_empty()).then_some(rules),
        ..Container::default()
    };
    Pod {
        metadata: ObjectMeta::default(),
        spec: Some(PodSpec {
            containers: vec![container],
            restart_policy: (!policy.is_empty()).then(|| policy.to_owned()),
            ..PodSpec::default()
        }),
        status: None,
    }
}

fn seen(state: ContainerState, exit_code: i32) -> PodObservation {
    let mut o = PodObservation::empty(PodUid::from("u"), "ns", "p");
    o.containers.push(ContainerObservation {
        created_at: Timestamp::from_secs(1),
        exit_code,
        ..ContainerObservation::new("id", "c", "s", state)
    });
    o
}

#[test]
fn restart_rules_of_an_exited_container() {
    let in_42 = || vec![rule("Restart", "In", &[42])];
    let all_7 = || vec![rule("RestartAllContainers", "In", &[7])];
    // (name, pod policy, own policy, rules, exit code, restarts)
    let rows = [
        ("pod Always, code 0", "Always", None, vec![], 0, true),
        ("pod policy absent counts as Always", "", None, vec![], 1, true),
        ("pod policy unknown counts as Always", "Sometimes", None, vec![], 0, true),
        ("pod OnFailure, code 0", "OnFailure", None, vec![], 0, false),
        ("pod OnFailure, code 3", "OnFailure", None, vec![], 3, true),
        ("pod Never, code 3", "Never", None, vec![], 3, false),
        ("own Always beats pod Never", "Never", Some("Always"), vec![], 0, true),
        ("own OnFailure beats pod Always", "Always", Some("OnFailure"), vec![], 0, false),
        ("own Never beats pod Always", "Always", Some("Never"), vec![], 1, false),
        ("rule In matches", "Never", Some("Never"), in_42(), 42, true),
        ("rule In does not match", "Never", Some("Never"), in_42(), 41, false),
        ("rule NotIn matches", "Never", Some("Never"), vec![rule("Restart", "NotIn", &[0, 1])], 2, true),
        ("rule NotIn does not match", "Never", Some("Never"), vec![rule("Restart", "NotIn", &[0, 1])], 1, false),
        ("rules without an own policy are not consulted", "Never", None, in_42(), 42, false),
        ("RestartAllContainers restarts", "Never", Some("Never"), all_7(), 7, true),
        ("an unknown action falls through", "Never", Some("Never"), vec![rule("Dance", "In", &[7])], 7, false),
        ("an unknown operator matches nothing", "Never", Some("Never"), vec![rule("Restart", "Like", &[7])], 7, false),
    ];
    for (name, policy, own, rules, code, expected) in rows {
        let pod = pod(policy, own, rules);
        let container = &pod::regular_containers(&pod)[0];
        assert_eq!(restarts_after_exit(&pod, container, code, true), expected, "{name}");
    }
}

#[test]
fn should_restart_by_state() {
    let never = pod("Never", None, vec![]);
    let c = &pod::regular_containers(&never)[0];
    let nothing = PodObservation::empty(PodUid::from("u"), "ns", "p");
    assert!(should_restart(&never, c, &nothing, true), "no status");
    assert!(!should_restart(&never, c, &seen(ContainerState::Running, 0), true), "running");
    assert!(should_restart(&never, c, &seen(ContainerState::Created, 0), true), "created");
    assert!(should_restart(&never, c, &seen(ContainerState::Unknown, 0), true), "unknown");
    assert!(!should_restart(&never, c, &seen(ContainerState::Exited, 1), true), "exited, policy Never");

    let mut deleted = pod("Always", None, vec![]);
    deleted.metadata.deletion_timestamp = Timestamp::from_secs(5).to_api();
    let c = &pod::regular_containers(&deleted)[0];
    assert!(!should_restart(&deleted, c, &nothing, true), "a deleting pod starts nothing");
}

#[test]
fn an_exit_on_a_restart_all_rule_asks_for_all_where_the_gate_is_on() {
    let p = pod("Never", Some("Never"), vec![rule("RestartAllContainers", "In", &[7])]);
    assert!(may_restart_all(&p));
    let c = &pod::regular_containers(&p)[0];
    assert_eq!([7, 8].map(|code| asks_for_all(c, code)), [true, false]);
    assert_eq!([true, false].map(|gate| restarts_after_exit(&p, c, 7, gate)), [true, false]);
    assert!(!may_restart_all(&pod("Never", Some("Never"), vec![])));
}
