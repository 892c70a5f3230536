//! Why a node is not ready (node-and-resources 8.4).

use std::time::Duration;

/// A runtime that is out of reach for this long is down.
const DOWN_AFTER: Duration = Duration::from_secs(30);
/// A node that has not listed its pods for this long cannot vouch for them.
const LIST_LIMIT: Duration = Duration::from_secs(180);

/// What is known of the runtime.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuntimeHealth {
    /// It answered at least once since it was first asked.
    pub spoke: bool,
    /// Out of reach since so long; `None`: within reach.
    pub away: Option<Duration>,
    /// Within reach and not ready: its own words.
    pub not_ready: Option<String>,
    /// Network of pods: ready, or the runtime's words.
    pub network: Option<String>,
    /// Since the last complete list of pods; `None`: there was none yet.
    pub listed: Option<Duration>,
}

/// Errors of the runtime and of the network, in the order of node-and-resources 8.4. Empty: nothing speaks against
/// pods.
#[must_use]
pub fn ready_errors(runtime: &RuntimeHealth) -> Vec<String> {
    let mut errors = Vec::new();
    if !runtime.spoke {
        errors.push("container runtime status check may not have completed yet".to_owned());
    } else if runtime.away.is_some_and(|since| since >= DOWN_AFTER) {
        errors.push("container runtime is down".to_owned());
    }
    match runtime.listed {
        None if runtime.spoke => errors.push("PLEG is not healthy: pleg has yet to be successful".to_owned()),
        Some(since) if since >= LIST_LIMIT => {
            let since = minutes(since);
            errors.push(format!("PLEG is not healthy: pleg was last seen active {since} ago; threshold is 3m0s"));
        }
        _ => (),
    }
    errors.extend(runtime.not_ready.clone());
    errors.extend(runtime.network.clone());
    errors
}

/// `3m5s`, in whole seconds, so that the message changes no more often than it must.
fn minutes(d: Duration) -> String {
    let s = d.as_secs();
    format!("{}m{}s", s / 60, s % 60)
}
