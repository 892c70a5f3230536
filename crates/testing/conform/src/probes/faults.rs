//! Deaths, successors, rows of others.

use contract::ProbeManager;
use contract::probe::{PodProbes, StartProbes, StopProbes};
use futures::future::join;
use model::probe::ProbeKind::{Liveness, Readiness, Startup};
use model::probe::ProbeVerdict::{Failure, Success};
use model::probe::{ProbeKind, ProbeVerdict};
use model::{Timestamp, core::Pod};
use serde_json::json;

use super::bed::{Bed, Reply, case, container, exec, exec_with, one, running, seconds};
use crate::case::Case;
use crate::outcome::{Outcome, demand};
use crate::watch::until;

pub(super) fn cases() -> Vec<Case<ProbeManager>> {
    [deaths(), successors(), daemons()].into_iter().flatten().collect()
}

fn deaths() -> Vec<Case<ProbeManager>> {
    vec![
        case(
            "crash-flips-nothing",
            "contract",
            "over a death of the manager no verdict flips, in no row",
            crash_flips_nothing,
        )
        .core(),
        case(
            "crash-goes-on",
            "contract",
            "after a death of the manager pods are probed on, with nobody telling it",
            crash_goes_on,
        )
        .core(),
        case(
            "crash-keeps-hold",
            "contract",
            "a liveness that had failed is not probed again after a death of the manager",
            crash_keeps_hold,
        ),
        case(
            "crash-keeps-stops",
            "contract",
            "a pod that was stopped before a death of the manager stays so",
            crash_keeps_stops,
        )
        .core(),
        case(
            "crash-keeps-ended-probes",
            "contract",
            "of a terminating pod a death of the manager brings no liveness back",
            crash_keeps_ended_probes,
        ),
        case(
            "crash-in-a-call",
            "contract",
            "a manager that dies over StartProbes or StopProbes does what is asked when it is asked again",
            crash_in_a_call,
        )
        .core(),
        case(
            "crash-in-a-probe",
            "contract",
            "a probe that runs when the manager dies says nothing, and is carried out again",
            crash_in_a_probe,
        ),
        case(
            "crash-loses-no-new-instance",
            "contract",
            "an instance that began while the manager was dead is probed as a new one",
            crash_loses_no_new_instance,
        ),
        case("many-crashes", "contract", "five deaths within seconds flip no verdict", many_crashes),
    ]
}

fn successors() -> Vec<Case<ProbeManager>> {
    vec![
        case(
            "successor-flips-nothing",
            "contract",
            "another manager that takes the place goes on with the rows of the one before",
            successor_flips_nothing,
        )
        .core(),
        case(
            "successor-keeps-ended-probes",
            "contract",
            "a probe that had ended stays ended when another manager takes the place",
            successor_keeps_ended_probes,
        ),
        case(
            "row-of-a-former-manager",
            "contract",
            "a manager that finds a row when it is told of the pod goes on with its verdicts",
            row_of_a_former_manager,
        )
        .core(),
        case(
            "row-without-probes-of-a-former-manager",
            "contract",
            "which probes a pod has is the pod's, whatever the row of a former manager names",
            row_without_probes,
        )
        .core(),
        case(
            "row-of-a-former-manager-is-stopped",
            "contract",
            "StopProbes ends a row of a former manager, also before StartProbes",
            former_row_is_stopped,
        ),
        case(
            "row-of-a-former-manager-goes",
            "contract",
            "RetainProbes ends rows of a former manager whose pods are gone",
            former_row_goes,
        ),
    ]
}

fn daemons() -> Vec<Case<ProbeManager>> {
    vec![
        case(
            "daemon-restart",
            "pod-lifecycle 8.5, compat",
            "a ready pod does not turn unready when the daemon is started again",
            daemon_restart,
        ),
        case(
            "sidecar-has-started",
            "pod-lifecycle 8.5",
            "a sidecar that had started before the daemon counts as started",
            sidecar_has_started,
        ),
        case(
            "started-before-the-daemon",
            "pod-lifecycle 8.5",
            "a container that is older than the daemon begins with no verdict of Failure",
            started_before_the_daemon,
        ),
    ]
}

fn both() -> serde_json::Value {
    json!({"livenessProbe": exec_with("live", json!({"failureThreshold": 1})), "readinessProbe": exec("ready")})
}

impl Bed {
    /// A pod whose readiness and liveness stand at Success.
    async fn well(&self, word: &str) -> Outcome<std::sync::Arc<Pod>> {
        let pod = self.running_pod(word, both()).await?;
        self.turns(&pod, ("c1", Readiness), Success, seconds(2.5)).await?;
        self.turns(&pod, ("c1", Liveness), Success, seconds(2.5)).await?;
        Ok(pod)
    }

    /// The same row as a former manager's, which this one was never told of.
    fn former(&self, pod: &Pod, verdicts: &[(ProbeKind, ProbeVerdict)]) {
        let verdicts = [("c1".into(), verdicts.iter().copied().collect())].into();
        let kinds = [Readiness, Liveness].into();
        let row = PodProbes { verdicts, probes: [("m".to_owned(), kinds)].into() };
        self.stage.wiring().put(model::pod::uid(pod), row);
    }

    /// Both verdicts were Success all the time since then.
    fn both_stood(&self, mark: usize, pod: &Pod) -> Outcome {
        self.never_flipped(mark, pod, ("c1", Readiness), Success)?;
        self.never_flipped(mark, pod, ("c1", Liveness), Success)
    }

    /// Before any manager that is tried began, also one that has run for a while.
    fn long_ago(&self) -> Timestamp {
        Timestamp(self.stage.now().0 - 365 * 86_400_000_000_000)
    }

    /// No probe comes to an end any more.
    fn all_hang(&self) {
        self.script("live", [Reply::Hangs]);
        self.script("ready", [Reply::Hangs]);
    }
}

async fn crash_flips_nothing(bed: Bed) -> Outcome {
    let pod = bed.well("a").await?;
    bed.all_hang();
    let mark = bed.stage.mark();
    bed.stage.crash().await?;
    tokio::time::sleep(seconds(1.5)).await;
    bed.both_stood(mark, &pod)
}

async fn crash_goes_on(bed: Bed) -> Outcome {
    let pod = bed.well("a").await?;
    bed.stage.crash().await?;
    let more = bed.count_in("live", seconds(4.0)).await;
    demand((3..=5).contains(&more), || format!("it was probed {more} times in 4 s after its manager died"))?;
    bed.script("live", [Reply::Exits(1, "")]);
    bed.turns(&pod, ("c1", Liveness), Failure, seconds(2.5)).await
}

async fn crash_keeps_hold(bed: Bed) -> Outcome {
    bed.script("live", [Reply::Exits(1, "")]);
    let pod = bed.running_pod("a", both()).await?;
    bed.turns(&pod, ("c1", Liveness), Failure, seconds(2.5)).await?;
    let mark = bed.stage.mark();
    bed.stage.crash().await?;
    let more = bed.count_in("live", seconds(2.5)).await;
    demand(more == 0, || format!("it was probed {more} times"))?;
    bed.never_flipped(mark, &pod, ("c1", Liveness), Failure)
}

async fn crash_keeps_stops(bed: Bed) -> Outcome {
    let pod = bed.well("a").await?;
    bed.stop(&pod, false).await?;
    bed.stage.crash().await?;
    let more = bed.count_in("live", seconds(2.5)).await;
    demand(more == 0 && bed.row(&pod).is_none(), || format!("{more} probes, row {:?}", bed.row(&pod)))
}

async fn crash_keeps_ended_probes(bed: Bed) -> Outcome {
    let pod = bed.well("a").await?;
    bed.stop(&pod, true).await?;
    bed.stage.crash().await?;
    let live = bed.count_in("live", seconds(2.5)).await;
    demand(live == 0, || format!("liveness was probed {live} times"))?;
    demand(bed.row(&pod).is_some_and(|row| !row.has("m", Liveness)), || {
        "the row names liveness, or is gone".to_owned()
    })?;
    bed.stands(&pod, ("c1", Readiness), Some(Success))
}

async fn crash_in_a_call(bed: Bed) -> Outcome {
    let pod = bed.pod("a", one(both()));
    bed.runs(&pod);
    let stop = || StopProbes { uid: model::pod::uid(&pod), keep_readiness: false };
    for _ in 0..2 {
        let (started, crashed) = join(bed.stage.ask(StartProbes { pod: pod.clone() }), bed.stage.crash()).await;
        started.and(crashed)?;
        bed.start(&pod).await?;
        bed.turns(&pod, ("c1", Readiness), Success, seconds(2.5)).await?;
        let (stopped, crashed) = join(bed.stage.ask(stop()), bed.stage.crash()).await;
        stopped.and(crashed)?;
        bed.stop(&pod, false).await?;
        demand(bed.row(&pod).is_none(), || "its row stays after StopProbes was asked again".to_owned())?;
    }
    let more = bed.count_in("live", seconds(2.2)).await;
    demand(more == 0, || format!("it was probed {more} times after its end"))
}

async fn crash_in_a_probe(bed: Bed) -> Outcome {
    bed.script("live", [Reply::Takes(seconds(1.2), 1), Reply::Exits(0, "")]);
    let probes = json!({"livenessProbe": exec_with("live", json!({"failureThreshold": 1, "timeoutSeconds": 5}))});
    let pod = bed.running_pod("a", probes).await?;
    until("it is probed", seconds(1.9), || bed.count("live") == 1).await?;
    bed.stage.crash().await?;
    until("it is probed again", seconds(2.5), || bed.count("live") >= 2).await?;
    tokio::time::sleep(seconds(1.5)).await;
    for row in bed.rows_since(0, &pod)?.into_iter().flatten() {
        let is = row.verdict(&"c1".into(), Liveness);
        demand(is != Some(Failure), || "the outcome of a probe of the dead manager was counted".to_owned())?;
    }
    bed.stands(&pod, ("c1", Liveness), Some(Success))
}

async fn crash_loses_no_new_instance(bed: Bed) -> Outcome {
    let pod = bed.well("a").await?;
    bed.all_hang();
    let crashed = bed.stage.crash();
    bed.show(&pod, vec![running("m", "c2", bed.stage.now(), true)]);
    crashed.await?;
    bed.turns(&pod, ("c2", Readiness), Failure, seconds(2.5)).await?;
    bed.stands(&pod, ("c1", Readiness), None)
}

async fn many_crashes(bed: Bed) -> Outcome {
    let pod = bed.well("a").await?;
    let mark = bed.stage.mark();
    for _ in 0..5 {
        bed.stage.crash().await?;
        tokio::time::sleep(seconds(0.3)).await;
    }
    tokio::time::sleep(seconds(1.5)).await;
    bed.both_stood(mark, &pod)
}

async fn successor_flips_nothing(bed: Bed) -> Outcome {
    let pod = bed.well("a").await?;
    bed.all_hang();
    let mark = bed.stage.mark();
    bed.stage.take_over().await?;
    tokio::time::sleep(seconds(1.5)).await;
    bed.both_stood(mark, &pod)?;
    bed.script("live", [Reply::Exits(1, "")]);
    let before = bed.count("live");
    demand(before > 0, || "nothing was probed".to_owned())
}

async fn successor_keeps_ended_probes(bed: Bed) -> Outcome {
    let pod = bed.well("a").await?;
    bed.stop(&pod, true).await?;
    let live = bed.count("live");
    bed.stage.take_over().await?;
    let ready = bed.count_in("ready", seconds(3.5)).await;
    demand(ready >= 2, || format!("readiness was probed {ready} times in 3.5 s"))?;
    demand(bed.count("live") == live, || "liveness of a terminating pod was probed".to_owned())?;
    demand(bed.row(&pod).is_some_and(|row| !row.has("m", Liveness)), || "the row names liveness, or is gone".to_owned())
}

async fn row_of_a_former_manager(bed: Bed) -> Outcome {
    bed.all_hang();
    let pod = bed.pod("a", one(both()));
    bed.runs(&pod);
    bed.former(&pod, &[(Readiness, Success), (Liveness, Success)]);
    bed.stage.take_over().await?;
    let mark = bed.stage.mark();
    bed.start(&pod).await?;
    tokio::time::sleep(seconds(1.5)).await;
    demand(bed.count("ready") > 0, || "it is not probed".to_owned())?;
    bed.both_stood(mark, &pod)
}

async fn row_without_probes(bed: Bed) -> Outcome {
    let pod = bed.pod("a", one(both()));
    bed.runs(&pod);
    bed.stage.wiring().put(model::pod::uid(&pod), PodProbes::default());
    bed.stage.take_over().await?;
    bed.start(&pod).await?;
    bed.turns(&pod, ("c1", Readiness), Success, seconds(2.5)).await
}

async fn former_row_is_stopped(bed: Bed) -> Outcome {
    let pod = bed.pod("a", one(both()));
    bed.runs(&pod);
    bed.former(&pod, &[(Readiness, Success)]);
    bed.stage.take_over().await?;
    bed.stop(&pod, false).await?;
    demand(bed.row(&pod).is_none(), || "the row of a former manager stays after StopProbes".to_owned())
}

async fn former_row_goes(bed: Bed) -> Outcome {
    let (stays, gone) = (bed.well("stays").await?, bed.pod("gone", one(both())));
    bed.former(&gone, &[(Readiness, Success)]);
    bed.stage.take_over().await?;
    bed.retain(&[&stays]).await?;
    demand(bed.row(&gone).is_none(), || "the row of a pod that is gone stays after RetainProbes".to_owned())?;
    bed.stands(&stays, ("c1", Readiness), Some(Success))
}

async fn daemon_restart(bed: Bed) -> Outcome {
    let (old, young) = (bed.well("old").await?, bed.well("young").await?);
    let young_since = bed.stage.now();
    let bed = Bed::on(bed.stage.restart_daemon().await?);
    bed.all_hang();
    bed.show(&old, vec![running("m", "c1", bed.long_ago(), true)]);
    bed.show(&young, vec![running("m", "c1", young_since, true)]);
    bed.stage.begin().await?;
    bed.start(&old).await?;
    bed.start(&young).await?;
    tokio::time::sleep(seconds(1.9)).await;
    for pod in [&old, &young] {
        for row in bed.rows_since(0, pod)?.into_iter().flatten() {
            let is = row.verdict(&"c1".into(), Readiness);
            demand(is != Some(Failure), || "readiness of a ready pod turned to Failure".to_owned())?;
        }
    }
    bed.stage.close().await
}

async fn sidecar_has_started(bed: Bed) -> Outcome {
    bed.script("start", [Reply::Hangs]);
    let sidecar = json!({"restartPolicy": "Always", "startupProbe": exec("start")});
    let spec = json!({"initContainers": [container("s", sidecar)], "containers": [container("m", json!({}))]});
    let pod = bed.pod("a", spec);
    bed.show(&pod, vec![running("s", "s1", bed.long_ago(), true)]);
    bed.start(&pod).await?;
    bed.turns(&pod, ("s1", Startup), Success, seconds(1.9)).await
}

async fn started_before_the_daemon(bed: Bed) -> Outcome {
    bed.all_hang();
    let pod = bed.pod("a", one(both()));
    bed.show(&pod, vec![running("m", "c1", bed.long_ago(), true)]);
    bed.start(&pod).await?;
    until("it is probed", seconds(1.9), || bed.count("ready") > 0).await?;
    for row in bed.rows_since(0, &pod)?.into_iter().flatten() {
        let is = row.verdict(&"c1".into(), Readiness);
        demand(is != Some(Failure), || "readiness begins with Failure".to_owned())?;
    }
    Ok(())
}
