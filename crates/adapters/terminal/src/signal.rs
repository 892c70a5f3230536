//! Signals that concern a program in a terminal.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Tells of changes of the window's size (SIGWINCH).
#[derive(Debug)]
pub struct Resizes(Signal);

impl Resizes {
    /// Listens from now on.
    ///
    /// # Errors
    /// The handler cannot be installed.
    pub fn listen() -> io::Result<Self> {
        signal(SignalKind::window_change()).map(Self)
    }

    /// The next change. Several at once count as one.
    pub async fn next(&mut self) {
        if self.0.recv().await.is_none() {
            std::future::pending::<()>().await;
        }
    }
}

/// Signals that end a program: SIGINT, SIGTERM, SIGHUP, SIGQUIT. While this lives they no longer end it by themselves.
#[derive(Debug)]
pub struct Ending {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
    quit: Signal,
}

impl Ending {
    /// Listens from now on.
    ///
    /// # Errors
    /// A handler cannot be installed.
    pub fn listen() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
            quit: signal(SignalKind::quit())?,
        })
    }

    /// Waits for one; answers with the exit code that a shell gives for it, 128 + its number.
    pub async fn next(&mut self) -> u8 {
        let kind = tokio::select! {
            _ = self.interrupt.recv() => SignalKind::interrupt(),
            _ = self.terminate.recv() => SignalKind::terminate(),
            _ = self.hangup.recv() => SignalKind::hangup(),
            _ = self.quit.recv() => SignalKind::quit(),
        };
        u8::try_from(128 + kind.as_raw_value()).unwrap_or(u8::MAX)
    }
}
