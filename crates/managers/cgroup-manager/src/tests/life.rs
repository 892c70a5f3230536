//! The actor in simulated time.

use std::sync::Arc;
use std::time::Duration;

use actor::AskError;
use actor::testing::{run, run_real, spin_until, until};
use contract::cgroup::{EnsurePodCgroup, PodCgroup, RemovePodCgroup, ThrottlePodCgroup};
use model::PodUid;
use model::core::Pod;
use model::resources::CgroupValues;
use ports::host::CgroupVersion;

use super::rig::{Bench, config, pod, shares, tree, with_bench};

const MINUTE: Duration = Duration::from_secs(60);

async fn ensure(bench: &Bench, pod: &Arc<Pod>) -> Result<PodCgroup, String> {
    let asked = bench.wiring.ask(EnsurePodCgroup { pod: pod.clone() }).await;
    asked.map_err(|e| format!("{e:?}"))?.map_err(|e| e.message)
}

async fn remove(bench: &Bench, uid: &str) -> Result<(), String> {
    let asked = bench.wiring.ask(RemovePodCgroup { uid: PodUid::from(uid) }).await;
    asked.map_err(|e| format!("{e:?}"))?.map_err(|e| e.message)
}

#[test]
fn starts_by_making_and_limiting_the_tree() {
    with_bench(async |bench, tree| {
        until("tiers", || shares(&tree, "/kubepods/besteffort") == Some(2)).await;
        assert_eq!(shares(&tree, "/kubepods/burstable"), Some(2));
        let top = tree.values("/kubepods").unwrap();
        assert_eq!((top.cpu_shares, top.memory_limit_bytes), (Some(4096), Some(7 << 30)));
        let line = "Normal NodeAllocatableEnforced: Updated Node Allocatable limit across pods";
        until("event", || bench.events.lines() == [line]).await;
        until("own oom score", || tree.own_oom_score_adj() == Some(-999)).await;
    });
}

/// Edge 11: at once.
#[test]
fn a_pod_gets_its_cgroup_once_and_the_tier_follows() {
    with_bench(async |bench, tree| {
        let (a, b) = (Arc::new(pod("a", "250m")), Arc::new(pod("b", "500m")));
        let path = "/kubepods/burstable/poda";
        assert_eq!(ensure(&bench, &a).await.unwrap(), PodCgroup { parent: path.into(), existed: false });
        assert_eq!(ensure(&bench, &a).await.unwrap(), PodCgroup { parent: path.into(), existed: true });
        assert_eq!(shares(&tree, path), Some(256));
        ensure(&bench, &b).await.unwrap();
        until("sum", || shares(&tree, "/kubepods/burstable") == Some(768)).await;
        assert_eq!(bench.rows(), ["/kubepods/burstable/poda", "/kubepods/burstable/podb"]);
        remove(&bench, "a").await.unwrap();
        remove(&bench, "a").await.unwrap();
        until("less, without waiting for the minute", || shares(&tree, "/kubepods/burstable") == Some(512)).await;
        assert_eq!(bench.rows(), ["/kubepods/burstable/podb"]);
        assert!(tree.values(path).is_none());
    });
}

#[test]
fn the_tree_is_in_place_before_the_first_pod_even_when_it_asks_first() {
    run(3, |kernel| async move {
        let tree = tree();
        tree.set_root(false);
        let bench = Bench::start(&kernel, &tree, config());
        let a = Arc::new(pod("a", ""));
        assert_eq!(ensure(&bench, &a).await.unwrap_err(), "cgroup root / does not exist");
        tree.set_root(true);
        assert_eq!(ensure(&bench, &a).await.unwrap().parent, "/kubepods/besteffort/poda");
        assert!(tree.values("/kubepods/burstable").is_some());
    });
}

#[test]
fn missing_controllers_are_named() {
    run(4, |kernel| async move {
        let tree = tree();
        tree.set_version(CgroupVersion::V1);
        tree.fail("controllers", "", true);
        let bench = Bench::start(&kernel, &tree, config());
        let answer = ensure(&bench, &Arc::new(pod("a", ""))).await;
        assert_eq!(answer.unwrap_err(), "required cgroup controllers are not mounted: memory");
    });
}

#[test]
fn limits_that_cannot_be_written_do_not_hold_a_pod_back_but_a_missing_cgroup_does() {
    with_bench(async |bench, tree| {
        tree.fail("set", "poda", true);
        assert!(ensure(&bench, &Arc::new(pod("a", "1"))).await.is_ok());
        tree.fail("create", "podb", true);
        let e = ensure(&bench, &Arc::new(pod("b", "1"))).await.unwrap_err();
        assert!(e.starts_with("failed to create container for /kubepods/burstable/podb: create"), "{e}");
        assert_eq!(bench.rows(), ["/kubepods/burstable/poda"]);
    });
}

#[test]
fn limits_that_could_not_be_written_are_written_when_they_can() {
    with_bench(async |bench, tree| {
        let limits = serde_json::json!({ "requests": { "cpu": "1" }, "limits": { "cpu": "1", "memory": "1Gi" } });
        let spec = serde_json::json!({ "spec": { "containers": [{ "name": "c", "resources": limits }] } });
        let (path, a) = ("/kubepods/burstable/poda", Arc::new(fakes::pod("a", spec)));
        tree.fail("set", "poda", true);
        ensure(&bench, &a).await.unwrap();
        tree.put("/kubepods/burstable/poda/c1");
        tree.use_memory(path, 2 << 30);
        tree.fail("set", "poda", false);
        ensure(&bench, &a).await.unwrap();
        assert_eq!(shares(&tree, path), None, "it uses more than it may: whom should the kernel end");
        tree.use_memory(path, 1 << 20);
        ensure(&bench, &a).await.unwrap();
        assert_eq!(tree.values(path).unwrap().memory_limit_bytes, Some(1 << 30));
        let writes = || tree.calls().iter().filter(|call| **call == format!("set {path}")).count();
        let before = writes();
        ensure(&bench, &a).await.unwrap();
        assert_eq!(writes(), before, "what becomes of one that runs is a resize's");
    });
}

#[test]
fn a_cgroup_whose_maker_died_before_it_had_limits_gets_them() {
    with_bench(async |bench, tree| {
        let path = "/kubepods/burstable/poda";
        tree.put(path);
        assert!(ensure(&bench, &Arc::new(pod("a", "250m"))).await.unwrap().existed);
        assert_eq!(shares(&tree, path), Some(256));
    });
}

/// Edge 14.
#[test]
fn kubepods_that_cannot_be_limited_is_told_each_minute_until_it_can() {
    run(6, |kernel| async move {
        let tree = tree();
        for tier in ["/kubepods", "/kubepods/burstable", "/kubepods/besteffort"] {
            tree.put(tier);
        }
        tree.fail("set", "/kubepods", true);
        let bench = Bench::start(&kernel, &tree, config());
        let count = || bench.events.lines().len();
        until("first failure", || count() == 1).await;
        let text = bench.events.lines().remove(0);
        assert!(
            text.starts_with(
                "Warning FailedNodeAllocatableEnforcement: Failed to update Node Allocatable Limits \"/kubepods\": set"
            ),
            "{text}"
        );
        tokio::time::sleep(MINUTE).await;
        until("second failure", || count() == 2).await;
        tree.fail("set", "/kubepods", false);
        tokio::time::sleep(MINUTE).await;
        until("success", || count() == 3).await;
        assert!(bench.events.lines()[2].starts_with("Normal NodeAllocatableEnforced"));
        tokio::time::sleep(3 * MINUTE).await;
        assert_eq!(count(), 3, "no news after that");
    });
}

#[test]
fn reserved_cgroups_are_limited_once_each_and_never_made() {
    run(8, |kernel| async move {
        let tree = tree();
        tree.put("/system");
        let reserved = |what, name: &str, memory| crate::ReservedCgroup {
            what,
            name: name.to_owned(),
            path: name.to_owned(),
            values: CgroupValues { memory_limit_bytes: memory, cpu_shares: Some(512), ..CgroupValues::default() },
        };
        let system = reserved("System Reserved", "/system", Some(1 << 30));
        let kube = reserved("Kube Reserved Compressible", "/kube", None);
        let config = crate::Config { reserved_cgroups: vec![system.clone(), kube.clone()], ..config() };
        let bench = Bench::start(&kernel, &tree, config);
        until("all are told of", || bench.events.lines().len() == 3).await;
        let failure = "Warning FailedNodeAllocatableEnforcement: Failed to enforce Kube Reserved Compressible Cgroup Limits on \
                       \"/kube\": cgroup /kube does not exist, or lacks a controller";
        let lines = bench.events.lines();
        assert!(lines.contains(&failure.to_owned()), "{lines:?}");
        let done = "Normal NodeAllocatableEnforced: Updated limits on system reserved cgroup /system";
        assert!(lines.contains(&done.to_owned()), "{lines:?}");
        assert_eq!(tree.values("/system"), Some(system.values));
        assert!(!tree.paths().contains(&"/kube".to_owned()));
        tree.put("/kube");
        tokio::time::sleep(2 * MINUTE).await;
        assert_eq!(tree.values("/kube"), Some(kube.values));
        let done = "Normal NodeAllocatableEnforced: Updated limits on kube reserved cgroup /kube";
        assert_eq!(bench.events.lines()[3..], [done]);
    });
}

#[test]
fn orphans_are_listed_throttled_and_removed() {
    run(7, |kernel| async move {
        let tree = tree();
        for path in ["/kubepods/podg", "/kubepods/burstable/podb", "/kubepods/besteffort/pode", "/kubepods/other"] {
            tree.put(path);
        }
        let bench = Bench::start(&kernel, &tree, config());
        until("rows", || bench.rows().len() == 3).await;
        let b = PodUid::from("b");
        bench.wiring.ask(ThrottlePodCgroup { uid: b.clone() }).await.unwrap().unwrap();
        assert_eq!(shares(&tree, "/kubepods/burstable/podb"), Some(2));
        let unknown = ThrottlePodCgroup { uid: PodUid::from("nobody") };
        bench.wiring.ask(unknown).await.unwrap().unwrap();
        for uid in ["g", "b", "e"] {
            remove(&bench, uid).await.unwrap();
        }
        assert!(bench.rows().is_empty());
        assert!(tree.values("/kubepods/other").is_some(), "not named like a pod's: not ours");
    });
}

#[test]
fn a_removal_that_fails_says_so_and_keeps_the_row() {
    with_bench(async |bench, tree| {
        ensure(&bench, &Arc::new(pod("a", "1"))).await.unwrap();
        tree.fail("remove", "burstable/poda", true);
        assert!(remove(&bench, "a").await.unwrap_err().starts_with("failed to remove the pod cgroup: remove"));
        assert_eq!(bench.rows().len(), 1);
    });
}

#[test]
fn a_killed_manager_knows_its_pods_again() {
    with_bench(async |bench, tree| {
        let (a, b) = (Arc::new(pod("a", "250m")), Arc::new(pod("b", "500m")));
        for p in [&a, &b] {
            bench.desire(p);
            ensure(&bench, p).await.unwrap();
        }
        until("sum", || shares(&tree, "/kubepods/burstable") == Some(768)).await;
        bench.manager.kill();
        until("rebuilt", || bench.manager.info().generation == 1).await;
        // While it was away one of the cgroups went.
        remove(&bench, "b").await.unwrap();
        until("sum without b", || shares(&tree, "/kubepods/burstable") == Some(256)).await;
        assert_eq!(bench.rows(), ["/kubepods/burstable/poda"]);
        let enforced = bench.events.lines().iter().filter(|e| e.contains("NodeAllocatableEnforced")).count();
        assert_eq!(enforced, 1, "a rebuild is no news");
    });
}

#[test]
fn a_panic_at_any_fault_point_costs_one_answer_at_most() {
    for point in ["set-up", "set-up-done", "ensure", "ensured", "remove", "removed", "write-tiers", "throttle"] {
        run(10, |kernel| async move {
            kernel.faults().add_text(&format!("cgroup-manager: panic@{point}#1")).unwrap();
            let tree = tree();
            let bench = Bench::start(&kernel, &tree, config());
            let a = Arc::new(pod("a", "250m"));
            bench.desire(&a);
            let throttle = || ThrottlePodCgroup { uid: PodUid::from("a") };
            for _ in 0..3 {
                let _may_crash = ensure(&bench, &a).await;
            }
            let _may_crash = bench.wiring.ask(throttle()).await;
            for _ in 0..3 {
                let _may_crash = remove(&bench, "a").await;
            }
            assert!(ensure(&bench, &a).await.is_ok(), "{point}");
            until(point, || shares(&tree, "/kubepods/burstable") == Some(256)).await;
            assert_eq!(bench.rows(), ["/kubepods/burstable/poda"], "{point}");
            assert!(!kernel.faults().log().is_empty(), "{point} was never passed");
        });
    }
}

#[test]
fn a_hung_call_holds_up_its_own_pod_only_and_a_successor_waits_for_it() {
    run_real(|kernel| async move {
        let tree = tree();
        let bench = Arc::new(Bench::start(&kernel, &tree, config()));
        ensure(&bench, &Arc::new(pod("first", ""))).await.unwrap();
        tree.hang(Some("podstuck"));
        let stuck = Arc::new(pod("stuck", ""));
        let (b, p) = (bench.clone(), stuck.clone());
        let hung = tokio::task::spawn_local(async move { ensure(&b, &p).await });
        spin_until("hangs", || tree.calls().iter().any(|c| c == "create /kubepods/besteffort/podstuck")).await;
        assert!(ensure(&bench, &Arc::new(pod("other", ""))).await.is_ok());
        bench.manager.kill();
        assert_eq!(hung.await.unwrap().unwrap_err(), format!("{:?}", AskError::Crashed));
        // The old thread still hangs: a removal must not overtake it.
        let b = bench.clone();
        let removal = tokio::task::spawn_local(async move { remove(&b, "stuck").await });
        assert!(ensure(&bench, &Arc::new(pod("third", ""))).await.is_ok());
        assert!(!tree.calls().iter().any(|c| c.starts_with("remove")));
        tree.hang(None);
        removal.await.unwrap().unwrap();
        assert!(tree.values("/kubepods/besteffort/podstuck").is_none(), "made by the old thread, then removed");
    });
}

#[test]
fn without_cgroups_per_qos_nothing_is_touched() {
    run(12, |kernel| async move {
        let tree = tree();
        let bench = Bench::start(&kernel, &tree, crate::Config { enabled: false, oom_score_adj: None, ..config() });
        let answer = ensure(&bench, &Arc::new(pod("a", "1"))).await.unwrap();
        assert_eq!(answer, PodCgroup { parent: String::new(), existed: true });
        remove(&bench, "a").await.unwrap();
        tokio::time::sleep(3 * MINUTE).await;
        assert!(tree.calls().is_empty());
    });
}

#[test]
fn the_daemon_goes_where_it_is_told_and_again_when_it_was_taken_away() {
    run(14, |kernel| async move {
        let tree = tree();
        tree.fail("join", "/daemons", true);
        let bench = Bench::start(&kernel, &tree, crate::Config { own_cgroup: Some("/daemons".to_owned()), ..config() });
        assert!(ensure(&bench, &Arc::new(pod("a", ""))).await.is_ok(), "pods do not wait for that");
        until("own oom score", || tree.own_oom_score_adj() == Some(-999)).await;
        tree.fail("join", "/daemons", false);
        tokio::time::sleep(MINUTE + Duration::from_secs(1)).await;
        assert_eq!(tree.joined().as_deref(), Some("/daemons"));
        assert!(tree.paths().contains(&"/daemons".to_owned()));
    });
}

/// Edge 16, its second half.
#[test]
fn what_is_wrong_with_the_machine_is_told_once() {
    for (version, memory_may_swap, reasons) in [
        (CgroupVersion::V2, false, &[][..]),
        (CgroupVersion::V1, false, &["CgroupV1"][..]),
        (CgroupVersion::V1, true, &["CgroupV1", "PossibleMemoryBackedVolumesOnDisk"][..]),
    ] {
        run(15, |kernel| async move {
            let tree = tree();
            tree.set_version(version);
            let bench = Bench::start(&kernel, &tree, crate::Config { memory_may_swap, ..config() });
            let warnings = || -> Vec<String> {
                bench.events.lines().into_iter().filter(|line| line.starts_with("Warning")).collect()
            };
            until("limited", || bench.events.lines().iter().any(|line| line.contains("NodeAllocatableEnforced"))).await;
            let told = warnings();
            let begins = reasons.iter().map(|reason| format!("Warning {reason}: "));
            assert!(told.len() == reasons.len() && begins.zip(&told).all(|(b, line)| line.starts_with(&b)), "{told:?}");
            bench.manager.kill();
            until("rebuilt", || bench.manager.info().generation == 1).await;
            tokio::time::sleep(2 * MINUTE).await;
            assert_eq!(warnings(), told);
        });
    }
}

#[test]
fn an_own_score_that_cannot_be_set_is_no_reason_to_stop() {
    run(13, |kernel| async move {
        let tree = tree();
        tree.fail("oom_score_adj", "", true);
        let bench = Bench::start(&kernel, &tree, config());
        assert!(ensure(&bench, &Arc::new(pod("a", ""))).await.is_ok());
        assert_eq!(bench.manager.info().generation, 0);
    });
}
