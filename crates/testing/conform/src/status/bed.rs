//! Pods and statuses as workers hand them in.

use std::sync::Arc;

use contract::StatusManager;
use contract::status::{RetainPodStatuses, SetPodStatus, StatusEntry, TerminatePod};
use model::core::{Pod, PodStatus};
use serde_json::{Value, json};

use crate::case::Case;
use crate::outcome::{Broken, Outcome, demand};
use crate::stage::Stage;

/// A stage for statuses; the role asks nobody and reads nothing.
pub(super) struct Bed {
    pub(super) stage: Stage<StatusManager>,
}

impl Bed {
    /// A pod with one container `app` whose UID begins with the case's.
    pub(super) fn pod(&self, word: &str, policy: &str) -> Arc<Pod> {
        let spec = json!({"restartPolicy": policy, "containers": [{"name": "app"}]});
        let metadata = json!({"name": "p", "namespace": "ns", "generation": 3});
        Arc::new(fakes::pod(&self.stage.uid(word), json!({"metadata": metadata, "spec": spec})))
    }

    pub(super) async fn set(&self, pod: &Arc<Pod>, status: PodStatus) -> Outcome {
        self.stage.ask(SetPodStatus { pod: pod.clone(), status: status.into() }).await
    }

    pub(super) async fn terminate(&self, pod: &Arc<Pod>) -> Outcome {
        self.stage.ask(TerminatePod { pod: pod.clone() }).await
    }

    pub(super) async fn retain(&self, pods: &[&Pod]) -> Outcome {
        let known = pods.iter().map(|p| model::pod::uid(p)).collect();
        self.stage.ask(RetainPodStatuses { known }).await
    }

    pub(super) fn found(&self, pod: &Pod) -> Option<Arc<StatusEntry>> {
        self.stage.wiring().board::<StatusEntry>().get(&model::pod::uid(pod))
    }

    pub(super) fn row(&self, pod: &Pod) -> Outcome<Arc<StatusEntry>> {
        self.found(pod).ok_or_else(|| Broken("the pod has no row".to_owned()))
    }

    /// Stores it, and gives the row.
    pub(super) async fn stored(&self, pod: &Arc<Pod>, status: PodStatus) -> Outcome<Arc<StatusEntry>> {
        self.set(pod, status).await?;
        self.row(pod)
    }

    /// A second later, in whole seconds.
    pub(super) async fn later(&self) {
        tokio::time::sleep(std::time::Duration::from_millis(1_100)).await;
    }

    /// Versions of a pod's rows since then grew, and never went back; answers how many rows there were.
    pub(super) fn versions_grew(&self, mark: usize, pod: &Pod, from: u64) -> Outcome<usize> {
        let mut last = from;
        let mut count = 0;
        for entry in self.stage.rows_since::<StatusEntry>(mark, pod)?.into_iter().flatten() {
            demand(entry.version > last, || format!("version {} came after {last}", entry.version))?;
            last = entry.version;
            count += 1;
        }
        Ok(count)
    }
}

/// A status with one container `app` in that state.
pub(super) fn status(phase: &str, ready: &str, ip: &str, state: Value) -> PodStatus {
    fakes::object(json!({"phase": phase, "podIP": ip,
        "conditions": [{"type": "Ready", "status": ready}, {"type": "ContainersReady", "status": ready}],
        "containerStatuses": [{"name": "app", "image": "i", "imageID": "", "restartCount": 0, "ready": ready == "True",
            "started": true, "containerID": "containerd://c1", "lastState": {}, "state": state}]}))
}

pub(super) fn running(ip: &str) -> PodStatus {
    status("Running", "True", ip, json!({"running": {"startedAt": "2026-01-01T00:00:00Z"}}))
}

pub(super) fn unready(ip: &str) -> PodStatus {
    status("Running", "False", ip, json!({"running": {"startedAt": "2026-01-01T00:00:00Z"}}))
}

pub(super) fn ended(exit_code: i32) -> PodStatus {
    let phase = if exit_code == 0 { "Succeeded" } else { "Failed" };
    status(phase, "False", "10.0.0.1", json!({"terminated": {"exitCode": exit_code}}))
}

/// The pod came from a file of the node.
pub(super) fn as_static(pod: &Arc<Pod>) -> Arc<Pod> {
    let mut pod = (**pod).clone();
    pod.metadata.annotations.get_or_insert_default().insert(model::pod::CONFIG_SOURCE.into(), "file".into());
    Arc::new(pod)
}

/// When a condition of a status turned last.
pub(super) fn turned(status: &PodStatus, condition: &str) -> Option<String> {
    let condition = status.conditions.iter().flatten().find(|c| c.type_ == condition)?;
    serde_json::to_string(condition.last_transition_time.as_ref()?).ok()
}

/// A case that begins with a manager that knows nothing.
pub(super) fn case<F, Fut>(name: &'static str, source: &'static str, rule: &'static str, play: F) -> Case<StatusManager>
where
    F: Fn(Bed) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Outcome> + 'static,
{
    Case::begun(name, source, rule, |stage| Bed { stage }, play)
}
