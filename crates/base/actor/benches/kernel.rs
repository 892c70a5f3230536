//! Cost per tell, per ask, per restart, and per idle actor. `cargo bench -p actor`

#![allow(clippy::unwrap_used, reason = "a bench may panic")]

use actor::{Actor, ActorRef, Ctx, Handler, Kernel, KernelConfig, Policy, Spec, message, supervised};
use criterion::{Criterion, Throughput};
use std::time::{Duration, Instant};
use tokio::runtime::Builder;
use tokio::task::LocalSet;

const DEADLINE: Duration = Duration::from_secs(60);
/// Idle actors whose memory is counted.
const IDLE: u64 = 20_000;
/// Tells per round trip.
const BATCH: u64 = 1_000;

struct Target(u64);
impl Actor for Target {
    type Context = Ctx<Self>;
}
supervised!(Target);

struct Add(u64);
message!(Add => u64);
impl Handler<Add> for Target {
    type Result = u64;
    fn handle(&mut self, Add(n): Add, _: &mut Ctx<Self>) -> u64 {
        self.0 += n;
        self.0
    }
}

struct Panic;
message!(Panic => ());
impl Handler<Panic> for Target {
    type Result = ();
    fn handle(&mut self, _: Panic, _: &mut Ctx<Self>) {
        panic!("bench");
    }
}

fn spawn(kernel: &Kernel) -> ActorRef<Target> {
    let policy = Policy { max_restarts: usize::MAX, backoff_max: Duration::ZERO, ..Policy::default() };
    let spec = Spec::new("target").group(&kernel.group("bench", policy)).mailbox(2 * BATCH as usize);
    kernel.spawn(spec, |_| Target(0))
}

fn here(f: impl AsyncFnOnce(Kernel)) {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    LocalSet::new().block_on(&runtime, async { f(Kernel::new(KernelConfig::default())).await });
}

fn messages(c: &mut Criterion) {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let local = LocalSet::new();
    let target = local.block_on(&runtime, async { spawn(&Kernel::new(KernelConfig::default())) });
    let mut group = c.benchmark_group("same thread");
    group.throughput(Throughput::Elements(BATCH));
    group.bench_function("tell, thousand", |b| b.iter(|| local.block_on(&runtime, tell_thousand(&target))));
    group.bench_function("ask, thousand in a row", |b| b.iter(|| local.block_on(&runtime, ask_thousand(&target))));
    group.throughput(Throughput::Elements(1));
    group.bench_function("panic to next answer", |b| b.iter(|| local.block_on(&runtime, panic_and_ask(&target))));
    group.finish();
}

async fn tell_thousand(target: &ActorRef<Target>) {
    for n in 1..BATCH {
        target.tell(Add(n)).unwrap();
    }
    target.ask(Add(0), DEADLINE).await.unwrap();
}

async fn ask_thousand(target: &ActorRef<Target>) {
    for n in 0..BATCH {
        target.ask(Add(n), DEADLINE).await.unwrap();
    }
}

async fn panic_and_ask(target: &ActorRef<Target>) {
    target.tell(Panic).unwrap();
    target.ask(Add(0), DEADLINE).await.unwrap();
}

fn across_threads(c: &mut Criterion) {
    let (hand_over, target) = std::sync::mpsc::channel();
    let (end, ended) = tokio::sync::oneshot::channel::<()>();
    let system = std::thread::spawn(move || {
        actor::run_system(|| async move {
            let kernel = Kernel::new(KernelConfig::default());
            let spec = Spec::new("far").mailbox(2 * BATCH as usize);
            hand_over.send(kernel.spawn(spec, |_| Target(0))).unwrap();
            let _ = ended.await;
        })
    });
    let target = target.recv().unwrap();
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let mut group = c.benchmark_group("other thread");
    group.throughput(Throughput::Elements(BATCH));
    group.bench_function("tell, thousand", |b| b.iter(|| runtime.block_on(tell_thousand(&target))));
    group.bench_function("ask, thousand in a row", |b| b.iter(|| runtime.block_on(ask_thousand(&target))));
    group.finish();
    end.send(()).unwrap();
    system.join().unwrap().unwrap();
}

/// Memory of this process that is in RAM. The kernel's word, not the allocator's: good to a few bytes per actor.
fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|l| l.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

fn idle_actors() {
    here(async |kernel| {
        let before = resident_bytes();
        let actors: Vec<_> = (0..IDLE).map(|n| kernel.spawn(Spec::new(format!("idle/{n}")), |_| Target(0))).collect();
        for actor in &actors {
            actor.ask(Add(1), DEADLINE).await.unwrap();
        }
        println!("bytes per idle actor: {}", (resident_bytes() - before) / IDLE);
    });
}

/// Percentiles that criterion does not give: panic -> serving again, at the default policy's first restart.
fn restart_percentiles() {
    here(async |kernel| {
        let mut took = Vec::new();
        for n in 0..2_000 {
            let spec = Spec::new(format!("r/{n}")).group(&kernel.group("r", Policy::default()));
            let target = kernel.spawn(spec, |_| Target(0));
            target.ask(Add(1), DEADLINE).await.unwrap();
            let start = Instant::now();
            target.tell(Panic).unwrap();
            target.ask(Add(1), DEADLINE).await.unwrap();
            took.push(start.elapsed());
            target.stop();
        }
        took.sort();
        println!("panic to next answer: p50 {:?}, p99 {:?}, max {:?}", took[1000], took[1980], took[1999]);
    });
}

fn main() {
    idle_actors();
    restart_percentiles();
    let mut criterion =
        Criterion::default().configure_from_args().sample_size(30).measurement_time(Duration::from_secs(2));
    messages(&mut criterion);
    across_threads(&mut criterion);
    criterion.final_summary();
}
