//! When probes are carried out.

use contract::ProbeManager;
use model::Timestamp;
use model::probe::ProbeKind::{Liveness, Readiness};
use model::probe::ProbeVerdict::{Failure, Success};
use serde_json::json;

use super::bed::{Bed, Reply, SOON, case, exec, exec_with, one, running, seconds, waiting};
use crate::case::Case;
use crate::outcome::{Outcome, demand};
use crate::watch::until;

pub(super) fn cases() -> Vec<Case<ProbeManager>> {
    vec![
        case("period", "pod-lifecycle 8.1", "a probe is carried out once per period", period).core(),
        case("first-probe", "pod-lifecycle 8.1", "the first probe comes within a period of StartProbes", first_probe)
            .core(),
        case(
            "initial-delay",
            "pod-lifecycle 8.2",
            "initialDelaySeconds count from the start of the container",
            initial_delay,
        )
        .core(),
        case(
            "initial-delay-is-over",
            "pod-lifecycle 8.2",
            "a container that has run for longer is probed at once",
            initial_delay_is_over,
        ),
        case(
            "waits-for-the-container",
            "pod-lifecycle 8.2",
            "nothing is probed without a status, an id and a container that runs",
            waits_for_the_container,
        )
        .core(),
        case(
            "readiness-follows-the-start",
            "pod-lifecycle 8.4",
            "a container that has just started is probed for readiness at once, not with its period",
            readiness_follows_the_start,
        ),
        case(
            "a-ready-container-is-left-alone",
            "pod-lifecycle 8.4",
            "a status that changes probes nobody who is ready",
            ready_is_left_alone,
        ),
        case(
            "slow-probe",
            "pod-lifecycle 8.1",
            "a probe that takes longer than its period runs once at a time, and holds up no other",
            slow_probe,
        )
        .core(),
        case("hanging-probes", "contract", "probes that never end hold up no pod and no message", hanging_probes),
        case(
            "clock-set-back",
            "pod-lifecycle 8.2",
            "a wall clock that is set back does not stop probes of what runs",
            clock_set_back,
        ),
        case(
            "clock-set-forward",
            "pod-lifecycle 8.2",
            "a wall clock that is set forward brings no burst of probes",
            clock_set_forward,
        ),
        case(
            "start-in-the-future",
            "pod-lifecycle 8.2",
            "a container whose start lies in the future, as the clock was set back since, is probed",
            start_in_the_future,
        ),
    ]
}

async fn period(bed: Bed) -> Outcome {
    bed.running_pod("a", json!({"livenessProbe": exec_with("live", json!({"periodSeconds": 2}))})).await?;
    until("it is probed", seconds(3.5), || bed.count("live") > 0).await?;
    tokio::time::sleep(seconds(7.0)).await;
    let times = bed.ran("live");
    demand(times.len() == 4, || format!("it was probed {} times in 7 s with a period of 2 s", times.len()))?;
    for pair in times.windows(2) {
        let gap = pair[1].0 - pair[0].0;
        demand((seconds(1.6)..=seconds(2.4)).contains(&gap), || format!("{gap:?} between two probes"))?;
    }
    Ok(())
}

async fn first_probe(bed: Bed) -> Outcome {
    bed.running_pod("a", json!({"livenessProbe": exec("live")})).await?;
    until("it is probed", seconds(1.4), || bed.count("live") > 0).await
}

async fn initial_delay(bed: Bed) -> Outcome {
    let probes = json!({"livenessProbe": exec_with("live", json!({"initialDelaySeconds": 3}))});
    bed.running_pod("a", probes).await?;
    // A start is told in whole seconds.
    let more = bed.count_in("live", seconds(1.9)).await;
    demand(more == 0, || format!("it was probed {more} times before the delay was over"))?;
    until("it is probed after the delay", seconds(2.6), || bed.count("live") > 0).await
}

async fn initial_delay_is_over(bed: Bed) -> Outcome {
    let pod = bed.pod("a", one(json!({"livenessProbe": exec_with("live", json!({"initialDelaySeconds": 30}))})));
    bed.show(&pod, vec![running("m", "c1", Timestamp(bed.stage.now().0 - 31_000_000_000), true)]);
    bed.start(&pod).await?;
    until("it is probed", seconds(1.4), || bed.count("live") > 0).await
}

async fn waits_for_the_container(bed: Bed) -> Outcome {
    let pod = bed.pod("a", one(json!({"livenessProbe": exec("live")})));
    bed.start(&pod).await?;
    let without_status = bed.count_in("live", seconds(1.4)).await;
    bed.show(&pod, vec![waiting("m")]);
    let without_id = bed.count_in("live", seconds(1.4)).await;
    demand((without_status, without_id) == (0, 0), || {
        format!("probed {without_status} times without a status, {without_id} times without a container")
    })?;
    bed.runs(&pod);
    until("it is probed when it runs", seconds(1.4), || bed.count("live") > 0).await
}

async fn readiness_follows_the_start(bed: Bed) -> Outcome {
    let probes = json!({"readinessProbe": exec_with("ready", json!({"periodSeconds": 60}))});
    let pod = bed.pod("a", one(probes));
    let since = bed.stage.now();
    bed.show(&pod, vec![running("m", "c1", since, false)]);
    bed.start(&pod).await?;
    demand(bed.count_in("ready", seconds(0.5)).await == 0, || "it was probed before it had started".to_owned())?;
    bed.show(&pod, vec![running("m", "c1", since, true)]);
    bed.turns(&pod, ("c1", Readiness), Success, SOON).await
}

async fn ready_is_left_alone(bed: Bed) -> Outcome {
    let probes = json!({"readinessProbe": exec_with("ready", json!({"periodSeconds": 30}))});
    let pod = bed.pod("a", one(probes));
    let since = bed.stage.now();
    bed.show(&pod, vec![running("m", "c1", since, false)]);
    bed.start(&pod).await?;
    bed.show(&pod, vec![running("m", "c1", since, true)]);
    bed.turns(&pod, ("c1", Readiness), Success, SOON).await?;
    let before = bed.count("ready");
    for _ in 0..20 {
        bed.show(&pod, vec![running("m", "c1", since, true)]);
        tokio::time::sleep(seconds(0.02)).await;
    }
    let more = bed.count("ready") - before;
    demand(more <= 1, || format!("20 statuses brought {more} probes of a container that is ready"))
}

async fn slow_probe(bed: Bed) -> Outcome {
    bed.script("slow", [Reply::Takes(seconds(2.5), 0)]);
    let slow = json!({"livenessProbe": exec_with("slow", json!({"timeoutSeconds": 10}))});
    bed.running_pod("slow", slow).await?;
    bed.running_pod("quick", json!({"livenessProbe": exec("quick")})).await?;
    until("the slow one is probed", seconds(1.9), || bed.count("slow") > 0).await?;
    let quick = bed.count_in("quick", seconds(5.2)).await;
    demand(bed.most_at_once("slow") == 1, || format!("{} of one probe ran at a time", bed.most_at_once("slow")))?;
    demand((2..=3).contains(&bed.count("slow")), || format!("{} slow probes began in 5.2 s", bed.count("slow")))?;
    demand((4..=6).contains(&quick), || format!("the other pod was probed {quick} times in 5.2 s"))
}

async fn hanging_probes(bed: Bed) -> Outcome {
    bed.script("hangs", [Reply::Hangs]);
    for n in 0..20 {
        bed.running_pod(&format!("h{n}"), json!({"livenessProbe": exec("hangs")})).await?;
    }
    until("they hang", seconds(2.5), || bed.most_at_once("hangs") == 20).await?;
    let pod = bed.running_pod("quick", json!({"readinessProbe": exec("ready")})).await?;
    bed.turns(&pod, ("c1", Readiness), Success, seconds(1.9)).await?;
    bed.retain(&[&pod]).await?;
    bed.stop(&pod, false).await?;
    demand(bed.row(&pod).is_none(), || "its row stays".to_owned())
}

/// By how much clocks are set, in nanoseconds.
const HOUR: i64 = 3_600_000_000_000;

async fn clock_set_back(bed: Bed) -> Outcome {
    let pod = bed.running_pod("a", json!({"livenessProbe": exec_with("live", json!({"failureThreshold": 1}))})).await?;
    until("it is probed", seconds(1.9), || bed.count("live") > 0).await?;
    bed.stage.set_clock_by(-HOUR);
    let more = bed.count_in("live", seconds(3.5)).await;
    demand((3..=5).contains(&more), || format!("it was probed {more} times in 3.5 s after the clock was set back"))?;
    bed.script("live", [Reply::Exits(1, "")]);
    bed.turns(&pod, ("c1", Liveness), Failure, seconds(1.9)).await
}

async fn clock_set_forward(bed: Bed) -> Outcome {
    let pod = bed.running_pod("a", json!({"livenessProbe": exec("live")})).await?;
    until("it is probed", seconds(1.9), || bed.count("live") > 0).await?;
    let mark = bed.stage.mark();
    bed.stage.set_clock_by(HOUR);
    let more = bed.count_in("live", seconds(3.5)).await;
    demand((3..=5).contains(&more), || format!("it was probed {more} times in 3.5 s after the clock was set forward"))?;
    bed.never_flipped(mark, &pod, ("c1", Liveness), Success)
}

async fn start_in_the_future(bed: Bed) -> Outcome {
    let pod = bed.pod("a", one(json!({"livenessProbe": exec("live")})));
    bed.show(&pod, vec![running("m", "c1", Timestamp(bed.stage.now().0 + HOUR), true)]);
    bed.start(&pod).await?;
    until("it is probed", seconds(1.9), || bed.count("live") > 0).await
}
