use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use actor::testing;
use contract::probe::RetainProbes;
use contract::runtime::{CallError, CallErrorKind, ExecSync};
use fakes::MemoryJournal;
use model::core::{Container, ContainerStatus, Pod, PodSpec, PodStatus, Probe};
use model::k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use model::probe::ProbeKind::{Liveness, Readiness, Startup};
use model::probe::ProbeOutcome;
use model::probe::ProbeVerdict::{Failure, Success, Unknown};
use ports::journal::Journal;
use ports::probe::NetTarget;

use super::bed::{Bed, config, container, ended, every, exec, exit, http, pass, pod, running, tcp, with_bed};

/// The pod of the golden cases `probes` and `static-probes`.
fn golden() -> Arc<Pod> {
    let mut c = container("http");
    c.readiness_probe = http(8080, every(1));
    c.liveness_probe = tcp(8081, Probe { initial_delay_seconds: Some(1), ..every(2) });
    c.startup_probe = exec(&["/agnhost", "--help"], Probe { failure_threshold: Some(10), ..every(1) });
    pod("u1", vec![c])
}

fn ready_only(uid: &str, period: i32) -> Arc<Pod> {
    pod(uid, vec![Container { readiness_probe: http(80, every(period)), ..container("m") }])
}

fn live_only(uid: &str, probe: Probe) -> Arc<Pod> {
    pod(uid, vec![Container { liveness_probe: tcp(80, probe), ..container("m") }])
}

#[test]
fn golden_probes_run_as_a_kubelet_ran_them() {
    with_bed(async |bed| {
        let p = golden();
        bed.start(&p).await;
        let row = bed.row(&p).unwrap();
        assert!(row.has("http", Startup) && row.has("http", Readiness) && row.has("http", Liveness));
        pass(140).await;
        let since = bed.wall();
        bed.show(&p, vec![running("http", "c1", since, false)]);
        pass(855).await;
        assert_eq!(bed.exec_count(), 0, "the first startup probe comes one period after the worker began");
        pass(10).await;
        assert_eq!(bed.exec_count(), 1, "golden: exec at 1.0 s");
        pass(35).await;
        let call = bed.runtime.asked::<ExecSync>().remove(0);
        assert_eq!(call.command, ["/agnhost", "--help"]);
        assert_eq!(call.timeout, Duration::from_secs(1));
        assert_eq!(call.container.as_str(), "c1");
        assert_eq!(bed.verdict(&p, "c1", Startup), Some(Success));
        assert_eq!(bed.verdict(&p, "c1", Readiness), Some(Failure), "seeded");
        assert_eq!(bed.verdict(&p, "c1", Liveness), None, "its tick has not come");
        assert_eq!(bed.net_count(), 0, "startup gates the others");

        bed.show(&p, vec![running("http", "c1", since, true)]);
        pass(10).await;
        assert_eq!(bed.verdict(&p, "c1", Readiness), Some(Success), "at once after the status says started");
        pass(9_000).await;
        assert_eq!(bed.exec_count(), 1, "one startup probe in all");
        let probes = bed.net.probes();
        let count = |port: u16| {
            probes
                .iter()
                .filter(|(_, t)| matches!(t, NetTarget::Http { port: p, .. } | NetTarget::Tcp { port: p, .. } if *p == port))
                .count()
        };
        assert_eq!(count(8080), 10, "readiness each second");
        assert_eq!(count(8081), 5, "liveness every two seconds: 2, 4, 6, 8, 10");
        let NetTarget::Http { host, path, headers, .. } = &probes[0].1 else { panic!("readiness first") };
        assert_eq!((host.as_str(), path.as_str()), ("10.0.0.7", "/"));
        assert!(headers.contains(&("User-Agent".into(), "kube-probe/1.36".into())));
        assert_eq!(bed.messages(), Vec::<String>::new());
    });
}

#[test]
fn golden_readiness_fails_tells_each_failure() {
    with_bed(async |bed| {
        let mut c = container("app");
        c.readiness_probe = exec(&["sh", "-c", "echo not yet; exit 1"], every(1));
        let p = pod("u1", vec![c]);
        bed.execs_end(Ok(exit(1, "not yet\n")));
        bed.start(&p).await;
        pass(150).await;
        bed.show(&p, vec![running("app", "c1", bed.wall(), true)]);
        pass(3_500).await;
        assert_eq!(bed.messages(), vec!["Readiness probe failed: not yet\n"; 4]);
        assert_eq!(bed.verdict(&p, "c1", Readiness), Some(Failure));
    });
}

#[test]
fn liveness_fails_at_its_threshold_and_rests_until_the_next_instance() {
    with_bed(async |bed| {
        let p = live_only("u1", every(2));
        bed.refuse(80, "refused");
        bed.runs(&p).await;
        pass(3_900).await;
        assert_eq!((bed.net_count(), bed.verdict(&p, "c1", Liveness)), (2, Some(Success)), "two of three");
        pass(200).await;
        assert_eq!((bed.net_count(), bed.verdict(&p, "c1", Liveness)), (3, Some(Failure)), "edge 74");
        assert_eq!(bed.messages(), vec!["Liveness probe failed: refused"; 3]);
        pass(60_000).await;
        assert_eq!(bed.net_count(), 3, "on hold");
        bed.net.open_all();
        bed.show(&p, vec![running("m", "c2", bed.wall(), true)]);
        pass(2_100).await;
        assert_eq!((bed.net_count(), bed.verdict(&p, "c2", Liveness)), (4, Some(Success)), "edge 76");
        assert_eq!(bed.verdict(&p, "c1", Liveness), None, "the old verdict is gone");
    });
}

#[test]
fn readiness_is_probed_as_soon_as_the_status_shows_the_container() {
    with_bed(async |bed| {
        let p = ready_only("u1", 10);
        bed.start(&p).await;
        pass(3_000).await;
        assert_eq!(bed.net_count(), 0);
        bed.show(&p, vec![running("m", "c1", bed.wall(), true)]);
        pass(10).await;
        assert_eq!(bed.verdict(&p, "c1", Readiness), Some(Success));
        pass(9_900).await;
        assert_eq!(bed.net_seconds(), [3]);
        pass(200).await;
        assert_eq!(bed.net_seconds(), [3, 13], "the period counts from there");
    });
}

#[test]
fn a_container_that_needs_a_moment_is_looked_at_again_soon() {
    with_bed(async |bed| {
        let p = ready_only("u1", 10);
        bed.start(&p).await;
        bed.refuse(80, "not listening");
        pass(3_000).await;
        bed.show(&p, vec![running("m", "c1", bed.wall(), true)]);
        pass(500).await;
        assert_eq!(bed.verdict(&p, "c1", Readiness), Some(Failure));
        bed.net.open_all();
        pass(600).await;
        assert_eq!(bed.verdict(&p, "c1", Readiness), Some(Success), "not a whole period later");
        pass(10_000).await;
        assert_eq!(bed.net_seconds(), [3, 4, 14], "then once per period");
    });
}

#[test]
fn a_container_that_stays_unready_is_probed_once_per_period() {
    with_bed(async |bed| {
        let p = ready_only("u1", 10);
        bed.start(&p).await;
        bed.refuse(80, "never");
        bed.show(&p, vec![running("m", "c1", bed.wall(), true)]);
        pass(25_000).await;
        assert_eq!(bed.net_seconds(), [0, 1, 11, 21]);
    });
}

#[test]
fn a_ready_container_is_not_probed_for_every_status() {
    with_bed(async |bed| {
        let p = ready_only("u1", 10);
        let since = bed.wall();
        bed.show(&p, vec![running("m", "c1", since, true)]);
        bed.start(&p).await;
        pass(10).await;
        for _ in 0..20 {
            bed.show(&p, vec![running("m", "c1", since, true)]);
            pass(10).await;
        }
        assert_eq!(bed.net_count(), 1);
    });
}

#[test]
fn an_error_is_tried_three_times_and_counts_as_nothing() {
    with_bed(async |bed| {
        let p = pod(
            "u1",
            vec![Container {
                liveness_probe: exec(&["true"], Probe { failure_threshold: Some(1), ..every(10) }),
                ..container("m")
            }],
        );
        let gone = CallError::new(CallErrorKind::NotFound, "task c1 not found");
        bed.execs_end(Err(gone));
        bed.runs(&p).await;
        pass(100).await;
        assert_eq!(bed.exec_count(), 3, "edge 73");
        assert_eq!(
            bed.messages(),
            [
                "Liveness probe errored and resulted in unknown state: rpc error: code = NotFound desc = task c1 not found"
            ]
        );
        assert_eq!(bed.verdict(&p, "c1", Liveness), Some(Success), "as seeded");
    });
}

#[test]
fn an_exec_that_times_out_is_a_failure() {
    with_bed(async |bed| {
        let probe = Probe { failure_threshold: Some(1), ..every(10) };
        let p = pod("u1", vec![Container { liveness_probe: exec(&["sleep", "9"], probe), ..container("m") }]);
        let slow = CallError::new(CallErrorKind::Timeout, "deadline");
        bed.execs_end(Err(slow));
        bed.runs(&p).await;
        pass(100).await;
        assert_eq!(bed.exec_count(), 1, "edge 73");
        assert_eq!(bed.messages(), ["Liveness probe failed: command \"sleep 9\" timed out"]);
        assert_eq!(bed.verdict(&p, "c1", Liveness), Some(Failure));
    });
}

#[test]
fn a_warning_is_told_and_counts_as_success() {
    with_bed(async |bed| {
        let p = ready_only("u1", 10);
        bed.net.answer(80, ProbeOutcome::Warning, "moved");
        bed.runs(&p).await;
        pass(100).await;
        let told = bed.events.all();
        assert_eq!(told.len(), 1);
        assert_eq!((&*told[0].reason, told[0].message.as_str()), ("ProbeWarning", "Readiness probe warning: moved"));
        assert_eq!(bed.verdict(&p, "c1", Readiness), Some(Success), "edge 72");
    });
}

#[test]
fn a_bad_port_is_an_error_without_a_connection() {
    with_bed(async |bed| {
        let p = pod("u1", vec![Container { readiness_probe: http(0, every(10)), ..container("m") }]);
        bed.runs(&p).await;
        pass(100).await;
        assert_eq!(bed.net_count(), 0);
        assert_eq!(bed.messages(), ["Readiness probe errored and resulted in unknown state: invalid port number: 0"]);
    });
}

#[test]
fn a_container_that_ends_for_good_takes_its_probe_along() {
    with_bed(async |bed| {
        let spec = |policy: &str| PodSpec {
            containers: vec![Container { readiness_probe: http(80, every(1)), ..container("m") }],
            restart_policy: Some(policy.into()),
            ..PodSpec::default()
        };
        let once = Arc::new(Pod { spec: Some(spec("Never")), ..(*pod("u1", vec![])).clone() });
        let always = Arc::new(Pod { spec: Some(spec("Always")), ..(*pod("u2", vec![])).clone() });
        for p in [&once, &always] {
            bed.runs(p).await;
        }
        pass(100).await;
        for p in [&once, &always] {
            assert_eq!(bed.verdict(p, "c1", Readiness), Some(Success));
            bed.show(p, vec![ended("m", "c1", 1)]);
        }
        pass(1_100).await;
        assert_eq!(bed.verdict(&once, "c1", Readiness), None);
        assert!(!bed.row(&once).unwrap().has("m", Readiness));
        assert_eq!(bed.verdict(&always, "c1", Readiness), Some(Failure));
        assert!(bed.row(&always).unwrap().has("m", Readiness));
    });
}

#[test]
fn a_terminating_pod_keeps_readiness_and_its_sidecars_probes() {
    with_bed(async |bed| {
        let all = |c: Container| Container {
            readiness_probe: http(80, every(1)),
            liveness_probe: tcp(81, every(1)),
            startup_probe: tcp(82, every(1)),
            ..c
        };
        let sidecar = Container { restart_policy: Some("Always".into()), ..all(container("s")) };
        let spec = PodSpec {
            containers: vec![all(container("m"))],
            init_containers: Some(vec![sidecar]),
            ..PodSpec::default()
        };
        let p = Arc::new(Pod { spec: Some(spec), ..(*pod("u1", vec![])).clone() });
        bed.show(&p, vec![running("m", "c1", bed.wall(), true), running("s", "s1", bed.wall(), true)]);
        bed.start(&p).await;
        pass(100).await;
        bed.stop(&p, true).await;
        let row = bed.row(&p).unwrap();
        assert_eq!(row.probes["m"], [Readiness].into());
        assert_eq!(row.probes["s"], [Startup, Readiness, Liveness].into());
        assert_eq!(row.verdict(&"c1".into(), Liveness), None);
        bed.refuse(80, "draining");
        pass(4_000).await;
        assert_eq!(bed.verdict(&p, "c1", Readiness), Some(Failure), "edge 75: readiness may still turn");
        bed.stop(&p, false).await;
        assert!(bed.row(&p).is_none());
        let before = bed.net_count();
        pass(10_000).await;
        assert_eq!(bed.net_count(), before, "nothing is probed any more");
    });
}

#[test]
fn a_pod_that_is_being_deleted_from_the_start_has_readiness_only() {
    with_bed(async |bed| {
        let mut p = (*golden()).clone();
        p.metadata.deletion_timestamp = bed.wall().to_api().map(|t: Time| t);
        let p = Arc::new(p);
        bed.show(&p, vec![running("http", "c1", bed.wall(), true)]);
        bed.start(&p).await;
        pass(100).await;
        assert_eq!(bed.row(&p).unwrap().probes["http"], [Readiness].into());
    });
}

#[test]
fn starting_twice_changes_nothing() {
    with_bed(async |bed| {
        let p = ready_only("u1", 10);
        bed.show(&p, vec![running("m", "c1", bed.wall(), true)]);
        for _ in 0..5 {
            bed.start(&p).await;
            pass(10).await;
        }
        assert_eq!(bed.net_count(), 1);
    });
}

#[test]
fn a_pod_without_probes_has_no_row() {
    with_bed(async |bed| {
        let p = pod("u1", vec![container("m")]);
        bed.start(&p).await;
        assert!(bed.row(&p).is_none());
    });
}

#[test]
fn an_outcome_that_comes_after_the_stop_is_dropped() {
    with_bed(async |bed| {
        let p = ready_only("u1", 10);
        bed.net.set_takes(Duration::from_millis(900));
        bed.refuse(80, "late");
        bed.runs(&p).await;
        pass(100).await;
        bed.stop(&p, false).await;
        bed.net.open_all();
        bed.start(&p).await;
        pass(850).await;
        assert_eq!(bed.messages(), Vec::<String>::new());
        assert_eq!(bed.verdict(&p, "c1", Readiness), Some(Failure), "of the new stay: seeded, not decided");
        pass(200).await;
        assert_eq!(bed.verdict(&p, "c1", Readiness), Some(Success));
    });
}

/// A kubelet's worker ends after the probe that runs, and takes its result back.
#[test]
fn a_liveness_probe_that_runs_when_its_pod_begins_to_end_says_nothing() {
    testing::run(1, |kernel| async move {
        let bed = Bed::new(kernel);
        let p = live_only("u1", Probe { failure_threshold: Some(1), ..every(10) });
        bed.net.set_takes(Duration::from_millis(900));
        bed.refuse(80, "late");
        bed.runs(&p).await;
        pass(100).await;
        assert_eq!(bed.net_count(), 1, "it runs");
        bed.stop(&p, true).await;
        pass(5_000).await;
        assert_eq!(bed.messages(), Vec::<String>::new());
        assert_eq!(bed.verdict(&p, "c1", Liveness), None);
        assert_eq!(bed.net_count(), 1);
    });
}

#[test]
fn housekeeping_stops_pods_that_are_gone() {
    with_bed(async |bed| {
        let (a, b) = (ready_only("u1", 1), ready_only("u2", 1));
        for p in [&a, &b] {
            bed.runs(p).await;
        }
        let known = BTreeSet::from([model::pod::uid(&b)]);
        bed.wiring.ask(RetainProbes { known }).await.unwrap();
        assert!(bed.row(&a).is_none());
        assert!(bed.row(&b).is_some());
    });
}

#[test]
fn no_more_probes_run_than_allowed_and_none_starves() {
    testing::run(1, |kernel| async move {
        let config = crate::Config { max_running: 4, ..config(&kernel) };
        let bed = Bed::with(kernel, config, None);
        bed.net.set_takes(Duration::from_millis(500));
        let pods: Vec<_> = (0..40).map(|i| ready_only(&format!("u{i}"), 10)).collect();
        for p in &pods {
            bed.runs(p).await;
        }
        pass(5_100).await;
        assert_eq!(bed.net.most_at_once(), 4);
        for p in &pods {
            assert_eq!(bed.verdict(p, "c1", Readiness), Some(Success));
        }
    });
}

#[test]
fn a_queued_probe_leaves_the_queue_with_its_pod() {
    testing::run(1, |kernel| async move {
        let config = crate::Config { max_running: 1, ..config(&kernel) };
        let bed = Bed::with(kernel, config, None);
        bed.net.set_takes(Duration::from_millis(900));
        let (first, second) = (live_only("u1", every(60)), live_only("u2", every(60)));
        for p in [&first, &second] {
            bed.runs(p).await;
        }
        for _ in 0..3 {
            bed.stop(&second, false).await;
            bed.start(&second).await;
        }
        pass(10_000).await;
        assert_eq!(bed.net_count(), 2, "once each");
    });
}

#[test]
fn a_slow_probe_holds_up_nobody_and_does_not_pile_up() {
    with_bed(async |bed| {
        let slow = live_only("u1", Probe { timeout_seconds: Some(30), ..every(1) });
        bed.net.set_takes(Duration::from_millis(9_500));
        bed.runs(&slow).await;
        pass(100).await;
        bed.net.set_takes(Duration::ZERO);
        let quick = ready_only("u2", 1);
        bed.show(&quick, vec![running("m", "c2", bed.wall(), true)]);
        bed.start(&quick).await;
        pass(100).await;
        assert_eq!(bed.verdict(&quick, "c2", Readiness), Some(Success));
        bed.stop(&quick, false).await;
        let before = bed.net_count();
        pass(9_000).await;
        assert_eq!(bed.net_count(), before, "one attempt of a probe at a time");
        pass(500).await;
        assert_eq!(bed.net_count(), before + 1, "the missed tick is made up for once, at the end");
    });
}

#[test]
fn after_a_start_of_the_daemon_probes_are_spread() {
    testing::run(7, |kernel| async move {
        let config = crate::Config::new(model::Timestamp(kernel.clock().unix_nanos()));
        let bed = Bed::with(kernel, config, None);
        let pods: Vec<_> = (0..30).map(|i| live_only(&format!("u{i}"), every(30))).collect();
        for p in &pods {
            bed.runs(p).await;
        }
        pass(15_000).await;
        let half = bed.net_count();
        assert!((5..25).contains(&half), "{half} of 30 in the first half of the period");
        pass(15_100).await;
        assert_eq!(bed.net_count(), 30);
    });
}

#[test]
fn verdicts_outlive_the_daemon() {
    let journal = Arc::new(MemoryJournal::default());
    let p = golden();
    testing::run(1, |kernel| {
        let (journal, p) = (journal.clone(), p.clone());
        async move {
            let config = config(&kernel);
            let bed = Bed::with(kernel, config, Some(journal));
            bed.start(&p).await;
            bed.show(&p, vec![running("http", "c1", bed.wall(), false)]);
            pass(1_100).await;
            bed.show(&p, vec![running("http", "c1", bed.wall(), true)]);
            pass(3_000).await;
            assert_eq!(bed.verdict(&p, "c1", Readiness), Some(Success));
        }
    });
    assert_eq!(journal.keys("probe/").unwrap(), ["probe/c1"]);
    testing::run(2, |kernel| {
        let (journal, p) = (journal.clone(), p.clone());
        async move {
            let now = model::Timestamp(kernel.clock().unix_nanos());
            let bed = Bed::with(kernel, crate::Config::new(now), Some(journal));
            // Nothing answers in time: every verdict comes from the journal.
            bed.net.set_takes(Duration::from_secs(9));
            let since = model::Timestamp(now.0 - 60_000_000_000);
            bed.start(&p).await;
            bed.show(&p, vec![running("http", "c1", since, true)]);
            pass(2_100).await;
            assert_eq!(bed.verdict(&p, "c1", Startup), Some(Success));
            assert_eq!(bed.verdict(&p, "c1", Readiness), Some(Success), "edge 70: no flip");
            assert_eq!(bed.exec_count(), 0, "decided before");
            bed.stop(&p, false).await;
            pass(10).await;
        }
    });
    assert!(journal.keys("").unwrap().is_empty(), "a stopped pod leaves nothing behind");
}

#[test]
fn a_verdict_that_did_not_reach_the_disk_is_taken_from_what_the_api_server_was_told() {
    testing::run(1, |kernel| async move {
        let now = model::Timestamp(kernel.clock().unix_nanos());
        let bed = Bed::with(kernel, crate::Config::new(now), Some(Arc::new(MemoryJournal::default())));
        bed.net.set_takes(Duration::from_secs(9));
        for (uid, id, verdict) in [("u1", "c1", Success), ("u2", "c2", Failure)] {
            let mut p = Pod::clone(&ready_only(uid, 1));
            let told = ContainerStatus { ready: true, ..running("m", "c1", now, true) };
            p.status = Some(PodStatus { container_statuses: Some(vec![told]), ..PodStatus::default() });
            let p = Arc::new(p);
            bed.start(&p).await;
            bed.show(&p, vec![running("m", id, now, true)]);
            pass(500).await;
            assert_eq!(bed.verdict(&p, id, Readiness), Some(verdict), "{uid}: another instance begins anew");
        }
    });
}

#[test]
fn verdicts_that_no_container_claims_are_forgotten() {
    let journal = Arc::new(MemoryJournal::default());
    journal.save("probe/old", b"r+").unwrap();
    let kept = journal.clone();
    testing::run(1, |kernel| async move {
        let config = config(&kernel);
        let bed = Bed::with(kernel, config, Some(kept));
        pass(700_000).await;
        drop(bed);
    });
    assert!(journal.keys("").unwrap().is_empty());
}

#[test]
fn a_startup_probe_begins_undecided() {
    with_bed(async |bed| {
        let p = pod(
            "u1",
            vec![Container {
                startup_probe: tcp(80, Probe { initial_delay_seconds: Some(5), ..every(1) }),
                ..container("m")
            }],
        );
        bed.show(&p, vec![running("m", "c1", bed.wall(), false)]);
        bed.start(&p).await;
        pass(100).await;
        assert_eq!(bed.verdict(&p, "c1", Startup), Some(Unknown));
        assert_eq!(bed.net_count(), 0);
        pass(5_000).await;
        assert_eq!(bed.verdict(&p, "c1", Startup), Some(Success));
    });
}
