//! `/metrics/resource` (interfaces 5.3).

use model::Timestamp;
use model::stats::{ContainerStats, CpuStats, MemoryStats, PodStats, Summary, SwapStats};

use crate::text::{Kind, Text, labels};

/// One family about things of kind `T`.
type Family<T> = (&'static str, &'static str, Kind, fn(&T) -> Option<(f64, Option<Timestamp>)>);

const NODE: [Family<Summary>; 3] = [
    (
        "node_cpu_usage_seconds_total",
        "[STABLE] Processor time that the node has used, in core-seconds",
        Kind::Counter,
        |s| cpu(s.node.cpu.as_ref()),
    ),
    ("node_memory_working_set_bytes", "[STABLE] Working set of the node in bytes", Kind::Gauge, |s| {
        memory(s.node.memory.as_ref())
    }),
    ("node_swap_usage_bytes", "[ALPHA] Swap that the node uses, in bytes", Kind::Gauge, |s| swap(s.node.swap.as_ref())),
];

const PODS: [Family<PodStats>; 3] = [
    (
        "pod_cpu_usage_seconds_total",
        "[STABLE] Processor time that the pod has used, in core-seconds",
        Kind::Counter,
        |p| cpu(p.cpu.as_ref()),
    ),
    ("pod_memory_working_set_bytes", "[STABLE] Working set of the pod in bytes", Kind::Gauge, |p| {
        memory(p.memory.as_ref())
    }),
    ("pod_swap_usage_bytes", "[ALPHA] Swap that the pod uses, in bytes", Kind::Gauge, |p| swap(p.swap.as_ref())),
];

const CONTAINERS: [Family<ContainerStats>; 5] = [
    (
        "container_cpu_usage_seconds_total",
        "[STABLE] Processor time that the container has used, in core-seconds",
        Kind::Counter,
        |c| cpu(c.cpu.as_ref()),
    ),
    ("container_memory_working_set_bytes", "[STABLE] Working set of the container in bytes", Kind::Gauge, |c| {
        memory(c.memory.as_ref())
    }),
    // Readers tell a restart by it; it has no time of its own.
    (
        "container_start_time_seconds",
        "[STABLE] When the container was started, in seconds since the epoch",
        Kind::Gauge,
        |c| c.start_time.is_set().then(|| (seconds(c.start_time.0), None)),
    ),
    ("container_swap_limit_bytes", "[ALPHA] Swap that the container may use, in bytes", Kind::Gauge, |c| {
        let swap = c.swap.as_ref()?;
        Some((number(swap.swap_usage_bytes?.saturating_add(swap.swap_available_bytes?)), Some(swap.time)))
    }),
    ("container_swap_usage_bytes", "[ALPHA] Swap that the container uses, in bytes", Kind::Gauge, |c| {
        swap(c.swap.as_ref())
    }),
];

/// The text. `None`: the gathering failed.
#[must_use]
pub fn render(summary: Option<&Summary>) -> String {
    let pods = summary.map_or(&[][..], |s| &s.pods[..]);
    let mut text = Text::with_capacity(4096 + pods.len() * 2048);
    let of = |p: &PodStats| labels(&[("namespace", &p.pod_ref.namespace), ("pod", &p.pod_ref.name)]);
    let of_pods: Vec<String> = pods.iter().map(of).collect();
    for (name, help, kind, value) in CONTAINERS {
        text.family(name, help, kind);
        for (pod, labels_of_pod) in pods.iter().zip(&of_pods) {
            for container in &pod.containers {
                if let Some((value, at)) = value(container) {
                    text.sample([&labels(&[("container", &container.name)]), labels_of_pod, ""], value, at);
                }
            }
        }
    }
    for (name, help, kind, value) in NODE {
        text.family(name, help, kind);
        if let Some((value, at)) = summary.and_then(value) {
            text.sample([""; 3], value, at);
        }
    }
    for (name, help, kind, value) in PODS {
        text.family(name, help, kind);
        for (pod, labels_of_pod) in pods.iter().zip(&of_pods) {
            if let Some((value, at)) = value(pod) {
                text.sample([labels_of_pod, "", ""], value, at);
            }
        }
    }
    text.family("resource_scrape_error", "[STABLE] 1 when the numbers could not be gathered, else 0", Kind::Gauge);
    text.sample([""; 3], if summary.is_none() { 1.0 } else { 0.0 }, None);
    text.done()
}

fn cpu(stats: Option<&CpuStats>) -> Option<(f64, Option<Timestamp>)> {
    let stats = stats?;
    Some((number(stats.usage_core_nano_seconds?) / 1e9, Some(stats.time)))
}

fn memory(stats: Option<&MemoryStats>) -> Option<(f64, Option<Timestamp>)> {
    let stats = stats?;
    Some((number(stats.working_set_bytes?), Some(stats.time)))
}

fn swap(stats: Option<&SwapStats>) -> Option<(f64, Option<Timestamp>)> {
    let stats = stats?;
    Some((number(stats.swap_usage_bytes?), Some(stats.time)))
}

/// Metrics are floats: beyond 2^53 the last digits go.
#[allow(clippy::cast_precision_loss, reason = "metrics are floats")]
fn number(n: u64) -> f64 {
    n as f64
}

#[allow(clippy::cast_precision_loss, reason = "metrics are floats")]
fn seconds(nanos: i64) -> f64 {
    nanos as f64 / 1e9
}
