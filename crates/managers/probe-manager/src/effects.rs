//! Runs one probe.

use std::sync::Arc;
use std::time::Duration;

use actor::FaultHandle;
use contract::Crew;
use contract::runtime::{CallError, CallErrorKind, ExecSync};
use model::probe::ProbeOutcome;
use model::{ContainerId, PodUid};
use ports::probe::{NetAttempt, NetProber};
use probe_schedule::target::Target;
use probe_schedule::words;

/// One probe to run.
pub(crate) struct Job {
    pub(crate) uid: PodUid,
    pub(crate) container: ContainerId,
    pub(crate) target: Result<Target, String>,
    pub(crate) timeout: Duration,
}

/// What effects work with.
#[derive(Clone)]
pub(crate) struct ProbeTools {
    pub(crate) crew: Crew<contract::ProbeManager>,
    pub(crate) net: Arc<dyn NetProber>,
    pub(crate) faults: FaultHandle,
}

/// Runs the probe, again at once while it ends in an error; gives the outcome and its text.
pub(crate) async fn run(tools: ProbeTools, job: Job) -> (ProbeOutcome, String) {
    tools.faults.hit("probe.begin").await;
    let mut last = (ProbeOutcome::Error, String::new());
    for _ in 0..words::ATTEMPTS {
        last = match &job.target {
            Err(why) => return (ProbeOutcome::Error, why.clone()),
            Ok(Target::Exec { command }) => exec(&tools, &job, command).await,
            Ok(Target::Net(target)) => {
                let NetAttempt { outcome, output } = tools.net.probe(target.clone(), job.timeout).await;
                (outcome, words::clip(output.as_bytes()))
            }
        };
        if last.0 != ProbeOutcome::Error {
            break;
        }
    }
    tools.faults.hit("probe.end").await;
    last
}

async fn exec(tools: &ProbeTools, job: &Job, command: &[String]) -> (ProbeOutcome, String) {
    let request = ExecSync {
        uid: job.uid.clone(),
        container: job.container.clone(),
        command: command.to_vec(),
        timeout: job.timeout,
    };
    match tools.crew.call(request).await {
        Ok(done) => {
            let mut output = done.stdout;
            output.truncate(words::MAX_OUTPUT);
            output.extend(done.stderr);
            let outcome = if done.exit_code == 0 { ProbeOutcome::Success } else { ProbeOutcome::Failure };
            (outcome, words::clip(&output))
        }
        Err(e) if e.kind == CallErrorKind::Timeout => {
            (ProbeOutcome::Failure, format!("command {:?} timed out", command.join(" ")))
        }
        Err(e) => (ProbeOutcome::Error, rpc_text(&e)),
    }
}

/// As Go prints a failed call.
fn rpc_text(e: &CallError) -> String {
    let code = match e.kind {
        CallErrorKind::NotFound => "NotFound",
        CallErrorKind::Unimplemented => "Unimplemented",
        CallErrorKind::Timeout => "DeadlineExceeded",
        CallErrorKind::Unavailable | CallErrorKind::Lost => "Unavailable",
        CallErrorKind::Failed => "Unknown",
    };
    format!("rpc error: code = {code} desc = {}", e.message)
}
