//! Credential plugins without programs.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use ports::credential::{CredentialPlugin, PluginCall, PluginError};
use serde_json::Value;

/// Answers for every plugin what the test says, after a second.
#[derive(Debug, Default)]
pub struct FakePlugin {
    answer: Mutex<Option<Value>>,
    calls: Mutex<Vec<(String, Value)>>,
}

fn lock<T>(m: &Mutex<T>) -> MutexGuard<'_, T> {
    m.lock().unwrap_or_else(PoisonError::into_inner)
}

impl FakePlugin {
    /// What is answered from now on; `None`: the plugin fails.
    pub fn answers(&self, answer: Option<Value>) {
        *lock(&self.answer) = answer;
    }

    /// Name of the plugin and its request, of each call since the last look.
    #[must_use]
    pub fn calls(&self) -> Vec<(String, Value)> {
        std::mem::take(&mut *lock(&self.calls))
    }
}

#[async_trait]
impl CredentialPlugin for FakePlugin {
    async fn run(&self, call: PluginCall) -> Result<Vec<u8>, PluginError> {
        assert_eq!(call.deadline, Duration::from_secs(60), "how long a plugin may take");
        let request = serde_json::from_slice(&call.stdin).expect("a request is JSON");
        lock(&self.calls).push((call.name, request));
        tokio::time::sleep(Duration::from_secs(1)).await;
        let answer = lock(&self.answer).clone();
        answer.map(|a| a.to_string().into_bytes()).ok_or(PluginError("it failed".to_owned()))
    }
}
