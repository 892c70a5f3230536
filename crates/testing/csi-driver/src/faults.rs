//! Trouble on request.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tonic::{Code, Status};

/// Trouble for some calls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Name of the call, e.g. `NodePublishVolume`.
    pub call: String,
    /// How many of them it takes; absent: all.
    #[serde(default)]
    pub times: Option<u32>,
    /// What happens.
    pub effect: Effect,
}

/// What happens to a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// It is never answered, and not done.
    Hang,
    /// It is refused with this gRPC code, and not done.
    Code(i32),
    /// It is done, and answered with this gRPC code.
    Lost(i32),
    /// It is done and answered after so many milliseconds.
    SlowMs(u64),
    /// The driver ends before it is done, see [`crate::Driver::dies`].
    Exit,
    /// The driver ends after it is done.
    ExitAfter,
}

/// Rules that hold now.
#[derive(Debug)]
pub(crate) struct Faults {
    control: PathBuf,
    state: Mutex<(Vec<u8>, Vec<Rule>)>,
    /// The driver is to end.
    pub(crate) dies: watch::Sender<bool>,
}

impl Faults {
    pub(crate) fn new(control: PathBuf) -> Self {
        Self { control, state: Mutex::default(), dies: watch::Sender::new(false) }
    }

    /// What happens to this call. A control file that changed counts anew.
    fn next(&self, call: &str) -> Result<Option<Effect>, Status> {
        let text = std::fs::read(&self.control).unwrap_or_default();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.0 != text {
            let rules = if text.is_empty() { Ok(Vec::new()) } else { serde_json::from_slice(&text) };
            state.1 = rules.map_err(|e| Status::internal(format!("{}: {e}", self.control.display())))?;
            state.0 = text;
        }
        let Some(at) = state.1.iter().position(|rule| rule.call == call) else { return Ok(None) };
        let effect = state.1[at].effect.clone();
        if let Some(left) = &mut state.1[at].times {
            *left = left.saturating_sub(1);
            if *left == 0 {
                state.1.remove(at);
            }
        }
        Ok(Some(effect))
    }

    /// Does a call, or what a rule makes of it.
    pub(crate) async fn around<T>(
        &self,
        call: &str,
        work: impl Future<Output = Result<T, Status>>,
    ) -> Result<T, Status> {
        let told = |code: i32| Status::new(Code::from(code), format!("{call}: told to"));
        match self.next(call)? {
            None => work.await,
            Some(Effect::Hang) => never().await,
            Some(Effect::Code(code)) => Err(told(code)),
            Some(Effect::Lost(code)) => work.await.and_then(|_| Err(told(code))),
            Some(Effect::SlowMs(ms)) => {
                let answer = work.await;
                tokio::time::sleep(Duration::from_millis(ms)).await;
                answer
            }
            Some(Effect::Exit) => self.die().await,
            Some(Effect::ExitAfter) => {
                let _done = work.await;
                self.die().await
            }
        }
    }

    /// Whoever runs the driver ends it, with all that it is at.
    async fn die<T>(&self) -> Result<T, Status> {
        self.dies.send_replace(true);
        never().await
    }
}

async fn never<T>() -> Result<T, Status> {
    std::future::pending().await
}
