//! A driver that is started again whenever it ends, as its pod would be.

use std::thread::JoinHandle;

use csi_driver::{Config, Driver};
use tokio::sync::watch;

/// On a thread with a runtime for each of its lives: when one ends, its connections and calls end with it.
pub(super) struct Kept {
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<usize>>,
}

impl Kept {
    pub(super) fn start(config: Config) -> Self {
        let (stop, stopped) = watch::channel(false);
        let thread = std::thread::spawn(move || live(&config, stopped));
        Self { stop, thread: Some(thread) }
    }

    /// Ends it. Answers how often it had ended before.
    pub(super) fn end(mut self) -> usize {
        self.stop.send_replace(true);
        self.thread.take().map_or(0, |t| t.join().expect("the driver's thread"))
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        // A test that failed: its thread is not to go on with volumes in a bed that goes.
        self.stop.send_replace(true);
        if let Some(Err(e)) = self.thread.take().map(JoinHandle::join) {
            eprintln!("the driver's thread: {e:?}");
        }
    }
}

fn live(config: &Config, mut stopped: watch::Receiver<bool>) -> usize {
    let mut ends = 0;
    loop {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let driver = runtime.block_on(async { Driver::start(config.clone()) }).expect("a driver");
        let is_over = runtime.block_on(async {
            tokio::select! {
                () = driver.dies() => false,
                _ = stopped.wait_for(|stop| *stop) => true,
            }
        });
        drop(driver);
        runtime.shutdown_background();
        if is_over {
            return ends;
        }
        ends += 1;
    }
}
