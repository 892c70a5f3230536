//! Differences that stay. Each has a row in `docs/compat.md` that says why.

/// One kind of difference.
#[derive(Debug)]
pub(crate) struct Listed {
    /// Names of the cases that show it.
    pub(crate) cases: &'static [&'static str],
    /// How its lines begin.
    pub(crate) begins: &'static str,
    /// The first cell of its row in `docs/compat.md`.
    pub(crate) row: &'static str,
}

impl Listed {
    /// Whether a difference (`case: text`) is of this kind.
    pub(crate) fn covers(&self, difference: &str) -> bool {
        let (case, text) = difference.split_once(": ").unwrap_or_default();
        self.cases.contains(&case) && text.starts_with(self.begins)
    }
}

const SOONER: &str = "`CrashLoopBackOff` in the status";
const ARTEFACT: &str = "`status.resources.limits.memory` of 9007199254740988Ki";

/// Every difference that may show.
pub(crate) const LISTED: &[Listed] = &[
    Listed {
        cases: &["bad-command", "crash-loop", "static-hooks", "static-run-once-fail"],
        begins: "status.containerStatuses.app.state.",
        row: SOONER,
    },
    Listed { cases: &["bad-command", "crash-loop", "run-once-ok"], begins: "status.resources.limits:", row: ARTEFACT },
    Listed {
        cases: &["hooks"],
        begins: "recorded RemoveContainer app#",
        row: "order in which dead instances of one container go with their pod",
    },
    Listed {
        cases: &["hooks"],
        begins: "events of the pod: recorded [\"FailedMount\"]",
        row: "`FailedMount` of the token",
    },
];
