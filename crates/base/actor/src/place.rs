//! Threads: where actors run.

use actix::{Arbiter, ArbiterHandle, System};
use std::future::Future;
use std::io;
use std::sync::{Arc, Mutex, Weak, mpsc};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

use crate::control::locked;

/// Threads of the pool that may block (mounts, cgroup writes, file syncs) at the same moment.
const MAX_BLOCKING_THREADS: usize = 32;
/// How long blocked threads are waited for at the end.
const FAREWELL: Duration = Duration::from_secs(2);

/// Where an actor runs. Tests use `Here` for everything: one clock, one queue.
#[derive(Debug, Clone, Default)]
pub enum Place {
    /// On the `LocalSet` of the thread that spawns it.
    #[default]
    Here,
    /// On another arbiter thread.
    On(ArbiterHandle),
}

/// Makes arbiter threads that share the runtime of [`run_system`].
#[derive(Debug, Clone)]
pub struct Arbiters(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// Weak: the last strong one must not fall inside of the runtime itself.
    runtime: Weak<Runtime>,
    started: Mutex<Vec<Arbiter>>,
}

impl Arbiters {
    /// A new thread for actors; it ends with [`run_system`].
    ///
    /// # Panics
    /// Outside of the threads of [`run_system`] and its arbiters.
    pub fn start(&self) -> Place {
        let runtime = self.0.runtime.upgrade().expect("arbiters are started while their system runs");
        let arbiter = Arbiter::with_tokio_rt(move || runtime);
        let place = Place::On(arbiter.handle());
        locked(&self.0.started).push(arbiter);
        place
    }

    fn join(&self) {
        let (done, wait) = mpsc::channel();
        let arbiters: Vec<_> = locked(&self.0.started).drain(..).collect();
        for arbiter in arbiters {
            arbiter.stop();
            let done = done.clone();
            std::thread::spawn(move || {
                let _ = arbiter.join();
                let _ = done.send(());
            });
        }
        drop(done);
        while wait.recv_timeout(FAREWELL).is_ok() {}
    }
}

/// Runs `main` on an actix system over one shared tokio pool of `workers` threads: actors live on this thread and on
/// those that [`Arbiters::start`] makes, connections and `tokio::spawn` on the pool, so that a blocked actor does not
/// starve them. Returns when `main` does; actors are dropped, not drained: stop them first.
///
/// # Errors
/// When the runtime cannot be built.
pub fn run_system<F, Fut>(workers: usize, main: F) -> io::Result<Fut::Output>
where
    F: FnOnce(Arbiters) -> Fut,
    Fut: Future,
{
    let runtime = Builder::new_multi_thread()
        .worker_threads(workers.max(1))
        .max_blocking_threads(MAX_BLOCKING_THREADS)
        .thread_name("pool")
        .enable_all()
        .build()?;
    let runtime = Arc::new(runtime);
    let arbiters = Arbiters(Arc::new(Shared { runtime: Arc::downgrade(&runtime), started: Mutex::default() }));
    let system = System::with_tokio_rt({
        let runtime = runtime.clone();
        move || runtime
    });
    let output = system.block_on(main(arbiters.clone()));
    arbiters.join();
    drop((system, arbiters));
    if let Ok(runtime) = Arc::try_unwrap(runtime) {
        runtime.shutdown_timeout(FAREWELL);
    }
    Ok(output)
}
