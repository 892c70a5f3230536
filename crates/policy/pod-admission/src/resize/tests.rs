use model::quantity::Quantity;
use proptest::prelude::*;
use serde_json::json;

use super::*;

fn pod(uid: &str, cpu_milli: i64, priority: i64, extra: &serde_json::Value) -> Pod {
    let cpu = format!("{cpu_milli}m");
    let mut container = json!({"name": "c", "resources": {"requests": {"cpu": cpu}}});
    container.as_object_mut().unwrap().extend(extra.as_object().cloned().unwrap_or_default());
    let spec = json!({"containers": [container], "priority": priority});
    serde_json::from_value(json!({"metadata": {"name": uid, "namespace": "ns", "uid": uid}, "spec": spec})).unwrap()
}

fn plain(uid: &str, cpu_milli: i64) -> Pod {
    pod(uid, cpu_milli, 0, &json!({}))
}

fn node(cpu_milli: i64) -> NodeFacts {
    let all = [
        ("cpu", Quantity::from_millis(cpu_milli)),
        ("pods", Quantity::from_units(110)),
        ("memory", Quantity::from_units(1 << 40)),
    ];
    NodeFacts { allocatable: all.map(|(n, q)| (n.to_owned(), q)).into(), ..NodeFacts::default() }
}

/// Edge 23: also what the node could never hold.
#[test]
fn what_fits_beside_the_others_is_granted_and_the_rest_waits() {
    let others = [plain("o", 600)];
    let verdict = |cpu| decide_resize(&plain("p", cpu), &plain("p", 100), others.iter(), &node(1000));
    assert_eq!(verdict(400), ResizeVerdict::Grant);
    let message = "Node didn't have enough resource: cpu, requested: 401, used: 600, capacity: 1000";
    let ResizeVerdict::Defer { why } = verdict(401) else { panic!("{:?}", verdict(401)) };
    assert_eq!((&*why.reason, &*why.message), ("OutOfcpu", message));
}

#[test]
fn memory_of_a_container_that_may_swap_is_not_changed_without_a_restart() {
    let of = |request: &str, policy: &str| {
        let resources = json!({"requests": {"memory": request}, "limits": {"memory": "1Gi"}});
        let policy = json!([{"resourceName": "memory", "restartPolicy": policy}]);
        pod("p", 0, 0, &json!({"resources": resources, "resizePolicy": policy}))
    };
    let verdict = |policy, to, limited_swap| {
        let node = NodeFacts { limited_swap, ..node(1000) };
        decide_resize(&of(to, policy), &of("1Mi", policy), std::iter::empty(), &node)
    };
    let message = "In-place resize of containers with swap is not supported.".to_owned();
    let no = ResizeVerdict::Infeasible { message, detail: "swap_limitation" };
    assert_eq!(verdict("NotRequired", "2Mi", true), no);
    for (policy, to, limited_swap) in
        [("NotRequired", "2Mi", false), ("NotRequired", "1Mi", true), ("RestartContainer", "2Mi", true)]
    {
        assert_eq!(verdict(policy, to, limited_swap), ResizeVerdict::Grant, "{policy} {to} {limited_swap}");
    }
}

/// node-and-resources 1.12.
/// Edge 25.
#[test]
fn who_is_tried_first() {
    let guaranteed =
        json!({"resources": {"requests": {"cpu": "1", "memory": "1"}, "limits": {"cpu": "1", "memory": "1"}}});
    let (old, small) = (plain("x", 100), plain("x", 50));
    let (high, large) = (pod("h", 200, 1000, &json!({})), plain("l", 200));
    let sure = pod("g", 0, 0, &guaranteed);
    let key = |pod, since: Option<i64>| order(&Candidate { pod, allocated: &old, since: since.map(Timestamp) });
    assert!(key(&small, None) < key(&high, Some(1)), "what takes nothing");
    assert!(key(&high, None) < key(&sure, Some(1)), "priority");
    assert!(key(&sure, None) < key(&large, Some(1)), "Guaranteed");
    assert!(
        key(&large, Some(1)) < key(&large, Some(2)) && key(&large, Some(2)) < key(&large, None),
        "who waits longest"
    );
}

#[test]
fn each_change_of_an_amount_is_one_operation() {
    let of = |r| pod("p", 0, 0, &json!({"resources": r}));
    let old = of(json!({"requests": {"cpu": "1", "memory": "5"}, "limits": {"cpu": "2"}}));
    let new = of(json!({"requests": {"cpu": "2", "memory": "4"}, "limits": {"memory": "9"}}));
    let expected = [
        ["memory", "requests", "decrease"],
        ["memory", "limits", "add"],
        ["cpu", "requests", "increase"],
        ["cpu", "limits", "remove"],
    ];
    assert_eq!(operations(&old, &new, Resizable::default()), expected);
    assert_eq!(operations(&old, &old, Resizable::default()), Vec::<[&str; 3]>::new());
}

proptest! {
    /// Whatever is asked for in whatever order: what is granted never exceeds what the node can give.
    #[test]
    fn allocation_never_exceeds_allocatable(
        first in prop::collection::vec(0_i64..250, 1..5),
        asked in prop::collection::vec((0_usize..5, 0_i64..1200), 0..40),
    ) {
        let name = |i: usize| format!("p{i}");
        let mut granted: Vec<Pod> = first.iter().enumerate().map(|(i, cpu)| plain(&name(i), *cpu)).collect();
        for (which, cpu) in asked {
            let at = which % granted.len();
            let wanted = plain(&name(at), cpu);
            let others = granted.iter().enumerate().filter(|(i, _)| *i != at).map(|(_, p)| p);
            if decide_resize(&wanted, &granted[at], others, &node(1000)) == ResizeVerdict::Grant {
                granted[at] = wanted;
            }
            let sum: i64 = granted.iter().map(|p| amount(p, CPU).milli_value()).sum();
            prop_assert!(sum <= 1000);
        }
    }

    /// A total order: sorting gives the same list from any begin.
    #[test]
    fn the_order_does_not_depend_on_where_it_begins(
        mut rows in prop::collection::vec((0_i64..300, 0_i64..3, prop::option::of(0_i64..3)), 0..12), seed in any::<u64>(),
    ) {
        rows.dedup();
        let pods: Vec<(Pod, Option<Timestamp>)> = rows.iter().enumerate()
            .map(|(i, (cpu, priority, since))| (pod(&format!("p{i}"), *cpu, *priority, &json!({})), since.map(Timestamp)))
            .collect();
        let old = plain("x", 100);
        let sorted = |mut all: Vec<&(Pod, Option<Timestamp>)>| {
            all.sort_by_key(|(pod, since)| order(&Candidate { pod, allocated: &old, since: *since }));
            all.into_iter().map(|(pod, _)| pod::uid(pod)).collect::<Vec<_>>()
        };
        let mut other: Vec<_> = pods.iter().collect();
        if !other.is_empty() {
            let by = usize::try_from(seed % 97).unwrap() % other.len();
            other.rotate_left(by);
            other.reverse();
        }
        prop_assert_eq!(sorted(pods.iter().collect()), sorted(other));
    }
}
