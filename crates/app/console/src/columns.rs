//! What a pod looks like in one line. The STATUS words are those that kubectl shows.

use model::Timestamp;
use model::core::{ContainerStatus, Pod, PodStatus};

/// The wall clock.
pub(crate) fn now() -> Timestamp {
    Timestamp(i64::try_from(jiff::Timestamp::now().as_nanosecond()).unwrap_or(i64::MAX))
}

/// One line of `bosun get pods`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) ready: String,
    pub(crate) status: String,
    pub(crate) restarts: String,
    pub(crate) age: String,
    pub(crate) ip: String,
    pub(crate) node: String,
    pub(crate) uid: String,
}

/// The line of a pod at `now`.
pub(crate) fn line(pod: &Pod, now: Timestamp) -> Line {
    let empty = PodStatus::default();
    let status = pod.status.as_ref().unwrap_or(&empty);
    let regular = status.container_statuses.as_deref().unwrap_or_default();
    let total = pod.spec.as_ref().map_or(0, |s| s.containers.len()) + sidecars(pod).count();
    let ready = regular.iter().chain(sidecar_statuses(pod, status)).filter(|c| c.ready).count();
    let all = regular.iter().chain(status.init_container_statuses.iter().flatten());
    let restarts: i32 = all.map(|c| c.restart_count).sum();
    let since = status.start_time.as_ref().or(pod.metadata.creation_timestamp.as_ref());
    Line {
        namespace: model::pod::namespace(pod).to_owned(),
        name: model::pod::name(pod).to_owned(),
        ready: format!("{ready}/{total}"),
        status: word(pod, status),
        restarts: restarts.to_string(),
        age: since.map_or_else(|| "<unknown>".to_owned(), |t| age(now.nanos_since(Timestamp::from_api(t)))),
        ip: status.pod_ip.clone().unwrap_or_else(|| "<none>".to_owned()),
        node: pod.spec.as_ref().and_then(|s| s.node_name.clone()).unwrap_or_default(),
        uid: pod.metadata.uid.clone().unwrap_or_default(),
    }
}

fn sidecars(pod: &Pod) -> impl Iterator<Item = &str> {
    model::pod::init_containers(pod).iter().filter(|c| model::pod::is_sidecar(c)).map(|c| c.name.as_str())
}

fn sidecar_statuses<'a>(pod: &'a Pod, status: &'a PodStatus) -> impl Iterator<Item = &'a ContainerStatus> {
    status.init_container_statuses.iter().flatten().filter(move |c| sidecars(pod).any(|n| n == c.name))
}

/// The STATUS word: the most telling reason that there is.
fn word(pod: &Pod, status: &PodStatus) -> String {
    let mut word = status.reason.clone().or_else(|| status.phase.clone()).unwrap_or_else(|| "Unknown".to_owned());
    match init_word(pod, status) {
        Some(init) => word = init,
        None => {
            let mut running = false;
            for c in status.container_statuses.iter().flatten().rev() {
                match container_word(c) {
                    Some(w) => word = w,
                    None => running |= c.ready,
                }
            }
            if word == "Completed" && running {
                word = "Running".to_owned();
            }
        }
    }
    if pod.metadata.deletion_timestamp.is_some() { "Terminating".to_owned() } else { word }
}

/// `Init:...` while an init container holds the pod up.
fn init_word(pod: &Pod, status: &PodStatus) -> Option<String> {
    let total = model::pod::init_containers(pod).len();
    for (i, c) in status.init_container_statuses.iter().flatten().enumerate() {
        let state = c.state.as_ref();
        let terminated = state.and_then(|s| s.terminated.as_ref());
        let sidecar_up = c.started == Some(true) && sidecars(pod).any(|n| n == c.name);
        if terminated.is_some_and(|t| t.exit_code == 0) || sidecar_up {
            continue;
        }
        if terminated.is_some() {
            return container_word(c).map(|w| format!("Init:{w}"));
        }
        let waiting = state.and_then(|s| s.waiting.as_ref()).and_then(|w| w.reason.as_deref()).unwrap_or_default();
        if !waiting.is_empty() && waiting != "PodInitializing" {
            return Some(format!("Init:{waiting}"));
        }
        return Some(format!("Init:{i}/{total}"));
    }
    None
}

/// Why a container is not running, if it is not.
fn container_word(c: &ContainerStatus) -> Option<String> {
    let state = c.state.as_ref()?;
    if let Some(reason) = state.waiting.as_ref().and_then(|w| w.reason.clone()).filter(|r| !r.is_empty()) {
        return Some(reason);
    }
    let t = state.terminated.as_ref()?;
    match t.reason.as_deref().unwrap_or_default() {
        "" => match t.signal {
            Some(signal) if signal != 0 => Some(format!("Signal:{signal}")),
            _ => Some(format!("ExitCode:{}", t.exit_code)),
        },
        reason => Some(reason.to_owned()),
    }
}

/// How long ago a moment was, nanoseconds since the epoch.
pub(crate) fn ago(ns: i64, now: Timestamp) -> String {
    format!("{} ago", age(now.nanos_since(Timestamp(ns))))
}

/// A moment as the API writes it; empty: it is none.
pub(crate) fn moment(ns: i64) -> String {
    Timestamp(ns).to_api().map(|t| t.0.to_string()).unwrap_or_default()
}

/// An age as kubectl prints it: two units while short, one when long.
#[must_use]
pub fn age(ns: i64) -> String {
    let s = (ns / 1_000_000_000).max(0);
    let (m, h, d) = (s / 60, s / 3600, s / 86400);
    match s {
        _ if s < 120 => format!("{s}s"),
        _ if m < 10 && s % 60 != 0 => format!("{m}m{}s", s % 60),
        _ if h < 3 => format!("{m}m"),
        _ if h < 8 && m % 60 != 0 => format!("{h}h{}m", m % 60),
        _ if d < 2 => format!("{h}h"),
        _ if d < 8 && h % 24 != 0 => format!("{d}d{}h", h % 24),
        _ => format!("{d}d"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(text: &str) -> Pod {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn ages_are_short() {
        let table = [
            (5, "5s"),
            (119, "119s"),
            (125, "2m5s"),
            (600, "10m"),
            (7200, "120m"),
            (14_460, "4h1m"),
            (90_000, "25h"),
            (200_000, "2d7h"),
            (900_000, "10d"),
        ];
        for (s, expected) in table {
            assert_eq!(age(s * 1_000_000_000), expected);
        }
    }

    #[test]
    fn the_status_word_is_the_most_telling_reason() {
        let spec = r#""metadata":{"name":"a"},"spec":{"initContainers":[{"name":"i"},{"name":"s","restartPolicy":"Always"}],"containers":[{"name":"c"}]}"#;
        let table = [
            (
                "running",
                r#"{"phase":"Running","containerStatuses":[{"name":"c","ready":true,"restartCount":0,"image":"","imageID":"","state":{"running":{}}}]}"#,
                "Running",
            ),
            (
                "crash loop",
                r#"{"phase":"Running","containerStatuses":[{"name":"c","ready":false,"restartCount":3,"image":"","imageID":"","state":{"waiting":{"reason":"CrashLoopBackOff"}}}]}"#,
                "CrashLoopBackOff",
            ),
            (
                "done",
                r#"{"phase":"Succeeded","containerStatuses":[{"name":"c","ready":false,"restartCount":0,"image":"","imageID":"","state":{"terminated":{"exitCode":0,"reason":"Completed"}}}]}"#,
                "Completed",
            ),
            (
                "exit code without reason",
                r#"{"phase":"Failed","containerStatuses":[{"name":"c","ready":false,"restartCount":0,"image":"","imageID":"","state":{"terminated":{"exitCode":7}}}]}"#,
                "ExitCode:7",
            ),
            (
                "first init runs",
                r#"{"phase":"Pending","initContainerStatuses":[{"name":"i","ready":false,"restartCount":0,"image":"","imageID":"","state":{"running":{}}}]}"#,
                "Init:0/2",
            ),
            (
                "init fails",
                r#"{"phase":"Pending","initContainerStatuses":[{"name":"i","ready":false,"restartCount":1,"image":"","imageID":"","state":{"terminated":{"exitCode":1,"reason":"Error"}}}]}"#,
                "Init:Error",
            ),
            (
                "sidecar is up, app waits",
                r#"{"phase":"Pending","initContainerStatuses":[{"name":"s","started":true,"ready":true,"restartCount":0,"image":"","imageID":"","state":{"running":{}}}],"containerStatuses":[{"name":"c","ready":false,"restartCount":0,"image":"","imageID":"","state":{"waiting":{"reason":"PodInitializing"}}}]}"#,
                "PodInitializing",
            ),
            ("evicted", r#"{"phase":"Failed","reason":"Evicted"}"#, "Evicted"),
        ];
        for (what, status, expected) in table {
            let pod = pod(&format!("{{{spec},\"status\":{status}}}"));
            assert_eq!(line(&pod, Timestamp::ZERO).status, expected, "{what}");
        }
    }

    #[test]
    fn sidecars_count_as_containers_and_all_restarts_add_up() {
        let pod = pod(r#"{"metadata":{"name":"a","namespace":"n","uid":"u"},
            "spec":{"nodeName":"x","initContainers":[{"name":"s","restartPolicy":"Always"}],"containers":[{"name":"c"}]},
            "status":{"phase":"Running","podIP":"10.0.0.1","startTime":"2026-01-01T00:00:00Z",
            "initContainerStatuses":[{"name":"s","started":true,"ready":true,"restartCount":2,"image":"","imageID":""}],
            "containerStatuses":[{"name":"c","ready":false,"restartCount":3,"image":"","imageID":"","state":{"running":{}}}]}}"#);
        let now = Timestamp::from_api(pod.status.as_ref().unwrap().start_time.as_ref().unwrap())
            .plus(std::time::Duration::from_secs(61));
        let l = line(&pod, now);
        assert_eq!(
            (l.ready.as_str(), l.restarts.as_str(), l.age.as_str(), l.ip.as_str()),
            ("1/2", "5", "61s", "10.0.0.1")
        );
    }
}
