//! When a new certificate is due, how long to wait after a failure, and when the daemon should give up.

use std::time::Duration;

use crate::certificate::Facts;
use crate::template::Template;

/// How long a request is followed before a new one is made.
pub const WAIT_LIMIT: Duration = Duration::from_secs(15 * 60);
/// The same for the one request of a bootstrap without rotation.
pub const BOOTSTRAP_WAIT_LIMIT: Duration = Duration::from_secs(60 * 60);
/// Without a valid client certificate for this long, with a healthy server: start anew.
pub const EXIT_AFTER_S: i64 = 5 * 60;

const FIRST_PAUSE_S: f64 = 2.0;
const LAST_PAUSE: Duration = Duration::from_secs(32);
const STEPS: u32 = 5;

/// When a certificate is replaced: its start plus a share of its life between 0.7 and 0.9. `chance` is in `0..1`.
#[must_use]
#[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "lives of certificates in seconds")]
pub fn deadline_s(facts: &Facts, chance: f64) -> i64 {
    let life = facts.not_after_s.saturating_sub(facts.not_before_s) as f64;
    facts.not_before_s.saturating_add((life * (0.7 + 0.2 * chance)).round() as i64)
}

/// What stands in for a certificate now.
#[derive(Clone, Copy, Debug)]
pub struct InForce<'a> {
    /// What it says.
    pub facts: &'a Facts,
    /// When it is to be replaced (see [`deadline_s`]).
    pub deadline_s: i64,
    /// It came with the kubeconfig: replaced as soon as possible.
    pub imported: bool,
}

/// Why a new certificate is needed now; `None`: it is not.
#[must_use]
pub fn due(now_s: i64, in_force: Option<InForce<'_>>, template: &Template) -> Option<String> {
    let Some(in_force) = in_force else { return Some("there is none".to_owned()) };
    if in_force.imported {
        return Some("it came with the kubeconfig".to_owned());
    }
    if in_force.facts.is_expired(now_s) {
        return Some("it is expired".to_owned());
    }
    if let Some(missing) = template.missing_in(in_force.facts) {
        return Some(format!("it lacks {missing}"));
    }
    (now_s >= in_force.deadline_s).then(|| "it is due".to_owned())
}

/// Pause after this many failures in a row: 2, 4, 8, 16 seconds with up to a tenth more, then always 32. `chance` is in `0..1`.
#[must_use]
pub fn pause(failures: u32, chance: f64) -> Duration {
    match failures {
        0 => Duration::ZERO,
        n if n < STEPS => Duration::from_secs_f64(FIRST_PAUSE_S * f64::from(1 << (n - 1)) * (1.0 + 0.1 * chance)),
        _ => LAST_PAUSE,
    }
}

/// Whether the server is healthy, after it failed a request: it spoke for itself. `code` is the HTTP status, if one came.
#[must_use]
pub const fn is_healthy_after(code: Option<u16>) -> bool {
    matches!(code, Some(401 | 403 | 404))
}

/// What the exit decision looks at.
#[derive(Clone, Copy, Debug)]
pub struct ClientState {
    /// Now, seconds since the epoch.
    pub now_s: i64,
    /// End of the certificate in force, if there is one.
    pub not_after_s: Option<i64>,
    /// When there last was a valid one; the start of the daemon counts as one.
    pub last_valid_s: i64,
    /// The server's last answer was its own.
    pub server_healthy: bool,
}

/// Why the daemon should exit with 1, so that it is started anew and bootstraps again.
#[must_use]
pub fn must_exit(state: ClientState) -> Option<String> {
    if !state.server_healthy {
        return None;
    }
    if state.not_after_s.is_some_and(|end| state.now_s > end) {
        return Some("the client certificate has expired and the API server answers".to_owned());
    }
    let without = state.now_s.saturating_sub(state.last_valid_s);
    (state.not_after_s.is_none() && without > EXIT_AFTER_S)
        .then(|| format!("no valid client certificate for {without} s and the API server answers"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::template::client;

    fn facts() -> Facts {
        Facts {
            not_before_s: 1000,
            not_after_s: 2000,
            common_name: "system:node:n1".to_owned(),
            organizations: ["system:nodes".to_owned()].into(),
            dns_names: Default::default(),
            ip_addresses: Default::default(),
            public_key: vec![],
        }
    }

    #[test]
    fn the_deadline_lies_between_seven_and_nine_tenths_of_the_life() {
        for (chance, deadline) in [(0.0, 1700), (0.5, 1800), (1.0, 1900)] {
            assert_eq!(deadline_s(&facts(), chance), deadline);
        }
    }

    #[test]
    fn a_new_certificate_is_due_when_the_book_says_so() {
        let facts = facts();
        let in_force = InForce { facts: &facts, deadline_s: 1800, imported: false };
        let imported = InForce { imported: true, ..in_force };
        let rows = [
            ("none", 1100, None, "n1", Some("there is none")),
            ("fresh", 1100, Some(in_force), "n1", None),
            ("deadline", 1800, Some(in_force), "n1", Some("it is due")),
            ("expired", 2001, Some(in_force), "n1", Some("it is expired")),
            ("imported", 1100, Some(imported), "n1", Some("it came with the kubeconfig")),
            (
                "other subject",
                1100,
                Some(in_force),
                "n2",
                Some("it lacks common name \"system:node:n1\" instead of \"system:node:n2\""),
            ),
        ];
        for (what, now, in_force, node, wanted) in rows {
            assert_eq!(due(now, in_force, &client(node)).as_deref(), wanted, "{what}");
        }
    }

    #[test]
    fn pauses_double_from_two_seconds_to_thirty_two() {
        let seconds: Vec<_> = (0..8).map(|n| pause(n, 0.0).as_secs()).collect();
        assert_eq!(seconds, [0, 2, 4, 8, 16, 32, 32, 32]);
        assert_eq!(pause(1, 1.0), Duration::from_millis(2200));
        assert_eq!(pause(5, 1.0), Duration::from_secs(32));
    }

    #[test]
    fn only_the_servers_own_words_make_it_healthy() {
        for (code, healthy) in [
            (Some(401), true),
            (Some(403), true),
            (Some(404), true),
            (Some(500), false),
            (Some(503), false),
            (None, false),
        ] {
            assert_eq!(is_healthy_after(code), healthy, "{code:?}");
        }
    }

    #[test]
    fn the_daemon_gives_up_only_when_the_server_answers() {
        let fine = ClientState { now_s: 1000, not_after_s: Some(2000), last_valid_s: 1000, server_healthy: true };
        let expired = ClientState { now_s: 2001, ..fine };
        let none = ClientState { now_s: 1301, not_after_s: None, ..fine };
        let rows = [
            ("valid", fine, false),
            ("expired", expired, true),
            ("expired, server away", ClientState { server_healthy: false, ..expired }, false),
            ("none for five minutes", none, true),
            ("none for less", ClientState { now_s: 1300, ..none }, false),
            ("none, server away", ClientState { server_healthy: false, ..none }, false),
        ];
        for (what, state, exits) in rows {
            assert_eq!(must_exit(state).is_some(), exits, "{what}");
        }
    }
}
