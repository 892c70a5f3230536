//! What does the daemon use while nothing happens, and how soon does it tell that something happened?

use std::time::{Duration, Instant};

use anyhow::Context;
use testbed::{Bosun, Cri, TestBed, wait_until};

use super::pods::{idle, manifest, now, wait_gone, wait_running};
use super::report::{Report, Unit, percentile};

pub(super) fn rss(bosun: &Bosun) -> anyhow::Result<f64> {
    let usage = testbed::usage(bosun.pid().unwrap_or_default()).context("bosun is gone")?;
    Ok(usage.rss_kib as f64 / 1024.0)
}

/// Share of a core with all pods there and nothing happening.
pub(super) fn cpu(bosun: &Bosun, pods: usize, report: &mut Report) -> anyhow::Result<()> {
    idle(Duration::from_secs(5));
    share(bosun, &format!("CPU, {pods} idle pods"), 0.1, report)
}

/// Share of a core over thirty seconds, the middle of three: work that comes once a minute, and other work on the machine, falls into some.
pub(super) fn share(bosun: &Bosun, what: &str, must: f64, report: &mut Report) -> anyhow::Result<()> {
    const TIME: Duration = Duration::from_secs(30);
    let all = (0..3).map(|_| share_in(bosun, TIME)).collect::<Result<Vec<_>, _>>()?;
    let each = all.iter().map(|share| format!("{share:.2}")).collect::<Vec<_>>().join(", ");
    report.add(
        what,
        percentile(&all, 0.5),
        Unit::Percent,
        Some(must),
        format!("middle of {each}, {} s each", TIME.as_secs()),
    );
    Ok(())
}

/// Share of a core in the next so much time, in per cent.
pub(super) fn share_in(bosun: &Bosun, time: Duration) -> anyhow::Result<f64> {
    let (before, begin) = (used(bosun)?, Instant::now());
    idle(time);
    let (spent, took) = (used(bosun)?.saturating_sub(before), begin.elapsed());
    Ok(spent.as_secs_f64() / took.as_secs_f64() * 100.0)
}

/// Processor time of the daemon since its start.
pub(super) fn used(bosun: &Bosun) -> anyhow::Result<Duration> {
    Ok(testbed::usage(bosun.pid().unwrap_or_default()).context("bosun is gone")?.cpu)
}

/// Kills the process of a container and asks until its end is shown; counts from the end as the runtime noted it.
pub(super) fn exits(bed: &TestBed, bosun: &Bosun, report: &mut Report) -> anyhow::Result<()> {
    const PODS: usize = 20;
    for n in 0..PODS {
        let text = manifest(&format!("exit-{n}")).replace("spec:\n", "spec:\n  restartPolicy: Never\n");
        bosun.put(&format!("exit-{n}.yaml"), &text)?;
    }
    wait_running(bosun, PODS, Duration::from_secs(60))?;
    idle(Duration::from_secs(1));
    let mut took = Vec::new();
    for n in 0..PODS {
        let name = format!("exit-{n}");
        let pod = bosun.pod(&name)?.context("pod is gone")?;
        let id = pod["status"]["containerStatuses"][0]["containerID"].as_str().unwrap_or_default();
        let id = testbed::plain_id(id);
        bed.kill_container(id)?;
        let shown = wait_until(&format!("the end of {name} to be shown"), Duration::from_secs(10), || {
            let detail = bosun.get(&format!("pods/{name}")).map_err(|e| e.to_string())?;
            let state = &detail["pod"]["status"]["containerStatuses"][0]["state"];
            if state["terminated"].is_null() { Err(state.to_string()) } else { Ok(now()) }
        })?;
        took.push((shown - ended(bed, id)?) * 1e3);
    }
    let detail = "from the end that the runtime noted".to_owned();
    report.add("exit of a container -> shown, p50", percentile(&took, 0.5), Unit::Ms, None, detail);
    report.add("exit of a container -> shown, p99", percentile(&took, 0.99), Unit::Ms, Some(100.0), String::new());
    for n in 0..PODS {
        bosun.remove(&format!("exit-{n}.yaml"))?;
    }
    wait_gone(bosun, Duration::from_secs(60))
}

/// When a container ended, in seconds since 1970.
fn ended(bed: &TestBed, id: &str) -> anyhow::Result<f64> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let status =
        runtime.block_on(async { Cri::new(&bed.socket(), bed.cgroup_root(), bed.dir()).container_status(id).await })?;
    Ok(status.context("the runtime forgot the container")?.finished_at as f64 / 1e9)
}
