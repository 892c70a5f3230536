//! The runtime within the daemon, on threads of its own: what becomes of it touches no actor, and it is started again.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use tokio::runtime::Builder;
use tokio::sync::watch;

use super::OwnRuntime;

/// Threads that take calls.
const THREADS: usize = 2;
/// How long reads and writes that are under way have when a server ends.
const FAREWELL: Duration = Duration::from_secs(2);
/// The pause before the next server doubles from the first to the second.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(10));
/// One that lasted as long is no part of a row of failures.
const LASTED: Duration = Duration::from_secs(60);

/// A server that is kept.
#[derive(Debug)]
pub(crate) struct Embedded {
    socket: PathBuf,
    end: watch::Sender<bool>,
    thread: JoinHandle<()>,
}

impl Embedded {
    /// Starts the runtime; its socket is served when this returns. Must be called outside of any tokio runtime.
    ///
    /// # Errors
    /// The first server cannot start: another process serves the same folders, for one.
    pub(crate) fn start(own: OwnRuntime) -> Result<Self> {
        let socket = own.socket().to_owned();
        let (end, ended) = watch::channel(false);
        let (first, is_up) = mpsc::channel();
        let life = move |up: Up, ended: watch::Receiver<bool>| {
            let own = own.clone();
            async move {
                let server = own.server().await?;
                up.tell();
                Ok(server.run(wait(ended)).await?)
            }
        };
        let thread = std::thread::Builder::new().name("runtime".to_owned());
        let thread = thread.spawn(move || keep(life, first, &ended)).context("a thread for bosun's own runtime")?;
        match is_up.recv() {
            Ok(Ok(())) => Ok(Self { socket, end, thread }),
            Ok(Err(e)) => Err(e.context("bosun's own runtime (containerRuntimeEndpoint: embedded://) does not start")),
            Err(_) => bail!("the thread of bosun's own runtime ended"),
        }
    }

    /// The CRI's socket.
    pub(crate) fn socket(&self) -> &Path {
        &self.socket
    }

    /// Takes no more calls, lets those that are under way end for a while; pods go on running.
    pub(crate) fn end(self) {
        self.end.send_replace(true);
        if self.thread.join().is_err() {
            tracing::error!("the thread of bosun's own runtime panicked");
        }
    }
}

async fn wait(mut ended: watch::Receiver<bool>) {
    // An error: whoever would say it is gone, and the process about to end.
    let _ = ended.wait_for(|ended| *ended).await;
}

/// Says that a server takes calls. A clone says the same.
#[derive(Clone)]
struct Up {
    first: mpsc::Sender<Result<()>>,
    was: Arc<AtomicBool>,
}

impl Up {
    fn tell(&self) {
        if !self.was.swap(true, Ordering::Relaxed) {
            // Nobody listens any more where the daemon ends meanwhile.
            let _ = self.first.send(Ok(()));
        }
    }
}

/// Has one server after the other, until the end. When the first one does not come up there is no other.
fn keep<F>(
    life: impl Fn(Up, watch::Receiver<bool>) -> F,
    first: mpsc::Sender<Result<()>>,
    ended: &watch::Receiver<bool>,
) where
    F: Future<Output = Result<()>>,
{
    let up = Up { first, was: Arc::default() };
    let mut pause = PAUSES.0;
    loop {
        let began = Instant::now();
        let outcome = on_threads(|| life(up.clone(), ended.clone()));
        if *ended.borrow() {
            return;
        }
        let why = outcome.err().unwrap_or_else(|| anyhow!("it ended by itself"));
        if !up.was.load(Ordering::Relaxed) {
            // As in `Up::tell`.
            let _ = up.first.send(Err(why));
            return;
        }
        if began.elapsed() > LASTED {
            pause = PAUSES.0;
        }
        tracing::error!(
            error = format!("{why:#}"),
            ?pause,
            "bosun's own runtime failed and is started again; pods go on running"
        );
        let rested = on_threads(|| async {
            // Over early when the end comes.
            let _ = tokio::time::timeout(pause, wait(ended.clone())).await;
            Ok(())
        });
        if let Err(e) = rested {
            tracing::error!(
                error = format!("{e:#}"),
                "bosun's own runtime cannot be started again for want of threads"
            );
        }
        pause = PAUSES.1.min(pause * 2);
    }
}

/// Runs something on threads that are made for it and end with it; a panic is an error.
fn on_threads<F: Future<Output = Result<()>>>(work: impl FnOnce() -> F) -> Result<()> {
    let threads = Builder::new_multi_thread().worker_threads(THREADS).thread_name("runtime").enable_all().build();
    let threads = threads.context("threads")?;
    let done = catch_unwind(AssertUnwindSafe(|| threads.block_on(work())));
    threads.shutdown_timeout(FAREWELL);
    done.unwrap_or_else(|_| Err(anyhow!("it panicked")))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    /// Servers that come up and do as `fate` says of each; answers how many there were.
    fn lives(fate: fn(usize) -> Result<()>) -> (Result<()>, usize) {
        let (first, is_first) = mpsc::channel();
        let (end, ended) = watch::channel(false);
        let (count, end) = (AtomicUsize::new(0), &end);
        let life = |up: Up, ended: watch::Receiver<bool>| {
            let n = count.fetch_add(1, Ordering::Relaxed);
            async move {
                if n < 3 {
                    fate(n)?;
                }
                up.tell();
                match n {
                    0 => panic!("of the server"),
                    1 => bail!("the socket failed"),
                    2 => return Ok(()),
                    _ => {}
                }
                end.send_replace(true);
                wait(ended).await;
                Ok(())
            }
        };
        keep(life, first, &ended);
        (is_first.recv().unwrap(), count.into_inner())
    }

    #[test]
    fn a_server_that_panics_fails_or_ends_has_a_successor() {
        let (first, count) = lives(|_| Ok(()));
        assert!(first.is_ok());
        assert_eq!(count, 4);
    }

    #[test]
    fn one_that_does_not_come_up_is_told_at_the_start_and_tried_again_later() {
        let (first, count) = lives(|_| bail!("the lock is taken"));
        assert_eq!((first.unwrap_err().to_string().as_str(), count), ("the lock is taken", 1));
        let (first, count) = lives(|n| if n == 1 { bail!("the lock is taken") } else { Ok(()) });
        assert!(first.is_ok());
        assert_eq!(count, 4);
    }
}
