//! The common form of calls.

use golden_compare::normal::{Dirs, Step, differences, each_string, steps};
use golden_compare::recording::{case, names};
use serde_json::json;

const NODE: &str = "gold-node";

fn of(name: &str) -> Vec<Step> {
    let case = case(name);
    steps(&case.calls, &Dirs::default(), (!case.is_static()).then_some(NODE))
}

/// Names that only tell the two recordings of one manifest apart.
fn without_prefix(mut steps: Vec<Step>) -> Vec<Step> {
    for step in &mut steps {
        each_string(&mut step.request, &|s| s.replace("st-", ""));
    }
    steps
}

#[test]
fn a_pod_of_the_api_becomes_the_static_pod_of_the_same_manifest() {
    for name in ["plain", "guaranteed", "host-ns", "run-once-ok"] {
        let (api, mut fixed) = (of(name), without_prefix(of(&format!("static-{name}"))));
        // The recordings end at different moments of the clean-up.
        let both = api.len().min(fixed.len());
        fixed.truncate(both);
        assert_eq!(differences(&without_prefix(api)[..both], &fixed), Vec::<String>::new(), "{name}");
    }
}

#[test]
fn ids_and_uids_leave_no_trace() {
    for name in names() {
        for step in of(&name) {
            let text = step.request.to_string();
            assert!(!text.contains("config.seen"), "{name}: {text}");
            assert!(!step.subject.is_empty() || step.rpc == "PullImage", "{name}: {text}");
            for field in ["pod_sandbox_id", "container_id"] {
                let role = step.request[field].as_str();
                assert!(role.is_none_or(|r| r.contains('#')), "{name}: {role:?}");
            }
        }
    }
}

#[test]
fn a_changed_field_a_lost_call_and_a_swap_are_seen() {
    let want = of("static-init-two");
    assert_eq!(differences(&want, &want), Vec::<String>::new());
    let mut changed = want.clone();
    changed[1].request["config"]["log_path"] = json!("other");
    assert_eq!(
        differences(&want, &changed),
        ["CreateContainer i1#0.config.log_path: recorded \"i1/0.log\", ours \"other\""]
    );
    assert_eq!(differences(&want, &want[1..]).len(), 1);
    let mut swapped = want.clone();
    swapped.swap(1, 2);
    assert_eq!(differences(&want, &swapped).len(), 1);
}
