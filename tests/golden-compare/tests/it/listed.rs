//! Differences that stay. Each has a row in `docs/compat.md` that says why.

/// One kind of difference.
#[derive(Debug)]
pub(crate) struct Listed {
    /// Names of the cases that show it.
    pub(crate) cases: &'static [&'static str],
    /// How its lines begin.
    pub(crate) begins: &'static str,
    /// How they end.
    pub(crate) ends: &'static str,
    /// The first cell of its row in `docs/compat.md`.
    pub(crate) row: &'static str,
}

impl Listed {
    /// Whether a difference (`case: text`) is of this kind.
    pub(crate) fn covers(&self, difference: &str) -> bool {
        let (case, text) = difference.split_once(": ").unwrap_or_default();
        self.cases.contains(&case) && text.starts_with(self.begins) && text.ends_with(self.ends)
    }
}

const SOONER: &str = "`CrashLoopBackOff` in the status";
const ARTEFACT: &str = "`status.resources.limits.memory` of 9007199254740988Ki";

const RESTARTING: &[&str] = &["bad-command", "crash-loop", "static-hooks", "static-run-once-fail"];

/// Every difference that may show.
pub(crate) const LISTED: &[Listed] = &[
    Listed {
        cases: RESTARTING,
        begins: "status.containerStatuses.app.state.waiting.reason",
        ends: "ours \"CrashLoopBackOff\"",
        row: SOONER,
    },
    Listed {
        cases: RESTARTING,
        begins: "status.containerStatuses.app.state.waiting.message: recorded",
        ends: "_gold(<uid>)\"",
        row: SOONER,
    },
    Listed {
        cases: RESTARTING,
        begins: "status.containerStatuses.app.state.waiting: recorded null",
        ends: "\"reason\":\"CrashLoopBackOff\"}",
        row: SOONER,
    },
    Listed {
        cases: RESTARTING,
        begins: "status.containerStatuses.app.state.terminated: recorded",
        ends: "ours null",
        row: SOONER,
    },
    Listed {
        cases: &["active-deadline", "bad-command", "crash-loop", "probes", "run-once-ok"],
        begins: "status.resources.limits: recorded {\"memory\":\"9007199254740988Ki\"}",
        ends: "ours null",
        row: ARTEFACT,
    },
    Listed {
        cases: &["burstable"],
        begins: "status.resources.limits: recorded {\"memory\":\"128Mi\"}",
        ends: "ours null",
        row: ARTEFACT,
    },
    Listed {
        cases: &["hooks"],
        begins: "recorded RemoveContainer app#",
        ends: "after StopPodSandbox sandbox#0",
        row: "order in which dead instances of one container go with their pod",
    },
    Listed {
        cases: &["hooks"],
        begins: "events of the pod: recorded [\"FailedMount",
        ends: "ours []",
        row: "`FailedMount` of the token",
    },
    Listed {
        cases: &["readiness-fails"],
        begins: "events of spec.containers{app}: recorded [\"Pulled",
        ends: "\"Unhealthy: Readiness probe failed: not yet\\n\", \"Killing: Stopping container app\"]",
        row: "`Unhealthy` with \"errored\" while a container is being stopped",
    },
];
