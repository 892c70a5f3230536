//! The words of probe events (pod-lifecycle 8.3), the kubelet's own.

use model::probe::{ProbeKind, ProbeOutcome};

/// Reason of failures and errors.
pub const UNHEALTHY: &str = "Unhealthy";
/// Reason of a success with a warning.
pub const PROBE_WARNING: &str = "ProbeWarning";
/// How much of a probe's output is looked at, in bytes.
pub const MAX_OUTPUT: usize = 10 * 1024;
/// Attempts while the probe ends in an error.
pub const ATTEMPTS: u32 = 3;

/// Reason and message of the Warning event that an outcome calls for, if any. `output` is the probe's output, or the text of
/// the error.
#[must_use]
pub fn event(kind: ProbeKind, outcome: ProbeOutcome, output: &str) -> Option<(&'static str, String)> {
    match outcome {
        ProbeOutcome::Success => None,
        ProbeOutcome::Warning => Some((PROBE_WARNING, format!("{kind} probe warning: {output}"))),
        ProbeOutcome::Failure => Some((UNHEALTHY, format!("{kind} probe failed: {output}"))),
        ProbeOutcome::Error => {
            Some((UNHEALTHY, format!("{kind} probe errored and resulted in unknown state: {output}")))
        }
    }
}

/// The first part of an output that is looked at, as text.
#[must_use]
pub fn clip(output: &[u8]) -> String {
    String::from_utf8_lossy(&output[..output.len().min(MAX_OUTPUT)]).into_owned()
}
