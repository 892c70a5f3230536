//! Instances of containers come and go.

use contract::ProbeManager;
use model::probe::ProbeKind::{Liveness, Readiness, Startup};
use model::probe::ProbeVerdict::{Failure, Success, Unknown};
use serde_json::json;

use super::bed::{Bed, Reply, case, ended, exec, exec_with, one, running, seconds};
use crate::case::Case;
use crate::outcome::{Outcome, demand};
use crate::watch::until;

pub(super) fn cases() -> Vec<Case<ProbeManager>> {
    vec![
        case(
            "first-verdicts",
            "pod-lifecycle 8.1",
            "a new instance begins with readiness Failure, liveness Success, startup Unknown",
            first_verdicts,
        )
        .core(),
        case(
            "new-instance",
            "pod-lifecycle 8.2",
            "with a new instance the verdicts of the old one go, and probing begins anew",
            new_instance,
        )
        .core(),
        case(
            "new-instance-counts-anew",
            "contract",
            "failures of a former instance are not counted against the next",
            new_instance_counts_anew,
        ),
        case(
            "outcome-of-a-former-instance",
            "pod-lifecycle 8.2",
            "what comes of a probe of a former instance says nothing of the next",
            outcome_of_a_former_instance,
        ),
        case("new-delay", "pod-lifecycle 15, 76", "a new instance has its own initialDelaySeconds", new_delay),
        case(
            "stopped-instance",
            "pod-lifecycle 8.2",
            "an instance that ended is not ready and not probed; its probe waits for the next",
            stopped_instance,
        )
        .core(),
        case(
            "ended-for-good",
            "pod-lifecycle 8.2",
            "the probe of a container that will not run again ends, and its verdict goes",
            ended_for_good,
        ),
        case("pod-is-over", "pod-lifecycle 8.2", "probes of a pod that has succeeded or failed end", pod_is_over),
        case(
            "each-container-for-itself",
            "pod-lifecycle 8.1",
            "what one container's probes find says nothing of another's",
            each_container_for_itself,
        ),
    ]
}

async fn first_verdicts(bed: Bed) -> Outcome {
    bed.script("start", [Reply::Hangs]);
    let probes = json!({"startupProbe": exec("start"), "livenessProbe": exec("live"), "readinessProbe": exec("ready")});
    let pod = bed.pod("a", one(probes));
    bed.show(&pod, vec![running("m", "c1", bed.stage.now(), false)]);
    bed.start(&pod).await?;
    for (kind, verdict) in [(Readiness, Failure), (Liveness, Success), (Startup, Unknown)] {
        bed.turns(&pod, ("c1", kind), verdict, seconds(1.9)).await?;
    }
    Ok(())
}

async fn new_instance(bed: Bed) -> Outcome {
    bed.script("live", [Reply::Exits(1, "")]);
    let probes =
        json!({"livenessProbe": exec_with("live", json!({"failureThreshold": 1})), "readinessProbe": exec("ready")});
    let pod = bed.running_pod("a", probes).await?;
    bed.turns(&pod, ("c1", Liveness), Failure, seconds(2.5)).await?;
    bed.turns(&pod, ("c1", Readiness), Success, seconds(2.5)).await?;
    bed.script("live", [Reply::Exits(0, "")]);
    bed.script("ready", [Reply::Hangs]);
    let before = bed.count("live");
    bed.show(&pod, vec![running("m", "c2", bed.stage.now(), true)]);
    bed.turns(&pod, ("c2", Liveness), Success, seconds(1.9)).await?;
    bed.turns(&pod, ("c2", Readiness), Failure, seconds(1.9)).await?;
    bed.stands(&pod, ("c1", Liveness), None)?;
    bed.stands(&pod, ("c1", Readiness), None)?;
    until("the new instance is probed", seconds(1.9), || bed.count("live") > before).await?;
    let of = bed.ran("live").last().map(|(_, m)| m.container.to_string());
    demand(of.as_deref() == Some("c2"), || format!("the probe was of {of:?}"))
}

async fn new_instance_counts_anew(bed: Bed) -> Outcome {
    bed.script("live", [Reply::Exits(1, "")]);
    let probes = json!({"livenessProbe": exec_with("live", json!({"failureThreshold": 3}))});
    let pod = bed.running_pod("a", probes).await?;
    until("it failed twice", seconds(3.5), || bed.count("live") == 2).await?;
    bed.show(&pod, vec![running("m", "c2", bed.stage.now(), true)]);
    bed.turns(&pod, ("c2", Liveness), Failure, seconds(4.5)).await?;
    let of_the_new = bed.ran("live").iter().filter(|(_, m)| m.container.as_str() == "c2").count();
    demand(of_the_new == 3, || format!("{of_the_new} failures of the new instance were a verdict"))
}

async fn outcome_of_a_former_instance(bed: Bed) -> Outcome {
    bed.script("live", [Reply::Takes(seconds(1.2), 1), Reply::Exits(0, "")]);
    let probes = json!({"livenessProbe": exec_with("live", json!({"failureThreshold": 1, "timeoutSeconds": 5}))});
    let pod = bed.running_pod("a", probes).await?;
    until("it is probed", seconds(1.9), || bed.count("live") > 0).await?;
    bed.show(&pod, vec![running("m", "c2", bed.stage.now(), true)]);
    tokio::time::sleep(seconds(1.8)).await;
    for row in bed.rows_since(0, &pod)?.into_iter().flatten() {
        let is = row.verdict(&"c2".into(), Liveness);
        demand(is != Some(Failure), || "the new instance failed by a probe of the former one".to_owned())?;
    }
    bed.turns(&pod, ("c2", Liveness), Success, seconds(2.5)).await
}

async fn new_delay(bed: Bed) -> Outcome {
    let probes = json!({"livenessProbe": exec_with("live", json!({"initialDelaySeconds": 3}))});
    let pod = bed.running_pod("a", probes).await?;
    until("it is probed", seconds(5.5), || bed.count("live") > 0).await?;
    bed.show(&pod, vec![running("m", "c2", bed.stage.now(), true)]);
    let of_the_new = || bed.ran("live").iter().filter(|(_, m)| m.container.as_str() == "c2").count();
    tokio::time::sleep(seconds(1.8)).await;
    demand(of_the_new() == 0, || "it was probed before its own delay was over".to_owned())?;
    until("it is probed after its delay", seconds(2.6), || of_the_new() > 0).await
}

async fn stopped_instance(bed: Bed) -> Outcome {
    let pod = bed.running_pod("a", json!({"readinessProbe": exec("ready")})).await?;
    bed.turns(&pod, ("c1", Readiness), Success, seconds(2.5)).await?;
    bed.show(&pod, vec![ended("m", "c1", 1)]);
    bed.turns(&pod, ("c1", Readiness), Failure, seconds(1.9)).await?;
    let more = bed.count_in("ready", seconds(2.2)).await;
    demand(more == 0, || format!("it was probed {more} times though it does not run"))?;
    demand(bed.row(&pod).is_some_and(|row| row.has("m", Readiness)), || "its probe has ended".to_owned())?;
    bed.show(&pod, vec![running("m", "c2", bed.stage.now(), true)]);
    bed.turns(&pod, ("c2", Readiness), Success, seconds(2.5)).await
}

async fn ended_for_good(bed: Bed) -> Outcome {
    let mut spec = one(json!({"readinessProbe": exec("ready")}));
    spec["restartPolicy"] = json!("OnFailure");
    let pod = bed.pod("a", spec);
    bed.runs(&pod);
    bed.start(&pod).await?;
    bed.turns(&pod, ("c1", Readiness), Success, seconds(2.5)).await?;
    bed.show(&pod, vec![ended("m", "c1", 0)]);
    let gone = || bed.row(&pod).is_none_or(|row| !row.has("m", Readiness) && row.verdicts.is_empty());
    until("its probe is gone from the row", seconds(1.9), gone).await
}

async fn pod_is_over(bed: Bed) -> Outcome {
    let pod = bed.running_pod("a", json!({"livenessProbe": exec("live")})).await?;
    until("it is probed", seconds(1.9), || bed.count("live") > 0).await?;
    bed.show_in_phase(&pod, "Failed", vec![running("m", "c1", bed.stage.now(), true)]);
    let gone = || bed.row(&pod).is_none_or(|row| !row.has("m", Liveness));
    until("its probe is gone from the row", seconds(1.9), gone).await?;
    let more = bed.count_in("live", seconds(2.2)).await;
    demand(more == 0, || format!("it was probed {more} times after its end"))
}

async fn each_container_for_itself(bed: Bed) -> Outcome {
    bed.script("bad", [Reply::Exits(1, "")]);
    let probe = |word: &str| json!({"livenessProbe": exec_with(word, json!({"failureThreshold": 1}))});
    let spec = json!({"containers": [super::bed::container("good", probe("good")), super::bed::container("bad", probe("bad"))]});
    let pod = bed.pod("a", spec);
    let now = bed.stage.now();
    bed.show(&pod, vec![running("good", "c1", now, true), running("bad", "c2", now, true)]);
    bed.start(&pod).await?;
    bed.turns(&pod, ("c2", Liveness), Failure, seconds(2.5)).await?;
    let more = bed.count_in("good", seconds(2.4)).await;
    demand(more >= 2, || format!("the other container was probed {more} times in 2.4 s"))?;
    bed.stands(&pod, ("c1", Liveness), Some(Success))
}
