//! What volumes cost a node with many pods: the same pods without, and with three each.

use std::time::Duration;

use anyhow::Context;
use testbed::{Bosun, TestBed};

use super::pods::{idle, manifest, wait_gone, wait_running};
use super::report::{Report, Unit};
use super::{face, steady};

/// What a node uses whose pods were there when the daemon started.
struct Use {
    rss: f64,
    summary: f64,
    idle: f64,
}

/// Until what went before is tidied away: logs of pods that are gone stay for a minute.
const SETTLES: Duration = Duration::from_secs(90);
/// Each pod is looked at once in this time, or twice.
const TIME: Duration = Duration::from_secs(180);

pub(super) fn rounds(bed: &mut TestBed, bosun: &mut Bosun, pods: usize, report: &mut Report) -> anyhow::Result<()> {
    let bare = measured(bed, bosun, pods, &manifest).context("without volumes")?;
    clear(bosun)?;
    let three = measured(bed, bosun, pods, &with_volumes).context("with volumes")?;
    let grown = format!("{:.2} MiB without, {:.2} MiB with", bare.rss, three.rss);
    report.add(&format!("RSS of 3 volumes in each of {pods} pods"), three.rss - bare.rss, Unit::MiB, Some(3.0), grown);
    let cpu = format!("{:.1} ms without, {:.1} ms with", bare.summary, three.summary);
    let what = format!("CPU of /stats/summary for 3 volumes in each of {pods} pods");
    report.add(&what, three.summary - bare.summary, Unit::Ms, Some(3.0), cpu);
    let share = format!("{:.2} % without, {:.2} % with, over {} s", bare.idle, three.idle, TIME.as_secs());
    let what = format!("CPU of 3 volumes in each of {pods} idle pods");
    report.add(&what, three.idle - bare.idle, Unit::Percent, Some(0.05), share);
    clear(bosun)
}

fn with_volumes(name: &str) -> String {
    let mut pod = manifest(name) + "    volumeMounts:\n";
    let volumes = ["a", "b", "c"];
    for volume in volumes {
        pod += &format!("    - {{name: {volume}, mountPath: /mnt/{volume}}}\n");
    }
    pod += "  volumes:\n";
    for volume in volumes {
        pod += &format!("  - {{name: {volume}, emptyDir: {{}}}}\n");
    }
    pod
}

fn measured(bed: &mut TestBed, bosun: &mut Bosun, pods: usize, text: &dyn Fn(&str) -> String) -> anyhow::Result<Use> {
    for n in 0..pods {
        bosun.put(&format!("full-{n}.yaml"), &text(&format!("full-{n}")))?;
    }
    wait_running(bosun, pods, Duration::from_secs(180))?;
    // What the starts left in the allocator is not the volumes'.
    bosun.kill();
    bosun.start_again(bed)?;
    wait_running(bosun, pods, Duration::from_secs(60))?;
    let summary = face::cost(bosun, "/stats/summary", 40)?.cpu;
    idle(SETTLES);
    let idle = steady::share_in(bosun, TIME)?;
    Ok(Use { rss: steady::rss(bosun)?, summary, idle })
}

fn clear(bosun: &Bosun) -> anyhow::Result<()> {
    for entry in std::fs::read_dir(bosun.manifests())?.flatten() {
        std::fs::remove_file(entry.path())?;
    }
    wait_gone(bosun, Duration::from_secs(180))?;
    idle(Duration::from_secs(2));
    Ok(())
}
