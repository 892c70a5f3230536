//! How fast is the runtime itself? The same CRI calls, issued by a script that does nothing else.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use testbed::{Cri, PAUSE_IMAGE, TestBed};
use tokio::sync::Semaphore;

/// What the runtime needs for `count` pods.
#[derive(Debug, Clone)]
pub(super) struct Floor {
    /// From the first call to the last answer.
    pub(super) start: Duration,
    /// The same for stopping and removing them all.
    pub(super) remove: Duration,
    /// The three calls of each pod.
    pub(super) each: Vec<Duration>,
    /// Processor time of containerd for the starts, in seconds.
    pub(super) containerd: f64,
}

/// Starts `count` pods, at most `lanes` at a time, then removes them the same way.
pub(super) fn measure(bed: &TestBed, count: usize, lanes: usize) -> anyhow::Result<Floor> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let cri = Cri::new(&bed.socket(), bed.cgroup_root(), &bed.dir().join("logs"));
        cri.version().await.context("CRI Version")?;
        let gate = Arc::new(Semaphore::new(lanes));
        let cpu = || bed.runtime_pid().and_then(testbed::usage).map_or(0.0, |u| u.cpu.as_secs_f64());
        let (begin, before) = (Instant::now(), cpu());
        let tasks: Vec<_> = (0..count)
            .map(|n| {
                let (cri, gate) = (cri.clone(), Arc::clone(&gate));
                tokio::spawn(async move {
                    let _lane = gate.acquire().await?;
                    let begin = Instant::now();
                    let (sandbox, _) = cri.start_pause_pod(&format!("floor-{n}"), PAUSE_IMAGE, &[]).await?;
                    anyhow::Ok((sandbox, begin.elapsed()))
                })
            })
            .collect();
        let (mut sandboxes, mut each) = (Vec::new(), Vec::new());
        for task in tasks {
            let (sandbox, took) = task.await??;
            sandboxes.push(sandbox);
            each.push(took);
        }
        let (start, containerd) = (begin.elapsed(), cpu() - before);
        let begin = Instant::now();
        let tasks: Vec<_> = sandboxes
            .into_iter()
            .map(|sandbox| {
                let (cri, gate) = (cri.clone(), Arc::clone(&gate));
                tokio::spawn(async move {
                    let _lane = gate.acquire().await?;
                    anyhow::Ok(cri.remove_pod(&sandbox).await?)
                })
            })
            .collect();
        for task in tasks {
            task.await??;
        }
        Ok(Floor { start, remove: begin.elapsed(), each, containerd })
    })
}
