//! Properties over arbitrary pods, observations and bases.

use std::collections::BTreeMap;

use model::core::{ContainerStatus, Pod, PodStatus};
use model::probe::ProbeVerdict;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::testing::*;
use crate::{patch, store};

const NAMES: [&str; 5] = ["i", "s", "a", "b", "e"];

fn arb_pod() -> impl Strategy<Value = Pod> {
    let policy = prop::sample::select(vec!["Always", "OnFailure", "Never"]);
    let own = prop::sample::select(vec!["", "Always", "Never", "OnFailure"]);
    let rule = prop::sample::select(vec!["", "Restart", "RestartAllContainers"]);
    let flags = prop::array::uniform5(any::<bool>());
    (policy, own, rule, flags, prop::option::of(1_i64..100)).prop_map(|(policy, own, rule, flags, deadline)| {
        let [init, sidecar, second, deleted, is_static] = flags;
        let mut app = json!({"name": "a", "image": "img:1"});
        if !own.is_empty() {
            app["restartPolicy"] = json!(own);
            if !rule.is_empty() {
                app["restartPolicyRules"] = json!([{"action": rule, "exitCodes": {"operator": "In", "values": [1]}}]);
            }
        }
        let mut inits: Vec<Value> = Vec::new();
        if init {
            inits.push(json!({"name": "i"}));
        }
        if sidecar {
            inits.push(json!({"name": "s", "restartPolicy": "Always"}));
        }
        let mut regular = vec![app];
        if second {
            regular.push(json!({"name": "b", "readinessProbe": {}}));
        }
        let mut pod = pod(json!({"restartPolicy": policy, "initContainers": inits, "containers": regular,
            "ephemeralContainers": [{"name": "e"}], "activeDeadlineSeconds": deadline}));
        if deleted {
            pod = deleting(pod);
        }
        if is_static { as_static(pod) } else { pod }
    })
}

fn arb_seen() -> impl Strategy<Value = Seen> {
    let state = prop::sample::select(vec!["C", "R", "U", "X0", "X1", "X137"]);
    let instance = (prop::sample::select(NAMES.to_vec()), state, 1_i64..6, 0_u32..4, any::<bool>(), any::<bool>());
    let sandboxes = prop::collection::vec(any::<bool>(), 0..3);
    (sandboxes, prop::collection::vec(instance, 0..9)).prop_map(|(sandboxes, instances)| {
        let mut seen = Seen::nothing();
        for (n, ready) in sandboxes.into_iter().enumerate() {
            seen = seen.with_sandbox(&format!("s{n}"), u32::try_from(n).unwrap(), ready);
        }
        for (n, (name, state, created, count, second_sandbox, known)) in instances.into_iter().enumerate() {
            // Some ids are those that the base of the case already names.
            let id = if known { format!("{name}-old") } else { format!("{name}{n}") };
            let sandbox = if second_sandbox { "s1" } else { "s0" };
            seen = seen.with(&format!("{name} {state} {created} {id}@{sandbox}")).count(&id, count);
        }
        seen
    })
}

fn arb_container(name: &'static str) -> impl Strategy<Value = Option<ContainerStatus>> {
    let state = prop::sample::select(vec![
        "R",
        "W",
        "W:CrashLoopBackOff",
        "W:RestartingAllContainers",
        "T0",
        "T1",
        "T137:ContainerStatusUnknown",
    ]);
    let last = prop::sample::select(vec!["-", "T0", "T1"]);
    let status = (state, last, 0_i32..4, any::<bool>(), prop::option::of(any::<bool>())).prop_map(
        move |(state, last, count, ready, started)| ContainerStatus {
            ready: ready && state == "R",
            started,
            ..container(&format!("{name} {state} {last} {count}"))
        },
    );
    prop::option::weighted(0.7, status)
}

fn arb_status() -> impl Strategy<Value = PodStatus> {
    let phase = prop::sample::select(vec!["", "Pending", "Running", "Succeeded", "Failed"]);
    let containers = NAMES.map(arb_container);
    let extra = (any::<bool>(), any::<bool>(), prop::option::of(0_i64..200));
    (phase, containers, extra).prop_map(|(phase, [i, s, a, b, e], (reason, initialised, age))| {
        let list = |items: Vec<Option<ContainerStatus>>| Some(items.into_iter().flatten().collect::<Vec<_>>());
        let mut out = status(json!({ "conditions": [
            {"type": "Initialized", "status": if initialised { "True" } else { "False" }},
            {"type": "DisruptionTarget", "status": "True"}, {"type": "x/y", "status": "True"}] }));
        out.phase = (!phase.is_empty()).then(|| phase.to_owned());
        out.reason = reason.then(|| format!("Why{phase}"));
        out.init_container_statuses = list(vec![i, s]);
        out.container_statuses = list(vec![a, b]);
        out.ephemeral_container_statuses = list(vec![e]);
        out.start_time = age.and_then(|age| model::Timestamp::from_secs(1_000_000 - age).to_api());
        out
    })
}

fn arb_case() -> impl Strategy<Value = Case> {
    let verdict = prop::sample::select(vec![
        None,
        Some(ProbeVerdict::Unknown),
        Some(ProbeVerdict::Success),
        Some(ProbeVerdict::Failure),
    ]);
    let reasons = prop::collection::btree_map(prop::sample::select(NAMES.to_vec()), Just("CrashLoopBackOff"), 0..4);
    let bases = (prop::option::of(arb_status()), prop::option::of(arb_status()));
    let flags = (any::<bool>(), any::<bool>(), any::<bool>());
    (arb_pod(), arb_seen(), bases, reasons, (verdict.clone(), verdict), flags).prop_map(
        |(mut pod, seen, (api, base), reasons, (startup, readiness), (terminal, with_startup, with_readiness))| {
            pod.status = api;
            let mut case = Case::new(pod, seen);
            case.base = base;
            case.is_terminal = terminal;
            let reasons: BTreeMap<&str, &str> = reasons;
            for (name, reason) in reasons {
                case = case.reason(name, reason);
            }
            if with_startup {
                case = case.startup("a", "a-old", startup);
            }
            if with_readiness {
                case = case.readiness("b", "b-old", readiness);
            }
            case
        },
    )
}

fn rank(phase: Option<&str>) -> bool {
    model::pod::is_terminal_phase(phase)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn generating_again_from_the_result_changes_nothing(case in arb_case()) {
        let first = case.generate();
        let second = case.clone().base(first.clone()).generate();
        prop_assert_eq!(first, second);
    }

    #[test]
    fn settling_again_changes_nothing_and_is_equal_for_the_node(case in arb_case()) {
        let first = store::settle(&case.pod, case.generate(), case.base.as_ref(), case.now);
        let later = case.now.plus(std::time::Duration::from_secs(90));
        let second = store::settle(&case.pod, first.clone(), Some(&first), later);
        prop_assert_eq!(&first, &second);
        prop_assert!(store::same_for_node(&first, &second));
    }

    #[test]
    fn a_terminal_phase_is_never_left(case in arb_case()) {
        let api = case.pod.status.as_ref().and_then(|s| s.phase.clone());
        let base = case.base.as_ref().and_then(|s| s.phase.clone());
        let phase = case.generate().phase;
        if rank(api.as_deref()) {
            prop_assert_eq!(&phase, &api);
        } else if rank(base.as_deref()) {
            prop_assert_eq!(&phase, &base);
        }
    }

    #[test]
    fn restart_counts_never_go_back(case in arb_case()) {
        let counts = |s: &PodStatus| -> BTreeMap<String, i32> {
            let lists = [&s.init_container_statuses, &s.container_statuses, &s.ephemeral_container_statuses];
            lists.into_iter().flatten().flatten().map(|c| (c.name.clone(), c.restart_count)).collect()
        };
        let before = case.base.as_ref().or(case.pod.status.as_ref()).map(counts).unwrap_or_default();
        for (name, count) in counts(&case.generate()) {
            prop_assert!(count >= before.get(&name).copied().unwrap_or(0), "{}", name);
        }
    }

    #[test]
    fn a_started_ready_container_runs_and_every_container_has_one_state(case in arb_case()) {
        let status = case.generate();
        for c in status.init_container_statuses.iter().chain(&status.container_statuses).flatten() {
            let state = c.state.as_ref().unwrap();
            let set = [state.running.is_some(), state.waiting.is_some(), state.terminated.is_some()];
            prop_assert_eq!(set.iter().filter(|s| **s).count(), 1);
            prop_assert!(!(c.started == Some(true) && state.running.is_none()));
        }
    }

    #[test]
    fn a_terminated_pod_that_is_not_static_is_terminal_and_stays_as_it_is(case in arb_case()) {
        let once = patch::terminated(&case.pod, &case.generate());
        prop_assert!(model::pod::is_static(&case.pod) || rank(once.phase.as_deref()));
        prop_assert_eq!(&patch::terminated(&case.pod, &once).phase, &once.phase);
    }
}
