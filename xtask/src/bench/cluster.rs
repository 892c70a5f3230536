//! The figures of a node that serves a real API server, seen by somebody who watches.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::Context;
use testbed::{BosunOptions, ClusterNode, ClusterOptions, NodeOptions, Options, Watch};

use super::floor::{self, Floor};
use super::pods::idle;
use super::report::{Report, Unit};
use super::steady;
use watched::{PODS, gone, is_ready, moments, pod, ready, wait_for};

mod calls;
mod probes;
mod singles;
mod volumes;
mod watched;

/// Requests in flight while many pods are created or deleted.
const HANDS: usize = 8;
/// An idle node is listened to for this long.
const QUIET: Duration = Duration::from_secs(60);

pub(super) fn rounds(
    pods: usize,
    volumes_only: bool,
    program: std::path::PathBuf,
    report: &mut Report,
) -> anyhow::Result<()> {
    let bosun = BosunOptions { program, log: "warn".into(), ..BosunOptions::default() };
    let mut node = ClusterNode::start(NodeOptions {
        bed: Options { say: |s| eprintln!("  {s}"), ..Options::default() },
        cluster: ClusterOptions { say: |s| eprintln!("  {s}"), ..ClusterOptions::default() },
        bosun,
        ..NodeOptions::default()
    })?;
    node.wait_ready(Duration::from_secs(60))?;
    if volumes_only {
        let watch = node.cluster.admin().watch(PODS)?;
        return volumes::rounds(&node, &watch, report).context("round of volumes");
    }
    let single = floor::measure(&node.bed, singles::COUNT, 1).context("floor of one pod")?;
    let before = floor::measure(&node.bed, pods, HANDS).context("floor of many")?;
    idle(Duration::from_secs(5));
    report.add("RSS, no pods", steady::rss(&node.bosun)?, Unit::MiB, Some(15.0), String::new());
    let watch = node.cluster.admin().watch(PODS)?;
    singles::rounds(&node, &watch, &single, report).context("round of single pods")?;
    calls::per_life(&node, &watch, report).context("round of system calls")?;
    probes::exec(&node, &watch, report).context("round of probes")?;
    let took = many(&node, &watch, pods, report).context("round of many pods")?;
    idle(Duration::from_secs(10));
    report.add(&format!("RSS, {} pods", pods), steady::rss(&node.bosun)?, Unit::MiB, Some(24.0), String::new());
    steady::cpu(&node.bosun, pods, report).context("round cpu")?;
    quiet(&node, report).context("idle traffic")?;
    again(&mut node, &watch, report).context("restart of the daemon")?;
    let removed = remove(&node, &watch, pods, report).context("removal")?;
    let after = floor::measure(&node.bed, pods, HANDS).context("floor of many, again")?;
    volumes::rounds(&node, &watch, report).context("round of volumes")?;
    over_script(pods, [took, removed], [&before, &after], report);
    Ok(())
}

/// Runs `work` for each name, [`HANDS`] at a time.
fn by_many_hands(names: &[String], work: impl Fn(&str) -> anyhow::Result<()> + Sync) -> anyhow::Result<()> {
    let next = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let hand = || -> anyhow::Result<()> {
            while let Some(name) = names.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed)) {
                work(name)?;
            }
            Ok(())
        };
        let hands: Vec<_> = (0..HANDS).map(|_| scope.spawn(hand)).collect();
        hands.into_iter().try_for_each(|h| h.join().map_err(|_| anyhow::anyhow!("a hand panicked"))?)
    })
}

fn names(count: usize) -> Vec<String> {
    (0..count).map(|n| format!("many-{n}")).collect()
}

fn many(node: &ClusterNode, watch: &Watch, count: usize, report: &mut Report) -> anyhow::Result<f64> {
    let admin = node.cluster.admin();
    let (begin, before, others) = (Instant::now(), steady::used(&node.bosun)?, Others::now(node));
    by_many_hands(&names(count), |name| Ok(admin.create(PODS, &pod(name, node.name())).map(drop)?))?;
    let created = begin.elapsed().as_secs_f64();
    wait_for(watch, "all pods to be ready", "many-", count, ready)?;
    let last = moments(&watch.seen(), ready).into_values().max().unwrap_or(begin);
    let took = last.duration_since(begin).as_secs_f64();
    let detail = format!("all created after {created:.2} s; {}", others.since(node));
    report.add(&format!("{count} pods created, all Ready"), took, Unit::Seconds, None, detail);
    spent(node, before, &format!("processor time of {count} starts"), 0.8, report)?;
    Ok(took)
}

fn remove(node: &ClusterNode, watch: &Watch, count: usize, report: &mut Report) -> anyhow::Result<f64> {
    let admin = node.cluster.admin();
    let (begin, before, others) = (Instant::now(), steady::used(&node.bosun)?, Others::now(node));
    by_many_hands(&names(count), |name| Ok(admin.delete(&format!("{PODS}/{name}")).map(drop)?))?;
    wait_for(watch, "all pods to be gone", "many-", count, gone)?;
    let last = moments(&watch.seen(), gone).into_values().max().unwrap_or(begin);
    let took = last.duration_since(begin).as_secs_f64();
    report.add(&format!("{count} pods deleted, all gone"), took, Unit::Seconds, None, others.since(node));
    spent(node, before, &format!("processor time of {count} deletions"), 0.6, report)?;
    Ok(took)
}

/// Processor time, in seconds, of who works on the same cores: it is what the script's round did not have beside it.
struct Others {
    containerd: f64,
    control_plane: f64,
    bench: f64,
}

impl Others {
    fn now(node: &ClusterNode) -> Self {
        let of = |pid: Option<u32>| pid.and_then(testbed::usage).map_or(0.0, |u| u.cpu.as_secs_f64());
        Self {
            containerd: of(node.bed.runtime_pid()),
            control_plane: node.cluster.cpu().as_secs_f64(),
            bench: of(Some(std::process::id())),
        }
    }

    fn since(&self, node: &ClusterNode) -> String {
        let now = Self::now(node);
        let [containerd, plane, bench] =
            [now.containerd - self.containerd, now.control_plane - self.control_plane, now.bench - self.bench];
        format!("processor time beside it: containerd {containerd:.2}, control plane {plane:.2}, bench {bench:.2} s")
    }
}

/// What the daemon used since `before`, with what it does right after the last pod.
fn spent(node: &ClusterNode, before: Duration, what: &str, must: f64, report: &mut Report) -> anyhow::Result<()> {
    idle(Duration::from_secs(2));
    let spent = steady::used(&node.bosun)?.saturating_sub(before);
    report.add(what, spent.as_secs_f64(), Unit::Seconds, Some(must), String::new());
    Ok(())
}

/// What an idle node says to the API server.
fn quiet(node: &ClusterNode, report: &mut Report) -> anyhow::Result<()> {
    let before = node.cluster.requests_by(&node.user())?.len();
    idle(QUIET);
    let all = node.cluster.requests_by(&node.user())?;
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    for r in all.iter().skip(before) {
        *kinds.entry(format!("{} {}", r.verb, r.resource)).or_default() += 1;
    }
    let other: usize = kinds.iter().filter(|(k, _)| !k.ends_with("leases")).map(|(_, n)| n).sum();
    let detail = kinds.iter().map(|(k, n)| format!("{k}: {n}")).collect::<Vec<_>>().join(", ");
    let what = format!("requests of an idle node but leases, in {} s", QUIET.as_secs());
    report.add(&what, other as f64, Unit::Count, Some(1.0), detail);
    Ok(())
}

/// The daemon alone is killed and started: what does a watcher of the pods see?
fn again(node: &mut ClusterNode, watch: &Watch, report: &mut Report) -> anyhow::Result<()> {
    watch.forget();
    let before = node.cluster.requests_by(&node.user())?.len();
    node.bosun.kill();
    node.start_again()?;
    idle(Duration::from_secs(20));
    let requests = node.cluster.requests_by(&node.user())?;
    let written = requests.iter().skip(before).filter(|r| r.resource == "pods/status").count();
    let flips = watch.seen().iter().filter(|e| e.kind == "MODIFIED" && !is_ready(&e.object)).count();
    let what = "restart of the daemon: statuses written";
    report.add(what, written as f64, Unit::Count, None, String::new());
    report.add("restart of the daemon: not-ready pods seen", flips as f64, Unit::Count, Some(0.0), String::new());
    Ok(())
}

fn over_script(pods: usize, took: [f64; 2], script: [&Floor; 2], report: &mut Report) {
    let mean = |f: fn(&Floor) -> f64| script.iter().map(|s| f(s)).sum::<f64>() / 2.0;
    let detail = |f: fn(&Floor) -> f64| format!("script before and after: {:.2}, {:.2} s", f(script[0]), f(script[1]));
    let (start, remove) = (|f: &Floor| f.start.as_secs_f64(), |f: &Floor| f.remove.as_secs_f64());
    let what = format!("{pods} pods created -> Ready, over the script");
    report.add(&what, took[0] / mean(start), Unit::Ratio, Some(1.12), detail(start));
    let what = format!("{pods} pods deleted -> gone, over the script");
    report.add(&what, took[1] / mean(remove), Unit::Ratio, Some(1.05), detail(remove));
}
