//! How soon is everything as before when an actor panics, or when the whole daemon is killed?

use std::time::{Duration, Instant};

use anyhow::ensure;
use testbed::{Bosun, TestBed, wait_until};

use super::idle;
use super::report::{Report, Unit, percentile};
use super::running;

/// Kills each actor that is not a pod's worker, and three workers, and asks until it serves again.
pub(super) fn panics(bosun: &Bosun, report: &mut Report) -> anyhow::Result<()> {
    let actors = bosun.actors()?;
    let name = |a: &serde_json::Value| a["name"].as_str().unwrap_or_default().to_owned();
    let workers = actors.iter().map(name).filter(|n| n.contains("worker")).take(3);
    let managers = actors.iter().map(name).filter(|n| !n.contains("worker"));
    let before = running(bosun)?;
    let mut took = Vec::new();
    for actor in managers.chain(workers) {
        let restarts = |bosun: &Bosun| -> Result<(u64, bool), String> {
            let all = bosun.actors().map_err(|e| e.to_string())?;
            let now = all.into_iter().find(|a| a["name"] == actor.as_str()).ok_or("no such actor")?;
            let state = now["state"].as_str().unwrap_or_default().to_ascii_lowercase();
            Ok((now["restarts"].as_u64().unwrap_or_default(), state.contains("running")))
        };
        let (count, _) = restarts(bosun).map_err(anyhow::Error::msg)?;
        bosun.fault(&format!("kill {actor}"))?;
        let begin = Instant::now();
        wait_until(&format!("{actor} to serve again"), Duration::from_secs(10), || {
            let (now, serves) = restarts(bosun)?;
            if now > count && serves { Ok(()) } else { Err(format!("{now} restarts, serves: {serves}")) }
        })?;
        took.push(begin.elapsed().as_secs_f64() * 1e3);
        idle(Duration::from_millis(200));
    }
    let detail = format!("{} actors; includes the command that asks", took.len());
    report.add("panic of an actor -> serving, p99", percentile(&took, 0.99), Unit::Ms, Some(50.0), detail);
    ensure!(running(bosun)? == before, "containers changed while actors panicked");
    Ok(())
}

/// `kill -9`, start again, until every pod is shown as running in the same container.
pub(super) fn adoption(bed: &mut TestBed, bosun: &mut Bosun, pods: usize, report: &mut Report) -> anyhow::Result<()> {
    let before = running(bosun)?;
    let mut took = Vec::new();
    for _ in 0..5 {
        bosun.kill();
        let begin = Instant::now();
        bosun.launch(bed)?;
        wait_until("all pods to be adopted", Duration::from_secs(30), || {
            let now = running(bosun).map_err(|e| e.to_string())?;
            if now.len() >= before.len() { Ok(()) } else { Err(format!("{} of {}", now.len(), before.len())) }
        })?;
        took.push(begin.elapsed().as_secs_f64());
        ensure!(running(bosun)? == before, "containers changed with the restart of the daemon");
        idle(Duration::from_secs(2));
    }
    let detail = "median of 5, from exec to all shown".to_owned();
    report.add(
        &format!("adoption of {pods} pods after kill -9"),
        percentile(&took, 0.5),
        Unit::Seconds,
        Some(0.5),
        detail,
    );
    Ok(())
}
