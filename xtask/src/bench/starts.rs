//! How long from a manifest in the folder to a running container, over the calls that the runtime needs anyway?

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::Context;
use testbed::{Bosun, TestBed, wait_until};

use super::calls;
use super::floor::Floor;
use super::pods::{idle, manifest, now, wait_gone, wait_running};
use super::report::{Report, Unit, percentile};

fn log(bed: &TestBed) -> anyhow::Result<String> {
    std::fs::read_to_string(bed.dir().join("containerd.log")).context("containerd's log")
}

/// Twenty pods, one after the other.
pub(super) fn single(bed: &TestBed, bosun: &Bosun, floor: &Floor, report: &mut Report) -> anyhow::Result<()> {
    let mut put = BTreeMap::new();
    for n in 0..20 {
        let name = format!("single-{n}");
        put.insert(format!("{name}-bed"), now());
        bosun.put(&format!("{name}.yaml"), &manifest(&name))?;
        wait_running(bosun, n + 1, Duration::from_secs(30))?;
        idle(Duration::from_millis(300));
    }
    let pods = calls::read(&log(bed)?);
    let (mut overhead, mut gaps) = (Vec::new(), [const { Vec::new() }; 3]);
    for (name, put) in &put {
        let found = pods.get(name).and_then(|c| Some((c.spent_and_end()?, c.gaps(*put)?)));
        let ((spent, end), waits) = found.with_context(|| format!("containerd's log lacks the calls of {name}"))?;
        overhead.push((end - put - spent) * 1e3);
        gaps.iter_mut().zip(waits).for_each(|(all, gap)| all.push(gap * 1e3));
    }
    let [first, second, third] = gaps.map(|all| percentile(&all, 0.5));
    let waits = format!("before the calls {first:.1}, {second:.1}, {third:.1} ms");
    let each: Vec<f64> = floor.each.iter().map(|d| d.as_secs_f64() * 1e3).collect();
    let detail = format!("floor {:.0} ms; {waits}", percentile(&each, 0.5));
    report.add("one pod start over its CRI calls, p50", percentile(&overhead, 0.5), Unit::Ms, Some(10.0), detail);
    report.add(
        "one pod start over its CRI calls, p99",
        percentile(&overhead, 0.99),
        Unit::Ms,
        Some(40.0),
        String::new(),
    );
    for n in 0..20 {
        bosun.remove(&format!("single-{n}.yaml"))?;
    }
    wait_gone(bosun, Duration::from_secs(60))
}

/// All pods at once; answers the seconds that it took.
pub(super) fn many(bed: &TestBed, bosun: &Bosun, count: usize, report: &mut Report) -> anyhow::Result<f64> {
    let cpu = || {
        [bosun.pid(), bed.runtime_pid()].map(|p| testbed::usage(p.unwrap_or(0)).map_or(0.0, |u| u.cpu.as_secs_f64()))
    };
    let (begin, before) = (now(), cpu());
    for n in 0..count {
        bosun.put(&format!("many-{n}.yaml"), &manifest(&format!("many-{n}")))?;
    }
    wait_running(bosun, count, Duration::from_secs(180))?;
    let shown = now() - begin;
    let pods = calls::read(&log(bed)?);
    let ends = pods.iter().filter(|(name, _)| name.starts_with("many-")).filter_map(|(_, c)| c.spent_and_end());
    let took = ends.map(|(_, end)| end).fold(begin, f64::max) - begin;
    let what = format!("{count} pods from a folder, all running");
    let after = cpu();
    let detail = format!(
        "shown as Running after {shown:.2} s; processor time: bosun {:.2} s, containerd {:.2} s",
        after[0] - before[0],
        after[1] - before[1]
    );
    report.add(&what, took, Unit::Seconds, None, detail);
    Ok(took)
}

/// All manifests taken away; answers the seconds until the last container ended.
pub(super) fn remove_many(bed: &TestBed, bosun: &Bosun, report: &mut Report) -> anyhow::Result<f64> {
    let begin = Instant::now();
    let mut count = 0;
    for entry in std::fs::read_dir(bosun.manifests())?.flatten() {
        std::fs::remove_file(entry.path())?;
        count += 1;
    }
    wait_until("all pods to be removed", Duration::from_secs(180), || {
        let left = bed.ctr(&["tasks", "ls", "-q"]).map_err(|e| e.to_string())?.lines().count();
        if left == 0 { Ok(()) } else { Err(format!("{left} tasks left")) }
    })?;
    let took = begin.elapsed().as_secs_f64();
    report.add(&format!("{count} pods removed"), took, Unit::Seconds, None, String::new());
    Ok(took)
}

/// The rounds of many pods beside the script's, which ran before and after: other work on the machine weighs on both.
pub(super) fn compare(pods: usize, took: [f64; 2], script: [&Floor; 2], report: &mut Report) {
    let mean = |f: fn(&Floor) -> f64| script.iter().map(|s| f(s)).sum::<f64>() / 2.0;
    let (start, remove) = (mean(|s| s.start.as_secs_f64()), mean(|s| s.remove.as_secs_f64()));
    let detail =
        |f: fn(&Floor) -> f64| format!("script before and after: {:.2} s, {:.2} s", f(script[0]), f(script[1]));
    let what = format!("{pods} pods running, over the script with 8 lanes");
    let cpu = format!("; containerd used {:.2} s of processor for it", mean(|s| s.containerd));
    report.add(&what, took[0] / start, Unit::Ratio, Some(1.15), detail(|s| s.start.as_secs_f64()) + &cpu);
    let what = format!("{pods} pods removed, over the script with 8 lanes");
    report.add(&what, took[1] / remove, Unit::Ratio, None, detail(|s| s.remove.as_secs_f64()));
}
