//! The flags in force as a kubelet lists them on `/flagz`: what the command line says, else the flag's default. Fields of
//! files are not looked at; they are on `/configz`.
//!
//! Differences from a kubelet: bosun's own flags are listed too, and values that may hold credentials are masked when given.

use serde_json::Value;

use crate::flags::{Flags, Listed, listed};
use model::go_duration;

/// Defaults that are neither empty, nor false, nor 0.
const DEFAULTS: &[(&str, &str)] = &[
    ("address", "0.0.0.0"),
    ("anonymous-auth", "true"),
    ("application-metrics-count-limit", "100"),
    ("authentication-token-webhook-cache-ttl", "2m0s"),
    ("authorization-mode", "AlwaysAllow"),
    ("authorization-webhook-cache-authorized-ttl", "5m0s"),
    ("authorization-webhook-cache-unauthorized-ttl", "30s"),
    ("boot-id-file", "/proc/sys/kernel/random/boot_id"),
    ("cert-dir", "/var/lib/kubelet/pki"),
    ("cgroup-driver", "cgroupfs"),
    ("cgroups-per-qos", "true"),
    ("container-hints", "/etc/cadvisor/container_hints.json"),
    ("container-log-max-files", "5"),
    ("container-log-max-size", "10Mi"),
    ("container-logs-dir", "/var/log/containers"),
    ("container-runtime-endpoint", "unix:///run/containerd/containerd.sock"),
    ("containerd", "/run/containerd/containerd.sock"),
    ("containerd-namespace", "k8s.io"),
    ("cpu-cfs-quota", "true"),
    ("cpu-cfs-quota-period", "100ms"),
    ("cpu-manager-policy", "none"),
    ("cpu-manager-reconcile-period", "10s"),
    ("enable-controller-attach-detach", "true"),
    ("enable-debugging-handlers", "true"),
    ("enable-server", "true"),
    ("enforce-node-allocatable", "[pods]"),
    ("event-burst", "100"),
    ("event-qps", "50"),
    ("event-storage-age-limit", "default=0"),
    ("event-storage-event-limit", "default=0"),
    ("eviction-early-looks", "true"),
    ("eviction-pressure-transition-period", "5m0s"),
    ("fail-cgroupv1", "true"),
    ("fail-swap-on", "true"),
    ("file-check-frequency", "20s"),
    ("global-housekeeping-interval", "1m0s"),
    ("hairpin-mode", "promiscuous-bridge"),
    ("healthz-bind-address", "127.0.0.1"),
    ("healthz-port", "10248"),
    ("housekeeping-interval", "10s"),
    ("http-check-frequency", "20s"),
    ("image-gc-high-threshold", "85"),
    ("image-gc-low-threshold", "80"),
    ("kube-api-burst", "100"),
    ("kube-api-content-type", "application/vnd.kubernetes.protobuf"),
    ("kube-api-qps", "50"),
    ("local-storage-capacity-isolation", "true"),
    ("log-flush-frequency", "5s"),
    ("log-json-info-buffer-size", "0"),
    ("log-text-info-buffer-size", "0"),
    ("logging-format", "text"),
    ("machine-id-file", "/etc/machine-id,/var/lib/dbus/machine-id"),
    ("make-iptables-util-chains", "true"),
    ("max-housekeeping-interval", "15s"),
    ("max-open-files", "1000000"),
    ("max-pods", "110"),
    ("maximum-dead-containers", "-1"),
    ("maximum-dead-containers-per-container", "1"),
    ("memory-manager-policy", "None"),
    ("minimum-image-ttl-duration", "2m0s"),
    ("node-status-max-images", "50"),
    ("node-status-update-frequency", "10s"),
    ("object-cache", "true"),
    ("oom-score-adj", "-999"),
    ("pod-max-pids", "-1"),
    ("pod-store", "true"),
    ("pod-store-after-boot", "safe"),
    ("pod-store-max-age", "5m0s"),
    ("pod-store-wait", "5s"),
    ("port", "10250"),
    ("read-only-port", "10255"),
    ("register-node", "true"),
    ("registry-burst", "10"),
    ("registry-qps", "5"),
    ("resolv-conf", "/etc/resolv.conf"),
    ("root-dir", "/var/lib/kubelet"),
    ("runtime-request-timeout", "2m0s"),
    ("serialize-image-pulls", "true"),
    ("socket", "/run/bosun/bosun.sock"),
    ("storage-driver-buffer-duration", "1m0s"),
    ("storage-driver-db", "cadvisor"),
    ("storage-driver-host", "localhost:8086"),
    ("storage-driver-password", "root"),
    ("storage-driver-table", "stats"),
    ("storage-driver-user", "root"),
    ("streaming-connection-idle-timeout", "4h0m0s"),
    ("sync-frequency", "1m0s"),
    ("sysctl-dir", "/proc/sys"),
    ("topology-manager-policy", "none"),
    ("topology-manager-scope", "container"),
    ("volume-plugin-dir", "/usr/libexec/kubernetes/kubelet-plugins/volume/exec/"),
    ("volume-stats-agg-period", "1m0s"),
];

/// Every flag with its value, by name.
#[must_use]
pub fn flagz(flags: &Flags) -> Vec<(&'static str, String)> {
    let mut all: Vec<_> = listed().map(|flag| (flag.name, value(flags, flag))).collect();
    all.extend([("help", "false".to_owned()), ("version", "false".to_owned())]);
    all.sort_unstable();
    all
}

fn value(flags: &Flags, flag: Listed) -> String {
    let given = flags.given.iter().rev().find(|(name, _)| *name == flag.name);
    let Some((_, last)) = given else {
        let default = DEFAULTS.iter().find(|(name, _)| *name == flag.name).map(|(_, value)| (*value).to_owned());
        return default.unwrap_or_else(|| flag.empty.to_owned());
    };
    if flag.secret {
        return "<masked>".to_owned();
    }
    if flag.name == "node-labels" {
        return flags.node_labels.iter().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>().join(",");
    }
    match flags.overrides.iter().find(|o| o.flag == flag.name) {
        Some(over) => text(&over.value, flag),
        None => scalar(last, flag),
    }
}

/// The JSON of a field as its flag prints it.
fn text(value: &Value, flag: Listed) -> String {
    match value {
        Value::String(text) => scalar(text, flag),
        Value::Array(items) => {
            let words: Vec<String> = items.iter().map(|item| element(item, flag)).collect();
            match flag.empty {
                "[]" => format!("[{}]", words.join(",")),
                // NUMA nodes are apart by a semicolon, all others by a comma.
                _ if flag.name == "reserved-memory" => words.join(";"),
                _ => words.join(","),
            }
        }
        Value::Object(map) => {
            let words: Vec<String> = map.iter().map(|(k, v)| format!("{k}{}{}", flag.between, plain(v))).collect();
            words.join(",")
        }
        other => other.to_string(),
    }
}

/// One taint, module or NUMA node, or a plain word.
fn element(item: &Value, flag: Listed) -> String {
    let of = |name: &str| item.get(name).map(plain).unwrap_or_default();
    if item.get("effect").is_some() {
        return match of("value") {
            value if value.is_empty() => format!("{}:{}", of("key"), of("effect")),
            value => format!("{}={value}:{}", of("key"), of("effect")),
        };
    }
    if item.get("filePattern").is_some() {
        return format!("{}={}", of("filePattern"), of("verbosity"));
    }
    match item.get("limits").and_then(Value::as_object) {
        Some(limits) => {
            let limits: Vec<String> = limits.iter().map(|(k, v)| format!("{k}={}", plain(v))).collect();
            format!("{}:{}", of("numaNode"), limits.join(","))
        }
        None => scalar(&plain(item), flag),
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Durations in Go's own words, switches as true or false.
fn scalar(text: &str, flag: Listed) -> String {
    if flag.duration {
        let (sign, rest) = text.strip_prefix('-').map_or(("", text), |rest| ("-", rest));
        return go_duration::parse(rest)
            .map_or_else(|_| text.to_owned(), |d| format!("{sign}{}", go_duration::format(d)));
    }
    match (flag.empty, text) {
        ("false", "1" | "t" | "T" | "TRUE" | "True") => "true".to_owned(),
        ("false", "0" | "f" | "F" | "FALSE" | "False") => "false".to_owned(),
        _ => text.to_owned(),
    }
}
