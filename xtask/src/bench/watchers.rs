//! What looking out for pressure costs while nothing happens: the same pods with all that looks out, and with all of it switched off.

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use serde_json::{Value, json};
use testbed::{Bosun, BosunOptions, TestBed};

use super::pods::{idle, wait_running};
use super::report::{Report, Unit, percentile};
use super::steady;

/// Each setting is measured so often, in turns: what the machine does besides weighs on both.
const TURNS: usize = 3;
/// So long each time; two looks in ten seconds are six here.
const TIME: Duration = Duration::from_secs(30);

/// Thresholds of a kubelet's kind that this machine does not cross, hard and soft, limits of pods' own, and a lock that holds a shutdown back.
fn on() -> Value {
    let all = ["memory.available", "nodefs.available", "nodefs.inodesFree", "imagefs.available", "imagefs.inodesFree"];
    let each = |below: &str| -> Value { all.iter().map(|signal| ((*signal).to_owned(), json!(below))).collect() };
    json!({
        "evictionHard": each("0.1%"), "evictionSoft": each("0.2%"), "evictionSoftGracePeriod": each("90s"),
        "localStorageCapacityIsolation": true, "shutdownGracePeriod": "30s", "shutdownGracePeriodCriticalPods": "10s",
    })
}

/// The bed itself has no thresholds.
fn off() -> Value {
    json!({ "localStorageCapacityIsolation": false })
}

/// On pods that run already; the daemon that served them is killed.
pub(super) fn rounds(bed: &mut TestBed, program: &Path, pods: usize, report: &mut Report) -> anyhow::Result<()> {
    let settings = [(off(), "--eviction-early-looks=false"), (on(), "--eviction-early-looks=true")];
    let mut seen = [(); 2].map(|()| (Vec::new(), Vec::new(), Vec::new()));
    for _ in 0..TURNS {
        for ((config, flag), (cpu, rss, own)) in settings.iter().zip(&mut seen) {
            let options = BosunOptions {
                program: program.to_owned(),
                log: "warn".into(),
                config: config.clone(),
                flags: vec![(*flag).to_owned()],
                ..BosunOptions::default()
            };
            let bosun = Bosun::start(bed, options)?;
            wait_running(&bosun, pods, Duration::from_secs(60))?;
            idle(Duration::from_secs(12));
            cpu.push(steady::share_in(&bosun, TIME)?);
            rss.push(steady::rss(&bosun)?);
            own.push(anonymous(&bosun)?);
        }
    }
    let [off, on] = seen.map(|(cpu, rss, own)| [cpu, rss, own].map(|all| percentile(&all, 0.5)));
    let rows = [
        ("CPU of looking out for pressure", Unit::Percent, 0.1, "%"),
        ("RSS of it", Unit::MiB, 1.0, "MiB"),
        ("RSS of it without pages of the program", Unit::MiB, 1.0, "MiB"),
    ];
    for (n, (what, unit, must, short)) in rows.into_iter().enumerate() {
        let told = format!("{:.2} {short} without, {:.2} {short} with; middle of {TURNS}", off[n], on[n]);
        report.add(&format!("{what}, {pods} idle pods"), on[n] - off[n], unit, Some(must), told);
    }
    Ok(())
}

/// Memory of its own: how much of the program's file is in memory hangs on what else the machine does.
fn anonymous(bosun: &Bosun) -> anyhow::Result<f64> {
    let path = format!("/proc/{}/status", bosun.pid().context("bosun is gone")?);
    let text = std::fs::read_to_string(&path)?;
    let line = text.lines().find_map(|line| line.strip_prefix("RssAnon:")).context(path)?;
    let kib: f64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kib / 1024.0)
}
