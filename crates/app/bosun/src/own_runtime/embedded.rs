//! The runtime within the daemon, on threads of its own: what becomes of it touches no actor, and it is started again.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use runtime_server::RuntimeError;
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
/// How long an earlier server may keep the store from its successors: a thread of it that is blocked ends with this process only.
const HELD: Duration = Duration::from_secs(60);
/// How long the end waits for the last server: what the server itself takes, and [`FAREWELL`].
const LAST_SERVER: Duration = Duration::from_secs(10);

/// A server that is kept.
#[derive(Debug)]
pub(crate) struct Embedded {
    socket: PathBuf,
    end: watch::Sender<bool>,
    /// Ends a pause between servers, which is one of a thread and not of a task.
    end_pause: mpsc::Sender<()>,
    thread: JoinHandle<()>,
    /// Has an end once the thread has.
    alive: mpsc::Receiver<()>,
}

impl Embedded {
    /// Starts the runtime; its socket is served when this returns. Must be called outside of any tokio runtime. What this process can
    /// serve no more is told to `give_up`, which ends it.
    ///
    /// # Errors
    /// The first server cannot start: another process serves the same folders, for one.
    pub(crate) fn start(own: OwnRuntime, give_up: fn(String)) -> Result<Self> {
        let socket = own.socket().to_owned();
        let (end, ended) = watch::channel(false);
        let (end_pause, pause_ended) = mpsc::channel();
        let (first, is_up) = mpsc::channel();
        let (living, alive) = mpsc::channel();
        let life = move |up: Up, ended: watch::Receiver<bool>| {
            let own = own.clone();
            async move {
                let server = tokio::select! {
                    server = own.server() => server?,
                    () = wait(ended.clone()) => return Ok(()),
                };
                up.tell();
                Ok(server.run(wait(ended)).await?)
            }
        };
        let thread = std::thread::Builder::new().name("runtime".to_owned()).spawn(move || {
            let _until_the_end = living;
            keep(life, first, &End { told: ended, pause_ended }, give_up);
        });
        let thread = thread.context("a thread for bosun's own runtime")?;
        match is_up.recv() {
            Ok(Ok(())) => Ok(Self { socket, end, end_pause, thread, alive }),
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
        // Nobody pauses where the thread is gone.
        let _ = self.end_pause.send(());
        if let Err(RecvTimeoutError::Timeout) = self.alive.recv_timeout(LAST_SERVER) {
            tracing::warn!(
                "bosun's own runtime has not ended in {LAST_SERVER:?}: what it is at ends with this process, and the next one finds \
                 its pods as they are"
            );
            return;
        }
        if self.thread.join().is_err() {
            tracing::error!("the thread of bosun's own runtime panicked");
        }
    }
}

/// That the end has come. Whoever would say so may be gone: that is the end as well.
struct End {
    told: watch::Receiver<bool>,
    pause_ended: mpsc::Receiver<()>,
}

impl End {
    fn has_come(&self) -> bool {
        *self.told.borrow() || self.told.has_changed().is_err()
    }

    /// Takes nothing that there might be none of: no thread, no descriptor.
    fn pause(&self, pause: Duration) {
        // Whether it was cut short is asked after.
        let _ = self.pause_ended.recv_timeout(pause);
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
    end: &End,
    give_up: impl Fn(String),
) where
    F: Future<Output = Result<()>>,
{
    let up = Up { first, was: Arc::default() };
    let mut pause = PAUSES.0;
    let mut held = Held(None);
    loop {
        let began = Instant::now();
        let outcome = on_threads(|| life(up.clone(), end.told.clone()));
        if end.has_come() {
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
        if held.too_long(&why, Instant::now()) {
            return give_up(format!(
                "bosun's own runtime cannot be served by this process any more, which ends: {why:#}"
            ));
        }
        end.pause(pause);
        if end.has_come() {
            return;
        }
        pause = PAUSES.1.min(pause * 2);
    }
}

/// Since when one server after the other is refused for an earlier one of this process.
struct Held(Option<Instant>);

impl Held {
    fn too_long(&mut self, why: &anyhow::Error, now: Instant) -> bool {
        if !matches!(why.downcast_ref(), Some(RuntimeError::HeldHere { .. })) {
            self.0 = None;
            return false;
        }
        now.duration_since(*self.0.get_or_insert(now)) >= HELD
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
        let (_end_pause, pause_ended) = mpsc::channel();
        keep(life, first, &End { told: ended, pause_ended }, |why| panic!("{why}"));
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

    #[test]
    fn the_end_cuts_a_pause_short_also_where_nobody_says_it() {
        let ends: [fn(watch::Sender<bool>, mpsc::Sender<()>); 2] = [
            |end, end_pause| {
                end.send_replace(true);
                end_pause.send(()).unwrap();
                std::mem::forget((end, end_pause));
            },
            |end, end_pause| drop((end, end_pause)),
        ];
        for say in ends {
            let (end, told) = watch::channel(false);
            let (end_pause, pause_ended) = mpsc::channel();
            let of = End { told, pause_ended };
            assert!(!of.has_come());
            let began = Instant::now();
            let saying = std::thread::spawn(move || say(end, end_pause));
            of.pause(LASTED);
            saying.join().unwrap();
            assert!(of.has_come() && began.elapsed() < LASTED, "{:?}", began.elapsed());
        }
    }

    #[test]
    fn a_store_that_an_earlier_server_keeps_is_given_up_after_a_while() {
        let here = || anyhow!(RuntimeError::HeldHere { path: "/store/lock".into() }).context("a server");
        let (mut held, at) = (Held(None), Instant::now());
        assert!(!held.too_long(&here(), at) && !held.too_long(&here(), at + HELD / 2));
        assert!(!held.too_long(&anyhow!("something else"), at + HELD / 2), "then it had the lock");
        assert!(!held.too_long(&here(), at + HELD));
        assert!(held.too_long(&here(), at + HELD * 2));
    }
}
