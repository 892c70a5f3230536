//! The network as probes and hooks see it: each host and port answers as the test says, else it refuses.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use model::probe::ProbeOutcome;
use ports::hook::{HookHttp, HookRequest};
use ports::probe::{NetAttempt, NetProber, NetTarget};

/// Answers by port.
#[derive(Debug, Default)]
pub struct FakeNet {
    answers: Mutex<BTreeMap<u16, NetAttempt>>,
    hooks: Mutex<Vec<HookRequest>>,
}

impl FakeNet {
    /// What a probe of this port finds from now on.
    pub fn answer(&self, port: u16, outcome: ProbeOutcome, output: &str) {
        let attempt = NetAttempt { outcome, output: output.to_owned() };
        self.answers.lock().unwrap_or_else(PoisonError::into_inner).insert(port, attempt);
    }

    /// Hook requests so far.
    #[must_use]
    pub fn hooks(&self) -> Vec<HookRequest> {
        self.hooks.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn attempt(&self, port: u16) -> NetAttempt {
        let refused = NetAttempt { outcome: ProbeOutcome::Failure, output: "connection refused".to_owned() };
        self.answers.lock().unwrap_or_else(PoisonError::into_inner).get(&port).cloned().unwrap_or(refused)
    }
}

#[async_trait]
impl NetProber for FakeNet {
    async fn probe(&self, target: NetTarget, _timeout: Duration) -> NetAttempt {
        let (NetTarget::Http { port, .. } | NetTarget::Tcp { port, .. } | NetTarget::Grpc { port, .. }) = target;
        self.attempt(port)
    }
}

#[async_trait]
impl HookHttp for FakeNet {
    async fn get(&self, request: HookRequest) -> Result<(), String> {
        let attempt = self.attempt(request.port);
        self.hooks.lock().unwrap_or_else(PoisonError::into_inner).push(request);
        match attempt.outcome {
            ProbeOutcome::Success | ProbeOutcome::Warning => Ok(()),
            ProbeOutcome::Failure | ProbeOutcome::Error => Err(attempt.output),
        }
    }
}
