//! Memory that is kept for pods, and taken off what others may use: what is written where, and when.

use std::sync::Arc;
use std::time::Duration;

use actor::testing::{run, until};
use cgroup_values::{LimitRules, MemoryQos};
use contract::cgroup::{EnsurePodCgroup, RemovePodCgroup, ResizePodCgroup};
use fakes::FakeCgroups;
use model::PodUid;
use model::core::Pod;
use model::resources::CgroupValues;
use serde_json::json;

use super::rig::{Bench, config, tree};

const MI: i64 = 1 << 20;

fn rules(tiered: bool) -> LimitRules {
    LimitRules { memory_qos: Some(MemoryQos { throttling_factor: 0.9, tiered }), ..LimitRules::standard() }
}

/// A pod that requests so much; guaranteed where it is limited to that.
fn pod(uid: &str, memory: &str, guaranteed: bool) -> Arc<Pod> {
    let requests = json!({"cpu": "1", "memory": memory});
    let limits = if guaranteed { requests.clone() } else { json!({}) };
    let resources = json!({"requests": requests, "limits": limits});
    Arc::new(fakes::pod(uid, json!({"spec": {"containers": [{"name": "c", "resources": resources}]}})))
}

/// `memory.min` and `memory.low`.
fn kept(tree: &FakeCgroups, path: &str) -> (Option<i64>, Option<i64>) {
    tree.values(path).map_or((None, None), |v| (v.memory_min_bytes, v.memory_low_bytes))
}

#[test]
fn what_is_kept_follows_the_pods_that_come_and_go() {
    run(1, |kernel| async move {
        let tree = tree();
        let bench = Bench::start(&kernel, &tree, crate::Config { rules: rules(true), ..config() });
        let ensure = async |pod: Arc<Pod>| bench.wiring.ask(EnsurePodCgroup { pod }).await.unwrap().unwrap();
        ensure(pod("g", "64Mi", true)).await;
        let burstable = pod("b", "32Mi", false);
        ensure(burstable.clone()).await;
        until("tiers", || kept(&tree, "/kubepods") == (Some(96 * MI), None)).await;
        assert_eq!(kept(&tree, "/kubepods/burstable"), (None, Some(32 * MI)));
        assert_eq!(kept(&tree, "/kubepods/besteffort"), (None, None));
        assert_eq!(kept(&tree, "/kubepods/podg"), (Some(64 * MI), None));
        assert_eq!(kept(&tree, "/kubepods/burstable/podb"), (None, Some(32 * MI)));
        assert_eq!((metrics::memory_qos::MIN_BYTES.get(), metrics::memory_qos::LOW_BYTES.get()), (64 * MI, 32 * MI));
        // A resize writes limits of the pod, and leaves what is kept for it.
        let values = CgroupValues { memory_limit_bytes: Some(128 * MI), ..CgroupValues::default() };
        bench.wiring.ask(ResizePodCgroup { pod: burstable, values }).await.unwrap().unwrap();
        assert_eq!(kept(&tree, "/kubepods/burstable/podb"), (None, Some(32 * MI)));
        ensure(pod("b", "48Mi", false)).await;
        until("what it requests now", || kept(&tree, "/kubepods") == (Some(112 * MI), None)).await;
        assert_eq!(kept(&tree, "/kubepods/burstable/podb"), (None, Some(32 * MI)), "as a kubelet leaves it");
        bench.wiring.ask(RemovePodCgroup { uid: PodUid::from("g") }).await.unwrap().unwrap();
        until("less", || kept(&tree, "/kubepods") == (Some(48 * MI), None)).await;
        assert_eq!(metrics::memory_qos::MIN_BYTES.get(), 0);
    });
}

#[test]
fn another_policy_takes_back_what_was_kept_and_no_gate_leaves_it() {
    for (rules, after) in [(rules(false), Some(0)), (LimitRules::standard(), Some(MI))] {
        run(2, |kernel| async move {
            let tree = tree();
            let left =
                CgroupValues { memory_min_bytes: Some(MI), memory_low_bytes: Some(MI), ..CgroupValues::default() };
            for tier in ["/kubepods", "/kubepods/burstable"] {
                tree.put(tier);
                ports::host::CgroupFs::set(&*tree, tier, &left).unwrap();
            }
            let _bench = Bench::start(&kernel, &tree, crate::Config { rules, ..config() });
            tokio::time::sleep(Duration::from_secs(61)).await;
            assert_eq!(kept(&tree, "/kubepods").0, after);
            assert_eq!(kept(&tree, "/kubepods/burstable").1, after);
        });
    }
}

#[test]
fn a_tier_that_uses_more_than_it_shall_have_is_held_at_that_until_it_uses_less() {
    run(3, |kernel| async move {
        let tree = tree();
        let rules = LimitRules { qos_reserved_memory: Some(100), ..LimitRules::standard() };
        let facts = cgroup_values::HostFacts { memory_allocatable_bytes: 100 * MI, ..config().facts };
        let bench = Bench::start(&kernel, &tree, crate::Config { rules, facts, ..config() });
        let limit = |tier: &str| tree.values(tier).and_then(|v| v.memory_limit_bytes);
        until("all is theirs", || limit("/kubepods/besteffort") == Some(100 * MI)).await;
        let used = 70 << 20;
        tree.use_memory("/kubepods/besteffort", used);
        for (uid, guaranteed) in [("g", true), ("b", false)] {
            let ensure = EnsurePodCgroup { pod: pod(uid, "20Mi", guaranteed) };
            bench.wiring.ask(ensure).await.unwrap().unwrap();
        }
        until("less", || limit("/kubepods/burstable") == Some(80 * MI)).await;
        until("held", || limit("/kubepods/besteffort") == i64::try_from(used).ok()).await;
        assert_eq!(tree.values("/kubepods/besteffort").unwrap().cpu_shares, Some(2));
        tree.use_memory("/kubepods/besteffort", 1);
        tokio::time::sleep(Duration::from_secs(61)).await;
        assert_eq!(limit("/kubepods/besteffort"), Some(60 * MI));
        // More is promised than there is.
        let ensure = EnsurePodCgroup { pod: pod("h", "70Mi", true) };
        bench.wiring.ask(ensure).await.unwrap().unwrap();
        until("as little as is used", || limit("/kubepods/besteffort") == Some(1)).await;
        assert_eq!(limit("/kubepods/burstable"), Some(10 * MI));
    });
}
