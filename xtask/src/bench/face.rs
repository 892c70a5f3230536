//! What do the node's endpoints cost: metrics, statistics, logs for many, and the way to a container's terminal?

use std::collections::BTreeMap;
use std::io::Read;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use testbed::{Bosun, TestBed};

use super::pods::{idle, talker, wait_gone, wait_running};
use super::report::{Report, Unit, percentile};
use super::steady::used;

mod exec;

/// Followers of one log.
const FOLLOWERS: usize = 100;
/// What the followed container writes per second: lines of 100 bytes.
const BYTES_PER_SECOND: f64 = 1_000_000.0;
/// How long followers are measured.
const FOLLOWED: Duration = Duration::from_secs(10);
/// Answers of this age or younger may be given twice, so questions come further apart.
const APART: Duration = Duration::from_millis(1_200);

/// Asks and reads to the end of the answer; answers the size of the body.
fn ask(bosun: &Bosun, path: &str) -> anyhow::Result<usize> {
    let mut body = Vec::new();
    Ok(bosun.open(path)?.read_to_end(&mut body)?)
}

/// What answers to one path cost.
pub(super) struct Cost {
    /// CPU of the daemon for one answer, in ms.
    pub(super) cpu: f64,
    detail: String,
}

/// The middle of so many answers: what the daemon does besides, such as the steps of pods, falls into some. Those in which a thread
/// ended do not count: what it used is known to ten milliseconds only.
pub(super) fn cost(bosun: &Bosun, path: &str, times: usize) -> anyhow::Result<Cost> {
    ask(bosun, path)?;
    idle(APART);
    let (mut size, mut took, mut cpu) = (0, Vec::new(), Vec::new());
    for _ in 0..times {
        let (before, begin) = (threads(bosun)?, Instant::now());
        size = ask(bosun, path)?;
        took.push(begin.elapsed().as_secs_f64() * 1e3);
        idle(APART);
        let after = threads(bosun)?;
        if before.keys().all(|thread| after.contains_key(thread)) {
            let [before, after] = [before, after].map(|all| all.into_values().sum::<Duration>());
            cpu.push(after.saturating_sub(before).as_secs_f64() * 1e3);
        }
    }
    if cpu.len() * 2 < times {
        bail!("threads ended in {} of {times} answers to {path}: what it costs cannot be told", times - cpu.len());
    }
    let detail = format!("{} KiB, answered in {:.1} ms (p50)", size / 1024, percentile(&took, 0.5));
    Ok(Cost { cpu: percentile(&cpu, 0.5), detail })
}

fn threads(bosun: &Bosun) -> anyhow::Result<BTreeMap<i32, Duration>> {
    let pid = i32::try_from(bosun.pid().context("bosun is gone")?)?;
    testbed::cpu_of_each_thread(pid).context("the threads of bosun cannot be read")
}

/// CPU of the daemon per answer, with all pods there.
pub(super) fn numbers(bosun: &Bosun, pods: usize, report: &mut Report) -> anyhow::Result<()> {
    let limits = [("/metrics", Some(10.0)), ("/stats/summary", Some(12.0))];
    for (path, must) in limits.into_iter().chain([("/metrics/resource", None), ("/metrics/cadvisor", None)]) {
        let Cost { cpu, detail } = cost(bosun, path, 20)?;
        report.add(&format!("CPU of {path}, {pods} pods"), cpu, Unit::Ms, must, detail);
    }
    Ok(())
}

/// One container writes 1 MB/s, a hundred clients follow.
pub(super) fn followers(bosun: &Bosun, report: &mut Report) -> anyhow::Result<()> {
    const SCRIPT: &str = "L=$(head -c 99 /dev/zero | tr '\\0' x); B=$(for n in $(seq 1000); do echo $L; done); while :; do echo \"$B\"; usleep 97000; done";
    let name = "talks";
    bosun.put("talks.yaml", &talker(name, SCRIPT))?;
    wait_running(bosun, 1, Duration::from_secs(60))?;
    let path = format!("/containerLogs/default/{name}-bed/main?follow=true&tailLines=0");
    let streams: Vec<_> = (0..FOLLOWERS).map(|_| bosun.open(&path)).collect::<Result<_, _>>()?;
    let rss = super::steady::rss(bosun)?;
    let (begin, before) = (Instant::now(), used(bosun)?);
    let readers: Vec<_> = streams.into_iter().map(|s| std::thread::spawn(move || drain(s, begin))).collect();
    let counts: Vec<f64> = readers.into_iter().map(|r| r.join().map_or(0.0, |n| n as f64)).collect();
    let seconds = begin.elapsed().as_secs_f64();
    let share = used(bosun)?.saturating_sub(before).as_secs_f64() / seconds * 100.0;
    let (least, most) = (counts.iter().copied().fold(f64::MAX, f64::min), counts.iter().copied().fold(0.0, f64::max));
    let detail = format!(
        "least {:.2}, most {:.2} MB/s per follower, {share:.0} % of a core",
        least / seconds / 1e6,
        most / seconds / 1e6
    );
    // What a follower lacks of what the one that got most has.
    report.add(
        "logs: 100 followers at 1 MB/s, missed by the slowest",
        (1.0 - least / most.max(1.0)) * 100.0,
        Unit::Count,
        Some(2.0),
        detail,
    );
    report.add(
        "logs: rate of the slowest below the writer's",
        BYTES_PER_SECOND / (least / seconds).max(1.0),
        Unit::Ratio,
        Some(1.1),
        String::new(),
    );
    let grown = super::steady::rss(bosun)? - rss;
    report.add("logs: RSS grown by 100 followers", grown, Unit::MiB, None, String::new());
    bosun.remove("talks.yaml")?;
    wait_gone(bosun, Duration::from_secs(60))
}

fn drain(mut stream: impl Read, begin: Instant) -> usize {
    let (mut all, mut buffer) = (0, vec![0; 1 << 16]);
    while begin.elapsed() < FOLLOWED {
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => break,
            Ok(n) => all += n,
        }
    }
    all
}

/// Rounds that need a bed without other pods.
pub(super) fn rounds(bed: &TestBed, bosun: &Bosun, report: &mut Report) -> anyhow::Result<()> {
    followers(bosun, report).context("followers")?;
    exec::round_trips(bed, bosun, report).context("exec")
}
