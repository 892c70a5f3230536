//! The actors on a paused clock.

mod faults;
mod pod_sync;
mod restart;
mod rig;
mod sync;

use std::collections::BTreeSet;
use std::sync::Arc;

use actor::{ActorRef, AskError, Kernel, testing};
use contract::Wiring;
use contract::status::{RetainPodStatuses, SetPodStatus, StatusEntry, TerminatePod};
use model::PodUid;
use model::core::{Pod, PodStatus};
use serde_json::json;

use crate::StatusManager;

fn pod(uid: &str) -> Arc<Pod> {
    let spec = json!({"restartPolicy": "Always", "containers": [{"name": "app"}]});
    Arc::new(fakes::pod(uid, json!({"metadata": {"name": "p", "namespace": "ns"}, "spec": spec})))
}

fn status(ip: &str) -> PodStatus {
    fakes::object(json!({"phase": "Running", "podIP": ip,
        "conditions": [{"type": "Ready", "status": "False"}, {"type": "ContainersReady", "status": "False"}],
        "containerStatuses": [{"name": "app", "image": "i", "imageID": "", "restartCount": 0, "ready": false,
            "started": false, "containerID": "containerd://c1", "lastState": {},
            "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}]}))
}

fn spawn(kernel: &Kernel) -> (Wiring, ActorRef<StatusManager>) {
    let wiring = Wiring::default();
    let manager = fakes::start(kernel, &wiring, StatusManager::new);
    (wiring, manager)
}

async fn set(wiring: &Wiring, uid: &str, ip: &str) -> Result<(), AskError> {
    wiring.ask(SetPodStatus { pod: pod(uid), status: status(ip).into() }).await
}

fn row(wiring: &Wiring, uid: &str) -> Arc<StatusEntry> {
    wiring.board::<StatusEntry>().get(&PodUid::from(uid)).expect("the pod has a status")
}

#[test]
fn an_answered_status_is_on_the_board() {
    testing::run(1, |kernel| async move {
        let (wiring, _manager) = spawn(&kernel);
        set(&wiring, "u1", "10.0.0.1").await.unwrap();
        assert_eq!(row(&wiring, "u1").version, 1);
        assert_eq!(row(&wiring, "u1").status.pod_ip.as_deref(), Some("10.0.0.1"));
        assert_eq!(row(&wiring, "u1").changed_at.0, kernel.clock().unix_nanos());
    });
}

#[test]
fn readers_wake_on_a_change_and_sleep_through_a_repetition() {
    testing::run(1, |kernel| async move {
        let (wiring, _manager) = spawn(&kernel);
        set(&wiring, "u1", "10.0.0.1").await.unwrap();
        let mut mine = wiring.board::<StatusEntry>().subscribe(PodUid::from("u1"));
        mine.borrow_and_update();
        set(&wiring, "u1", "10.0.0.1").await.unwrap();
        set(&wiring, "u2", "10.0.0.2").await.unwrap();
        assert!(!mine.has_changed().unwrap());
        set(&wiring, "u1", "10.0.0.3").await.unwrap();
        assert!(mine.has_changed().unwrap());
    });
}

#[test]
fn every_message_of_the_contract_is_served() {
    testing::run(1, |kernel| async move {
        let (wiring, _manager) = spawn(&kernel);
        set(&wiring, "u1", "10.0.0.1").await.unwrap();
        wiring.ask(TerminatePod { pod: pod("u1") }).await.unwrap();
        assert!(row(&wiring, "u1").finished);
        set(&wiring, "u2", "10.0.0.2").await.unwrap();
        let known = BTreeSet::from([PodUid::from("u2")]);
        wiring.ask(RetainPodStatuses { known }).await.unwrap();
        assert_eq!(wiring.board::<StatusEntry>().snapshot().into_keys().collect::<Vec<_>>(), [PodUid::from("u2")]);
    });
}

#[test]
fn a_crash_loses_no_status_and_no_version() {
    testing::run(1, |kernel| async move {
        let (wiring, manager) = spawn(&kernel);
        for ip in ["10.0.0.1", "10.0.0.2", "10.0.0.3"] {
            set(&wiring, "u1", ip).await.unwrap();
        }
        let before = row(&wiring, "u1");
        manager.kill();
        testing::settle().await;
        assert_eq!(row(&wiring, "u1"), before, "readers notice nothing");
        set(&wiring, "u1", "10.0.0.3").await.unwrap();
        assert_eq!(row(&wiring, "u1"), before, "the repetition is known as one");
        set(&wiring, "u1", "10.0.0.4").await.unwrap();
        assert_eq!(row(&wiring, "u1").version, before.version + 1);
        assert_eq!(row(&wiring, "u1").status.start_time, before.status.start_time);
        assert_eq!(manager.info().generation, 1);
    });
}

#[test]
fn a_crash_at_each_fault_point_leaves_board_and_memory_agreeing() {
    for point in ["decided", "posted"] {
        testing::run(1, |kernel| async move {
            let (wiring, _manager) = spawn(&kernel);
            set(&wiring, "u1", "10.0.0.1").await.unwrap();
            kernel.faults().enable();
            kernel.faults().add_text(&format!("status-manager: panic@{point}#1")).unwrap();
            assert_eq!(set(&wiring, "u1", "10.0.0.2").await, Err(AskError::Crashed), "{point}");
            kernel.faults().clear();
            set(&wiring, "u1", "10.0.0.2").await.unwrap();
            let entry = row(&wiring, "u1");
            assert_eq!(entry.version, 2, "{point}: handed in twice, changed once");
            assert_eq!(entry.status.pod_ip.as_deref(), Some("10.0.0.2"), "{point}");
        });
    }
}

#[test]
fn a_forgotten_pod_is_gone_even_when_the_crash_hit_half_way() {
    testing::run(1, |kernel| async move {
        let (wiring, _manager) = spawn(&kernel);
        for uid in ["u1", "u2", "u3"] {
            set(&wiring, uid, "10.0.0.1").await.unwrap();
        }
        kernel.faults().enable();
        kernel.faults().add_text("status-manager: panic@forgot#2").unwrap();
        let retain = || wiring.ask(RetainPodStatuses { known: BTreeSet::new() });
        assert_eq!(retain().await, Err(AskError::Crashed));
        kernel.faults().clear();
        retain().await.unwrap();
        assert!(wiring.board::<StatusEntry>().snapshot().is_empty());
    });
}

#[test]
fn an_illegal_transition_changes_nothing_on_the_board() {
    testing::run(1, |kernel| async move {
        let (wiring, _manager) = spawn(&kernel);
        let mut never = (*pod("u1")).clone();
        never.spec.as_mut().unwrap().restart_policy = Some("Never".into());
        let never = Arc::new(never);
        let send = |status| wiring.ask(SetPodStatus { pod: never.clone(), status: Arc::new(status) });
        let mut ended = status("10.0.0.1");
        let state = json!({"terminated": {"exitCode": 0}});
        ended.container_statuses.as_mut().unwrap()[0].state = serde_json::from_value(state).unwrap();
        send(ended).await.unwrap();
        let before = row(&wiring, "u1");
        send(status("10.0.0.1")).await.unwrap();
        assert_eq!(row(&wiring, "u1"), before);
    });
}
