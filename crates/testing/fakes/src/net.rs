//! The network as probes and hooks see it: each host and port answers as the test says, else it refuses.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use ports::hook::{HookHttp, HookRequest};
use ports::probe::{NetOutcome, NetProber, NetTarget, NetVerdict};

/// Answers by port.
#[derive(Debug, Default)]
pub struct FakeNet {
    answers: Mutex<BTreeMap<u16, NetOutcome>>,
    hooks: Mutex<Vec<HookRequest>>,
}

impl FakeNet {
    /// What a probe of this port finds from now on.
    pub fn answer(&self, port: u16, verdict: NetVerdict, output: &str) {
        let outcome = NetOutcome { verdict, output: output.to_owned() };
        self.answers.lock().unwrap_or_else(PoisonError::into_inner).insert(port, outcome);
    }

    /// Hook requests so far.
    #[must_use]
    pub fn hooks(&self) -> Vec<HookRequest> {
        self.hooks.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn outcome(&self, port: u16) -> NetOutcome {
        let refused = NetOutcome { verdict: NetVerdict::Failure, output: "connection refused".to_owned() };
        self.answers.lock().unwrap_or_else(PoisonError::into_inner).get(&port).cloned().unwrap_or(refused)
    }
}

#[async_trait]
impl NetProber for FakeNet {
    async fn probe(&self, target: NetTarget, _timeout: Duration) -> NetOutcome {
        let (NetTarget::Http { port, .. } | NetTarget::Tcp { port, .. } | NetTarget::Grpc { port, .. }) = target;
        self.outcome(port)
    }
}

#[async_trait]
impl HookHttp for FakeNet {
    async fn get(&self, request: HookRequest) -> Result<(), String> {
        let outcome = self.outcome(request.port);
        self.hooks.lock().unwrap_or_else(PoisonError::into_inner).push(request);
        match outcome.verdict {
            NetVerdict::Success | NetVerdict::Warning => Ok(()),
            NetVerdict::Failure | NetVerdict::Error => Err(outcome.output),
        }
    }
}
