//! What outlives the daemon.

use std::time::Duration;

use contract::pod_worker::WorkerPhase;
use contract::status::StatusEntry;
use fakes::MemoryJournal;
use model::Timestamp;
use model::core::Pod;
use model::pod;
use std::sync::Arc;

use super::rig::{condition, exit_code, status, with_rig, worker};

#[test]
fn a_restart_of_the_daemon_alone_writes_nothing_for_pods_that_go_on() {
    with_rig(|rig| async move {
        let pods = rig.ready(10).await;
        let before: Vec<_> = (0..10).map(|n| rig.told(&format!("p{n}"))).collect();
        tokio::time::sleep(Duration::from_secs(3600)).await;
        let rig = rig.restart().await;
        rig.work().await;
        for p in &pods {
            rig.worker(p, WorkerPhase::Syncing);
            rig.set(p, status("Ready")).await;
        }
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(rig.requests(), Vec::<String>::new());
        assert_eq!((0..10).map(|n| rig.told(&format!("p{n}"))).collect::<Vec<_>>(), before);
    });
}

#[test]
fn a_start_time_that_was_not_known_at_first_stays_the_apis() {
    with_rig(|rig| async move {
        let p = rig.syncing("p").await;
        rig.says(&p, "Ready").await;
        let before = rig.told("p");
        tokio::time::sleep(Duration::from_secs(3600)).await;
        let rig = rig.restart().await;
        rig.work().await;
        // As for a static pod, or one from the pod store: the worker has no status of the API to go on from.
        let mut bare = (*p).clone();
        bare.status = None;
        let set = contract::status::SetPodStatus { pod: Arc::new(bare), status: status("Ready").into() };
        rig.worker(&p, WorkerPhase::Syncing);
        rig.wiring.ask(set).await.unwrap();
        rig.work().await;
        assert_eq!((rig.requests(), rig.told("p")), (Vec::new(), before.clone()));
        rig.says(&p, "Running").await;
        let after = rig.told("p");
        assert_eq!((after.start_time, condition(&rig.told("p"), "Ready")), (before.start_time, "False".to_owned()));
    });
}

#[test]
fn an_exit_code_that_nobody_took_outlives_the_daemon() {
    with_rig(|rig| async move {
        let p = rig.syncing("p").await;
        rig.says(&p, "Running").await;
        rig.api.unplug();
        rig.worker(&p, WorkerPhase::Terminated);
        rig.set(&p, status("Failed 42")).await;
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert_eq!(rig.lines(), [format!("status/{}", p.metadata.uid.as_deref().unwrap())]);

        let rig = rig.restart().await;
        tokio::time::sleep(Duration::from_secs(30)).await;
        let uid = pod::uid(&p);
        assert_eq!(
            exit_code(&rig.wiring.board::<StatusEntry>().get(&uid).expect("taken over").status),
            Some(42),
            "workers go on from it"
        );
        rig.api.calm();
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(exit_code(&rig.told("p")), None, "not before the worker has looked");
        rig.wiring.put(uid, worker(WorkerPhase::Terminated, Timestamp(1)));
        rig.work().await;
        let told = rig.told("p");
        assert_eq!((told.phase.as_deref(), exit_code(&told)), (Some("Failed"), Some(42)));
        assert_eq!(rig.api.requests_of("PATCH", "").iter().filter(|r| r.failure.is_none()).count(), 1);
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert!(rig.lines().is_empty(), "taken, so no line is kept");
    });
}

#[test]
fn a_line_whose_pod_is_gone_is_removed() {
    with_rig(|rig| async move {
        let p = rig.create("p").await;
        rig.worker(&p, WorkerPhase::Terminated);
        rig.api.unplug();
        rig.set(&p, status("Failed 42")).await;
        tokio::time::sleep(Duration::from_secs(3)).await;
        let rig = rig.restart().await;
        rig.api.vanish::<Pod>(Some("ns"), "p");
        rig.api.calm();
        rig.work().await;
        assert_eq!(rig.lines().len(), 1, "nobody has said yet that the pod is gone");
        // Housekeeping, once all sources have spoken.
        let known = std::collections::BTreeSet::new();
        let retain = contract::status::RetainPodStatuses { known };
        rig.wiring.ask(retain).await.unwrap();
        rig.work().await;
        assert!(rig.lines().is_empty());
        assert!(rig.api.requests_of("PATCH", "").is_empty());
    });
}

#[test]
fn an_hour_without_the_server_ends_in_one_status_per_pod() {
    with_rig(|rig| async move {
        let pods = rig.ready(20).await;
        rig.api.unplug();
        for step in ["Running", "Ready", "Running"] {
            for p in &pods {
                rig.set(p, status(step)).await;
            }
            tokio::time::sleep(Duration::from_secs(1200)).await;
        }
        let tries = rig.api.requests().len();
        assert!(tries < 20 * 3600 / 5, "{tries}");
        rig.api.calm();
        rig.api.forget_requests();
        tokio::time::sleep(Duration::from_secs(11)).await;
        assert_eq!(rig.requests().len(), 20);
        assert!((0..20).all(|n| condition(&rig.told(&format!("p{n}")), "Ready") == "False"));
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert!(rig.lines().is_empty());
    });
}

#[test]
fn a_journal_that_cannot_be_written_stops_nothing() {
    journal_fails(MemoryJournal::set_broken);
}

#[test]
fn a_write_that_panicked_is_not_a_write() {
    journal_fails(MemoryJournal::set_panics);
}

fn journal_fails(fail: fn(&MemoryJournal, bool)) {
    with_rig(|rig| async move {
        let p = rig.syncing("p").await;
        fail(&rig.journal, true);
        rig.api.unplug();
        rig.set(&p, status("Ready")).await;
        tokio::time::sleep(Duration::from_secs(30)).await;
        fail(&rig.journal, false);
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert_eq!(rig.lines().len(), 1, "written when it can be");
        rig.api.calm();
        tokio::time::sleep(Duration::from_secs(11)).await;
        assert_eq!(condition(&rig.told("p"), "Ready"), "True");
    });
}

#[test]
fn a_static_pod_whose_probes_were_not_tried_yet_does_not_flap() {
    with_rig(|rig| async move {
        let p = rig.syncing("p").await;
        rig.says(&p, "Ready").await;
        let rig = rig.restart().await;
        rig.work().await;
        rig.worker(&p, WorkerPhase::Syncing);
        rig.set(&p, status("Running")).await;
        tokio::time::sleep(Duration::from_secs(15)).await;
        rig.says(&p, "Ready").await;
        assert_eq!(rig.requests(), Vec::<String>::new());
        rig.says(&p, "Running").await;
        assert_eq!(condition(&rig.told("p"), "Ready"), "False", "a verdict of this life is told at once");
    });
}

#[test]
fn a_pod_that_is_truly_unready_after_a_restart_is_told_so_within_half_a_minute() {
    with_rig(|rig| async move {
        let p = rig.syncing("p").await;
        rig.says(&p, "Ready").await;
        let rig = rig.restart().await;
        rig.work().await;
        rig.worker(&p, WorkerPhase::Syncing);
        rig.set(&p, status("Running")).await;
        tokio::time::sleep(Duration::from_secs(30)).await;
        assert_eq!(condition(&rig.told("p"), "Ready"), "False");
    });
}
