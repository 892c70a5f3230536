//! How soon is everything as before when an actor panics, or when the whole daemon is killed?

use std::time::{Duration, Instant};

use anyhow::ensure;
use testbed::{Bosun, TestBed, wait_until};

use super::pods::{idle, manifest, running};
use super::report::{Report, Unit, percentile};

/// Has each manager, and the worker of a new pod, panic in the midst of work, and asks until it serves again.
pub(super) fn panics(bosun: &Bosun, report: &mut Report) -> anyhow::Result<()> {
    let actors = bosun.actors()?;
    let names: Vec<&str> = actors.iter().filter_map(|a| a["name"].as_str()).collect();
    let managers = names.iter().copied().filter(|n| !n.starts_with("pod-worker/"));
    let before = running(bosun)?;
    let (mut took, mut spared) = (Vec::new(), Vec::new());
    for (n, actor) in managers.chain(["pod-worker"; 5]).enumerate() {
        match panic(bosun, actor, n)? {
            Some(ms) => took.push(ms),
            None => spared.push(actor),
        }
    }
    let spared = if spared.is_empty() { String::new() } else { format!("; no turn meanwhile: {}", spared.join(", ")) };
    let detail = format!("{} actors{spared}", took.len());
    report.add("panic of an actor -> serving, p99", percentile(&took, 0.99), Unit::Ms, Some(50.0), detail);
    let after = running(bosun)?;
    ensure!(before.iter().all(|(pod, id)| after.get(pod) == Some(id)), "containers changed while actors panicked");
    Ok(())
}

/// Milliseconds from the last look before the crash to the first at which the actor serves again. `None` when it had
/// nothing to do for five seconds although a pod came and went.
fn panic(bosun: &Bosun, actor: &str, n: usize) -> anyhow::Result<Option<f64>> {
    // `pod-worker` stands for all workers, as it does in the rule.
    let look = || -> anyhow::Result<(u64, bool)> {
        let named = |n: &str| n == actor || n.strip_prefix(actor).is_some_and(|rest| rest.starts_with('/'));
        let all = bosun.actors()?;
        let (mut restarts, mut serves) = (0, true);
        for a in all.iter().filter(|a| a["name"].as_str().is_some_and(named)) {
            restarts += a["restarts"].as_u64().unwrap_or_default();
            serves &= a["state"] == "running";
        }
        Ok((restarts, serves))
    };
    let (count, _) = look()?;
    bosun.fault(&format!("{actor}: panic#1"))?;
    bosun.put("work.yaml", &manifest(&format!("work-{n}")))?;
    let begin = Instant::now();
    let mut before_crash = begin;
    let took = loop {
        let asked = Instant::now();
        let (now, serves) = look()?;
        match (now > count, serves) {
            (true, true) => break Some(before_crash.elapsed().as_secs_f64() * 1e3),
            (true, false) => {}
            (false, _) if begin.elapsed() > Duration::from_secs(5) => break None,
            (false, _) => {
                before_crash = asked;
                idle(Duration::from_millis(2));
            }
        }
    };
    bosun.clear_faults()?;
    bosun.remove("work.yaml")?;
    wait_until("the pod that made work to be gone", Duration::from_secs(30), || {
        let workers = bosun.pod(&format!("work-{n}")).map_err(|e| e.to_string())?;
        workers.map_or(Ok(()), |pod| Err(pod["status"].to_string()))
    })?;
    idle(Duration::from_millis(500));
    Ok(took)
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
