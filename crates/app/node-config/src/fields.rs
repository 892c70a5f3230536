//! Fields of KubeletConfiguration v1beta1 (of Kubernetes 1.36) that bosun knows by name and type and does not use yet.

use serde_json::Value;

use crate::error::ConfigError;
use crate::go_duration;
use crate::reader::{Findings, Reader};

/// A field without a use.
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// Default as JSON text: setting it is not worth a word. Empty: whatever is empty.
    pub(crate) default: &'static str,
    /// What happens instead; empty for parts of a field that is answered as a whole.
    pub(crate) instead: &'static str,
}

/// Type of a field, with its range.
pub(crate) enum Kind {
    Bool,
    Int(i64, i64),
    Fraction,
    Text,
    Word(&'static [&'static str]),
    Duration,
    ObjectList,
    /// Text by name.
    TextMap,
    Object(&'static [Field]),
}

impl Kind {
    /// Notes what does not fit; says whether all does.
    pub(crate) fn check(&self, path: &str, value: &Value, findings: &mut Findings) -> bool {
        let before = findings.errors.len();
        match self {
            Kind::Bool => drop(findings.bool(path, value)),
            Kind::Int(low, high) => drop(findings.int(path, value, *low, *high)),
            Kind::Fraction => match value.as_f64() {
                Some(f) if f > 0.0 && f <= 1.0 => {}
                _ => findings
                    .error(ConfigError::new(path, "is out of range").value(value).allowed("more than 0, at most 1")),
            },
            Kind::Text => drop(findings.text(path, value)),
            Kind::Word(_) if value.as_str() == Some("") => {}
            Kind::Word(words) => drop(findings.word(path, value, words)),
            Kind::Duration => drop(findings.duration(path, value)),
            Kind::ObjectList => {
                for (i, v) in findings.list(path, value).unwrap_or_default().iter().enumerate() {
                    findings.object(&format!("{path}[{i}]"), v);
                }
            }
            Kind::TextMap => {
                for (key, v) in findings.object(path, value).into_iter().flatten() {
                    findings.text(&format!("{path}.{key}"), v);
                }
            }
            Kind::Object(fields) => {
                if let Some(object) = findings.object(path, value).cloned() {
                    Reader::new(path, object, findings).finish(fields);
                }
            }
        }
        findings.errors.len() == before
    }
}

/// Whether a value asks for nothing but the default.
pub(crate) fn is_default(field: &Field, value: &Value) -> bool {
    let empty = match value {
        Value::Null => true,
        Value::String(s) => s.is_empty() || s == "0s",
        Value::Array(a) => a.is_empty(),
        Value::Object(o) => o.is_empty(),
        Value::Number(_) | Value::Bool(_) => false,
    };
    if empty {
        return true;
    }
    if let (Kind::Object(fields), Value::Object(object)) = (&field.kind, value) {
        return object.iter().all(|(k, v)| fields.iter().find(|f| f.name == k).is_none_or(|f| is_default(f, v)));
    }
    let Ok(default) = serde_json::from_str::<Value>(field.default) else { return false };
    if let (Kind::Duration, Some(a), Some(b)) = (&field.kind, value.as_str(), default.as_str()) {
        return go_duration::parse(a).is_ok_and(|a| Ok(a) == go_duration::parse(b));
    }
    *value == default
}

const fn field(name: &'static str, kind: Kind, default: &'static str, instead: &'static str) -> Field {
    Field { name, kind, default, instead }
}

/// A part of a field that is answered as a whole.
const fn part(name: &'static str, kind: Kind, default: &'static str) -> Field {
    field(name, kind, default, "")
}

const NO_EVICTION: &str = "bosun evicts no pod";
const NO_PINNING: &str = "all containers share all CPUs and memory";
const NO_SHUTDOWN: &str = "pods are not stopped before the node shuts down";
const NO_EFFECT: &str = "no effect with a CRI runtime";

/// Top-level fields without a use.
pub(crate) const UNUSED: &[Field] = &[
    field("enableContentionProfiling", Kind::Bool, "false", "there is no profile of contended locks"),
    field("showHiddenMetricsForVersion", Kind::Text, "", "no metric is hidden"),
    field("kubeletCgroups", Kind::Text, "", "bosun stays in the cgroup that it was started in"),
    field("systemCgroups", Kind::Text, "", "no process is moved"),
    field("reservedMemory", Kind::ObjectList, "", NO_PINNING),
    field("cpuManagerPolicy", Kind::Word(&["none", "static"]), "\"none\"", NO_PINNING),
    field("cpuManagerPolicyOptions", Kind::TextMap, "", NO_PINNING),
    field("cpuManagerReconcilePeriod", Kind::Duration, "\"10s\"", NO_PINNING),
    field("memoryManagerPolicy", Kind::Word(&["None", "Static"]), "\"None\"", NO_PINNING),
    field(
        "topologyManagerPolicy",
        Kind::Word(&["none", "best-effort", "restricted", "single-numa-node"]),
        "\"none\"",
        NO_PINNING,
    ),
    field("topologyManagerScope", Kind::Word(&["container", "pod"]), "\"container\"", NO_PINNING),
    field("topologyManagerPolicyOptions", Kind::TextMap, "", NO_PINNING),
    field("qosReserved", Kind::TextMap, "", "no memory is set aside for a QoS class"),
    field("maxOpenFiles", Kind::Int(0, i64::MAX), "1000000", "the limit of the service manager holds (LimitNOFILE)"),
    field("memoryThrottlingFactor", Kind::Fraction, "0.9", "memory.high is not set"),
    field("memoryReservationPolicy", Kind::Word(&["None", "TieredReservation"]), "\"None\"", "memory is not reserved"),
    field("protectKernelDefaults", Kind::Bool, "false", "kernel parameters are neither checked nor set"),
    field(
        "hairpinMode",
        Kind::Word(&["hairpin-veth", "none", "promiscuous-bridge"]),
        "\"promiscuous-bridge\"",
        NO_EFFECT,
    ),
    field("makeIPTablesUtilChains", Kind::Bool, "true", "no iptables chain is made"),
    field("iptablesMasqueradeBit", Kind::Int(0, 31), "14", NO_EFFECT),
    field("iptablesDropBit", Kind::Int(0, 31), "15", NO_EFFECT),
    field("kernelMemcgNotification", Kind::Bool, "false", NO_EVICTION),
    field("shutdownGracePeriod", Kind::Duration, "\"0s\"", NO_SHUTDOWN),
    field("shutdownGracePeriodCriticalPods", Kind::Duration, "\"0s\"", NO_SHUTDOWN),
    field("shutdownGracePeriodByPodPriority", Kind::ObjectList, "", NO_SHUTDOWN),
    field(
        "volumePluginDir",
        Kind::Text,
        "\"/usr/libexec/kubernetes/kubelet-plugins/volume/exec/\"",
        "there are no volume plugins",
    ),
    field("tracing", Kind::Object(TRACING), "", "no traces are sent"),
];

const TRACING: &[Field] =
    &[part("endpoint", Kind::Text, ""), part("samplingRatePerMillion", Kind::Int(0, 1_000_000), "")];
