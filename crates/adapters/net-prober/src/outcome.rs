//! What attempts mean for a probe.

use ports::probe::{NetOutcome, NetVerdict};

use crate::http::Exchange;

pub(crate) fn outcome(verdict: NetVerdict, output: impl Into<String>) -> NetOutcome {
    NetOutcome { verdict, output: output.into() }
}

/// What an exchange means for a probe.
pub(crate) fn judge(exchange: Exchange) -> NetOutcome {
    match exchange {
        Exchange::Answer { status, body } => match status {
            200..=299 => outcome(NetVerdict::Success, body),
            300..=399 => outcome(NetVerdict::Warning, format!("Probe terminated redirects, Response body: {body}")),
            // The body stays out of it: it would end in an Event that more people can read than the container's output.
            _ => outcome(NetVerdict::Failure, format!("HTTP probe failed with statuscode: {status}")),
        },
        Exchange::Failed(why) => outcome(NetVerdict::Failure, why),
        Exchange::BodyFailed(why) | Exchange::BadRequest(why) => outcome(NetVerdict::Error, why),
    }
}
