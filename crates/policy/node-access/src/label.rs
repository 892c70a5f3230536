//! Labels of request metrics (interfaces 5.1).

#[cfg(test)]
mod tests;

/// Labels of one request, without the server's type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Labels {
    /// Method, or `other`.
    pub method: &'static str,
    /// First segment of the path, `metrics/x`, or `other`.
    pub path: &'static str,
    /// `true` for requests that may last.
    pub long_running: &'static str,
}

const METHODS: &[&str] = &["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE"];

/// First segments that a node knows.
const PATHS: &[&str] = &[
    "attach",
    "checkpoint",
    "configz",
    "containerLogs",
    "debug",
    "exec",
    "flagz",
    "healthz",
    "logs",
    "metrics",
    "pods",
    "portForward",
    "run",
    "runningpods",
    "stats",
    "statusz",
];

const METRICS: &[(&str, &str)] = &[
    ("cadvisor", "metrics/cadvisor"),
    ("probes", "metrics/probes"),
    ("resource", "metrics/resource"),
    ("slis", "metrics/slis"),
];

/// Labels of a request; `path` is as it came or as [`crate::canonical`] made it.
#[must_use]
pub fn labels(method: &str, path: &str) -> Labels {
    let known = |all: &[&'static str], wanted: &str| all.iter().find(|k| **k == wanted).copied();
    let mut segments = path.trim_start_matches('/').split('/');
    let first = known(PATHS, segments.next().unwrap_or_default());
    let second = segments.next().unwrap_or_default();
    let path = match (first, second) {
        (Some("metrics"), "") => "metrics",
        (Some("metrics"), second) => METRICS.iter().find(|(s, _)| *s == second).map_or("other", |(_, label)| label),
        (Some(first), _) => first,
        (None, _) => "other",
    };
    let long = matches!(path, "exec" | "attach" | "debug");
    Labels {
        method: known(METHODS, method).unwrap_or("other"),
        path,
        long_running: if long { "true" } else { "false" },
    }
}
