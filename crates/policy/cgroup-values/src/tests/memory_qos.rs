//! MemoryQoS, with numbers worked out by hand from the formula of a kubelet 1.36.2:
//! `floor((request + factor * (limit or allocatable - request)) / page) * page`, where the request is not the limit.

use super::*;
use crate::MemoryQos;
use crate::memory_qos::keep_reserved;

/// A node with 8 GiB of which 1 GiB is set aside.
fn node() -> HostFacts {
    HostFacts { memory_allocatable_bytes: 7 * GI, ..v2_node() }
}

fn qos(throttling_factor: f64, tiered: bool) -> LimitRules {
    LimitRules { memory_qos: Some(MemoryQos { throttling_factor, tiered }), ..rules() }
}

/// `memory.min`, `memory.low` and `memory.high` of the first container.
fn sent(pod: &Pod, node: &HostFacts, rules: &LimitRules) -> [Option<String>; 3] {
    let unified = container_resources(pod, &pod.spec.as_ref().unwrap().containers[0], node, rules).unified;
    ["memory.min", "memory.low", "memory.high"].map(|file| unified.get(file).cloned())
}

fn memory(request: &str, limit: &str) -> Value {
    let list = |amount: &str| if amount.is_empty() { json!({}) } else { json!({"memory": amount}) };
    json!({"requests": list(request), "limits": list(limit)})
}

fn guaranteed(amount: &str) -> Value {
    json!({"requests": {"cpu": "1", "memory": amount}, "limits": {"cpu": "1", "memory": amount}})
}

#[test]
fn a_container_is_slowed_down_at_a_part_of_the_way_from_its_request_to_its_limit() {
    for (request, limit, factor, page, high) in [
        // 268435456 + 0.9 * 805306368 = 993211187.2, which is 242483.2 pages.
        ("256Mi", "1Gi", 0.9, 4096, Some(242_483 * 4096)),
        // The same in pages of 64 KiB: 15155.2.
        ("256Mi", "1Gi", 0.9, 65_536, Some(15_155 * 65_536)),
        // Half of the way: 671088640, whole pages already.
        ("256Mi", "1Gi", 0.5, 4096, Some(671_088_640)),
        ("256Mi", "1Gi", 1.0, 4096, Some(GI)),
        // No request: 0.9 * 1073741824 = 966367641.6, which is 235929.6 pages.
        ("", "1Gi", 0.9, 4096, Some(235_929 * 4096)),
        // No limit: what pods may take counts, 7516192768. 1073741824 + 0.9 * 6442450944 = 6871947673.6, 1677721.6 pages.
        ("1Gi", "", 0.9, 4096, Some(1_677_721 * 4096)),
        // As much requested as limited, and neither: nobody is slowed down.
        ("1Gi", "1Gi", 0.9, 4096, None),
        ("", "", 0.9, 4096, None),
        // 1000000 + 0.9 * 2000 = 1001800, which is 244 pages: 999424, less than what is requested.
        ("1000000", "1002000", 0.9, 4096, None),
        // More requested than there is for pods.
        ("8Gi", "", 0.9, 4096, None),
    ] {
        let node = HostFacts { page_bytes: page, ..node() };
        let pod = containers(&[memory(request, limit)]);
        let [_, _, is] = sent(&pod, &node, &qos(factor, false));
        assert_eq!(is, high.map(|n: i64| n.to_string()), "{request} of {limit}, {factor}, {page}");
    }
    let nothing_left = HostFacts { memory_allocatable_bytes: 0, ..node() };
    assert_eq!(sent(&containers(&[memory("1Gi", "")]), &nothing_left, &qos(0.9, false))[2], None);
}

#[test]
fn a_limit_of_the_pod_is_no_limit_of_its_container_here() {
    // 268435456 + 0.9 * (7516192768 - 268435456) = 6791417036.8, which is 1658060.8 pages.
    let own = json!({"name": "c", "resources": memory("256Mi", "")});
    let pod = pod(json!({"resources": {"limits": {"memory": "1Gi"}}, "containers": [own]}));
    assert_eq!(sent(&pod, &node(), &qos(0.9, false))[2], Some((1_658_060_i64 * 4096).to_string()));
}

#[test]
fn requests_are_kept_by_class_where_the_policy_says_so() {
    let text = |n: i64| Some(n.to_string());
    for (name, pod, tiered, min, low) in [
        ("guaranteed", containers(&[guaranteed("64Mi")]), true, text(64 * MI), None),
        ("burstable", containers(&[memory("64Mi", "128Mi")]), true, None, text(64 * MI)),
        ("burstable, as much requested as limited", containers(&[memory("64Mi", "64Mi")]), true, None, text(64 * MI)),
        ("no request", containers(&[memory("", "64Mi")]), true, text(0), text(0)),
        ("best effort", containers(&[json!({})]), true, text(0), text(0)),
        ("guaranteed, policy None", containers(&[guaranteed("64Mi")]), false, text(0), text(0)),
        ("burstable, policy None", containers(&[memory("64Mi", "")]), false, text(0), text(0)),
    ] {
        let [is_min, is_low, _] = sent(&pod, &node(), &qos(0.9, tiered));
        assert_eq!((is_min, is_low), (min, low), "{name}");
    }
    assert_eq!(sent(&containers(&[memory("64Mi", "")]), &node(), &rules()), [None, None, None], "the gate is off");
}

#[test]
fn what_is_kept_for_a_pod_is_all_that_it_requests() {
    let overhead = pod(json!({
        "overhead": {"memory": "10Mi"},
        "containers": [{"name": "a", "resources": memory("64Mi", "")}, {"name": "b", "resources": memory("32Mi", "")}],
    }));
    for (name, pod, tiered, kept) in [
        ("guaranteed", containers(&[guaranteed("64Mi"), guaranteed("32Mi")]), true, (Some(96 * MI), None)),
        ("burstable, with overhead", overhead.clone(), true, (None, Some(106 * MI))),
        ("best effort", containers(&[json!({})]), true, (None, None)),
        ("policy None", overhead, false, (None, None)),
    ] {
        let values = pod_values(&pod, &node(), &qos(0.9, tiered));
        assert_eq!((values.memory_min_bytes, values.memory_low_bytes), kept, "{name}");
    }
    let off = pod_values(&containers(&[guaranteed("64Mi")]), &node(), &rules());
    assert_eq!((off.memory_min_bytes, off.memory_low_bytes), (None, None));
}

#[test]
fn tiers_keep_what_is_kept_below_them() {
    let pods = [
        containers(&[guaranteed("1Gi")]),
        containers(&[guaranteed("512Mi")]),
        containers(&[memory("256Mi", "1Gi"), memory("64Mi", "")]),
        containers(&[json!({})]),
    ];
    let kept = |tiers: &Tiers| {
        let best_effort = (tiers.best_effort.memory_min_bytes, tiers.best_effort.memory_low_bytes);
        assert_eq!((tiers.kubepods.memory_low_bytes, tiers.burstable.memory_min_bytes), (None, None));
        assert_eq!(best_effort, (None, None));
        (tiers.kubepods.memory_min_bytes, tiers.burstable.memory_low_bytes)
    };
    let tiered = tiers::values(pods.iter(), &node(), &qos(0.9, true));
    assert_eq!(kept(&tiered), (Some(1856 * MI), Some(320 * MI)));
    assert_eq!(tiered.kept(), (1536 * MI, 320 * MI));
    let none = tiers::values(pods.iter(), &node(), &qos(0.9, false));
    assert_eq!(kept(&none), (Some(0), Some(0)), "what another policy left is taken back");
    assert_eq!(none.kept(), (0, 0));
    assert_eq!(kept(&tiers::values(pods.iter(), &node(), &rules())), (None, None));
}

#[test]
fn all_of_a_reservation_is_kept_whatever_the_policy() {
    let values = keep_reserved(reserved_values(&list(&[("cpu", "1"), ("memory", "1Gi")]), false));
    assert_eq!((values.memory_min_bytes, values.memory_low_bytes), (Some(GI), None));
    assert_eq!(keep_reserved(reserved_values(&list(&[("memory", "1Gi")]), true)).memory_min_bytes, None);
}

#[test]
fn what_higher_classes_request_is_taken_off_what_lower_ones_may_use() {
    let pods = |memories: [&str; 2]| {
        [containers(&[guaranteed(memories[0])]), containers(&[memory(memories[1], "")]), containers(&[json!({})])]
    };
    for (percent, requested, burstable, best_effort) in [
        // 7 GiB - 2 GiB * 50 %, and 1 GiB * 50 % less.
        (50, ["2Gi", "1Gi"], Some(6 * GI), Some(5632 * MI)),
        (100, ["2Gi", "1Gi"], Some(5 * GI), Some(4 * GI)),
        (0, ["2Gi", "1Gi"], Some(7 * GI), Some(7 * GI)),
        // 30 % of 100 bytes and of 101 bytes: 30, whole bytes.
        (30, ["100", "101"], Some(7 * GI - 30), Some(7 * GI - 60)),
        // Nothing left is no limit, less than nothing one that cannot be set.
        (100, ["7Gi", "1"], None, Some(-1)),
    ] {
        let rules = LimitRules { qos_reserved_memory: Some(percent), ..rules() };
        let tiers = tiers::values(pods(requested).iter(), &node(), &rules);
        let limits = (tiers.burstable.memory_limit_bytes, tiers.best_effort.memory_limit_bytes);
        assert_eq!(limits, (burstable, best_effort), "{percent} % of {requested:?}");
        assert_eq!(tiers.kubepods.memory_limit_bytes, None);
        let unknown = HostFacts { memory_allocatable_bytes: 0, ..node() };
        assert_eq!(tiers::values(pods(requested).iter(), &unknown, &rules).burstable.memory_limit_bytes, None);
    }
    assert_eq!(tiers::values(pods(["2Gi", "1Gi"]).iter(), &node(), &rules()).burstable.memory_limit_bytes, None);
}

#[test]
fn a_limit_that_could_not_be_set_is_what_is_used() {
    let limited = |bytes| CgroupValues { memory_limit_bytes: bytes, ..CgroupValues::default() };
    let tiers = |burstable, best_effort| Tiers {
        burstable: limited(burstable),
        best_effort: limited(best_effort),
        ..Tiers::default()
    };
    let used = |burstable: Option<u64>, best_effort: Option<u64>| {
        move |class| if class == QosClass::Burstable { burstable } else { best_effort }
    };
    let wanted = tiers(Some(100), Some(50));
    assert_eq!(wanted.clone().at_least(used(Some(101), Some(50))), tiers(Some(101), Some(50)));
    assert_eq!(wanted.clone().at_least(used(Some(99), Some(60))), tiers(Some(100), Some(60)));
    assert_eq!(wanted.clone().at_least(used(None, None)), wanted);
    assert_eq!(tiers(None, Some(-1)).at_least(used(Some(9), Some(0))), tiers(None, None), "nothing is used: no limit");
}
