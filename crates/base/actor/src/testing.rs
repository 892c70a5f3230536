//! Actors in simulated time: no sleeping, no thread for blocking work, the same seed gives the same run.

use crate::kernel::{Kernel, KernelConfig};
use std::cell::OnceCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::runtime::Builder;
use tokio::task::LocalSet;

/// Runs `f` on a paused clock with a kernel of that seed. Time moves only when every task waits, straight to the next
/// timer. No real sockets, no foreign threads: time would run away from them.
///
/// # Panics
/// Time stands still, as somebody is busy for ever.
pub fn run<F, Fut>(seed: u64, f: F) -> Fut::Output
where
    F: FnOnce(Kernel) -> Fut,
    Fut: Future,
{
    run_with(KernelConfig { seed, ..KernelConfig::default() }, f)
}

/// As [`run`], with a configuration of your own; its clock is simulated in any case.
///
/// # Panics
/// Time stands still, as somebody is busy for ever.
pub fn run_with<F, Fut>(config: KernelConfig, f: F) -> Fut::Output
where
    F: FnOnce(Kernel) -> Fut,
    Fut: Future,
{
    // Without sockets: each step of time would ask the kernel for their events.
    let runtime =
        Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime needs memory only");
    let local = LocalSet::new();
    let found: Rc<OnceCell<Kernel>> = Rc::default();
    let kernel = found.clone();
    let run = local.run_until(async move {
        let kernel = kernel.get_or_init(|| Kernel::new(KernelConfig { simulated_time: true, ..config }));
        f(kernel.clone()).await
    });
    let run = Box::pin(run);
    runtime.block_on(Moments { run, kernel: found, at: None, polls: 0 })
}

/// Rounds of up to 61 tasks (tokio's `LocalSet`) that may pass at one moment of simulated time.
const ROUNDS: u32 = 20_000;

/// A run whose time stands still as somebody is busy for ever would have no end, and no word of it.
struct Moments<F> {
    run: Pin<Box<F>>,
    kernel: Rc<OnceCell<Kernel>>,
    at: Option<tokio::time::Instant>,
    polls: u32,
}

impl<F: Future> Future for Moments<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let now = Some(tokio::time::Instant::now());
        self.polls = if self.at == now { self.polls + 1 } else { 0 };
        self.at = now;
        if self.polls > ROUNDS {
            let mut actors = self.kernel.get().map(|k| k.directory().actors()).unwrap_or_default();
            actors.sort_by_key(|a| std::cmp::Reverse(a.turns));
            let busiest: Vec<_> = actors.iter().take(5).map(|a| format!("{} ({} turns)", a.name, a.turns)).collect();
            panic!("time stands still: somebody is busy for ever; the most turns have {}", busiest.join(", "));
        }
        self.run.as_mut().poll(cx)
    }
}

/// Lets everybody work until all wait for time or for each other; one millisecond of virtual time passes.
pub async fn settle() {
    tokio::time::sleep(Duration::from_millis(1)).await
}

/// Waits until something is so, at most 20 s of virtual time.
///
/// # Panics
/// When it never is.
pub async fn until(what: &str, mut so: impl FnMut() -> bool) {
    for _ in 0..20_000 {
        if so() {
            return;
        }
        settle().await;
    }
    panic!("never: {what}");
}

/// Runs `f` on the real clock, with real threads for blocking work: for what hangs now and goes on later.
pub fn run_real<F, Fut>(f: F) -> Fut::Output
where
    F: FnOnce(Kernel) -> Fut,
    Fut: Future,
{
    run_real_with(KernelConfig::default(), f)
}

/// As [`run_real`], with a configuration of your own.
pub fn run_real_with<F, Fut>(config: KernelConfig, f: F) -> Fut::Output
where
    F: FnOnce(Kernel) -> Fut,
    Fut: Future,
{
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime needs file handles only");
    LocalSet::new().block_on(&runtime, async { f(Kernel::new(config)).await })
}

/// As [`until`] on the real clock: at most 20 s of it.
///
/// # Panics
/// When it never is.
pub async fn spin_until(what: &str, mut so: impl FnMut() -> bool) {
    poll_until(what, async || so()).await
}

/// As [`spin_until`], for what has to be asked for.
///
/// # Panics
/// When it never is.
pub async fn poll_until(what: &str, mut so: impl AsyncFnMut() -> bool) {
    let wait = async {
        while !so().await {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    assert!(tokio::time::timeout(Duration::from_secs(20), wait).await.is_ok(), "never: {what}");
}

/// Whether blocking work runs in the middle of a poll, as it does in simulated time.
pub fn is_inline() -> bool {
    crate::blocking::is_inline()
}

/// For fakes of the host: ends the blocking work that is running as one that never returns. What waits for it waits for ever.
///
/// # Panics
/// Outside of work that [`is_inline`].
pub fn hang() -> ! {
    assert!(is_inline(), "only work of simulated time can hang without a thread");
    crate::blocking::hang()
}
