use std::path::Path;
use std::time::Duration;

use actor::testing::{run, settle};
use contract::eviction::{ConditionView, PressureView, ThresholdView};
use contract::pod_manager::KillPod;
use contract::pod_worker::{KillRequest, WorkerPhase, WorkerState};
use contract::stats::StatsError;
use eviction::{Amount, Threshold};
use fakes::files::FileTrouble;
use model::{PodUid, Timestamp};
use serde_json::json;

use super::rig::{GI, Rig, config, secs, threshold};

fn memory() -> Vec<Threshold> {
    vec![threshold("memory.available", "1Gi", secs(0))]
}

#[test]
fn a_quiet_node_measures_nobody_and_evicts_nobody() {
    run(1, |kernel| async move {
        let rig = Rig::new(&kernel);
        rig.run_pod("a", 0, 4000);
        rig.start(config(&memory()));
        rig.memory_available(GI);
        rig.pass(secs(600)).await;
        assert_eq!((rig.measured(), rig.killed()), (0, vec![]));
        assert!(rig.conditions().is_empty() && rig.events.lines().is_empty());
    });
}

#[test]
fn the_worst_pod_goes_alone_with_a_second_to_end_and_the_condition_stays_a_while() {
    run(1, |kernel| async move {
        let rig = Rig::new(&kernel);
        for (uid, priority, uses) in [("small", 0, 10), ("big", 0, 500), ("dear", 1000, 5000)] {
            rig.run_pod(uid, priority, uses);
        }
        let critical = json!({ "spec": { "priority": 2_000_000_000, "containers": [{ "name": "app" }] } });
        rig.run("critical", critical);
        rig.said.lock().unwrap().obedient = false;
        rig.start(config(&memory()));
        rig.memory_available(GI - 1);
        rig.pass(secs(5)).await;
        assert_eq!(rig.conditions(), ["MemoryPressure"]);
        let kills = rig.kills();
        assert_eq!(rig.killed(), ["big"], "one at a time");
        let (request, text) = (
            &kills[0].request,
            "The node was low on resource: memory. Threshold quantity: 1Gi, \
            available: 1073741823. Container app was using 500Mi, request is 0, has larger consumption of memory. ",
        );
        assert_eq!(
            (request.grace_s, request.evicted, request.own_fault, request.deleted),
            (Some(1), true, false, false)
        );
        assert_eq!(request.reason, Some(("Evicted".to_owned(), text.to_owned())));
        let told = [
            "Warning EvictionThresholdMet: Attempting to reclaim memory".to_owned(),
            format!("Warning Evicted: {text}"),
        ];
        assert_eq!(rig.events.lines(), told);
        assert_eq!(rig.reclaims(), (0, 0), "nothing can be tidied up in memory");
        rig.memory_available(2 * GI);
        rig.wiring.put(PodUid::from("big"), WorkerState::new(WorkerPhase::Finished));
        rig.pass(secs(294)).await;
        assert_eq!(rig.conditions(), ["MemoryPressure"]);
        rig.pass(secs(20)).await;
        assert!(rig.conditions().is_empty());
        assert_eq!(rig.killed().len(), 1);
    });
}

/// Edge 49.
#[test]
fn as_long_as_it_is_short_one_after_the_other_goes_and_never_a_critical_one() {
    run(1, |kernel| async move {
        let rig = Rig::new(&kernel);
        for (uid, priority, uses) in [("a", 0, 10), ("b", 0, 500), ("c", 5, 5000)] {
            rig.run_pod(uid, priority, uses);
        }
        rig.run("static", json!({ "metadata": { "annotations": { "kubernetes.io/config.source": "file" } }, "spec": { "containers": [] } }));
        rig.start(config(&memory()));
        rig.memory_available(0);
        rig.pass(secs(15)).await;
        assert_eq!(rig.killed(), ["b", "a", "c"], "the next goes as soon as the one before is gone");
        rig.pass(secs(60)).await;
        assert_eq!(rig.killed().len(), 3);
    });
}

#[test]
fn a_worker_that_hangs_is_told_of_and_not_waited_for_for_ever() {
    run(1, |kernel| async move {
        let rig = Rig::new(&kernel);
        rig.run_pod("hangs", 0, 900);
        rig.run_pod("other", 0, 100);
        rig.said.lock().unwrap().obedient = false;
        rig.start(config(&memory()));
        rig.memory_available(0);
        rig.pass(secs(5)).await;
        assert_eq!((rig.killed().len(), rig.events.lines().len()), (1, 2));
        rig.pass(secs(6)).await;
        let late = "Warning ExceededGracePeriod: Container runtime did not kill the pod within specified grace period.";
        assert!(rig.events.lines().contains(&late.to_owned()), "{:?}", rig.events.lines());
        assert_eq!(rig.killed().len(), 1);
        rig.pass(secs(31)).await;
        assert_eq!(rig.killed(), ["hangs", "other"]);
        assert_eq!(rig.events.lines().iter().filter(|l| **l == late).count(), 1);
    });
}

#[test]
fn a_soft_threshold_waits_for_its_grace_and_gives_the_pod_time() {
    run(1, |kernel| async move {
        let rig = Rig::new(&kernel);
        rig.run_pod("a", 0, 10);
        rig.start(config(&[threshold("memory.available", "1Gi", secs(90))]));
        rig.memory_available(0);
        rig.pass(secs(85)).await;
        assert_eq!((rig.conditions(), rig.killed()), (vec!["MemoryPressure".to_owned()], vec![]));
        rig.pass(secs(30)).await;
        assert_eq!(
            rig.kills()[0].request.grace_s,
            Some(40),
            "its own, as it is shorter than evictionMaxPodGracePeriod"
        );
    });
}

/// Edge 50.
#[test]
fn a_disk_is_tidied_up_first_and_that_may_be_enough() {
    for (reclaimed, times, killed) in [(Some(50 * GI), 1, 0), (None, 2, 1)] {
        run(1, move |kernel| async move {
            let rig = Rig::new(&kernel);
            rig.run_pod("a", 0, 10);
            rig.said.lock().unwrap().reclaimed = reclaimed;
            rig.start(config(&[threshold("nodefs.available", "20Gi", secs(0))]));
            rig.machine.change(|m| m.disk.as_mut().unwrap().available_bytes = 10 * GI);
            rig.pass(secs(1)).await;
            assert_eq!((rig.reclaims(), rig.killed().len()), ((times, times), killed), "again after the pod");
            assert_eq!(rig.conditions(), ["DiskPressure"]);
            assert_eq!(rig.events.lines()[0], "Warning EvictionThresholdMet: Attempting to reclaim ephemeral-storage");
        });
    }
}

#[test]
fn who_is_not_there_to_be_ended_is_passed_over_and_so_is_a_failure_to_measure() {
    run(1, |kernel| async move {
        let rig = Rig::new(&kernel);
        rig.run_pod("gone", 0, 900);
        rig.run_pod("here", 0, 100);
        rig.said.lock().unwrap().away.push("gone".to_owned());
        rig.said.lock().unwrap().failure = Some(StatsError { message: "no numbers".to_owned() });
        rig.start(config(&memory()));
        rig.memory_available(0);
        rig.pass(secs(25)).await;
        assert!(rig.killed().is_empty(), "nobody goes by guess");
        assert_eq!(rig.conditions(), ["MemoryPressure"]);
        rig.said.lock().unwrap().failure = None;
        rig.pass(secs(10)).await;
        assert_eq!(rig.killed()[..2], ["gone", "here"]);
        let evicted = rig.events.lines().iter().filter(|line| line.starts_with("Warning Evicted")).count();
        assert_eq!(evicted, 1, "who is not ended is not told of");
    });
}

/// Whoever was to answer died over it, before or after it told the worker.
#[test]
fn an_order_that_nobody_answers_counts_when_the_worker_shows_it() {
    for is_taken in [true, false] {
        run(1, move |kernel| async move {
            let rig = Rig::new(&kernel);
            rig.run_pod("a", 0, 20);
            rig.run_pod("b", 0, 10);
            rig.said.lock().unwrap().obedient = false;
            rig.pods.crash_at_next::<KillPod>();
            rig.start(config(&memory()));
            rig.memory_available(0);
            rig.pass(Duration::from_millis(500)).await;
            assert!(rig.killed().is_empty() && rig.events.lines().len() == 1, "nobody knows yet");
            if is_taken {
                let reason = Some(("Evicted".to_owned(), "m".to_owned()));
                let kill = Some(KillRequest { evicted: true, reason, ..KillRequest::default() });
                let row = WorkerState { evicted: true, kill, ..WorkerState::new(WorkerPhase::Terminating) };
                rig.wiring.put("a".into(), row);
            }
            rig.pass(secs(4)).await;
            let expected = if is_taken { vec![] } else { vec!["a".to_owned()] };
            assert_eq!(rig.killed(), expected, "told again if it was not");
            let evicted = rig.events.lines().iter().filter(|line| line.starts_with("Warning Evicted")).count();
            assert_eq!(evicted, 1);
        });
    }
}

#[test]
fn a_disk_that_hangs_costs_one_look_and_no_eviction_for_memory() {
    run(1, |kernel| async move {
        let rig = Rig::new(&kernel);
        rig.run_pod("a", 0, 20);
        rig.files.trouble(Path::new("/"), FileTrouble::Hang);
        rig.start(config(&[memory()[0], threshold("nodefs.available", "20Gi", secs(0))]));
        rig.pass(secs(60)).await;
        assert_eq!(rig.runtime.count("ImageFsInfo"), 1, "as long as it hangs there is no second one");
        rig.memory_available(0);
        rig.pass(secs(11)).await;
        assert_eq!((rig.killed(), rig.conditions()), (vec!["a".to_owned()], vec!["MemoryPressure".to_owned()]));
    });
}

#[test]
fn short_of_memory_it_does_without_the_runtime() {
    run(1, |kernel| async move {
        let rig = Rig::new(&kernel);
        rig.run_pod("a", 0, 10);
        rig.said.lock().unwrap().full_fails = true;
        rig.start(config(&memory()));
        rig.memory_available(0);
        rig.pass(secs(1)).await;
        assert_eq!(rig.killed(), ["a"]);
        let volume = json!([{ "name": "tmp", "emptyDir": { "sizeLimit": "1Mi" } }]);
        rig.run("limited", json!({ "spec": { "containers": [{ "name": "app" }], "volumes": volume } }));
        rig.pass(secs(11)).await;
        assert_eq!(rig.killed(), ["a", "limited"], "also where somebody's disk was to be looked at");
    });
}

#[test]
fn alarms_change_nothing_while_nobody_can_be_evicted() {
    run(1, |kernel| async move {
        let rig = Rig::new(&kernel);
        rig.start(config(&memory()));
        rig.memory_available(0);
        for _ in 0..45 {
            rig.pass(std::time::Duration::from_millis(200)).await;
            rig.alarm.stall();
        }
        assert_eq!(rig.measured(), 1);
    });
}

#[test]
fn a_rebuilt_manager_goes_on_with_conditions_and_leaves_ending_pods_alone() {
    run(1, |kernel| async move {
        let rig = Rig::new(&kernel);
        rig.run_pod("a", 0, 10);
        rig.said.lock().unwrap().obedient = false;
        let manager = rig.start(config(&memory()));
        rig.memory_available(0);
        rig.pass(secs(11)).await;
        assert_eq!(rig.killed(), ["a"]);
        rig.memory_available(4 * GI);
        manager.kill();
        settle().await;
        rig.pass(secs(60)).await;
        assert_eq!(rig.conditions(), ["MemoryPressure"]);
        rig.pass(secs(300)).await;
        assert!(rig.conditions().is_empty());
        assert_eq!(rig.killed(), ["a"]);
    });
}

/// Edge 58.
#[test]
fn a_rebuilt_manager_ends_no_second_pod_while_the_first_one_ends() {
    run(1, |kernel| async move {
        let rig = Rig::new(&kernel);
        rig.run_pod("a", 0, 20);
        rig.run_pod("b", 0, 10);
        rig.said.lock().unwrap().obedient = false;
        let manager = rig.start(config(&memory()));
        rig.memory_available(0);
        rig.pass(secs(11)).await;
        assert_eq!(rig.killed(), ["a"]);
        manager.kill();
        settle().await;
        rig.pass(secs(20)).await;
        assert_eq!(rig.killed(), ["a"], "its end may be all that is needed");
        rig.comes_to("a", WorkerPhase::Finished);
        rig.memory_available(4 * GI);
        rig.pass(secs(60)).await;
        assert_eq!(rig.killed(), ["a"]);
    });
}

#[test]
fn a_disk_that_is_short_waits_for_volumes_that_were_never_measured() {
    run(1, |kernel| async move {
        let rig = Rig::new(&kernel);
        rig.run_pod("small", 0, 10);
        let spec = json!({ "volumes": [{ "name": "data", "emptyDir": {} }],
            "containers": [{ "name": "app", "volumeMounts": [{ "name": "data", "mountPath": "/d" }] }] });
        rig.run("large", json!({ "spec": spec }));
        let measured = |volumes: serde_json::Value| json!({ "containers": [{ "name": "app", "startTime": "2026-01-01T00:00:00Z" }], "volume": volumes });
        rig.measure("large", measured(json!([])));
        rig.measure(
            "small",
            json!({ "containers": [{ "name": "app", "startTime": "2026-01-01T00:00:00Z",
            "rootfs": { "time": "2026-01-01T00:00:00Z", "usedBytes": 200 << 20 } }] }),
        );
        rig.start(config(&[threshold("nodefs.available", "20Gi", secs(0))]));
        rig.machine.change(|m| m.disk.as_mut().unwrap().available_bytes = 10 * GI);
        rig.pass(secs(15)).await;
        assert_eq!(rig.killed(), [""; 0], "the large one counts as empty so far");
        let fs = json!({ "name": "data", "time": "2026-01-01T00:00:00Z", "usedBytes": 80 * GI });
        rig.measure("large", measured(json!([fs])));
        rig.pass(secs(5)).await;
        assert_eq!(rig.killed()[0], "large");
    });
}

#[test]
fn volumes_that_nobody_measures_are_waited_for_once_at_most() {
    for (measures_volumes, waits) in [(true, 19), (false, 2)] {
        run(1, move |kernel| async move {
            let rig = Rig::new(&kernel);
            let spec = json!({ "priority": 0, "volumes": [{ "name": "data", "emptyDir": {} }],
                "containers": [{ "name": "app", "volumeMounts": [{ "name": "data", "mountPath": "/d" }] }] });
            for uid in ["a", "b"] {
                rig.run(uid, json!({ "spec": spec }));
                rig.measure(uid, json!({ "containers": [{ "name": "app", "startTime": "2026-01-01T00:00:00Z" }] }));
            }
            rig.start(crate::Config { measures_volumes, ..config(&[threshold("nodefs.available", "20Gi", secs(0))]) });
            rig.machine.change(|m| m.disk.as_mut().unwrap().available_bytes = 10 * GI);
            rig.pass(secs(waits)).await;
            assert_eq!(rig.killed().is_empty(), measures_volumes);
            rig.pass(secs(4)).await;
            assert_eq!(rig.killed().len(), 2, "{measures_volumes}: for the second one nobody waits again");
        });
    }
}

#[test]
fn without_thresholds_and_limits_there_is_nothing_to_do() {
    run(1, |kernel| async move {
        let rig = Rig::new(&kernel);
        let nothing = crate::Config { local_storage: false, ..config(&[]) };
        rig.start(nothing);
        rig.memory_available(0);
        rig.pass(secs(100)).await;
        assert_eq!(rig.runtime.count("ImageFsInfo"), 0);
    });
}

#[test]
fn people_see_what_runs_short_since_when_until_when_what_was_tidied_up_and_who_went() {
    run(1, |kernel| async move {
        let rig = Rig::new(&kernel);
        rig.run_pod("a", 0, 10);
        let begun = Timestamp(kernel.clock().unix_nanos());
        let at = |seconds: u64| begun.plus(secs(seconds));
        let hard = threshold("nodefs.available", "20Gi", secs(0));
        let soft =
            Threshold { min_reclaim: Some(Amount::percent(5.0)), ..threshold("nodefs.available", "40Gi", secs(90)) };
        let manager = rig.start(config(&[hard, soft]));
        rig.machine.change(|m| m.disk.as_mut().unwrap().available_bytes = 50 * GI);
        rig.pass(secs(1)).await;
        let view = rig.view();
        let names: Vec<&str> = view.signals.iter().map(|s| s.signal.as_str()).collect();
        assert!(names.contains(&"nodefs.available") && names.contains(&"imagefs.inodesFree"), "{names:?}");
        assert_eq!((view.looked_at, view.conditions, view.reclaim, view.victim), (begun, vec![], None, None));
        let disk = |view: &PressureView| view.signals.iter().find(|s| s.signal == "nodefs.available").cloned().unwrap();
        assert_eq!(disk(&rig.view()).available, Some(50 << 30));
        let shown = |below: &str, reclaim: &str, grace_ms, since, due| ThresholdView {
            below: below.to_owned(),
            reclaim: reclaim.to_owned(),
            grace_ms,
            since,
            due,
        };
        let quiet = [shown("20Gi", "", 0, None, false), shown("40Gi", "5%", 90_000, None, false)];
        assert_eq!(disk(&rig.view()).thresholds, quiet);

        rig.machine.change(|m| m.disk.as_mut().unwrap().available_bytes = 30 * GI);
        rig.pass(secs(10)).await;
        assert_eq!(disk(&rig.view()).thresholds[1], shown("40Gi", "5%", 90_000, Some(at(10)), false));
        let disk_pressure = |until| vec![ConditionView { condition: "DiskPressure".to_owned(), until }];
        assert_eq!(rig.view().conditions, disk_pressure(None));
        rig.pass(secs(99)).await;
        let view = rig.view();
        assert_eq!(disk(&view).thresholds[1], shown("40Gi", "5%", 90_000, Some(at(10)), true));
        let reclaim = view.reclaim.unwrap();
        assert_eq!(
            (reclaim.signal.as_str(), reclaim.freed_bytes, reclaim.enough),
            ("nodefs.available", Some(1), false)
        );
        let victim = view.victim.unwrap();
        assert_eq!(
            (victim.pod.as_str(), victim.signal.as_str(), victim.at),
            ("default/a", "nodefs.available", at(100))
        );
        assert!(victim.message.starts_with("The node was low on resource: ephemeral-storage."), "{}", victim.message);

        rig.machine.change(|m| m.disk.as_mut().unwrap().available_bytes = 90 * GI);
        rig.pass(secs(20)).await;
        let view = rig.view();
        assert_eq!(disk(&view).thresholds, quiet);
        let [held] = view.conditions.as_slice() else { panic!("{:?}", view.conditions) };
        let until = held.until.unwrap();
        assert!(until > at(400) && until < at(430), "{until:?} of {begun:?}");
        manager.kill();
        rig.pass(secs(1)).await;
        assert_eq!((rig.view().victim, rig.view().conditions.len()), (Some(victim), 1), "outlives a generation");
    });
}
