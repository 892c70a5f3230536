//! What attempts mean for a probe.

use model::probe::ProbeOutcome;
use ports::probe::NetAttempt;

use crate::http::Exchange;

pub(crate) fn outcome(outcome: ProbeOutcome, output: impl Into<String>) -> NetAttempt {
    NetAttempt { outcome, output: output.into() }
}

/// What an exchange means for a probe.
pub(crate) fn judge(exchange: Exchange) -> NetAttempt {
    match exchange {
        Exchange::Answer { status, body } => match status {
            200..=299 => outcome(ProbeOutcome::Success, body),
            300..=399 => outcome(ProbeOutcome::Warning, format!("Probe terminated redirects, Response body: {body}")),
            // The body stays out of it: it would end in an Event that more people can read than the container's output.
            _ => outcome(ProbeOutcome::Failure, format!("HTTP probe failed with statuscode: {status}")),
        },
        Exchange::Failed(why) => outcome(ProbeOutcome::Failure, why),
        Exchange::BodyFailed(why) | Exchange::BadRequest(why) => outcome(ProbeOutcome::Error, why),
    }
}
