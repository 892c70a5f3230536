//! What the service manager is told, and how it asks to stop (interfaces 10.2).

use std::time::Duration;

use anyhow::{Result, bail};
use server::healthz::Checks;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Period of the service watchdog; `None`: none is set for this process.
///
/// # Errors
/// `WATCHDOG_USEC` cannot be read, or is too short to be kept.
pub(super) fn watchdog() -> Result<Option<Duration>> {
    watchdog_of(std::env::var("WATCHDOG_USEC").ok().as_deref(), std::env::var("WATCHDOG_PID").ok().as_deref())
}

fn watchdog_of(usec: Option<&str>, pid: Option<&str>) -> Result<Option<Duration>> {
    let Some(usec) = usec else { return Ok(None) };
    if pid.is_some_and(|p| p.parse() != Ok(std::process::id())) {
        return Ok(None);
    }
    let Ok(micros) = usec.parse::<u64>() else {
        bail!("configure watchdog: WATCHDOG_USEC={usec:?} is not a number of microseconds");
    };
    if micros <= 1_000_000 {
        bail!("configure watchdog timeout too small: {micros} us (allowed: WatchdogSec of more than 1 s)");
    }
    Ok(Some(Duration::from_micros(micros)))
}

/// Ready now, and alive as long as every check passes.
pub(super) fn ready(checks: Checks, watchdog: Option<Duration>, apart: &tokio::runtime::Handle) {
    let _told = sd_notify::notify(&[sd_notify::NotifyState::Ready]);
    let Some(period) = watchdog else { return };
    apart.spawn(async move {
        loop {
            tokio::time::sleep(period / 2).await;
            match checks.first_failure() {
                None => {
                    let _told = sd_notify::notify(&[sd_notify::NotifyState::Watchdog]);
                }
                Some((name, reason)) => {
                    tracing::error!(check = name, reason, "unhealthy: the service watchdog is not fed");
                }
            }
        }
    });
}

/// SIGTERM and SIGINT, listened to from the start on. SIGHUP is not handled: it ends the process as it does a kubelet, and pods
/// go on running.
pub(super) struct Signals {
    term: Signal,
    int: Signal,
}

impl Signals {
    /// # Errors
    /// The kernel hands out no signal handlers.
    pub(super) fn listen() -> Result<Self> {
        Ok(Self { term: signal(SignalKind::terminate())?, int: signal(SignalKind::interrupt())? })
    }

    /// Waits for a signal and names it.
    pub(super) async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.term.recv() => "SIGTERM",
            _ = self.int.recv() => "SIGINT",
        }
    }

    /// The end has begun: from now on a signal ends the process at once, with code 1.
    pub(super) fn stopping(mut self) {
        let _told = sd_notify::notify(&[sd_notify::NotifyState::Stopping]);
        tokio::spawn(async move {
            self.next().await;
            std::process::exit(1);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watchdog_must_be_of_this_process_and_longer_than_a_second() {
        let own = std::process::id().to_string();
        let seconds = |usec, pid| watchdog_of(usec, pid).map(|d| d.map(|d| d.as_secs())).map_err(|e| e.to_string());
        assert_eq!(seconds(None, None), Ok(None));
        assert_eq!(seconds(Some("60000000"), None), Ok(Some(60)));
        assert_eq!(seconds(Some("60000000"), Some(&own)), Ok(Some(60)));
        assert_eq!(seconds(Some("60000000"), Some("1")), Ok(None));
        let refused = |usec| seconds(Some(usec), None).unwrap_err();
        assert!(refused("500000").starts_with("configure watchdog timeout too small: "), "{}", refused("500000"));
        assert!(refused("soon").starts_with("configure watchdog: "), "{}", refused("soon"));
    }
}
