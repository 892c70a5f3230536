//! The worked numbers (node-and-resources 10.8, 11) and what a kubelet 1.36.2 wrote and sent.

use std::collections::BTreeMap;

use cri_api::v1::LinuxContainerResources;
use model::PodUid;
use model::cgroup::{cpu_weight, page_size_name, shares_of_weight};
use model::core::Pod;
use model::node::{CgroupDriver, SwapBehavior};
use model::quantity::Quantity;
use model::resources::{self, CgroupValues, QosClass, ResourceList};
use serde_json::{Value, json};

use crate::cri::{container_resources, sandbox_overhead, sandbox_resources, swap_bytes};
use crate::names::{CgroupName, PodTree};
use crate::tiers::{self, HUGETLB_UNLIMITED, Tiers};
use crate::tree::{
    Reservations, allocatable, kubepods_values, memory_for_pods, orphan_values, pod_values, reserved_values,
};
use crate::{HostFacts, LimitRules, cpu, oom};

mod memory_qos;

const GI: i64 = 1 << 30;
const MI: i64 = 1 << 20;

fn pod(spec: Value) -> Pod {
    serde_json::from_value(json!({"metadata": {"name": "p", "uid": "u"}, "spec": spec})).unwrap()
}

fn containers(resources: &[Value]) -> Pod {
    let list: Vec<Value> =
        resources.iter().enumerate().map(|(i, r)| json!({"name": format!("c{i}"), "resources": r})).collect();
    pod(json!({"containers": list}))
}

/// The machine of the golden data: cgroup v1, 24684092 KiB, no swap, 2 MiB and 1 GiB pages.
fn golden_node() -> HostFacts {
    HostFacts {
        memory_capacity_bytes: 24_684_092 * 1024,
        memory_allocatable_bytes: 24_684_092 * 1024,
        page_bytes: 4096,
        swap_total_bytes: 0,
        swap_controller: true,
        cgroup_v2: false,
        page_sizes: vec![2 << 20, 1 << 30],
    }
}

fn v2_node() -> HostFacts {
    HostFacts { cgroup_v2: true, memory_capacity_bytes: 8 * GI, swap_total_bytes: 4 * GI, ..golden_node() }
}

fn rules() -> LimitRules {
    LimitRules::standard()
}

fn tier_values<'a>(pods: impl Iterator<Item = &'a Pod>, node: &HostFacts) -> (CgroupValues, CgroupValues) {
    let Tiers { burstable, best_effort, .. } = tiers::values(pods, node, &rules());
    (burstable, best_effort)
}

fn list(amounts: &[(&str, &str)]) -> ResourceList {
    amounts.iter().map(|(k, v)| ((*k).to_owned(), v.parse().unwrap())).collect()
}

/// Edge 5: never less than a millisecond.
#[test]
fn worked_numbers_for_cpu() {
    for (milli, shares, weight, quota) in [
        (0, 2, 1, 0),
        (1, 2, 1, 1000),
        (2, 2, 1, 1000),
        (5, 5, 1, 1000),
        (10, 10, 1, 1000),
        (100, 102, 4, 10_000),
        (250, 256, 10, 25_000),
        (500, 512, 20, 50_000),
        (1000, 1024, 39, 100_000),
        (2000, 2048, 79, 200_000),
        (4000, 4096, 157, 400_000),
        (64_000, 65_536, 2500, 6_400_000),
        (256_000, 262_144, 10_000, 25_600_000),
        (300_000, 262_144, 10_000, 30_000_000),
    ] {
        assert_eq!(cpu::shares(milli), shares, "{milli}m shares");
        assert_eq!(cpu_weight(cpu::shares(milli)), weight, "{milli}m weight");
        assert_eq!(cpu::quota_us(milli, 100_000), quota, "{milli}m quota");
    }
    for (weight, shares) in [(1, 2), (4, 80), (10, 237), (39, 998), (79, 2046), (100, 2597), (10_000, 262_144)] {
        assert_eq!(shares_of_weight(weight), shares, "weight {weight}");
    }
    assert_eq!(cpu::shares(-5), 2);
    assert_eq!(cpu::shares(i64::MAX), 262_144);
}

/// Edges 1 and 3.
#[test]
fn paths_of_each_driver() {
    let uid = PodUid::from("a-b");
    for (driver, root, qos, path) in [
        (CgroupDriver::Cgroupfs, "/", QosClass::Guaranteed, "/kubepods/poda-b"),
        (CgroupDriver::Cgroupfs, "", QosClass::Burstable, "/kubepods/burstable/poda-b"),
        (CgroupDriver::Cgroupfs, "/", QosClass::BestEffort, "/kubepods/besteffort/poda-b"),
        (CgroupDriver::Cgroupfs, "/gold", QosClass::Guaranteed, "/gold/kubepods/poda-b"),
        (CgroupDriver::Cgroupfs, "/a/b/", QosClass::Burstable, "/a/b/kubepods/burstable/poda-b"),
        (CgroupDriver::Systemd, "/", QosClass::Guaranteed, "/kubepods.slice/kubepods-poda_b.slice"),
        (
            CgroupDriver::Systemd,
            "/",
            QosClass::Burstable,
            "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-poda_b.slice",
        ),
        (
            CgroupDriver::Systemd,
            "/custom",
            QosClass::BestEffort,
            "/custom.slice/custom-kubepods.slice/custom-kubepods-besteffort.slice/custom-kubepods-besteffort-poda_b.slice",
        ),
        (
            CgroupDriver::Systemd,
            "/my-node",
            QosClass::Guaranteed,
            "/my_node.slice/my_node-kubepods.slice/my_node-kubepods-poda_b.slice",
        ),
    ] {
        let tree = PodTree::new(root, driver);
        let got = tree.pod(qos, &uid);
        assert_eq!(got, path, "{driver:?} {root}");
        let (parent, dir) = got.rsplit_once('/').unwrap();
        assert_eq!(tree.tier(qos), parent);
        assert_eq!(tree.pod_of_dir(dir), Some(uid.clone()), "{dir}");
    }
    assert_eq!(PodTree::new("/", CgroupDriver::Systemd).kubepods(), "/kubepods.slice");
    assert_eq!(PodTree::new("/gold", CgroupDriver::Systemd).root(), "/gold");
}

#[test]
fn directories_that_are_no_pods_are_not_taken_for_one() {
    let fs = PodTree::new("/", CgroupDriver::Cgroupfs);
    let systemd = PodTree::new("/", CgroupDriver::Systemd);
    for dir in ["burstable", "pod", "", "kubepods", "xpod1", "cri-containerd-1.scope"] {
        assert_eq!(fs.pod_of_dir(dir), None, "{dir}");
    }
    for dir in
        ["kubepods-burstable.slice", "kubepods-pod.slice", "poda", "kubepods-poda_b", "cri-containerd-poda.scope"]
    {
        assert_eq!(systemd.pod_of_dir(dir), None, "{dir}");
    }
    let long = "1d23eaf39c3c7eca90f0e21fdca39643";
    assert_eq!(fs.pod_of_dir(&format!("pod{long}")), Some(PodUid::from(long)));
}

fn golden() -> BTreeMap<String, BTreeMap<String, String>> {
    let text = include_str!("../../../../tests/golden/kubelet-1.36.2/_node/cgroup-v1-values.json");
    serde_json::from_str(text).unwrap()
}

/// The values as the v1 files of the golden data would show them.
fn as_v1(values: &CgroupValues) -> [String; 4] {
    [
        values.cpu_shares.unwrap_or(1024).to_string(),
        values.cpu_quota_us.unwrap_or(-1).to_string(),
        values.memory_limit_bytes.unwrap_or(9_223_372_036_854_771_712).to_string(),
        values.pids_max.map_or("max".to_owned(), |n| n.to_string()),
    ]
}

fn golden_row(path: &str) -> [String; 4] {
    let all = golden();
    let row = all.get(path).unwrap_or_else(|| panic!("no {path} in the golden data"));
    ["cpu/cpu.shares", "cpu/cpu.cfs_quota_us", "memory/memory.limit_in_bytes", "pids/pids.max"].map(|k| row[k].clone())
}

fn golden_pods() -> Vec<(&'static str, Pod)> {
    let burstable =
        containers(&[json!({"requests": {"cpu": "100m", "memory": "32Mi"}, "limits": {"memory": "128Mi"}}), json!({})]);
    let guaranteed = containers(&[
        json!({"requests": {"cpu": "250m", "memory": "64Mi"}, "limits": {"cpu": "250m", "memory": "64Mi"}}),
        json!({"requests": {"cpu": "100m", "memory": "32Mi"}, "limits": {"cpu": "100m", "memory": "32Mi"}}),
    ]);
    let pod_level = pod(json!({
        "resources": {"requests": {"cpu": "200m"}, "limits": {"cpu": "500m", "memory": "128Mi"}},
        "containers": [{"name": "a", "resources": {"requests": {"cpu": "50m"}}}, {"name": "b"}],
    }));
    vec![
        ("/gold/kubepods/besteffort/pod<plain>", containers(&[json!({})])),
        ("/gold/kubepods/burstable/pod<burstable>", burstable),
        ("/gold/kubepods/burstable/pod<pod-level-resources>", pod_level),
        ("/gold/kubepods/pod<guaranteed>", guaranteed),
    ]
}

#[test]
fn pod_cgroups_get_what_the_kubelet_wrote() {
    for (path, pod) in golden_pods() {
        assert_eq!(as_v1(&pod_values(&pod, &golden_node(), &rules())), golden_row(path), "{path}");
    }
}

#[test]
fn tiers_and_kubepods_get_what_the_kubelet_wrote() {
    let pods: Vec<Pod> = golden_pods().into_iter().map(|(_, p)| p).collect();
    let (burstable, best_effort) = tier_values(pods.iter(), &golden_node());
    assert_eq!(as_v1(&burstable), golden_row("/gold/kubepods/burstable"));
    assert_eq!(as_v1(&best_effort), golden_row("/gold/kubepods/besteffort"));
    let capacity = list(&[("cpu", "2"), ("memory", "24684092Ki"), ("pid", "32768")]);
    let kubepods = kubepods_values(&capacity, &Reservations::default(), true);
    assert_eq!(as_v1(&kubepods), golden_row("/gold/kubepods"));
}

/// Edge 21.
#[test]
fn container_cgroups_of_a_pod_level_pod_get_what_the_kubelet_wrote() {
    let (_, pod) = golden_pods().remove(2);
    let expected: Vec<[String; 2]> = golden()
        .iter()
        .filter(|(path, _)| path.starts_with("/gold/kubepods/burstable/pod<pod-level-resources>/"))
        .map(|(_, row)| [row["cpu/cpu.shares"].clone(), row["cpu/cpu.cfs_quota_us"].clone()])
        .collect();
    let spec = pod.spec.as_ref().unwrap();
    for c in &spec.containers {
        let r = container_resources(&pod, c, &golden_node(), &rules());
        assert!(expected.contains(&[r.cpu_shares.to_string(), r.cpu_quota.to_string()]), "{} {r:?}", c.name);
        assert_eq!(r.memory_limit_in_bytes, 128 * MI);
    }
}

fn sent(r: &LinuxContainerResources) -> [i64; 6] {
    [r.cpu_period, r.cpu_quota, r.cpu_shares, r.memory_limit_in_bytes, r.oom_score_adj, r.memory_swap_limit_in_bytes]
}

#[test]
fn container_resources_as_the_kubelet_sent_them() {
    let both =
        |cpu: &str, mem: &str| json!({"requests": {"cpu": cpu, "memory": mem}, "limits": {"cpu": cpu, "memory": mem}});
    let guaranteed = containers(&[both("250m", "64Mi"), both("100m", "32Mi")]);
    let burstable =
        containers(&[json!({"requests": {"cpu": "100m", "memory": "32Mi"}, "limits": {"memory": "128Mi"}}), json!({})]);
    let oom = containers(&[json!({"requests": {"memory": "20Mi"}, "limits": {"memory": "20Mi"}})]);
    let env_all = containers(&[json!({"requests": {"cpu": "300m"}, "limits": {"cpu": "300m"}})]);
    for (name, pod, index, expected) in [
        ("plain", &containers(&[json!({})]), 0, [100_000, 0, 2, 0, 1000, 0]),
        ("guaranteed app", &guaranteed, 0, [100_000, 25_000, 256, 67_108_864, -997, 67_108_864]),
        ("guaranteed two", &guaranteed, 1, [100_000, 10_000, 102, 33_554_432, -997, 33_554_432]),
        ("burstable app", &burstable, 0, [100_000, 0, 102, 134_217_728, 999, 134_217_728]),
        ("burstable two", &burstable, 1, [100_000, 0, 2, 0, 999, 0]),
        ("oom", &oom, 0, [100_000, 0, 2, 20_971_520, 999, 20_971_520]),
        ("env-all", &env_all, 0, [100_000, 30_000, 307, 0, 999, 0]),
    ] {
        let c = &pod.spec.as_ref().unwrap().containers[index];
        let r = container_resources(pod, c, &golden_node(), &rules());
        assert_eq!(sent(&r), expected, "{name}");
        let pages: Vec<(&str, u64)> = r.hugepage_limits.iter().map(|h| (h.page_size.as_str(), h.limit)).collect();
        assert_eq!(pages, [("2MB", 0), ("1GB", 0)], "{name}");
        assert!(r.unified.is_empty(), "{name}");
    }
    for (name, pod, expected) in [
        ("plain", &containers(&[json!({})]), [100_000, 0, 2, 0, 0, 0]),
        ("guaranteed", &guaranteed, [100_000, 35_000, 358, 100_663_296, 0, 0]),
        ("burstable", &burstable, [100_000, 0, 102, 134_217_728, 0, 0]),
        ("env-all", &env_all, [100_000, 30_000, 307, 0, 0, 0]),
    ] {
        let r = sandbox_resources(pod, &golden_node(), &rules());
        assert_eq!(sent(&r), expected, "sandbox of {name}");
        assert!(r.hugepage_limits.is_empty());
        assert_eq!(sandbox_overhead(pod, &golden_node(), &rules()), LinuxContainerResources::default());
    }
}

#[test]
fn overhead_is_told_apart_from_the_pod() {
    let p = pod(json!({
        "overhead": {"cpu": "250m", "memory": "120Mi"},
        "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "1", "memory": "1Gi"}}}],
    }));
    assert_eq!(sent(&sandbox_resources(&p, &golden_node(), &rules())), [100_000, 100_000, 1024, GI, 0, 0]);
    assert_eq!(sent(&sandbox_overhead(&p, &golden_node(), &rules())), [100_000, 25_000, 256, 120 * MI, 0, 0]);
    let values = pod_values(&p, &golden_node(), &rules());
    assert_eq!(values.cpu_shares, Some(1280));
    assert_eq!(values.cpu_quota_us, Some(125_000));
    assert_eq!(values.memory_limit_bytes, Some(GI + 120 * MI));
}

/// Edge 9.
#[test]
fn overhead_alone_leaves_a_pod_best_effort_with_the_fewest_shares() {
    let p = pod(json!({"overhead": {"cpu": "50m"}, "containers": [{"name": "c"}]}));
    assert_eq!(pod_values(&p, &golden_node(), &rules()).cpu_shares, Some(2));
    assert_eq!(resources::pod_requests(&p)["cpu"].to_string(), "50m", "it needs that much room all the same");
}

/// Edge 4.
#[test]
fn a_pod_limit_needs_every_container_to_have_one() {
    let init_without = pod(json!({
        "initContainers": [{"name": "i"}],
        "containers": [{"name": "c", "resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}],
    }));
    let v = pod_values(&init_without, &golden_node(), &rules());
    assert_eq!((v.cpu_quota_us, v.memory_limit_bytes), (None, None));
    let limited = &init_without.spec.as_ref().unwrap().containers[0];
    let own = container_resources(&init_without, limited, &golden_node(), &rules());
    assert_eq!((own.cpu_quota, own.memory_limit_in_bytes), (100_000, GI), "its own limits hold");
    let all = containers(&[json!({"limits": {"cpu": "5m", "memory": "1Gi"}})]);
    let v = pod_values(&all, &golden_node(), &rules());
    assert_eq!((v.cpu_quota_us, v.memory_limit_bytes), (Some(1000), Some(GI)));
}

/// Edge 6; of a container a kubelet says nothing then.
#[test]
fn a_node_without_cpu_quota_writes_none() {
    let p = containers(&[json!({"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}})]);
    let off = LimitRules { cpu_quota: false, ..rules() };
    assert_eq!(pod_values(&p, &golden_node(), &off).cpu_quota_us, Some(-1));
    let r = container_resources(&p, &p.spec.as_ref().unwrap().containers[0], &golden_node(), &off);
    assert_eq!((r.cpu_quota, r.cpu_period), (0, 0));
}

#[test]
fn pids_limit_applies_to_every_class_when_configured() {
    for (configured, written) in [(Some(100), Some(100)), (Some(-1), None), (Some(0), None), (None, None)] {
        let r = LimitRules { pod_pids_max: configured, ..rules() };
        assert_eq!(pod_values(&containers(&[json!({})]), &golden_node(), &r).pids_max, written, "{configured:?}");
    }
}

/// Edge 10.
#[test]
fn hugepages_are_zero_unless_asked_for_and_unbounded_on_tiers() {
    let r = json!({"requests": {"hugepages-2Mi": "4Mi", "cpu": "1"}, "limits": {"hugepages-2Mi": "4Mi"}});
    let p = containers(&[r]);
    let v = pod_values(&p, &golden_node(), &rules());
    assert_eq!(v.hugetlb_bytes, BTreeMap::from([(2 << 20, 4 << 20), (1 << 30, 0)]));
    let (burstable, best_effort) = tier_values([&p].into_iter(), &golden_node());
    for tier in [burstable, best_effort] {
        assert!(tier.hugetlb_bytes.values().all(|b| *b == HUGETLB_UNLIMITED));
        assert_eq!(tier.hugetlb_bytes.len(), 2);
    }
    let c = &p.spec.as_ref().unwrap().containers[0];
    let sent = container_resources(&p, c, &golden_node(), &rules()).hugepage_limits;
    assert_eq!(sent.iter().map(|h| h.limit).collect::<Vec<_>>(), [4 << 20, 0]);
}

/// Edge 11.
#[test]
fn burstable_tier_follows_its_pods() {
    let p = |cpu: &str| containers(&[json!({"requests": {"cpu": cpu}})]);
    let (two, _) = tier_values([p("250m"), p("500m"), containers(&[json!({})])].iter(), &golden_node());
    assert_eq!(two.cpu_shares, Some(768));
    let (one, _) = tier_values([p("500m")].iter(), &golden_node());
    assert_eq!(one.cpu_shares, Some(512));
    let (none, _) = tier_values([].iter(), &golden_node());
    assert_eq!(none.cpu_shares, Some(2));
    assert_eq!(orphan_values().cpu_shares, Some(2));
}

/// Edges 19 and 20.
#[test]
fn oom_score_adj_table() {
    let burstable = |request: &str| containers(&[json!({"requests": {"memory": request}})]);
    let priority = |class: &str, priority: i64| {
        pod(
            json!({"priorityClassName": class, "priority": priority, "containers": [{"name": "c", "resources": {"requests": {"memory": "1Gi"}}}]}),
        )
    };
    let level = pod(json!({
        "resources": {"requests": {"memory": "2Gi"}},
        "containers": [{"name": "a", "resources": {"requests": {"memory": "1Gi"}}}, {"name": "b"}],
    }));
    for (name, p, capacity, expected) in [
        ("1Gi of 4Gi", burstable("1Gi"), 4 * GI, 750),
        ("a thousandth short of BestEffort", burstable("4Mi"), 256 * GI, 999),
        ("nearly everything", burstable("4095Mi"), 4 * GI, 3),
        ("more than there is", burstable("9Gi"), 4 * GI, 3),
        (
            "system-cluster-critical follows the formula",
            priority("system-cluster-critical", 2_000_000_000),
            4 * GI,
            750,
        ),
        ("system-node-critical", priority("system-node-critical", 2_000_001_000), 4 * GI, -997),
        ("the name alone is not critical", priority("system-node-critical", 0), 4 * GI, 750),
        ("capacity unknown", burstable("1Gi"), 0, 999),
        ("half of the unclaimed pod-level request each", level, 4 * GI, 1000 - 375),
    ] {
        assert_eq!(oom::score_adj(&p, &p.spec.as_ref().unwrap().containers[0], capacity), expected, "{name}");
    }
}

#[test]
fn a_sidecar_scores_no_higher_than_its_least_regular_container() {
    let p = pod(json!({
        "initContainers": [{"name": "s", "restartPolicy": "Always", "resources": {"requests": {"memory": "1Mi"}}}],
        "containers": [
            {"name": "a", "resources": {"requests": {"memory": "2Gi"}}},
            {"name": "b", "resources": {"requests": {"memory": "1Gi"}}},
        ],
    }));
    let spec = p.spec.as_ref().unwrap();
    assert_eq!(oom::score_adj(&p, &spec.init_containers.as_ref().unwrap()[0], 4 * GI), 750);
    assert_eq!(oom::score_adj(&p, &spec.containers[0], 4 * GI), 500);
}

/// Edge 17.
#[test]
fn swap_is_only_for_burstable_pods_with_a_request_below_the_limit() {
    let limited = LimitRules { swap: SwapBehavior::LimitedSwap, ..rules() };
    let p = |resources: Value| containers(&[resources]);
    let mut critical = p(json!({"requests": {"memory": "1Gi"}}));
    critical.spec.as_mut().unwrap().priority = Some(2_000_000_000);
    for (name, pod, bytes) in [
        ("burstable", p(json!({"requests": {"memory": "1Gi"}, "limits": {"memory": "2Gi"}})), 536_870_912),
        ("request equals limit", p(json!({"requests": {"memory": "1Gi"}, "limits": {"memory": "1Gi"}})), 0),
        ("no request", p(json!({"requests": {"cpu": "1"}})), 0),
        ("best effort", p(json!({})), 0),
        (
            "guaranteed",
            p(json!({"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}})),
            0,
        ),
        ("critical", critical, 0),
    ] {
        let c = &pod.spec.as_ref().unwrap().containers[0];
        assert_eq!(swap_bytes(&pod, c, &v2_node(), &limited), bytes, "{name}");
        let sent = container_resources(&pod, c, &v2_node(), &limited);
        assert_eq!(sent.unified.get("memory.swap.max"), Some(&bytes.to_string()), "{name}");
        assert_eq!(sent.memory_swap_limit_in_bytes, 0, "{name}");
        assert_eq!(swap_bytes(&pod, c, &v2_node(), &rules()), 0, "{name} without LimitedSwap");
    }
}

#[test]
fn unified_keys_appear_only_where_the_host_has_them() {
    let p = containers(&[json!({})]);
    let c = &p.spec.as_ref().unwrap().containers[0];
    let keys = |node: &HostFacts, rules: &LimitRules| -> Vec<String> {
        container_resources(&p, c, node, rules).unified.into_keys().collect()
    };
    assert_eq!(keys(&v2_node(), &rules()), ["memory.oom.group", "memory.swap.max"]);
    let no_swap = HostFacts { swap_controller: false, ..v2_node() };
    assert_eq!(keys(&no_swap, &rules()), ["memory.oom.group"]);
    let single = LimitRules { single_process_oom_kill: true, ..rules() };
    assert_eq!(keys(&v2_node(), &single), ["memory.swap.max"]);
    assert!(keys(&golden_node(), &rules()).is_empty());
}

#[test]
fn allocatable_and_the_kubepods_limit_differ_by_the_eviction_threshold_and_huge_pages() {
    let capacity = list(&[("cpu", "4"), ("memory", "16Gi"), ("hugepages-2Mi", "2Gi"), ("pid", "1000")]);
    let reserved = Reservations {
        system: list(&[("memory", "1Gi"), ("cpu", "500m"), ("pid", "100")]),
        kube: list(&[("memory", "1Gi"), ("cpu", "500m")]),
        eviction_hard: list(&[("memory", "100Mi")]),
    };
    let free = allocatable(&capacity, &reserved);
    assert_eq!(free["memory"], "12188Mi".parse::<Quantity>().unwrap());
    assert_eq!(free["cpu"].to_string(), "3");
    let v = kubepods_values(&capacity, &reserved, true);
    assert_eq!(v.memory_limit_bytes, Some(14 * GI));
    assert_eq!(memory_for_pods(&capacity, &reserved), 14 * GI);
    assert_eq!(v.cpu_shares, Some(3072));
    assert_eq!(v.pids_max, Some(900));
    assert_eq!(v.hugetlb_bytes, BTreeMap::from([(2 << 20, 2 << 30)]));
    let whole = kubepods_values(&capacity, &reserved, false);
    assert_eq!((whole.memory_limit_bytes, whole.cpu_shares), (Some(16 * GI), Some(4096)));
    let too_much = Reservations { system: list(&[("memory", "64Gi")]), ..Reservations::default() };
    assert_eq!(allocatable(&capacity, &too_much)["memory"], Quantity::ZERO);
}

#[test]
fn those_for_whom_something_is_set_aside_get_that_and_no_more() {
    let reserved = list(&[("cpu", "500m"), ("memory", "1Gi"), ("pid", "200"), ("hugepages-2Mi", "4Mi")]);
    let all = reserved_values(&reserved, false);
    assert_eq!((all.cpu_shares, all.memory_limit_bytes, all.pids_max), (Some(512), Some(GI), Some(200)));
    assert_eq!(all.hugetlb_bytes, BTreeMap::from([(2 << 20, 4 << 20)]));
    let compressible = reserved_values(&reserved, true);
    assert_eq!(compressible, CgroupValues { cpu_shares: Some(512), ..CgroupValues::default() });
    assert_eq!(reserved_values(&ResourceList::new(), false), CgroupValues::default());
}

#[test]
fn a_configured_cgroup_is_named_as_its_driver_does() {
    use CgroupDriver::{Cgroupfs, Systemd};
    for (name, driver, path) in [
        ("/system", Cgroupfs, "/system"),
        ("system/daemons/", Cgroupfs, "/system/daemons"),
        ("/", Cgroupfs, "/"),
        ("system.slice", Systemd, "/system.slice"),
        ("/system.slice", Systemd, "/system.slice"),
        ("/podruntime.slice/podruntime-kubelet.slice", Systemd, "/podruntime.slice/podruntime-kubelet.slice"),
        ("podruntime-kubelet.slice", Systemd, "/podruntime.slice/podruntime-kubelet.slice"),
        ("my_daemons", Systemd, "/my_daemons.slice"),
    ] {
        assert_eq!(CgroupName::from_config(name, driver).path(driver), path, "{name} {driver:?}");
    }
}

#[test]
fn page_sizes_have_the_kernels_names() {
    for (bytes, name) in
        [(64 << 10, "64KB"), (2 << 20, "2MB"), (32 << 20, "32MB"), (1 << 30, "1GB"), (16 << 30, "16GB")]
    {
        assert_eq!(page_size_name(bytes), name);
    }
}
