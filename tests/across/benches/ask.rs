//! What one ask over the border costs, beside the same ask inside of the process.

#![allow(clippy::unwrap_used, reason = "benches")]

#[path = "../tests/it/world.rs"]
#[allow(dead_code, reason = "tests use more of it")]
mod world;

use std::time::Duration;

use actor::testing::run_real;
use actor::{Actor, Ctx, Handler, Spec, supervised};
use contract::ProbeManager;
use contract::probe::{RetainProbes, StartProbes, StopProbes};
use criterion::{Criterion, criterion_group, criterion_main};
use remote_manager::WhenAway;
use world::World;

/// Answers at once.
struct Idle;

impl Actor for Idle {
    type Context = Ctx<Self>;
}
supervised!(Idle);

impl Handler<StartProbes> for Idle {
    type Result = ();
    fn handle(&mut self, _: StartProbes, _: &mut Ctx<Self>) {}
}
impl Handler<StopProbes> for Idle {
    type Result = ();
    fn handle(&mut self, _: StopProbes, _: &mut Ctx<Self>) {}
}
impl Handler<RetainProbes> for Idle {
    type Result = ();
    fn handle(&mut self, _: RetainProbes, _: &mut Ctx<Self>) {}
}

/// Where the manager is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// In this process.
    Inside,
    /// In this process, and it may be replaced: asks are counted and remembered.
    Seated,
    /// In another process.
    Across,
}

/// The time of each of so many asks, one after the other.
fn asks(count: u64, place: Place) -> Vec<Duration> {
    let across = place == Place::Across;
    run_real(|kernel| async move {
        let world = World::new(kernel);
        if place == Place::Seated {
            let _made_by_the_first_call = world.wiring.seat::<ProbeManager>(world.kernel.clock());
        }
        let _program = across.then(|| {
            let program = world.honest();
            world.connect(WhenAway::Hold);
            program
        });
        if !across {
            let idle = world.kernel.spawn(Spec::new("probe-manager"), |_| Idle);
            world.wiring.connect::<ProbeManager, _>(&idle);
        }
        for _ in 0..200 {
            world.stop("u1").await.unwrap();
        }
        let mut times = Vec::new();
        for _ in 0..count {
            let began = std::time::Instant::now();
            world.stop("u1").await.unwrap();
            times.push(began.elapsed());
        }
        times
    })
}

fn bench(c: &mut Criterion) {
    for (name, place) in [("inside", Place::Inside), ("seated", Place::Seated), ("across", Place::Across)] {
        c.bench_function(&format!("ask {name}"), |b| b.iter_custom(|count| asks(count, place).into_iter().sum()));
    }
    let mut times = asks(20_000, Place::Across);
    times.sort();
    let at = |part: usize| times[times.len() * part / 1000];
    println!("ask across: p50 {:?}, p90 {:?}, p99 {:?}", at(500), at(900), at(990));
}

criterion_group!(benches, bench);
criterion_main!(benches);
