//! In-place resize of a container that runs.

use super::*;
use model::resources::CgroupValues;

fn sized(cpu: &str, memory: &str, policy: &str, generation: i64) -> Pod {
    let list = json!({ "cpu": cpu, "memory": memory });
    let policy = json!([{ "resourceName": "memory", "restartPolicy": policy }]);
    let resources = json!({ "requests": list, "limits": list });
    let mut pod = pod(json!({ "resources": resources, "resizePolicy": policy }), json!({}));
    pod.metadata.generation = Some(generation);
    pod
}

const GI: i64 = 1 << 30;

/// A worker whose pod runs with one core and 1 GiB.
async fn running(bench: &Bench, policy: &str) {
    bench.set(|w| {
        let values = CgroupValues {
            cpu_shares: Some(1024),
            cpu_quota_us: Some(100_000),
            cpu_period_us: Some(100_000),
            memory_limit_bytes: Some(GI),
            ..CgroupValues::default()
        };
        let memory_bytes = Some(GI as u64 / 2);
        w.cgroup = contract::cgroup::PodCgroupUse { values, memory_bytes, ..Default::default() };
    });
    bench.wiring.put(UID.into(), contract::cgroup::PodCgroupRow { path: "/pods".to_owned() });
    bench.tell(&sized("1", "1Gi", policy, 1), UpdateKind::Create).await;
    bench.set(|w| w.words.clear());
}

/// What the runtime and the pod's cgroup were told.
fn told(bench: &Bench) -> Vec<String> {
    let is_told = |l: &String| !l.starts_with("event") && !l.starts_with("status") && !l.starts_with("probes");
    bench.see(|w| w.words.iter().filter(|l| is_told(l)).cloned().collect())
}

fn condition(bench: &Bench, of: &str) -> Option<(String, String, i64)> {
    let all = bench.last_status().conditions.unwrap_or_default();
    let one = all.into_iter().find(|c| c.type_ == of)?;
    Some((one.reason.unwrap_or_default(), one.message.unwrap_or_default(), one.observed_generation.unwrap_or(0)))
}

#[test]
fn what_grows_grows_in_the_pod_first_and_what_shrinks_in_the_container() {
    with_bench(async |bench| {
        running(&bench, "NotRequired").await;
        bench.tell(&sized("500m", "2Gi", "NotRequired", 2), UpdateKind::Update).await;
        let (gi, two) = (GI, 2 * GI);
        assert_eq!(
            told(&bench),
            [
                &format!("sandbox {two} 100000 1024"),
                &format!("cgroup Some({two}) None None"),
                &format!("c-new {two} 100000 1024"),
                &format!("c-new {two} 50000 512"),
                &format!("sandbox {two} 100000 512"),
                "cgroup None None Some(512)",
                &format!("sandbox {two} 50000 512"),
                "cgroup None Some(50000) None",
            ],
            "{gi}"
        );
        assert_eq!(condition(&bench, "PodResizeInProgress"), None);
        let done = &bench.events("ResizeCompleted")[0];
        assert!(
            done.starts_with("Pod resize completed: {\"containers\":[{\"name\":\"app\"")
                && done.ends_with("\"generation\":2}")
        );
        let status = bench.last_status().container_statuses.unwrap().remove(0);
        assert_eq!(
            serde_json::to_value(status.resources.unwrap().limits).unwrap(),
            json!({"cpu": "500m", "memory": "2Gi"})
        );
        assert_eq!(status.restart_count, 0);
    });
}

/// Edge 27.
#[test]
fn a_policy_starts_the_container_anew_and_its_pod_follows() {
    with_bench(async |bench| {
        running(&bench, "RestartContainer").await;
        bench.tell(&sized("1", "2Gi", "RestartContainer", 2), UpdateKind::Update).await;
        let two = 2 * GI;
        let expected = [
            "StopContainer 2",
            &format!("sandbox {two} 100000 1024"),
            &format!("cgroup Some({two}) None None"),
            "CreateContainer",
            "StartContainer",
        ];
        assert_eq!(told(&bench), expected);
        assert_eq!(bench.events("Killing"), ["Container app resize requires restart"]);
        assert_eq!(bench.events("ResizeCompleted").len(), 1);
        let created = bench.see(|w| w.created.last().unwrap().linux.clone().unwrap().resources.unwrap());
        assert_eq!(created.memory_limit_in_bytes, two);
        bench.set(|w| w.words.clear());
        bench.tell(&sized("2", "2Gi", "RestartContainer", 3), UpdateKind::Update).await;
        assert!(told(&bench).iter().all(|l| !l.contains("Create")), "the processor is changed in place");
    });
}

#[test]
fn what_goes_wrong_is_told_once_and_tried_again() {
    with_bench(async |bench| {
        running(&bench, "NotRequired").await;
        bench.set(|w| w.cgroup.memory_bytes = Some(GI as u64));
        bench.tell(&sized("1", "768Mi", "NotRequired", 2), UpdateKind::Update).await;
        let low = "cannot decrease memory limits: attempting to set pod memory limit (805306368) below current usage (1073741824)";
        assert_eq!(condition(&bench, "PodResizeInProgress"), Some(("Error".to_owned(), low.to_owned(), 2)));
        assert_eq!(told(&bench), Vec::<String>::new());
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(bench.events("ResizeError").len(), 1);
        let limits = bench.last_status().container_statuses.unwrap()[0].resources.clone().unwrap().limits;
        assert_eq!(serde_json::to_value(limits).unwrap()["memory"], "1Gi", "as it is");
        bench.set(|w| {
            w.cgroup.memory_bytes = Some(5);
            w.update_fails = Some("no".to_owned());
        });
        tokio::time::sleep(Duration::from_secs(120)).await;
        assert!(bench.events("ResizeError").iter().any(|e| e.ends_with("\"error\":\"no\"}")));
        assert_eq!(bench.events("ResizeCompleted").len(), 1);
        assert_eq!(condition(&bench, "PodResizeInProgress"), None);
        assert_eq!(told(&bench)[0], "c-new 805306368 100000 1024");
    });
}

/// `cgroupsPerQOS: false`.
#[test]
fn without_cgroups_of_pods_containers_are_resized_alone() {
    with_bench(async |bench| {
        running(&bench, "NotRequired").await;
        bench.wiring.take_away::<contract::cgroup::PodCgroupRow>(&UID.into());
        bench.set(|w| w.cgroup = contract::cgroup::PodCgroupUse::default());
        bench.tell(&sized("500m", "768Mi", "NotRequired", 2), UpdateKind::Update).await;
        assert_eq!(bench.events("ResizeError"), Vec::<String>::new());
        assert_eq!(told(&bench), ["c-new 805306368 100000 1024", "c-new 805306368 50000 512"]);
        assert_eq!(bench.events("ResizeCompleted").len(), 1);
    });
}

#[test]
fn a_worker_that_is_rebuilt_goes_on_with_a_resize() {
    run(1, async |kernel| {
        let bench = Bench::start(&kernel, nothing());
        running(&bench, "NotRequired").await;
        bench.set(|w| w.cgroup.memory_bytes = Some(GI as u64));
        bench.tell(&sized("1", "768Mi", "NotRequired", 2), UpdateKind::Update).await;
        bench.worker.kill();
        let_work().await;
        assert_eq!(bench.row().resizing.as_ref().unwrap().generation, 2);
        bench.set(|w| w.cgroup.memory_bytes = Some(5));
        tokio::time::sleep(Duration::from_secs(120)).await;
        assert_eq!(told(&bench)[0], "c-new 805306368 100000 1024");
        assert_eq!(bench.events("ResizeCompleted").len(), 1);
    });
}

/// Nothing is written of a resize that the manager granted just before the daemon died: the runtime tells.
#[test]
fn a_resize_that_an_earlier_daemon_left_is_carried_out() {
    run(1, async |kernel| {
        let now = sized("1", "1Gi", "NotRequired", 2);
        let mut observed = left_running(&now);
        observed.containers[0].resources = Some(model::runtime::RuntimeResources {
            cpu_shares: 1024,
            cpu_quota_us: 50_000,
            cpu_period_us: 100_000,
            memory_limit_bytes: GI,
        });
        let bench = Bench::start(&kernel, observed);
        bench.tell(&now, UpdateKind::Create).await;
        assert_eq!(
            told(&bench).iter().filter(|l| l.starts_with("c1")).collect::<Vec<_>>(),
            [&format!("c1 {GI} 100000 1024")]
        );
        assert_eq!(bench.events("ResizeCompleted").len(), 1);
    });
}

/// The container is dead, so the runtime cannot tell: with the pod's cgroup as it was, none could start again on cgroup v1.
#[test]
fn a_grant_that_comes_before_the_first_step_reaches_the_pods_cgroup_though_no_container_runs() {
    run(1, async |kernel| {
        let [before, now] = ["1Gi", "2Gi"].map(|memory| sized("1", memory, "NotRequired", 2));
        let mut observed = left_running(&before);
        observed.containers[0].state = ContainerState::Exited;
        let bench = Bench::start(&kernel, observed);
        bench.wiring.put(UID.into(), contract::cgroup::PodCgroupRow { path: "/pods".to_owned() });
        bench.set(|w| w.cgroup.values.memory_limit_bytes = Some(GI));
        let ask = |pod: &Pod, kind| {
            let update =
                UpdatePod { uid: UID.into(), pod: Some(Arc::new(pod.clone())), kind, pending: None, is_behind: false };
            bench.worker.ask(update, ASK)
        };
        let both = futures::join!(ask(&before, UpdateKind::Create), ask(&now, UpdateKind::Update));
        assert!(both.0.is_ok() && both.1.is_ok());
        let_work().await;
        let told = told(&bench);
        let limit = format!("cgroup Some({})", 2 * GI);
        assert!(told.iter().any(|word| word.starts_with(&limit)), "{told:?}");
    });
}

#[test]
fn a_resize_that_waits_is_shown() {
    with_bench(async |bench| {
        running(&bench, "NotRequired").await;
        let message = "Node didn't have enough resource".to_owned();
        let pending = PendingResize { infeasible: false, message: message.clone(), generation: 2, since: Timestamp(5) };
        bench.tell_pending(&sized("1", "1Gi", "NotRequired", 2), UpdateKind::Update, Some(pending)).await;
        assert_eq!(condition(&bench, "PodResizePending"), Some(("Deferred".to_owned(), message, 2)));
        bench.tell(&sized("1", "1Gi", "NotRequired", 3), UpdateKind::Update).await;
        assert_eq!((condition(&bench, "PodResizePending"), told(&bench)), (None, Vec::new()));
    });
}

/// The next start finds room in the pod's cgroup.
#[test]
fn the_pod_grows_while_its_container_is_down() {
    with_bench(async |bench| {
        running(&bench, "NotRequired").await;
        bench.set(|w| {
            let c = &mut w.observed.as_mut().unwrap().containers[0];
            c.state = ContainerState::Exited;
            c.exit_code = 1;
            c.finished_at = Timestamp::from_secs(25);
        });
        bench.tell(&sized("1", "2Gi", "NotRequired", 2), UpdateKind::Update).await;
        let two = 2 * GI;
        let expected = [
            &format!("sandbox {two} 100000 1024"),
            &format!("cgroup Some({two}) None None"),
            "CreateContainer",
            "StartContainer",
        ];
        assert_eq!(told(&bench), expected);
        assert_eq!(bench.events("ResizeCompleted").len(), 1);
    });
}

/// A line of the journal that says more than the runtime has: a later one was lost with the daemon.
#[test]
fn the_runtime_knows_better_than_an_old_line() {
    run(1, async |kernel| {
        let now = sized("1", "1Gi", "NotRequired", 3);
        let mut observed = left_running(&now);
        observed.containers[0].resources = Some(model::runtime::RuntimeResources {
            cpu_shares: 512,
            cpu_quota_us: 50_000,
            cpu_period_us: 100_000,
            memory_limit_bytes: GI,
        });
        let amounts = model::allocation::Amounts {
            cpu_request_milli: 1000,
            cpu_limit_milli: 1000,
            memory_request_bytes: GI,
            memory_limit_bytes: GI / 2,
        };
        let actuated = crate::memo::Actuated { id: "c1".to_owned(), amounts };
        let record = crate::memo::Record { actuated: [("app".to_owned(), actuated)].into(), ..Default::default() };
        let bench = Bench::start_with_record(&kernel, observed, &record);
        bench.tell(&now, UpdateKind::Create).await;
        let of_container: Vec<String> = told(&bench).into_iter().filter(|l| l.starts_with("c1")).collect();
        assert_eq!(of_container, [format!("c1 {GI} 100000 1024")]);
    });
}
