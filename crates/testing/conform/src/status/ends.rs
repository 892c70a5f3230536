//! Pods end.

use contract::StatusManager;
use contract::status::StatusEntry;
use model::core::{Pod, PodStatus};
use serde_json::json;

use super::bed::{Bed, as_static, case, ended, running, status};
use crate::case::Case;
use crate::outcome::{Outcome, demand};

pub(super) fn cases() -> Vec<Case<StatusManager>> {
    vec![
        case("terminate", "pod-lifecycle 9.9", "TerminatePod ends containers that are open with 137, a phase that is open with Failed, and marks the status finished", terminate).core(),
        case("terminate-keeps-an-end", "pod-lifecycle 9.9", "what had ended by itself keeps its exit code and its phase", terminate_keeps_an_end).core(),
        case("terminate-twice", "contract", "TerminatePod twice is one change", terminate_twice).core(),
        case("terminate-without-a-row", "pod-lifecycle 9.9", "without a row the API's status is ended", terminate_without_a_row),
        case("never-initialised", "pod-lifecycle 9.9", "of a pod whose init containers never got through, containers that never ran stay waiting", never_initialised),
        case("finished-is-sticky", "pod-lifecycle 9.9", "a status that comes after the end is stored and stays finished", finished_is_sticky).core(),
        case("static-pod-lives-again", "pod-lifecycle 9.9", "a static pod may live again under its UID: it is not finished then", static_pod_lives_again),
        case("static-pod-has-no-end", "pod-lifecycle 15, 90", "no phase is forced on a static pod that is stopped while it runs", static_pod_has_no_end),
        case("retain", "contract", "RetainPodStatuses takes the rows of all other pods away, and of no pod that is known", retain).core(),
        case("comes-back", "contract", "the version of a pod that comes back goes on above the one it had", comes_back),
    ]
}

fn exit_codes(row: &StatusEntry) -> Vec<Option<i32>> {
    let of = |s: &model::core::ContainerStatus| s.state.as_ref()?.terminated.as_ref().map(|t| t.exit_code);
    row.status.container_statuses.iter().flatten().map(of).collect()
}

async fn terminate(bed: Bed) -> Outcome {
    let pod = bed.pod("a", "Always");
    let before = bed.stored(&pod, running("10.0.0.1")).await?.version;
    bed.terminate(&pod).await?;
    let row = bed.row(&pod)?;
    let said = (row.version, row.finished, row.status.phase.as_deref(), exit_codes(&row));
    let wanted = (before + 1, true, Some("Failed"), vec![Some(137)]);
    demand(said == wanted, || format!("version, finished, phase and exit codes are {said:?}, not {wanted:?}"))?;
    let text = serde_json::to_string(&*row.status).unwrap_or_default();
    demand(text.contains("ContainerStatusUnknown"), || format!("the reason is not ContainerStatusUnknown: {text}"))
}

async fn terminate_keeps_an_end(bed: Bed) -> Outcome {
    for (exit_code, phase) in [(0, "Succeeded"), (7, "Failed")] {
        let pod = bed.pod(phase, "Never");
        bed.set(&pod, ended(exit_code)).await?;
        bed.terminate(&pod).await?;
        let row = bed.row(&pod)?;
        let said = (row.finished, row.status.phase.as_deref(), exit_codes(&row));
        demand(said == (true, Some(phase), vec![Some(exit_code)]), || format!("{phase} is {said:?}"))?;
    }
    Ok(())
}

async fn terminate_twice(bed: Bed) -> Outcome {
    let pod = bed.pod("a", "Always");
    bed.set(&pod, running("10.0.0.1")).await?;
    bed.terminate(&pod).await?;
    let first = bed.row(&pod)?;
    bed.later().await;
    bed.terminate(&pod).await?;
    demand(*bed.row(&pod)? == *first, || format!("the second one changed it to {:?}", bed.found(&pod)))
}

async fn terminate_without_a_row(bed: Bed) -> Outcome {
    let mut pod = (*bed.pod("a", "Never")).clone();
    pod.status = Some(ended(0));
    let pod = pod.into();
    bed.terminate(&pod).await?;
    let row = bed.row(&pod)?;
    let said = (row.finished, row.status.phase.as_deref());
    demand(said == (true, Some("Succeeded")), || format!("it is {said:?}"))
}

async fn never_initialised(bed: Bed) -> Outcome {
    let spec =
        json!({"restartPolicy": "Always", "containers": [{"name": "app"}], "initContainers": [{"name": "init"}]});
    let metadata = json!({"name": "p", "namespace": "ns"});
    let pod: Pod = fakes::pod(&bed.stage.uid("a"), json!({"metadata": metadata, "spec": spec}));
    let mut status: PodStatus =
        status("Pending", "False", "10.0.0.1", json!({"waiting": {"reason": "PodInitializing"}}));
    status.init_container_statuses = Some(vec![fakes::object(json!({"name": "init", "image": "i", "imageID": "",
        "restartCount": 0, "ready": false, "lastState": {}, "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}))]);
    let pod = pod.into();
    bed.set(&pod, status).await?;
    bed.terminate(&pod).await?;
    let row = bed.row(&pod)?;
    demand(exit_codes(&row) == [None], || format!("a container that never ran ended: {:?}", exit_codes(&row)))?;
    let init = row.status.init_container_statuses.iter().flatten().next().and_then(|s| s.state.clone());
    let ended = init.as_ref().and_then(|s| s.terminated.as_ref()).map(|t| t.exit_code);
    demand(ended == Some(137), || format!("the init container that ran is {init:?}"))
}

async fn finished_is_sticky(bed: Bed) -> Outcome {
    let pod = bed.pod("a", "Always");
    bed.set(&pod, running("10.0.0.1")).await?;
    bed.terminate(&pod).await?;
    let mut late = (*bed.row(&pod)?.status).clone();
    late.pod_ip = Some("10.0.0.2".into());
    let row = bed.stored(&pod, late).await?;
    let said = (row.finished, row.status.pod_ip.as_deref());
    demand(said == (true, Some("10.0.0.2")), || format!("finished and address are {said:?}"))
}

async fn static_pod_lives_again(bed: Bed) -> Outcome {
    let pod = as_static(&bed.pod("a", "Never"));
    bed.set(&pod, ended(0)).await?;
    bed.terminate(&pod).await?;
    let before = bed.row(&pod)?;
    let row = bed.stored(&pod, running("10.0.0.9")).await?;
    demand(!row.finished && row.version > before.version, || format!("after {before:?} it is {row:?}"))
}

async fn static_pod_has_no_end(bed: Bed) -> Outcome {
    let pod = as_static(&bed.pod("a", "Always"));
    bed.set(&pod, running("10.0.0.1")).await?;
    bed.terminate(&pod).await?;
    let row = bed.row(&pod)?;
    let said = (row.finished, row.status.phase.as_deref());
    demand(said == (true, Some("Running")), || format!("finished and phase are {said:?}"))
}

async fn retain(bed: Bed) -> Outcome {
    let (stays, goes) = (bed.pod("stays", "Always"), bed.pod("goes", "Always"));
    let before = bed.stored(&stays, running("10.0.0.1")).await?;
    bed.set(&goes, running("10.0.0.2")).await?;
    for _ in 0..2 {
        bed.retain(&[&stays]).await?;
    }
    demand(bed.found(&goes).is_none(), || "a pod that is not known has a row".to_owned())?;
    demand(*bed.row(&stays)? == *before, || "the row of a pod that is known has changed".to_owned())
}

async fn comes_back(bed: Bed) -> Outcome {
    let pod = bed.pod("a", "Always");
    for n in 1..=4 {
        bed.set(&pod, running(&format!("10.0.0.{n}"))).await?;
    }
    let before = bed.row(&pod)?.version;
    bed.retain(&[]).await?;
    let row = bed.stored(&pod, running("10.0.0.1")).await?;
    demand(row.version > before, || format!("version {} after {before}", row.version))
}
