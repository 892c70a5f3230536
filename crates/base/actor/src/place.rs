//! The thread that actors run on.

use actix::System;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Builder;

/// Threads for what libraries find to be blocking (token files of the API client); the node's own work has [`crate::Class`]es.
const MAX_BLOCKING_THREADS: usize = 8;
/// How long blocked threads are waited for at the end.
const FAREWELL: Duration = Duration::from_secs(2);

/// Runs `main` on an actix system: actors, their connections and whatever they spawn share this one thread and its runtime,
/// so that what they tell each other wakes no thread. What may take long without being theirs (a server's requests) belongs
/// on a runtime of its own. Returns when `main` does; actors are dropped, not drained: stop them first.
///
/// # Errors
/// When the runtime cannot be built.
pub fn run_system<F, Fut>(main: F) -> io::Result<Fut::Output>
where
    F: FnOnce() -> Fut,
    Fut: Future,
{
    let runtime = Builder::new_current_thread().max_blocking_threads(MAX_BLOCKING_THREADS).enable_all().build()?;
    let runtime = Arc::new(runtime);
    let system = System::with_tokio_rt({
        let runtime = runtime.clone();
        move || runtime
    });
    let output = system.block_on(main());
    drop(system);
    if let Ok(runtime) = Arc::try_unwrap(runtime) {
        runtime.shutdown_timeout(FAREWELL);
    }
    Ok(output)
}
