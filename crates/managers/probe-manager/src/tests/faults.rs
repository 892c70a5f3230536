use std::time::Duration;

use actor::testing;
use contract::probe::PodProbes;
use model::core::{Container, Pod};
use model::probe::ProbeKind::{Liveness, Readiness};
use model::probe::ProbeVerdict::{Failure, Success};
use std::sync::Arc;

use fakes::MemoryJournal;
use ports::journal::Journal;

use super::bed::{Bed, config, container, every, http, pass, pod, running, tcp, with_bed};

fn both(uid: &str) -> Arc<Pod> {
    pod(
        uid,
        vec![Container { readiness_probe: http(80, every(2)), liveness_probe: tcp(81, every(2)), ..container("m") }],
    )
}

#[test]
fn a_killed_manager_comes_back_with_its_verdicts() {
    with_bed(async |bed| {
        let p = both("u1");
        bed.runs(&p).await;
        pass(100).await;
        let mut rows = bed.wiring.board::<PodProbes>().subscribe(model::pod::uid(&p));
        rows.borrow_and_update();
        bed.net.set_takes(Duration::from_secs(1));
        for _ in 0..3 {
            bed.manager.kill();
            pass(100).await;
            let row = rows.borrow_and_update().clone().unwrap();
            assert_eq!(row.verdict(&"c1".into(), Readiness), Some(Success), "no flip");
        }
        assert_eq!(bed.manager.info().restarts, 3);
        bed.net.set_takes(Duration::ZERO);
        let before = bed.net_count();
        pass(4_100).await;
        assert!(bed.net_count() >= before + 4, "it probes again");
        assert_eq!(bed.verdict(&p, "c1", Liveness), Some(Success));
    });
}

/// Seen as a pod that was not ready for a moment when the built-in manager followed a process: it learns of its pods one by one.
#[test]
fn a_manager_that_takes_the_place_goes_on_with_the_verdicts_of_the_one_before() {
    with_bed(async |mut bed| {
        let p = both("u1");
        bed.runs(&p).await;
        pass(100).await;
        let verdicts = |bed: &Bed| [Readiness, Liveness].map(|kind| bed.verdict(&p, "c1", kind));
        assert_eq!(verdicts(&bed), [Some(Success); 2]);
        // Nothing that is probed anew answers in time.
        bed.net.set_takes(Duration::from_secs(1));
        bed.replace(None);
        let mut rows = bed.wiring.board::<PodProbes>().changes();
        bed.start(&p).await;
        while tokio::time::timeout(Duration::from_millis(900), rows.changed()).await.is_ok() {
            assert_eq!(verdicts(&bed), [Some(Success); 2], "no flip");
        }
    });
}

/// Another one's row may name no probe: what is probed is the pod's, not the row's.
#[test]
fn a_pod_is_probed_whatever_the_one_before_has_posted_of_it() {
    with_bed(async |mut bed| {
        let p = both("u1");
        bed.runs(&p).await;
        pass(100).await;
        bed.manager.stop();
        pass(100).await;
        bed.wiring.put(model::pod::uid(&p), PodProbes::default());
        bed.replace(None);
        bed.start(&p).await;
        pass(3_000).await;
        assert_eq!(bed.row(&p).unwrap().probes["m"], [Readiness, Liveness].into());
        assert_eq!(bed.verdict(&p, "c1", Readiness), Some(Success));
    });
}

/// Found by `cargo xtask conform`: a pod that ended while the place changed hands left its row, and its journal line, for ever.
#[test]
fn rows_of_the_one_before_end_with_their_pods() {
    let journal = Arc::new(MemoryJournal::default());
    let kept = journal.clone();
    testing::run(1, |kernel| async move {
        let mut bed = Bed::with(kernel.clone(), config(&kernel), Some(kept.clone()));
        let pods = ["stopped", "gone", "stays"].map(both);
        for (pod, id) in pods.iter().zip(["c1", "c2", "c3"]) {
            bed.show(pod, vec![running("m", id, bed.wall(), true)]);
            bed.start(pod).await;
        }
        pass(2_500).await;
        bed.replace(Some(kept));
        bed.stop(&pods[0], false).await;
        assert!(bed.row(&pods[0]).is_none());
        let known = std::collections::BTreeSet::from(["stays".into()]);
        bed.wiring.ask(contract::probe::RetainProbes { known }).await.unwrap();
        assert!(bed.row(&pods[1]).is_none());
        assert_eq!(bed.verdict(&pods[2], "c3", Readiness), Some(Success), "it is told of this one yet");
        pass(100).await;
    });
    assert_eq!(journal.keys("").unwrap(), ["probe/c3"]);
}

#[test]
fn a_probe_on_hold_stays_on_hold_over_a_restart() {
    with_bed(async |bed| {
        let p = both("u1");
        bed.refuse(81, "refused");
        bed.runs(&p).await;
        pass(4_100).await;
        assert_eq!(bed.verdict(&p, "c1", Liveness), Some(Failure));
        let told = bed.messages().len();
        bed.manager.kill();
        pass(20_000).await;
        assert_eq!(bed.verdict(&p, "c1", Liveness), Some(Failure));
        assert_eq!(bed.messages().len(), told);
    });
}

#[test]
fn a_stopped_pod_does_not_come_back_with_a_restart() {
    with_bed(async |bed| {
        let p = both("u1");
        bed.runs(&p).await;
        pass(100).await;
        bed.stop(&p, false).await;
        bed.manager.kill();
        let before = bed.net_count();
        pass(10_000).await;
        assert!(bed.row(&p).is_none());
        assert_eq!(bed.net_count(), before);
    });
}

#[test]
fn a_probe_that_ended_does_not_come_back_with_a_restart() {
    with_bed(async |bed| {
        let p = both("u1");
        bed.runs(&p).await;
        pass(100).await;
        bed.stop(&p, true).await;
        bed.manager.kill();
        pass(100).await;
        assert_eq!(bed.row(&p).unwrap().probes["m"], [Readiness].into());
    });
}

#[test]
fn every_fault_point_survives_panic_kill_and_stall() {
    let points = ["probe.start", "probe.tick", "probe.begin", "probe.end", "probe.finish", "probe.stop"];
    for point in points {
        for fault in ["panic", "kill", "stall(3s)"] {
            testing::run(3, |kernel| async move {
                let bed = Bed::new(kernel);
                bed.kernel.faults().enable();
                let gone = both("gone");
                bed.start(&gone).await;
                bed.kernel.faults().add_text(&format!("probe-manager: {fault}@{point}#1")).unwrap();
                let pods: Vec<_> = (0..20).map(|i| both(&format!("u{i}"))).collect();
                for p in &pods {
                    bed.show(p, vec![running("m", "c1", bed.wall(), true)]);
                    let start = contract::probe::StartProbes { pod: p.clone() };
                    // The worker repeats the request with its next sync.
                    while bed.wiring.ask(start.clone()).await.is_err() {
                        pass(10).await;
                    }
                }
                let stop = contract::probe::StopProbes { uid: model::pod::uid(&gone), keep_readiness: false };
                while bed.wiring.ask(stop.clone()).await.is_err() {
                    pass(10).await;
                }
                pass(10_000).await;
                let struck = bed.kernel.faults().log();
                assert_eq!(struck.len(), 1, "{fault}@{point} was not struck");
                for p in &pods {
                    assert_eq!(bed.verdict(p, "c1", Readiness), Some(Success), "{fault}@{point}");
                    assert_eq!(bed.verdict(p, "c1", Liveness), Some(Success), "{fault}@{point}");
                }
                assert!(bed.row(&gone).is_none(), "{fault}@{point}");
                let before = bed.net_count();
                pass(4_100).await;
                assert!(bed.net_count() >= before + 2 * 2 * pods.len(), "{fault}@{point}: it goes on");
            });
        }
    }
}
