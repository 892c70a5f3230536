//! Deaths, successors, rows and lines of others.

use contract::StatusManager;
use contract::status::{SetPodStatus, StatusEntry, TerminatePod};
use futures::future::join;
use ports::journal::Journal;
use serde_json::json;

use super::bed::{Bed, case, ended, running, turned, unready};
use crate::case::Case;
use crate::outcome::{Broken, Outcome, demand};

pub(super) fn cases() -> Vec<Case<StatusManager>> {
    [deaths(), successors()].into_iter().flatten().collect()
}

fn deaths() -> Vec<Case<StatusManager>> {
    vec![
        case(
            "crash-keeps-rows",
            "contract",
            "a death of the manager changes no row, and wakes no reader",
            crash_keeps_rows,
        )
        .core(),
        case(
            "crash-keeps-versions",
            "contract",
            "versions go on after a death of the manager, and a repetition is known as one",
            crash_keeps_versions,
        )
        .core(),
        case(
            "crash-keeps-finished",
            "contract",
            "what was finished before a death of the manager stays so",
            crash_keeps_finished,
        ),
        case(
            "crash-in-a-call",
            "contract",
            "a manager that dies over a message does what is asked when it is asked again, once",
            crash_in_a_call,
        )
        .core(),
        case(
            "crash-keeps-ends",
            "pod-lifecycle 9.6",
            "what had ended before a death of the manager stays ended",
            crash_keeps_ends,
        ),
    ]
}

fn successors() -> Vec<Case<StatusManager>> {
    vec![
        case(
            "successor-goes-on",
            "contract",
            "another manager that takes the place goes on with versions, startTime and times of conditions",
            successor_goes_on,
        )
        .core(),
        case(
            "rows-of-a-former-manager-go",
            "contract",
            "RetainPodStatuses takes rows of a former manager away, too",
            former_rows_go,
        )
        .core(),
        case(
            "new-pods-above-all",
            "contract",
            "no version of a new row is at or below one of a former manager's",
            new_pods_above_all,
        ),
        case(
            "lines-outlive-the-daemon",
            "contract",
            "a status that the API server has not seen is there when the daemon is started again",
            lines_outlive_the_daemon,
        ),
        case(
            "lines-beat-no-rows",
            "contract",
            "a line of the journal that is older than the row changes nothing",
            lines_beat_no_rows,
        ),
        case(
            "damaged-line",
            "contract",
            "a line of the journal that cannot be read costs that pod's line alone",
            damaged_line,
        ),
        case("clock-set-back", "contract", "a wall clock that is set back makes no version go back", clock_set_back),
        case("a-thousand-pods", "contract", "a thousand pods have their rows, and go at once", a_thousand_pods),
    ]
}

async fn crash_keeps_rows(bed: Bed) -> Outcome {
    let pod = bed.pod("a", "Always");
    let before = bed.stored(&pod, running("10.0.0.1")).await?;
    let mark = bed.stage.mark();
    bed.stage.crash().await?;
    bed.later().await;
    demand(*bed.row(&pod)? == *before, || "the row has changed".to_owned())?;
    let posts = bed.stage.posts_since(mark).len();
    demand(posts == 0, || format!("{posts} rows were posted"))
}

async fn crash_keeps_versions(bed: Bed) -> Outcome {
    let pod = bed.pod("a", "Always");
    bed.set(&pod, running("10.0.0.1")).await?;
    let before = bed.stored(&pod, running("10.0.0.2")).await?;
    bed.stage.crash().await?;
    let same = bed.stored(&pod, running("10.0.0.2")).await?;
    demand(*same == *before, || format!("a repetition made {same:?} of {before:?}"))?;
    let next = bed.stored(&pod, running("10.0.0.3")).await?;
    demand(next.version == before.version + 1, || format!("after {} came {}", before.version, next.version))?;
    demand(next.status.start_time == before.status.start_time, || "startTime has changed".to_owned())
}

async fn crash_keeps_finished(bed: Bed) -> Outcome {
    let pod = bed.pod("a", "Always");
    bed.set(&pod, running("10.0.0.1")).await?;
    bed.terminate(&pod).await?;
    bed.stage.crash().await?;
    let mut late = (*bed.row(&pod)?.status).clone();
    late.pod_ip = Some("10.0.0.2".into());
    let row = bed.stored(&pod, late).await?;
    demand(row.finished, || "it is not finished any more".to_owned())
}

async fn crash_in_a_call(bed: Bed) -> Outcome {
    let pod = bed.pod("a", "Always");
    bed.set(&pod, running("10.0.0.1")).await?;
    let before = bed.row(&pod)?.version;
    let mark = bed.stage.mark();
    let set = SetPodStatus { pod: pod.clone(), status: unready("10.0.0.2").into() };
    let (set, crashed) = join(bed.stage.ask(set), bed.stage.crash()).await;
    set.and(crashed)?;
    bed.set(&pod, unready("10.0.0.2")).await?;
    let (ended, crashed) = join(bed.stage.ask(TerminatePod { pod: pod.clone() }), bed.stage.crash()).await;
    ended.and(crashed)?;
    bed.terminate(&pod).await?;
    let rows = bed.versions_grew(mark, &pod, before)?;
    let row = bed.row(&pod)?;
    demand(rows == 2 && row.version == before + 2, || {
        format!("two changes made {rows} rows, version {}", row.version)
    })?;
    demand(row.finished, || "it is not finished".to_owned())
}

async fn crash_keeps_ends(bed: Bed) -> Outcome {
    let pod = bed.pod("a", "Never");
    let before = bed.stored(&pod, ended(0)).await?;
    bed.stage.crash().await?;
    bed.set(&pod, running("10.0.0.9")).await?;
    demand(*bed.row(&pod)? == *before, || "a container that had ended runs again".to_owned())
}

async fn successor_goes_on(bed: Bed) -> Outcome {
    let pod = bed.pod("a", "Always");
    for n in 1..=3 {
        bed.set(&pod, running(&format!("10.0.0.{n}"))).await?;
    }
    let before = bed.row(&pod)?;
    bed.later().await;
    bed.stage.take_over().await?;
    let row = bed.stored(&pod, running("10.0.0.4")).await?;
    demand(row.version == before.version + 1, || format!("after {} came {}", before.version, row.version))?;
    let times = |row: &StatusEntry| (row.status.start_time.clone(), turned(&row.status, "Ready"));
    demand(times(&row) == times(&before), || format!("times went from {:?} to {:?}", times(&before), times(&row)))
}

async fn former_rows_go(bed: Bed) -> Outcome {
    let (stays, goes) = (bed.pod("stays", "Always"), bed.pod("goes", "Always"));
    bed.set(&stays, running("10.0.0.1")).await?;
    bed.set(&goes, running("10.0.0.2")).await?;
    bed.stage.take_over().await?;
    bed.retain(&[&stays]).await?;
    demand(bed.found(&goes).is_none(), || "the row of a pod that is gone stays".to_owned())?;
    bed.row(&stays).map(drop)
}

async fn new_pods_above_all(bed: Bed) -> Outcome {
    let (old, new) = (bed.pod("old", "Always"), bed.pod("new", "Always"));
    for n in 1..=5 {
        bed.set(&old, running(&format!("10.0.0.{n}"))).await?;
    }
    let before = bed.row(&old)?.version;
    bed.stage.take_over().await?;
    let row = bed.stored(&new, running("10.0.0.1")).await?;
    demand(row.version > before, || format!("a new pod has version {} beside {before}", row.version))
}

/// A line as `status-syncer` leaves it for a status that the API server has not taken.
fn line(version: u64) -> Vec<u8> {
    let status = serde_json::to_value(ended(42)).unwrap_or_default();
    let line = json!({"version": version, "namespace": "ns", "name": "p", "finished": false,
        "changed_ns": 1_767_225_600_000_000_000_i64, "status": status});
    line.to_string().into_bytes()
}

async fn lines_outlive_the_daemon(bed: Bed) -> Outcome {
    let pod = bed.pod("a", "Never");
    let key = format!("status/{}", model::pod::uid(&pod));
    bed.stage.journal().save(&key, &line(17)).map_err(|e| Broken(e.to_string()))?;
    let bed = Bed { stage: bed.stage.restart_daemon().await? };
    bed.stage.begin().await?;
    // Whatever comes first finds it there.
    bed.set(&pod, running("10.0.0.9")).await?;
    let row = bed.row(&pod)?;
    let said = (row.version, row.status.phase.as_deref());
    demand(said == (17, Some("Failed")), || format!("version and phase are {said:?}"))?;
    bed.stage.close().await
}

async fn lines_beat_no_rows(bed: Bed) -> Outcome {
    let pod = bed.pod("a", "Never");
    for n in 1..=20 {
        bed.set(&pod, running(&format!("10.0.0.{n}"))).await?;
    }
    let before = bed.row(&pod)?;
    let key = format!("status/{}", model::pod::uid(&pod));
    bed.stage.journal().save(&key, &line(17)).map_err(|e| Broken(e.to_string()))?;
    for succeeds in [false, true] {
        if succeeds {
            bed.stage.take_over().await?
        } else {
            bed.stage.crash().await?
        }
        bed.set(&pod, running("10.0.0.20")).await?;
        demand(*bed.row(&pod)? == *before, || format!("after {before:?} it is {:?}", bed.found(&pod)))?;
    }
    Ok(())
}

async fn damaged_line(bed: Bed) -> Outcome {
    let (good, bad) = (bed.pod("good", "Never"), bed.pod("bad", "Always"));
    let key = |pod| format!("status/{}", model::pod::uid(pod));
    let journal = bed.stage.journal();
    let saved = journal.save(&key(&bad), b"{\"version\":").and_then(|()| journal.save(&key(&good), &line(4)));
    saved.map_err(|e| Broken(e.to_string()))?;
    let bed = Bed { stage: bed.stage.restart_daemon().await? };
    bed.stage.begin().await?;
    bed.set(&bad, running("10.0.0.1")).await?;
    demand(bed.row(&good)?.version == 4, || "the other pod's line is lost".to_owned())?;
    bed.row(&bad)?;
    bed.stage.close().await
}

async fn clock_set_back(bed: Bed) -> Outcome {
    let pod = bed.pod("a", "Always");
    let before = bed.stored(&pod, running("10.0.0.1")).await?;
    bed.stage.set_clock_by(-3_600_000_000_000);
    let row = bed.stored(&pod, unready("10.0.0.1")).await?;
    demand(row.version == before.version + 1, || format!("after {} came {}", before.version, row.version))?;
    demand(row.status.start_time == before.status.start_time, || "startTime has changed".to_owned())
}

async fn a_thousand_pods(bed: Bed) -> Outcome {
    let pods: Vec<_> = (0..1000).map(|n| bed.pod(&n.to_string(), "Always")).collect();
    for pod in &pods {
        bed.set(pod, running("10.0.0.1")).await?;
    }
    let there = pods.iter().filter(|pod| bed.found(pod).is_some()).count();
    demand(there == 1000, || format!("{there} of 1000 have a row"))?;
    bed.retain(&[]).await?;
    let left = pods.iter().filter(|pod| bed.found(pod).is_some()).count();
    demand(left == 0, || format!("{left} rows are left"))
}
