//! The actors on a paused clock.

mod faults;
mod lanes;
mod restart;
mod rig;
mod sync;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use actor::{ActorRef, AskError, Kernel, Spec, testing};
use contract::status::{
    RetainPodStatuses, SetContainerReadiness, SetContainerStartup, SetPodStatus, StatusEntry, StatusHandle,
    TerminatePod,
};
use model::core::{Pod, PodStatus};
use model::{ContainerId, PodUid};
use serde_json::json;

use crate::StatusManager;

const SECOND: Duration = Duration::from_secs(1);

fn pod(uid: &str) -> Arc<Pod> {
    let value = json!({"metadata": {"name": "p", "namespace": "ns", "uid": uid},
        "spec": {"restartPolicy": "Always", "containers": [{"name": "app"}]}});
    Arc::new(serde_json::from_value(value).unwrap())
}

fn status(ip: &str) -> PodStatus {
    serde_json::from_value(json!({"phase": "Running", "podIP": ip,
        "conditions": [{"type": "Ready", "status": "False"}, {"type": "ContainersReady", "status": "False"}],
        "containerStatuses": [{"name": "app", "image": "i", "imageID": "", "restartCount": 0, "ready": false,
            "started": false, "containerID": "containerd://c1", "lastState": {},
            "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}]}))
    .unwrap()
}

fn spawn(kernel: &Kernel) -> (StatusHandle, ActorRef<StatusManager>) {
    let handle = StatusHandle::default();
    let view = handle.view.clone();
    let manager = kernel.spawn(Spec::new("status-manager"), move |_| StatusManager::new(view.clone()));
    handle.connect(&manager);
    (handle, manager)
}

async fn set(handle: &StatusHandle, uid: &str, ip: &str) -> Result<(), AskError> {
    handle.set_pod_status.ask(SetPodStatus { pod: pod(uid), status: status(ip) }, SECOND).await
}

fn row(handle: &StatusHandle, uid: &str) -> Arc<StatusEntry> {
    handle.view.get(&PodUid::from(uid)).expect("the pod has a status")
}

#[test]
fn an_answered_status_is_on_the_board() {
    testing::run(1, |kernel| async move {
        let (handle, _manager) = spawn(&kernel);
        set(&handle, "u1", "10.0.0.1").await.unwrap();
        assert_eq!(row(&handle, "u1").version, 1);
        assert_eq!(row(&handle, "u1").status.pod_ip.as_deref(), Some("10.0.0.1"));
        assert_eq!(row(&handle, "u1").changed_at.0, kernel.clock().unix_nanos());
    });
}

#[test]
fn readers_wake_on_a_change_and_sleep_through_a_repetition() {
    testing::run(1, |kernel| async move {
        let (handle, _manager) = spawn(&kernel);
        set(&handle, "u1", "10.0.0.1").await.unwrap();
        let mut mine = handle.view.subscribe(PodUid::from("u1"));
        mine.borrow_and_update();
        set(&handle, "u1", "10.0.0.1").await.unwrap();
        set(&handle, "u2", "10.0.0.2").await.unwrap();
        assert!(!mine.has_changed().unwrap());
        set(&handle, "u1", "10.0.0.3").await.unwrap();
        assert!(mine.has_changed().unwrap());
    });
}

#[test]
fn every_message_of_the_contract_is_served() {
    testing::run(1, |kernel| async move {
        let (handle, _manager) = spawn(&kernel);
        set(&handle, "u1", "10.0.0.1").await.unwrap();
        let container = ContainerId::from("c1");
        let startup = SetContainerStartup { pod: pod("u1"), container: container.clone(), started: true };
        handle.set_container_startup.ask(startup, SECOND).await.unwrap();
        let readiness = SetContainerReadiness { pod: pod("u1"), container, ready: true };
        handle.set_container_readiness.ask(readiness, SECOND).await.unwrap();
        let entry = row(&handle, "u1");
        let app = &entry.status.container_statuses.as_ref().unwrap()[0];
        assert_eq!((entry.version, app.started, app.ready), (3, Some(true), true));
        assert!(entry.status.conditions.iter().flatten().all(|c| c.status == "True"));

        handle.terminate_pod.ask(TerminatePod { pod: pod("u1") }, SECOND).await.unwrap();
        assert!(row(&handle, "u1").finished);
        set(&handle, "u2", "10.0.0.2").await.unwrap();
        let known = BTreeSet::from([PodUid::from("u2")]);
        handle.retain_pod_statuses.ask(RetainPodStatuses { known }, SECOND).await.unwrap();
        assert_eq!(handle.view.snapshot().into_keys().collect::<Vec<_>>(), [PodUid::from("u2")]);
    });
}

#[test]
fn a_crash_loses_no_status_and_no_version() {
    testing::run(1, |kernel| async move {
        let (handle, manager) = spawn(&kernel);
        for ip in ["10.0.0.1", "10.0.0.2", "10.0.0.3"] {
            set(&handle, "u1", ip).await.unwrap();
        }
        let before = row(&handle, "u1");
        manager.kill();
        testing::settle().await;
        assert_eq!(row(&handle, "u1"), before, "readers notice nothing");
        set(&handle, "u1", "10.0.0.3").await.unwrap();
        assert_eq!(row(&handle, "u1"), before, "the repetition is known as one");
        set(&handle, "u1", "10.0.0.4").await.unwrap();
        assert_eq!(row(&handle, "u1").version, before.version + 1);
        assert_eq!(row(&handle, "u1").status.start_time, before.status.start_time);
        assert_eq!(manager.info().generation, 1);
    });
}

#[test]
fn a_crash_at_each_fault_point_leaves_board_and_memory_agreeing() {
    for point in ["decided", "posted"] {
        testing::run(1, |kernel| async move {
            let (handle, _manager) = spawn(&kernel);
            set(&handle, "u1", "10.0.0.1").await.unwrap();
            kernel.faults().enable();
            kernel.faults().add_text(&format!("status-manager: panic@{point}#1")).unwrap();
            assert_eq!(set(&handle, "u1", "10.0.0.2").await, Err(AskError::Crashed), "{point}");
            kernel.faults().clear();
            set(&handle, "u1", "10.0.0.2").await.unwrap();
            let entry = row(&handle, "u1");
            assert_eq!(entry.version, 2, "{point}: handed in twice, changed once");
            assert_eq!(entry.status.pod_ip.as_deref(), Some("10.0.0.2"), "{point}");
        });
    }
}

#[test]
fn a_forgotten_pod_is_gone_even_when_the_crash_hit_half_way() {
    testing::run(1, |kernel| async move {
        let (handle, _manager) = spawn(&kernel);
        for uid in ["u1", "u2", "u3"] {
            set(&handle, uid, "10.0.0.1").await.unwrap();
        }
        kernel.faults().enable();
        kernel.faults().add_text("status-manager: panic@forgot#2").unwrap();
        let retain = || handle.retain_pod_statuses.ask(RetainPodStatuses { known: BTreeSet::new() }, SECOND);
        assert_eq!(retain().await, Err(AskError::Crashed));
        kernel.faults().clear();
        retain().await.unwrap();
        assert!(handle.view.snapshot().is_empty());
    });
}

#[test]
fn an_illegal_transition_changes_nothing_on_the_board() {
    testing::run(1, |kernel| async move {
        let (handle, _manager) = spawn(&kernel);
        let mut never = (*pod("u1")).clone();
        never.spec.as_mut().unwrap().restart_policy = Some("Never".into());
        let never = Arc::new(never);
        let send = |status| handle.set_pod_status.ask(SetPodStatus { pod: never.clone(), status }, SECOND);
        let mut ended = status("10.0.0.1");
        let state = json!({"terminated": {"exitCode": 0}});
        ended.container_statuses.as_mut().unwrap()[0].state = serde_json::from_value(state).unwrap();
        send(ended).await.unwrap();
        let before = row(&handle, "u1");
        send(status("10.0.0.1")).await.unwrap();
        assert_eq!(row(&handle, "u1"), before);
    });
}
