//! What answers cost, in processor time of the whole process: 110 pods with 165 containers, through router, actor, files and
//! encoding. Limit of the issue: 20 ms for `/stats/summary`.
//!
//! Files lie in a temporary folder; `real cgroup` shows what the kernel's own files cost beside them.

use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use fakes::stats::Cgroups;
use model::reading::Depth;
use ports::stats::StatsSource;
use rustix::time::{ClockId, clock_gettime};
use stats_endpoint::{Deps, router};

#[path = "../src/tests/scene.rs"]
mod scene;

fn cpu() -> Duration {
    let t = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(t.tv_sec.unsigned_abs(), u32::try_from(t.tv_nsec).unwrap_or(0))
}

fn answers(c: &mut Criterion) {
    for cgroups in [Cgroups::V1, Cgroups::V2] {
        for path in
            ["/stats/summary", "/stats/summary?only_cpu_and_memory=true", "/metrics/resource", "/metrics/cadvisor"]
        {
            c.bench_function(&format!("{cgroups:?} {path}"), |b| {
                b.iter_custom(|rounds| {
                    actor::testing::run(1, move |kernel| async move {
                        let scene = scene::Scene::new(&kernel, cgroups, 110);
                        // The first answer also measures volumes.
                        assert!(scene.get(path).await.len() > 10_000);
                        let mut spent = Duration::ZERO;
                        for _ in 0..rounds {
                            // Nothing is fresh any more.
                            scene.pass(Duration::from_secs(20)).await;
                            let before = cpu();
                            scene.get(path).await;
                            spent += cpu() - before;
                        }
                        spent
                    })
                });
            });
        }
    }
}

fn kernel_files(c: &mut Criterion) {
    let Ok(cgroups) = host_linux::LinuxCgroups::detect() else { return };
    let source = host_linux::LinuxStats::new(&cgroups);
    for depth in [Depth::Usage, Depth::Summary, Depth::Full] {
        c.bench_function(&format!("real cgroup {depth:?}"), |b| b.iter(|| source.cgroup("/", depth)));
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(10).measurement_time(Duration::from_secs(3));
    targets = answers, kernel_files
}
criterion_main!(benches);
