//! The network as probes and hooks see it: each host and port answers as the test says, else it refuses.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use model::probe::ProbeOutcome;
use ports::hook::{HTTP_TO_HTTPS, HookHttp, HookRequest};
use ports::probe::{NetAttempt, NetProber, NetTarget};
use tokio::time::Instant;

/// Answers by port.
#[derive(Debug, Default)]
pub struct FakeNet(Mutex<Ports>);

#[derive(Debug, Default)]
struct Ports {
    answers: BTreeMap<u16, NetAttempt>,
    all_are_open: bool,
    plain_only: bool,
    takes: Duration,
    hooks: Vec<HookRequest>,
    probes: Vec<(Instant, NetTarget)>,
    running: usize,
    most_at_once: usize,
}

impl FakeNet {
    fn ports(&self) -> MutexGuard<'_, Ports> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a probe of this port finds from now on.
    pub fn answer(&self, port: u16, outcome: ProbeOutcome, output: &str) {
        self.ports().answers.insert(port, NetAttempt { outcome, output: output.to_owned() });
    }

    /// From now on every port answers well, until the test says something else of it.
    pub fn open_all(&self) {
        let mut ports = self.ports();
        ports.answers.clear();
        ports.all_are_open = true;
    }

    /// From now on every port takes hooks over plain HTTP only: who begins TLS is told so.
    pub fn speak_plain_http(&self) {
        self.open_all();
        self.ports().plain_only = true;
    }

    /// How long a probe takes from now on; one that may not last so long fails.
    pub fn set_takes(&self, takes: Duration) {
        self.ports().takes = takes;
    }

    /// Hook requests so far.
    #[must_use]
    pub fn hooks(&self) -> Vec<HookRequest> {
        self.ports().hooks.clone()
    }

    /// Probes so far, with when they began.
    #[must_use]
    pub fn probes(&self) -> Vec<(Instant, NetTarget)> {
        self.ports().probes.clone()
    }

    /// The most probes that ran at one time.
    #[must_use]
    pub fn most_at_once(&self) -> usize {
        self.ports().most_at_once
    }

    fn attempt(&self, port: u16) -> NetAttempt {
        let ports = self.ports();
        let (outcome, output) = match ports.all_are_open {
            true => (ProbeOutcome::Success, "ok"),
            false => (ProbeOutcome::Failure, "connection refused"),
        };
        ports.answers.get(&port).cloned().unwrap_or(NetAttempt { outcome, output: output.to_owned() })
    }
}

#[async_trait]
impl NetProber for FakeNet {
    async fn probe(&self, target: NetTarget, timeout: Duration) -> NetAttempt {
        let (NetTarget::Http { port, .. } | NetTarget::Tcp { port, .. } | NetTarget::Grpc { port, .. }) = target;
        let attempt = self.attempt(port);
        let takes = {
            let mut ports = self.ports();
            ports.probes.push((Instant::now(), target));
            ports.running += 1;
            ports.most_at_once = ports.most_at_once.max(ports.running);
            ports.takes
        };
        if !takes.is_zero() {
            tokio::time::sleep(takes.min(timeout)).await;
        }
        self.ports().running -= 1;
        if takes > timeout {
            return NetAttempt { outcome: ProbeOutcome::Failure, output: "timeout".to_owned() };
        }
        attempt
    }
}

#[async_trait]
impl HookHttp for FakeNet {
    async fn get(&self, request: HookRequest) -> Result<(), String> {
        let attempt = self.attempt(request.port);
        let plain_only = {
            let mut ports = self.ports();
            ports.hooks.push(request.clone());
            ports.plain_only
        };
        if plain_only && request.scheme == "https" {
            return Err(format!("Get \"https://...\": {HTTP_TO_HTTPS}"));
        }
        match attempt.outcome {
            ProbeOutcome::Success | ProbeOutcome::Warning => Ok(()),
            ProbeOutcome::Failure | ProbeOutcome::Error => Err(attempt.output),
        }
    }
}
