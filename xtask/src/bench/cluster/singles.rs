//! Pods one after the other: how long until each is Ready, and where each millisecond goes.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::Context;
use testbed::{ClusterNode, Watch};

use super::super::calls::{self, Calls};
use super::super::floor::Floor;
use super::super::pods::{idle, now};
use super::super::report::{Report, Unit, percentile};
use super::watched::{PODS, gone, moments, pod, ready, wait_for};

pub(super) const COUNT: usize = 20;

/// From POST to Ready, in the order of time. Three of them are the runtime's.
pub(super) const STEPS: [&str; 8] = [
    "POST -> seen on a watch",
    "-> RunPodSandbox",
    "RunPodSandbox",
    "-> CreateContainer",
    "CreateContainer",
    "-> StartContainer",
    "StartContainer",
    "-> Ready on a watch",
];

/// Milliseconds of each.
pub(super) type Steps = [f64; STEPS.len()];

/// When a pod was posted, by both clocks: the watch notes the one, containerd's log the other.
pub(super) struct Posted {
    at: Instant,
    unix: f64,
}

impl Posted {
    pub(super) fn now() -> Self {
        Self { at: Instant::now(), unix: now() }
    }
}

/// POST -> Ready and delete -> gone of single pods, over the runtime's own calls.
pub(super) fn rounds(node: &ClusterNode, watch: &Watch, floor: &Floor, report: &mut Report) -> anyhow::Result<()> {
    let admin = node.cluster.admin();
    let (mut posted, mut deleted) = (BTreeMap::new(), BTreeMap::new());
    for n in 0..COUNT {
        let name = format!("single-{n}");
        posted.insert(name.clone(), Posted::now());
        admin.create(PODS, &pod(&name, node.name()))?;
        wait_for(watch, &format!("{name} to be ready"), "single-", n + 1, ready)?;
        idle(Duration::from_millis(300));
    }
    for n in 0..COUNT {
        let name = format!("single-{n}");
        deleted.insert(name.clone(), Instant::now());
        admin.delete(&format!("{PODS}/{name}"))?;
        wait_for(watch, &format!("{name} to be gone"), "single-", n + 1, gone)?;
        idle(Duration::from_millis(100));
    }
    let seen = watch.seen();
    let starts = steps(node, &posted, watch)?;
    starts_over_floor(&starts, floor, report);
    let ends = moments(&seen, gone);
    let ends: Vec<f64> = deleted.iter().filter_map(|(n, at)| Some(ms(ends.get(n)?.duration_since(*at)))).collect();
    report.add("one pod deleted -> gone, p50", percentile(&ends, 0.5), Unit::Ms, None, String::new());
    idle(Duration::from_secs(2));
    requests_per_life(node, report)
}

/// Milliseconds of each of [`STEPS`], pod by pod.
pub(super) fn steps(
    node: &ClusterNode,
    posted: &BTreeMap<String, Posted>,
    watch: &Watch,
) -> anyhow::Result<Vec<Steps>> {
    let seen = watch.seen();
    let watched = [moments(&seen, |e| e.kind == "ADDED"), moments(&seen, ready)];
    let log = std::fs::read_to_string(node.bed.dir().join("containerd.log")).context("containerd's log")?;
    let calls = calls::read(&log);
    let of_pod = |(name, posted): (&String, &Posted)| {
        let moment =
            |of: &BTreeMap<String, Instant>| Some(posted.unix + of.get(name)?.duration_since(posted.at).as_secs_f64());
        of_start(posted.unix, moment(&watched[0])?, calls.get(name)?, moment(&watched[1])?)
    };
    let each = posted.iter().map(|p| of_pod(p).with_context(|| format!("no calls of {} in containerd's log", p.0)));
    each.collect()
}

fn of_start(posted: f64, added: f64, calls: &Calls, ready: f64) -> Option<Steps> {
    let (run, create, start) = (calls.sandbox?, calls.create?, calls.start?);
    let moments = [posted, added, run.0, run.1, create.0, create.1, start.0, start.1, ready];
    let mut steps = [0.0; STEPS.len()];
    steps.iter_mut().zip(moments.windows(2)).for_each(|(step, m)| *step = (m[1] - m[0]) * 1e3);
    Some(steps)
}

fn starts_over_floor(starts: &[Steps], floor: &Floor, report: &mut Report) {
    let all: Vec<f64> = starts.iter().map(|s| s.iter().sum()).collect();
    let least = percentile(&floor.each.iter().map(|d| ms(*d)).collect::<Vec<_>>(), 0.5);
    let p50 = percentile(&all, 0.5);
    let detail = format!("POST -> Ready p50 {p50:.0} ms, p99 {:.0} ms; floor {least:.0} ms", percentile(&all, 0.99));
    report.add("one pod POST -> Ready, over its CRI calls", p50 / least, Unit::Ratio, Some(1.12), detail);
    for (step, p50) in STEPS.iter().zip(medians(starts)) {
        report.add(&format!("  of it {step}, p50"), p50, Unit::Ms, None, String::new());
    }
}

/// The p50 of each step.
pub(super) fn medians(starts: &[Steps]) -> Steps {
    std::array::from_fn(|n| {
        let each: Vec<f64> = starts.iter().filter_map(|s| s.get(n).copied()).collect();
        percentile(&each, 0.5)
    })
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Requests that the daemon made for the single pods, from the server's own audit log.
fn requests_per_life(node: &ClusterNode, report: &mut Report) -> anyhow::Result<()> {
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    for r in node.cluster.requests_by(&node.user())? {
        let about = |name: &str| name.starts_with("single-");
        // The name of an event begins with the pod's; a new one is only known by its resource.
        if about(&r.object.1) || (r.resource == "events" && r.verb == "create") {
            *kinds.entry(format!("{} {}", r.verb, r.resource)).or_default() += 1;
        }
    }
    let each = |(k, n): (&String, &usize)| format!("{k} {:.1}", *n as f64 / COUNT as f64);
    let detail = kinds.iter().map(each).collect::<Vec<_>>().join(", ");
    let events: usize = kinds.iter().filter(|(k, _)| k.ends_with(" events")).map(|(_, n)| n).sum();
    let all: usize = kinds.values().sum();
    let per = |n: usize| n as f64 / COUNT as f64;
    report.add("API requests per pod life, without events", per(all - events), Unit::Count, Some(6.0), detail);
    report.add("API requests per pod life, with events", per(all), Unit::Count, None, String::new());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Calls, of_start};

    #[test]
    fn the_steps_of_a_start_are_its_calls_and_what_is_between_them() {
        let calls = Calls { sandbox: Some((1.0, 3.0)), create: Some((4.0, 5.0)), start: Some((5.5, 7.5)) };
        assert_eq!(
            of_start(0.25, 0.5, &calls, 8.0),
            Some([250.0, 500.0, 2000.0, 1000.0, 1000.0, 500.0, 2000.0, 500.0])
        );
        assert_eq!(of_start(0.25, 0.5, &Calls { start: None, ..calls }, 8.0), None);
    }
}
