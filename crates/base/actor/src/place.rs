//! Threads: where actors run.

use actix::{Arbiter, ArbiterHandle, System};
use std::future::Future;
use std::io;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;
use tokio::runtime::Builder;

use crate::control::locked;

/// Threads for what libraries find to be blocking (token files of the API client); the node's own work has [`crate::Class`]es.
const MAX_BLOCKING_THREADS: usize = 8;
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

/// Makes further threads for actors, each with a runtime of its own.
#[derive(Debug, Clone, Default)]
pub struct Arbiters(Arc<Mutex<Vec<Arbiter>>>);

impl Arbiters {
    /// A new thread for actors and what they spawn; it ends with [`run_system`].
    ///
    /// # Panics
    /// Outside of the threads of [`run_system`] and its arbiters, or when the kernel has no thread to give.
    pub fn start(&self) -> Place {
        let arbiter = Arbiter::new();
        let place = Place::On(arbiter.handle());
        locked(&self.0).push(arbiter);
        place
    }

    fn join(&self) {
        let (done, wait) = mpsc::channel();
        let arbiters: Vec<_> = locked(&self.0).drain(..).collect();
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

/// Runs `main` on an actix system: actors, their connections and whatever they spawn share this one thread and its runtime,
/// so that what they tell each other wakes no thread. What may take long without being theirs (a server's requests) belongs
/// on a runtime of its own. Returns when `main` does; actors are dropped, not drained: stop them first.
///
/// # Errors
/// When the runtime cannot be built.
pub fn run_system<F, Fut>(main: F) -> io::Result<Fut::Output>
where
    F: FnOnce(Arbiters) -> Fut,
    Fut: Future,
{
    let runtime = Builder::new_current_thread().max_blocking_threads(MAX_BLOCKING_THREADS).enable_all().build()?;
    let runtime = Arc::new(runtime);
    let arbiters = Arbiters::default();
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
