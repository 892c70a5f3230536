//! What a rule of the verdict finds.

use model::Timestamp;
use serde::{Deserialize, Serialize};

/// What holds a pod up, in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub enum Cause {
    /// Nothing: it is ready.
    Ready,
    /// It has run to its end.
    Completed,
    /// It is on its way, and nothing takes long.
    Starting,
    /// Admission has not decided, or others have to make room first.
    AdmissionPending,
    /// Admission refused it.
    AdmissionRefused,
    /// The node runs short of something.
    NodePressure,
    /// Another pod of its name has to end first.
    WaitsForTurn,
    /// The API server does not answer.
    ApiAway,
    /// The runtime does not answer, or not in time.
    RuntimeHangs,
    /// The pod network is not ready.
    NetworkNotReady,
    /// The pod's cgroup cannot be made.
    CgroupFails,
    /// A volume is not there, or does not go.
    VolumeWaits,
    /// The sandbox cannot be made.
    SandboxFails,
    /// An image cannot be had.
    ImageMissing,
    /// An image is being pulled.
    ImagePulling,
    /// An image waits for other pulls.
    PullQueued,
    /// A container cannot be configured, made or started.
    ContainerFails,
    /// A hook runs.
    HookRuns,
    /// A hook failed.
    HookFails,
    /// An init container runs.
    InitRunning,
    /// An init container fails again and again.
    InitLoop,
    /// A container ends again and again.
    CrashLoop,
    /// A probe fails.
    ProbeFailing,
    /// A probe has not succeeded yet.
    ProbePending,
    /// Somebody outside has to say that the pod is ready.
    ReadinessGate,
    /// It is being stopped.
    Ending,
    /// It is done here; its object is kept by finalizers.
    TerminatingFinalizer,
    /// A step failed for another reason.
    StepFails,
    /// Nothing that is known here holds it up. Also what a newer daemon may say.
    Unknown,
}
model::tolerant!(Cause, else Cause::Unknown);

/// What a rule found.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) cause: Cause,
    pub(crate) summary: String,
    pub(crate) step: String,
    pub(crate) owner: &'static str,
    pub(crate) waits_for: String,
    pub(crate) since: Option<Timestamp>,
    pub(crate) until: Option<Timestamp>,
    pub(crate) said: Option<String>,
    pub(crate) look: Vec<String>,
}

impl Found {
    pub(crate) fn new(cause: Cause, step: impl Into<String>, owner: &'static str, summary: impl Into<String>) -> Self {
        Found {
            cause,
            summary: summary.into(),
            step: step.into(),
            owner,
            waits_for: String::new(),
            since: None,
            until: None,
            said: None,
            look: Vec::new(),
        }
    }

    pub(crate) fn waits_for(mut self, what: impl Into<String>) -> Self {
        self.waits_for = what.into();
        self
    }

    pub(crate) fn since(mut self, at: Option<Timestamp>) -> Self {
        self.since = at;
        self
    }

    pub(crate) fn until(mut self, at: Option<Timestamp>) -> Self {
        self.until = at;
        self
    }

    pub(crate) fn said(mut self, text: Option<impl Into<String>>) -> Self {
        self.said = text.map(Into::into);
        self
    }

    pub(crate) fn look(mut self, command: impl Into<String>) -> Self {
        self.look.push(command.into());
        self
    }
}
