//! What outcomes add up to.

use contract::ProbeManager;
use contract::runtime::CallErrorKind;
use model::event::{EventObject, EventType};
use model::probe::ProbeKind::{Liveness, Readiness, Startup};
use model::probe::ProbeVerdict::{Failure, Success};
use serde_json::json;

use super::bed::{Bed, Reply, case, exec, exec_with, one, running, seconds};
use crate::case::Case;
use crate::outcome::{Outcome, demand};
use crate::watch::until;

pub(super) fn cases() -> Vec<Case<ProbeManager>> {
    [counts(), holds(), errors()].into_iter().flatten().collect()
}

fn counts() -> Vec<Case<ProbeManager>> {
    vec![
        case(
            "failure-threshold",
            "pod-lifecycle 8.2",
            "failureThreshold failures in a row are a verdict of Failure, fewer are none",
            failure_threshold,
        )
        .core(),
        case(
            "failures-are-told",
            "pod-lifecycle 8.3",
            "each failure is an event Unhealthy of the container, also below the threshold",
            failures_are_told,
        ),
        case(
            "success-threshold",
            "pod-lifecycle 8.2",
            "successThreshold successes in a row are a verdict of Success, fewer are none",
            success_threshold,
        )
        .core(),
        case(
            "runs-are-counted",
            "pod-lifecycle 8.2",
            "one success begins the count of failures anew",
            runs_are_counted,
        ),
        case(
            "defaults",
            "pod-lifecycle 8.1",
            "without numbers three failures are a verdict, and one success",
            defaults,
        ),
    ]
}

fn holds() -> Vec<Case<ProbeManager>> {
    vec![
        case(
            "readiness-turns-both-ways",
            "pod-lifecycle 8.2",
            "readiness is probed on after each verdict, and turns with it",
            readiness_turns_both_ways,
        )
        .core(),
        case(
            "liveness-on-hold",
            "pod-lifecycle 8.2",
            "after a verdict of Failure an instance's liveness is not probed any more",
            liveness_on_hold,
        )
        .core(),
        case(
            "startup-gates",
            "pod-lifecycle 8.2",
            "liveness and readiness wait until the container has started; startup is not probed after its verdict",
            startup_gates,
        )
        .core(),
        case(
            "startup-fails",
            "pod-lifecycle 15, 71",
            "failureThreshold failures of startup are its verdict, and it is not probed any more",
            startup_fails,
        ),
    ]
}

fn errors() -> Vec<Case<ProbeManager>> {
    vec![
        case(
            "error-counts-for-nothing",
            "pod-lifecycle 15, 73",
            "a call that fails but for its deadline is tried three times in all and counts as nothing; it is told",
            error_counts_for_nothing,
        ),
        case(
            "error-then-outcome",
            "pod-lifecycle 8.3",
            "an error is tried again at once, and what comes of that counts",
            error_then_outcome,
        ),
        case(
            "error-keeps-the-count",
            "pod-lifecycle 8.2",
            "an error between two failures leaves their count alone",
            error_keeps_the_count,
        ),
        case(
            "timeout-is-a-failure",
            "pod-lifecycle 15, 73",
            "a command that takes too long is a failure, and is not tried again",
            timeout_is_a_failure,
        )
        .core(),
    ]
}

async fn failure_threshold(bed: Bed) -> Outcome {
    bed.script("live", [Reply::Exits(1, "")]);
    let probes = json!({"livenessProbe": exec_with("live", json!({"failureThreshold": 3}))});
    let pod = bed.running_pod("a", probes).await?;
    until("it failed twice", seconds(3.5), || bed.count("live") == 2).await?;
    tokio::time::sleep(seconds(0.3)).await;
    bed.stands(&pod, ("c1", Liveness), Some(Success))?;
    bed.turns(&pod, ("c1", Liveness), Failure, seconds(1.5)).await?;
    demand(bed.count("live") == 3, || format!("it took {} failures", bed.count("live")))
}

async fn failures_are_told(bed: Bed) -> Outcome {
    bed.script("live", [Reply::Exits(1, "oh no"), Reply::Exits(2, "oh no"), Reply::Exits(0, "")]);
    let probes = json!({"livenessProbe": exec_with("live", json!({"failureThreshold": 5}))});
    bed.running_pod("a", probes).await?;
    until("it was probed three times", seconds(4.5), || bed.count("live") == 3).await?;
    tokio::time::sleep(seconds(0.3)).await;
    let all = bed.events.all();
    demand(all.len() == 2, || format!("{} events of two failures: {:?}", all.len(), bed.told()))?;
    for event in all {
        let words = (event.kind, &*event.reason, event.message.as_str());
        let wanted = (EventType::Warning, "Unhealthy", "Liveness probe failed: oh no");
        demand(words == wanted, || format!("the event says {words:?}, not {wanted:?}"))?;
        let is_of = matches!(&event.object, EventObject::Pod { namespace, name, field_path, .. }
            if namespace == "ns" && name == "web" && field_path == "spec.containers{m}");
        demand(is_of, || format!("the event is of {:?}", event.object))?;
    }
    Ok(())
}

async fn success_threshold(bed: Bed) -> Outcome {
    let probes = json!({"readinessProbe": exec_with("ready", json!({"successThreshold": 3}))});
    let pod = bed.running_pod("a", probes).await?;
    until("it succeeded twice", seconds(3.5), || bed.count("ready") == 2).await?;
    tokio::time::sleep(seconds(0.2)).await;
    bed.stands(&pod, ("c1", Readiness), Some(Failure))?;
    bed.turns(&pod, ("c1", Readiness), Success, seconds(1.6)).await?;
    demand(bed.count("ready") == 3, || format!("it took {} successes", bed.count("ready")))
}

async fn runs_are_counted(bed: Bed) -> Outcome {
    let bad = || Reply::Exits(1, "");
    bed.script("live", [bad(), bad(), Reply::Exits(0, ""), bad(), bad(), Reply::Exits(0, "")]);
    let probes = json!({"livenessProbe": exec_with("live", json!({"failureThreshold": 3}))});
    let pod = bed.running_pod("a", probes).await?;
    until("it was probed six times", seconds(8.0), || bed.count("live") == 6).await?;
    tokio::time::sleep(seconds(0.2)).await;
    bed.never_flipped_from_the_first(&pod)
}

impl Bed {
    fn never_flipped_from_the_first(&self, pod: &model::core::Pod) -> Outcome {
        for row in self.rows_since(0, pod)?.into_iter().flatten() {
            let is = row.verdict(&"c1".into(), Liveness);
            demand(is != Some(Failure), || {
                "four failures, of which no three were in a row, were a verdict".to_owned()
            })?;
        }
        self.stands(pod, ("c1", Liveness), Some(Success))
    }
}

async fn defaults(bed: Bed) -> Outcome {
    let bad = || Reply::Exits(1, "");
    bed.script("ready", [Reply::Exits(0, ""), bad(), bad(), bad()]);
    let pod = bed.running_pod("a", json!({"readinessProbe": exec("ready")})).await?;
    bed.turns(&pod, ("c1", Readiness), Success, seconds(2.5)).await?;
    demand(bed.count("ready") == 1, || format!("it took {} successes", bed.count("ready")))?;
    bed.turns(&pod, ("c1", Readiness), Failure, seconds(4.5)).await?;
    demand(bed.count("ready") == 4, || format!("it took {} failures", bed.count("ready") - 1))
}

async fn readiness_turns_both_ways(bed: Bed) -> Outcome {
    let pod =
        bed.running_pod("a", json!({"readinessProbe": exec_with("ready", json!({"failureThreshold": 1}))})).await?;
    for round in 0..2 {
        bed.script("ready", [Reply::Exits(0, "")]);
        bed.turns(&pod, ("c1", Readiness), Success, seconds(2.5)).await?;
        bed.script("ready", [Reply::Exits(1, "")]);
        let turned = bed.turns(&pod, ("c1", Readiness), Failure, seconds(2.5)).await;
        turned.map_err(|e| crate::Broken(format!("round {round}: {e}")))?;
    }
    Ok(())
}

async fn liveness_on_hold(bed: Bed) -> Outcome {
    bed.script("live", [Reply::Exits(1, "")]);
    let probes = json!({"livenessProbe": exec_with("live", json!({"failureThreshold": 1}))});
    let pod = bed.running_pod("a", probes).await?;
    bed.turns(&pod, ("c1", Liveness), Failure, seconds(2.5)).await?;
    bed.script("live", [Reply::Exits(0, "")]);
    let more = bed.count_in("live", seconds(3.5)).await;
    demand(more == 0, || format!("it was probed {more} times after its verdict"))?;
    bed.stands(&pod, ("c1", Liveness), Some(Failure))
}

async fn startup_gates(bed: Bed) -> Outcome {
    let probes = json!({"startupProbe": exec("start"), "livenessProbe": exec("live"), "readinessProbe": exec("ready")});
    let pod = bed.pod("a", one(probes));
    let since = bed.stage.now();
    bed.show(&pod, vec![running("m", "c1", since, false)]);
    bed.script("start", [Reply::Exits(1, ""), Reply::Exits(0, "")]);
    bed.start(&pod).await?;
    bed.turns(&pod, ("c1", Startup), Success, seconds(3.5)).await?;
    tokio::time::sleep(seconds(1.5)).await;
    let early = (bed.count("live"), bed.count("ready"));
    demand(early == (0, 0), || format!("liveness and readiness were probed {early:?} times before it had started"))?;
    bed.show(&pod, vec![running("m", "c1", since, true)]);
    until("liveness is probed", seconds(2.5), || bed.count("live") > 0).await?;
    bed.turns(&pod, ("c1", Readiness), Success, seconds(2.5)).await?;
    demand(bed.count("start") == 2, || format!("startup was probed {} times, not 2", bed.count("start")))
}

async fn startup_fails(bed: Bed) -> Outcome {
    let probes = json!({"startupProbe": exec_with("start", json!({"failureThreshold": 2}))});
    let pod = bed.pod("a", one(probes));
    bed.show(&pod, vec![running("m", "c1", bed.stage.now(), false)]);
    bed.script("start", [Reply::Exits(1, "not yet")]);
    bed.start(&pod).await?;
    bed.turns(&pod, ("c1", Startup), Failure, seconds(3.5)).await?;
    demand(bed.count("start") == 2, || format!("it took {} failures", bed.count("start")))?;
    bed.script("start", [Reply::Exits(0, "")]);
    let more = bed.count_in("start", seconds(2.5)).await;
    demand(more == 0, || format!("it was probed {more} times after its verdict"))?;
    bed.stands(&pod, ("c1", Startup), Some(Failure))
}

async fn error_counts_for_nothing(bed: Bed) -> Outcome {
    bed.script("live", [Reply::Fails(CallErrorKind::NotFound, "task c1 not found")]);
    let probes = json!({"livenessProbe": exec_with("live", json!({"failureThreshold": 1, "periodSeconds": 2}))});
    let pod = bed.running_pod("a", probes).await?;
    until("it is probed", seconds(3.5), || bed.count("live") > 0).await?;
    tokio::time::sleep(seconds(0.8)).await;
    demand(bed.count("live") == 3, || format!("it was tried {} times", bed.count("live")))?;
    bed.stands(&pod, ("c1", Liveness), Some(Success))?;
    let told = bed.told();
    let start = "Liveness probe errored and resulted in unknown state: ";
    let is_so = told.len() == 1 && told[0].starts_with(start) && told[0].contains("task c1 not found");
    demand(is_so, || format!("told was {told:?}"))
}

async fn error_then_outcome(bed: Bed) -> Outcome {
    let lost = Reply::Fails(CallErrorKind::Unavailable, "no connection");
    bed.script("live", [lost, Reply::Exits(1, "bad"), Reply::Exits(0, "")]);
    let probes = json!({"livenessProbe": exec_with("live", json!({"failureThreshold": 1, "periodSeconds": 5}))});
    let pod = bed.running_pod("a", probes).await?;
    bed.turns(&pod, ("c1", Liveness), Failure, seconds(6.0)).await?;
    demand(bed.count("live") == 2, || format!("it was tried {} times", bed.count("live")))
}

async fn error_keeps_the_count(bed: Bed) -> Outcome {
    let lost = || Reply::Fails(CallErrorKind::Failed, "no");
    bed.script("live", [Reply::Exits(1, ""), lost(), lost(), lost(), Reply::Exits(1, "")]);
    let probes = json!({"livenessProbe": exec_with("live", json!({"failureThreshold": 2}))});
    let pod = bed.running_pod("a", probes).await?;
    bed.turns(&pod, ("c1", Liveness), Failure, seconds(4.5)).await?;
    demand(bed.count("live") == 5, || format!("it took {} commands, not 5", bed.count("live")))
}

async fn timeout_is_a_failure(bed: Bed) -> Outcome {
    bed.script("live", [Reply::Fails(CallErrorKind::Timeout, "deadline")]);
    let probes = json!({"livenessProbe": exec_with("live", json!({"failureThreshold": 1}))});
    let pod = bed.running_pod("a", probes).await?;
    bed.turns(&pod, ("c1", Liveness), Failure, seconds(2.5)).await?;
    demand(bed.count("live") == 1, || format!("it was tried {} times", bed.count("live")))?;
    let told = bed.told();
    let is_so = told.len() == 1 && told[0].starts_with("Liveness probe failed: ");
    demand(is_so, || format!("told was {told:?}"))
}
