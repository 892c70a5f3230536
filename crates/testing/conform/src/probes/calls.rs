//! What the three messages do.

use contract::ProbeManager;
use model::probe::ProbeKind::{Liveness, Readiness, Startup};
use model::probe::ProbeVerdict::{Failure, Success};
use serde_json::json;

use super::bed::{Bed, Reply, SOON, case, container, exec, exec_with, one, running, seconds};
use crate::case::Case;
use crate::outcome::{Outcome, demand};
use crate::watch::until;

pub(super) fn cases() -> Vec<Case<ProbeManager>> {
    [starts(), ends()].into_iter().flatten().collect()
}

fn starts() -> Vec<Case<ProbeManager>> {
    vec![
        case(
            "row-names-probes",
            "contract",
            "the row says which probes exist before StartProbes is answered",
            row_names_probes,
        )
        .core(),
        case(
            "no-probes-no-row",
            "contract",
            "a pod without probes has no row, so that nobody waits for a verdict",
            no_probes_no_row,
        )
        .core(),
        case(
            "whom-it-probes",
            "pod-lifecycle 8.1",
            "regular containers and sidecars are probed, other init containers never",
            whom_it_probes,
        ),
        case("start-twice", "contract", "StartProbes of a pod that has probes changes nothing", start_twice).core(),
        case(
            "specification-stays",
            "pod-lifecycle 8.1",
            "a probe keeps the specification with which it began",
            specification_stays,
        ),
    ]
}

fn ends() -> Vec<Case<ProbeManager>> {
    vec![
        case("stop", "contract", "when StopProbes is answered the row is gone, and nothing is probed any more", stop)
            .core(),
        case(
            "stop-unknown",
            "contract",
            "StopProbes twice, or of a pod that is not probed, does nothing",
            stop_unknown,
        )
        .core(),
        case(
            "stop-keeps-readiness",
            "pod-lifecycle 15, 75",
            "a terminating pod keeps readiness, which may turn, and its sidecars' probes; liveness and startup end",
            stop_keeps_readiness,
        ),
        case(
            "retain",
            "contract",
            "RetainProbes ends the probes of all other pods, and of no pod that is known",
            retain,
        )
        .core(),
        case(
            "deleted-from-the-start",
            "pod-lifecycle 8.2",
            "of a pod that is being deleted when probing begins only readiness is probed",
            deleted_from_the_start,
        ),
        case(
            "late-outcome",
            "pod-lifecycle 8.1",
            "what comes of a probe after StopProbes says nothing: no row, no event",
            late_outcome,
        ),
        case(
            "outcome-of-a-former-stay",
            "contract",
            "what comes of a probe from before StopProbes says nothing of the pod that is started again",
            outcome_of_a_former_stay,
        ),
        case(
            "two-hundred-pods",
            "contract",
            "two hundred pods are told one after the other and all get their verdicts",
            two_hundred_pods,
        ),
    ]
}

async fn row_names_probes(bed: Bed) -> Outcome {
    let probes = json!({"livenessProbe": exec("live"), "readinessProbe": exec("ready")});
    let pod = bed.pod("a", json!({"containers": [container("m", probes), container("quiet", json!({}))]}));
    bed.start(&pod).await?;
    let named = bed.row(&pod).map(|row| row.probes.clone());
    let wanted = [("m".to_owned(), [Readiness, Liveness].into())].into();
    demand(named.as_ref() == Some(&wanted), || format!("the row names {named:?}, not {wanted:?}"))
}

async fn no_probes_no_row(bed: Bed) -> Outcome {
    let pod = bed.pod("a", one(json!({})));
    bed.runs(&pod);
    bed.start(&pod).await?;
    demand(bed.row(&pod).is_none(), || format!("there is a row: {:?}", bed.row(&pod)))
}

async fn whom_it_probes(bed: Bed) -> Outcome {
    let sidecar = json!({"restartPolicy": "Always", "livenessProbe": exec("side")});
    let spec = json!({
        "initContainers": [container("s", sidecar), container("i", json!({"livenessProbe": exec("init")}))],
        "containers": [container("m", json!({"livenessProbe": exec("live")}))],
    });
    let pod = bed.pod("a", spec);
    let now = bed.stage.now();
    bed.show(&pod, ["s", "i", "m"].map(|name| running(name, name, now, true)).into());
    bed.start(&pod).await?;
    let probed = || bed.count("side") > 0 && bed.count("live") > 0;
    until("the sidecar and the regular container are probed", seconds(2.5), probed).await?;
    demand(bed.count("init") == 0, || "an init container that is no sidecar was probed".to_owned())?;
    let names = bed.row(&pod).map(|row| row.probes.keys().cloned().collect::<Vec<_>>());
    demand(names == Some(vec!["m".to_owned(), "s".to_owned()]), || format!("the row names {names:?}"))
}

async fn start_twice(bed: Bed) -> Outcome {
    bed.script("live", [Reply::Exits(1, "")]);
    let probes = json!({"livenessProbe": exec_with("live", json!({"failureThreshold": 3}))});
    let pod = bed.running_pod("a", probes).await?;
    for failures in 1..=2 {
        until("it is probed", seconds(2.5), || bed.count("live") == failures).await?;
        bed.start(&pod).await?;
        bed.start(&pod).await?;
    }
    bed.stands(&pod, ("c1", Liveness), Some(Success))?;
    bed.turns(&pod, ("c1", Liveness), Failure, seconds(1.9)).await?;
    demand(bed.count("live") == 3, || format!("{} probes failed, not 3", bed.count("live")))
}

async fn specification_stays(bed: Bed) -> Outcome {
    let pod = bed.running_pod("a", json!({"livenessProbe": exec("before")})).await?;
    let other = bed.pod("a", one(json!({"livenessProbe": exec("after")})));
    bed.start(&other).await?;
    until("it goes on", seconds(3.5), || bed.count("before") >= 3).await?;
    demand(bed.count("after") == 0, || "a later specification is probed by".to_owned())?;
    bed.stands(&pod, ("c1", Liveness), Some(Success))
}

async fn stop(bed: Bed) -> Outcome {
    let pod = bed.running_pod("a", json!({"livenessProbe": exec("live"), "readinessProbe": exec("ready")})).await?;
    let probed = || bed.count("live") > 0 && bed.count("ready") > 0;
    until("it is probed", seconds(2.5), probed).await?;
    bed.stop(&pod, false).await?;
    demand(bed.row(&pod).is_none(), || format!("there is a row still: {:?}", bed.row(&pod)))?;
    let more = bed.count_in("live", seconds(2.5)).await;
    demand(more == 0, || format!("it was probed {more} times after that"))
}

async fn stop_unknown(bed: Bed) -> Outcome {
    let other = bed.running_pod("other", json!({"livenessProbe": exec("live")})).await?;
    let pod = bed.pod("a", one(json!({"livenessProbe": exec("gone")})));
    for keep_readiness in [true, false, false] {
        bed.stop(&pod, keep_readiness).await?;
    }
    demand(bed.row(&pod).is_none(), || "a pod that was never told has a row".to_owned())?;
    let more = bed.count_in("live", seconds(2.5)).await;
    demand(more >= 2, || format!("the other pod was probed {more} times in 2.5 s"))?;
    bed.stop(&other, false).await?;
    bed.stop(&other, false).await
}

async fn stop_keeps_readiness(bed: Bed) -> Outcome {
    let all = |live: &str, ready: &str| {
        json!({"livenessProbe": exec(live), "startupProbe": exec_with("start", json!({"periodSeconds": 60})),
        "readinessProbe": exec_with(ready, json!({"failureThreshold": 1}))})
    };
    let mut sidecar = all("side", "side-ready");
    sidecar["restartPolicy"] = json!("Always");
    let spec =
        json!({"initContainers": [container("s", sidecar)], "containers": [container("m", all("live", "ready"))]});
    let pod = bed.pod("a", spec);
    let now = bed.stage.now();
    bed.show(&pod, vec![running("m", "c1", now, true), running("s", "s1", now, true)]);
    bed.start(&pod).await?;
    bed.turns(&pod, ("c1", Readiness), Success, seconds(2.5)).await?;
    bed.stop(&pod, true).await?;
    let live = bed.count("live");
    let row = bed.row(&pod).map(|row| (row.probes.get("m").cloned(), row.probes.get("s").cloned()));
    let wanted = (Some([Readiness].into()), Some([Startup, Readiness, Liveness].into()));
    demand(row.as_ref() == Some(&wanted), || format!("the row names {row:?}, not {wanted:?}"))?;
    bed.stands(&pod, ("c1", Liveness), None)?;
    bed.script("ready", [Reply::Exits(1, "draining")]);
    bed.turns(&pod, ("c1", Readiness), Failure, seconds(2.5)).await?;
    let side = bed.count_in("side", seconds(2.5)).await;
    demand(side >= 2, || format!("the sidecar's liveness was probed {side} times in 2.5 s"))?;
    demand(bed.count("live") == live, || "liveness is probed still".to_owned())?;
    bed.stop(&pod, false).await?;
    demand(bed.row(&pod).is_none(), || "the row stays after the end".to_owned())
}

async fn retain(bed: Bed) -> Outcome {
    let stays = bed.running_pod("stays", json!({"livenessProbe": exec("stays")})).await?;
    let goes = bed.running_pod("goes", json!({"livenessProbe": exec("goes")})).await?;
    until("both are probed", seconds(2.5), || bed.count("stays") > 0 && bed.count("goes") > 0).await?;
    let mark = bed.stage.mark();
    bed.retain(&[&stays]).await?;
    bed.retain(&[&stays]).await?;
    demand(bed.row(&goes).is_none(), || "a pod that is not known has a row still".to_owned())?;
    let before = bed.count("goes");
    let more = bed.count_in("stays", seconds(2.5)).await;
    demand(more >= 2, || format!("the pod that is known was probed {more} times in 2.5 s"))?;
    demand(bed.count("goes") == before, || "a pod that is not known is probed still".to_owned())?;
    bed.never_flipped(mark, &stays, ("c1", Liveness), Success)
}

async fn deleted_from_the_start(bed: Bed) -> Outcome {
    let mut pod = (*bed.pod("a", one(json!({"livenessProbe": exec("live"), "readinessProbe": exec("ready")})))).clone();
    pod.metadata.deletion_timestamp = bed.stage.now().to_api();
    let pod = std::sync::Arc::new(pod);
    bed.runs(&pod);
    bed.start(&pod).await?;
    bed.turns(&pod, ("c1", Readiness), Success, seconds(2.5)).await?;
    let ended = || bed.row(&pod).is_some_and(|row| !row.has("m", Liveness));
    until("liveness is no probe of it any more", seconds(2.5), ended).await?;
    demand(bed.count("live") == 0, || "liveness was probed".to_owned())
}

async fn late_outcome(bed: Bed) -> Outcome {
    bed.script("live", [Reply::Takes(seconds(0.7), 1)]);
    let probes = json!({"livenessProbe": exec_with("live", json!({"failureThreshold": 1, "timeoutSeconds": 5}))});
    let pod = bed.running_pod("a", probes).await?;
    until("it is probed", seconds(2.5), || bed.count("live") > 0).await?;
    bed.stop(&pod, false).await?;
    let mark = bed.stage.mark();
    tokio::time::sleep(seconds(1.5)).await;
    let rows = bed.rows_since(mark, &pod)?;
    demand(rows.is_empty() && bed.row(&pod).is_none(), || format!("rows after the end: {rows:?}"))?;
    demand(bed.told().is_empty(), || format!("events after the end: {:?}", bed.told()))
}

async fn outcome_of_a_former_stay(bed: Bed) -> Outcome {
    bed.script("live", [Reply::Takes(seconds(1.6), 1), Reply::Hangs]);
    let probes = json!({"livenessProbe": exec_with("live", json!({"failureThreshold": 1, "timeoutSeconds": 5}))});
    let pod = bed.running_pod("a", probes).await?;
    until("it is probed", seconds(1.9), || bed.count("live") == 1).await?;
    bed.stop(&pod, false).await?;
    bed.start(&pod).await?;
    until("it is probed again", seconds(1.9), || bed.count("live") >= 2).await?;
    tokio::time::sleep(seconds(1.8)).await;
    bed.stands(&pod, ("c1", Liveness), Some(Success))?;
    demand(bed.told().is_empty(), || format!("told was {:?}", bed.told()))
}

async fn two_hundred_pods(bed: Bed) -> Outcome {
    let mut pods = Vec::new();
    for n in 0..200 {
        pods.push(bed.running_pod(&n.to_string(), json!({"readinessProbe": exec("ready")})).await?);
    }
    for pod in &pods {
        bed.turns(pod, ("c1", Readiness), Success, seconds(5.0)).await?;
    }
    bed.retain(&[]).await?;
    let left = pods.iter().filter(|pod| bed.row(pod).is_some()).count();
    demand(left == 0, || format!("{left} rows are left"))?;
    tokio::time::sleep(SOON).await;
    Ok(())
}
