//! How long each call may take (interfaces 7.3).

use std::time::Duration;

/// Deadlines out of one base value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Deadlines {
    base: Duration,
}

impl Deadlines {
    /// From `runtimeRequestTimeout`.
    #[must_use]
    pub fn new(runtime_request_timeout: Duration) -> Self {
        Self { base: runtime_request_timeout }
    }

    /// Most calls.
    pub(crate) fn base(self) -> Duration {
        self.base
    }

    /// RunPodSandbox: network plugins and snapshots take their time.
    pub(crate) fn sandbox(self) -> Duration {
        self.base * 2
    }

    /// StopContainer: the grace period comes on top.
    pub(crate) fn stop(self, grace_seconds: i64) -> Duration {
        self.base.saturating_add(seconds(grace_seconds))
    }

    /// ExecSync: the command's own limit comes on top; a command without one runs for ever.
    pub(crate) fn exec(self, timeout_seconds: i64) -> Option<Duration> {
        (timeout_seconds > 0).then(|| self.base.saturating_add(seconds(timeout_seconds)))
    }

    /// CheckpointContainer: what was asked for, but not less than any other call.
    pub(crate) fn checkpoint(self, timeout_seconds: i64) -> Duration {
        self.base.max(seconds(timeout_seconds))
    }
}

impl Default for Deadlines {
    fn default() -> Self {
        Self::new(Duration::from_secs(120))
    }
}

/// Negative counts as 0.
fn seconds(n: i64) -> Duration {
    Duration::from_secs(u64::try_from(n).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Deadlines;

    #[test]
    fn follow_the_book() {
        let d = Deadlines::default();
        let s = Duration::from_secs;
        let rows = [
            ("most calls", Some(d.base()), Some(s(120))),
            ("sandbox start has twice the base", Some(d.sandbox()), Some(s(240))),
            ("stop adds the grace", Some(d.stop(30)), Some(s(150))),
            ("forced stop", Some(d.stop(0)), Some(s(120))),
            ("exec adds its own limit", d.exec(5), Some(s(125))),
            ("exec without a limit", d.exec(0), None),
            ("short checkpoint", Some(d.checkpoint(10)), Some(s(120))),
            ("long checkpoint", Some(d.checkpoint(600)), Some(s(600))),
        ];
        for (name, got, want) in rows {
            assert_eq!(got, want, "{name}");
        }
    }
}
