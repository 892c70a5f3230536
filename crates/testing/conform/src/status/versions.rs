//! What is kept of a status, and what makes a version.

use contract::StatusManager;
use serde_json::json;

use super::bed::{Bed, case, ended, running, status, turned, unready};
use crate::case::Case;
use crate::outcome::{Outcome, demand};

pub(super) fn cases() -> Vec<Case<StatusManager>> {
    vec![
        case(
            "stored-before-answered",
            "contract",
            "the row is there when SetPodStatus is answered, with the pod's name and when it changed",
            stored_before_answered,
        )
        .core(),
        case(
            "equal-is-no-version",
            "pod-lifecycle 9.6",
            "a status that says nothing new makes no version and wakes no reader",
            equal_is_no_version,
        )
        .core(),
        case("change-is-a-version", "pod-lifecycle 9.6", "each change makes the next version", change_is_a_version)
            .core(),
        case("latest-wins", "contract", "of a hundred statuses the last one stands", latest_wins).core(),
        case("pods-apart", "contract", "a pod's status changes no other pod's row", pods_apart).core(),
        case(
            "start-time",
            "pod-lifecycle 9.6",
            "startTime is that of the first status, whatever later ones say",
            start_time,
        )
        .core(),
        case(
            "start-time-of-the-api",
            "pod-lifecycle 9.6",
            "without a row the API's startTime is gone on with",
            start_time_of_the_api,
        ),
        case("generation", "pod-lifecycle 9.6", "observedGeneration is the pod's generation", generation),
        case(
            "transition-times",
            "pod-lifecycle 9.6",
            "a condition's time is when it turned, and stays until it turns again",
            transition_times,
        )
        .core(),
        case("whole-seconds", "pod-lifecycle 9.6", "times are cut to whole seconds", whole_seconds),
        case(
            "long-messages",
            "pod-lifecycle 9.6",
            "termination messages are cut to their share of 12 KiB",
            long_messages,
        ),
        case(
            "ended-stays-ended",
            "pod-lifecycle 9.6",
            "a status in which a container runs again that may not is dropped whole",
            ended_stays_ended,
        )
        .core(),
        case(
            "ended-in-the-api",
            "pod-lifecycle 9.6",
            "that holds too for what ended in the API's status, where there is no row",
            ended_in_the_api,
        ),
        case(
            "ended-may-run-again",
            "pod-lifecycle 9.6",
            "a container that failed may run again with OnFailure, any with Always",
            ended_may_run_again,
        ),
    ]
}

async fn stored_before_answered(bed: Bed) -> Outcome {
    let pod = bed.pod("a", "Always");
    let before = bed.stage.now();
    let row = bed.stored(&pod, running("10.0.0.1")).await?;
    let said = (row.namespace.as_str(), row.name.as_str(), row.status.pod_ip.as_deref(), row.finished);
    demand(said == ("ns", "p", Some("10.0.0.1"), false), || format!("the row says {said:?}"))?;
    let is_now = (before..=bed.stage.now()).contains(&row.changed_at);
    demand(is_now && row.version > 0, || format!("version {} was made at {:?}", row.version, row.changed_at))
}

async fn equal_is_no_version(bed: Bed) -> Outcome {
    let pod = bed.pod("a", "Always");
    let first = bed.stored(&pod, running("10.0.0.1")).await?;
    let mark = bed.stage.mark();
    bed.later().await;
    for same in [running("10.0.0.1"), (*first.status).clone(), running("10.0.0.1")] {
        bed.set(&pod, same).await?;
    }
    let posts = bed.stage.posts_since(mark).len();
    demand(posts == 0, || format!("{posts} rows of a status that says nothing new"))?;
    demand(*bed.row(&pod)? == *first, || "the row has changed".to_owned())
}

async fn change_is_a_version(bed: Bed) -> Outcome {
    let pod = bed.pod("a", "Always");
    let first = bed.stored(&pod, running("10.0.0.1")).await?.version;
    for n in 1..=3_u64 {
        let row = bed.stored(&pod, running(&format!("10.0.0.{}", n + 1))).await?;
        demand(row.version == first + n, || format!("after {n} changes version {first} is {}", row.version))?;
    }
    Ok(())
}

async fn latest_wins(bed: Bed) -> Outcome {
    let pod = bed.pod("a", "Always");
    let all = (0..100).map(|n| bed.set(&pod, running(&format!("10.0.1.{n}"))));
    for answer in futures::future::join_all(all).await {
        answer?;
    }
    let row = bed.row(&pod)?;
    demand(row.status.pod_ip.as_deref() == Some("10.0.1.99"), || format!("it says {:?}", row.status.pod_ip))?;
    bed.versions_grew(0, &pod, 0).map(drop)
}

async fn pods_apart(bed: Bed) -> Outcome {
    let (a, b) = (bed.pod("a", "Always"), bed.pod("b", "Always"));
    let first = bed.stored(&a, running("10.0.0.1")).await?;
    bed.set(&b, running("10.0.0.2")).await?;
    bed.terminate(&b).await?;
    demand(*bed.row(&a)? == *first, || format!("the other's row is {:?}", bed.found(&a)))
}

async fn start_time(bed: Bed) -> Outcome {
    let pod = bed.pod("a", "Always");
    let first = bed.stored(&pod, running("10.0.0.1")).await?.status.start_time.clone();
    demand(first.is_some(), || "the first status has no startTime".to_owned())?;
    bed.later().await;
    let mut other = unready("10.0.0.2");
    other.start_time = bed.stage.now().to_api();
    let now = bed.stored(&pod, other).await?.status.start_time.clone();
    demand(now == first, || format!("startTime was {first:?} and is {now:?}"))?;
    bed.terminate(&pod).await?;
    let at_the_end = bed.row(&pod)?.status.start_time.clone();
    demand(at_the_end == first, || format!("startTime was {first:?} and is {at_the_end:?} at the end"))
}

async fn start_time_of_the_api(bed: Bed) -> Outcome {
    let mut pod = (*bed.pod("a", "Always")).clone();
    let told = fakes::object(json!({"startTime": "2025-12-31T23:00:00Z", "phase": "Running"}));
    pod.status = Some(told);
    let wanted = pod.status.as_ref().and_then(|s| s.start_time.clone());
    let row = bed.stored(&pod.into(), running("10.0.0.1")).await?;
    demand(row.status.start_time == wanted, || format!("startTime is {:?}, not {wanted:?}", row.status.start_time))
}

async fn generation(bed: Bed) -> Outcome {
    let row = bed.stored(&bed.pod("a", "Always"), running("10.0.0.1")).await?;
    let is = row.status.observed_generation;
    demand(is == Some(3), || format!("observedGeneration is {is:?}, not 3"))
}

async fn transition_times(bed: Bed) -> Outcome {
    let pod = bed.pod("a", "Always");
    let times = |status: &model::core::PodStatus| turned(status, "Ready");
    let first = times(&bed.stored(&pod, running("10.0.0.1")).await?.status);
    demand(first.is_some(), || "the condition has no time".to_owned())?;
    bed.later().await;
    let same = times(&bed.stored(&pod, running("10.0.0.2")).await?.status);
    demand(same == first, || format!("Ready did not turn, and its time went from {first:?} to {same:?}"))?;
    let other = times(&bed.stored(&pod, unready("10.0.0.2")).await?.status);
    demand(other != first, || format!("Ready turned, and its time is still {first:?}"))
}

async fn whole_seconds(bed: Bed) -> Outcome {
    let state = json!({"running": {"startedAt": "2026-01-01T00:00:00.750Z"}});
    let row = bed.stored(&bed.pod("a", "Always"), status("Running", "True", "10.0.0.1", state)).await?;
    let text = serde_json::to_string(&*row.status).unwrap_or_default();
    demand(text.contains("2026-01-01T00:00:00Z"), || format!("a time is not cut: {text}"))
}

async fn long_messages(bed: Bed) -> Outcome {
    let state = json!({"terminated": {"exitCode": 1, "message": "#".repeat(20_000)}});
    let row = bed.stored(&bed.pod("a", "Always"), status("Running", "False", "10.0.0.1", state)).await?;
    let text = serde_json::to_string(&*row.status).unwrap_or_default();
    let length = text.matches('#').count();
    demand(length == 12_288, || format!("{length} bytes of a message are kept"))
}

async fn ended_stays_ended(bed: Bed) -> Outcome {
    for policy in ["Never", "OnFailure"] {
        let pod = bed.pod(policy, policy);
        let before = bed.stored(&pod, ended(0)).await?;
        bed.set(&pod, running("10.0.0.9")).await?;
        demand(*bed.row(&pod)? == *before, || format!("with {policy} a container that had ended well runs again"))?;
    }
    Ok(())
}

async fn ended_in_the_api(bed: Bed) -> Outcome {
    let mut pod = (*bed.pod("a", "Never")).clone();
    pod.status = Some(ended(0));
    let pod = pod.into();
    bed.set(&pod, running("10.0.0.9")).await?;
    demand(bed.found(&pod).is_none(), || format!("it is stored: {:?}", bed.found(&pod)))
}

async fn ended_may_run_again(bed: Bed) -> Outcome {
    for (policy, exit_code) in [("OnFailure", 1), ("Always", 0)] {
        let pod = bed.pod(policy, policy);
        bed.set(&pod, ended(exit_code)).await?;
        let row = bed.stored(&pod, running("10.0.0.9")).await?;
        demand(row.status.pod_ip.as_deref() == Some("10.0.0.9"), || format!("with {policy} the status was dropped"))?;
    }
    Ok(())
}
