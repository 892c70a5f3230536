//! What does the daemon use while nothing happens, and how soon does it tell that something happened?

use std::time::{Duration, Instant};

use anyhow::Context;
use testbed::{Bosun, TestBed, wait_until};

use super::idle;
use super::report::{Report, Unit, percentile};
use super::starts::{manifest, wait_gone, wait_running};

pub(super) fn rss(bosun: &Bosun) -> anyhow::Result<f64> {
    let usage = testbed::usage(bosun.pid().unwrap_or_default()).context("bosun is gone")?;
    Ok(usage.rss_kib as f64 / 1024.0)
}

/// Share of a core over thirty quiet seconds.
pub(super) fn cpu(bosun: &Bosun, pods: usize, report: &mut Report) -> anyhow::Result<()> {
    const TIME: Duration = Duration::from_secs(30);
    let usage = || testbed::usage(bosun.pid().unwrap_or_default()).context("bosun is gone");
    idle(Duration::from_secs(5));
    let (before, begin) = (usage()?.cpu, Instant::now());
    idle(TIME);
    let (used, time) = (usage()?.cpu.saturating_sub(before), begin.elapsed());
    let share = used.as_secs_f64() / time.as_secs_f64() * 100.0;
    report.add(
        &format!("CPU, {pods} idle pods"),
        share,
        Unit::Percent,
        Some(0.3),
        format!("over {} s", TIME.as_secs()),
    );
    Ok(())
}

/// Kills the process of a container and asks until its end is shown. Asking costs some milliseconds that count here.
pub(super) fn exits(bed: &TestBed, bosun: &Bosun, report: &mut Report) -> anyhow::Result<()> {
    const PODS: usize = 20;
    for n in 0..PODS {
        let text = manifest(&format!("exit-{n}")).replace("spec:\n", "spec:\n  restartPolicy: Never\n");
        bosun.put(&format!("exit-{n}.yaml"), &text)?;
    }
    wait_running(bosun, PODS, Duration::from_secs(60))?;
    idle(Duration::from_secs(1));
    let tasks = bed.ctr(&["tasks", "ls"])?;
    let mut took = Vec::new();
    for n in 0..PODS {
        let name = format!("exit-{n}");
        let pod = bosun.pod(&name)?.context("pod is gone")?;
        let id = pod["status"]["containerStatuses"][0]["containerID"].as_str().unwrap_or_default();
        let id = id.trim_start_matches("containerd://");
        let pid = tasks.lines().find(|l| l.starts_with(id)).and_then(|l| l.split_whitespace().nth(1));
        let pid = pid.with_context(|| format!("no task of {name}"))?;
        let begin = Instant::now();
        crate::workspace::run("kill", &["-9", pid])?;
        wait_until(&format!("the end of {name} to be shown"), Duration::from_secs(10), || {
            let pod = bosun.pod(&name).map_err(|e| e.to_string())?.ok_or("gone")?;
            let state = &pod["status"]["containerStatuses"][0]["state"];
            if state["terminated"].is_null() { Err(state.to_string()) } else { Ok(()) }
        })?;
        took.push(begin.elapsed().as_secs_f64() * 1e3);
    }
    report.add("exit of a container -> shown, p50", percentile(&took, 0.5), Unit::Ms, None, String::new());
    report.add("exit of a container -> shown, p99", percentile(&took, 0.99), Unit::Ms, Some(100.0), String::new());
    for n in 0..PODS {
        bosun.take(&format!("exit-{n}.yaml"))?;
    }
    wait_gone(bosun, Duration::from_secs(60))
}
