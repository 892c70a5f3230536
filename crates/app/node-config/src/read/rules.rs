//! Rules that span several fields.

use std::path::{Component, Path};
use std::time::Duration;

use serde_json::{Map, Value};

use crate::config::{Enforce, NodeConfig, TlsVersion};
use crate::error::ConfigError;
use crate::findings::Findings;
use model::go_duration;

pub(super) mod unused;

/// Node allocatable needs cgroups to be enforced on. `given`: the file names what to enforce; the default gives way to
/// `cgroupsPerQOS: false` only when the file says so, as for a kubelet.
pub(super) fn enforcement(c: &NodeConfig, given: bool, findings: &mut Findings) {
    const NAME: &str = "enforceNodeAllocatable";
    let list = &c.allocatable.enforce;
    if !c.cgroups.per_qos && !list.is_empty() {
        let reason = if given {
            "needs cgroupsPerQOS to be true"
        } else {
            "the default of [pods] needs cgroupsPerQOS to be true"
        };
        findings.error(ConfigError::new(NAME, reason).allowed("[], or cgroupsPerQOS: true"));
    }
    let needs = [
        (
            Enforce::SystemReserved,
            Enforce::SystemReservedCompressible,
            "systemReservedCgroup",
            &c.allocatable.system_reserved_cgroup,
        ),
        (
            Enforce::KubeReserved,
            Enforce::KubeReservedCompressible,
            "kubeReservedCgroup",
            &c.allocatable.kube_reserved_cgroup,
        ),
    ];
    for (plain, compressible, field, cgroup) in needs {
        let (plain, compressible) = (list.contains(&plain), list.contains(&compressible));
        if plain && compressible {
            let reason = format!("cannot hold a reservation and its -compressible form, see {field}");
            findings.error(ConfigError::new(NAME, reason));
        }
        if (plain || compressible) && cgroup.is_empty() {
            findings.error(ConfigError::new(field, format!("must be set, {NAME} refers to it")));
        }
    }
}

/// Rules over fields that are not used yet, or not only by us. Values of a wrong type are reported elsewhere.
pub(super) fn across_raw_fields(fields: &Map<String, Value>, findings: &mut Findings) {
    let raw = Raw(fields);
    image_gc(&raw, findings);
    if let Some(Value::Object(soft)) = fields.get("evictionSoft") {
        let periods = fields.get("evictionSoftGracePeriod").and_then(Value::as_object);
        for signal in soft.keys().filter(|s| periods.is_none_or(|p| !p.contains_key(*s))) {
            let reason = format!("needs a grace period: evictionSoftGracePeriod.{signal}");
            findings.error(ConfigError::new(format!("evictionSoft.{signal}"), reason));
        }
    }
    if raw.given("reservedSystemCPUs") && (raw.given("systemReservedCgroup") || raw.given("kubeReservedCgroup")) {
        let reason = "cannot be set together with systemReservedCgroup or kubeReservedCgroup";
        findings.error(ConfigError::new("reservedSystemCPUs", reason));
    }
    if raw.given("systemCgroups") && !raw.given("cgroupRoot") {
        findings.error(ConfigError::new("cgroupRoot", "must be set when systemCgroups is set"));
    }
}

/// Fields as they stand in the document.
struct Raw<'a>(&'a Map<String, Value>);

impl Raw<'_> {
    /// A whole number, or its default; `None` when it is something else.
    fn int(&self, name: &str, default: i64) -> Option<i64> {
        self.0.get(name).map_or(Some(default), Value::as_i64)
    }

    /// A duration, or its default; `None` when it is something else.
    fn duration(&self, name: &str, default: &str) -> Option<Duration> {
        let text = self.0.get(name).map_or(Some(default), Value::as_str)?;
        go_duration::parse(text).ok()
    }

    /// Whether a field has another value than its zero.
    fn given(&self, name: &str) -> bool {
        match self.0.get(name) {
            None | Some(Value::Null) => false,
            Some(Value::String(s)) => !s.is_empty() && s != "0s",
            Some(Value::Array(a)) => !a.is_empty(),
            Some(Value::Object(o)) => !o.is_empty(),
            Some(_) => true,
        }
    }
}

fn image_gc(raw: &Raw<'_>, findings: &mut Findings) {
    const LOW: &str = "imageGCLowThresholdPercent";
    const HIGH: &str = "imageGCHighThresholdPercent";
    if let (Some(low), Some(high)) = (raw.int(LOW, 80), raw.int(HIGH, 85))
        && low >= high
    {
        findings.error(if raw.given(LOW) {
            let error = ConfigError::new(LOW, format!("must be below {HIGH}"));
            error.value(&Value::from(low)).allowed(format!("less than {high}"))
        } else {
            let error = ConfigError::new(HIGH, format!("must be above {LOW}"));
            error.value(&Value::from(high)).allowed(format!("more than {low}"))
        });
    }
    let (least, most) = (raw.duration("imageMinimumGCAge", "2m"), raw.duration("imageMaximumGCAge", "0s"));
    if let (Some(least), Some(most)) = (least, most)
        && !most.is_zero()
        && most <= least
    {
        let error = ConfigError::new("imageMaximumGCAge", "must be more than imageMinimumGCAge");
        findings.error(error.value(&Value::from(go_duration::format(most))));
    }
}

/// Fields that are read and that no part of bosun acts on yet.
pub(super) fn without_effect(c: &NodeConfig, findings: &mut Findings) {
    let default = NodeConfig::default();
    containerfs(c, findings);
    let idle = [
        (
            "contentType",
            !["application/json", default.api.content_type.as_str()].contains(&c.api.content_type.as_str()),
            "requests to the API server are JSON",
        ),
        ("tlsMinVersion", c.server.tls.min_version < TlsVersion::Tls12, "nothing older than TLS 1.2 is spoken"),
    ];
    for (field, set, instead) in idle {
        if set {
            findings.warn(field, format!("not implemented yet: {instead}"));
        }
    }
    if !c.node.enable_controller_attach_detach {
        let reason =
            "pods wait for ever for volumes that must be attached: a node attaches none itself, a kubelet neither";
        findings.warn("enableControllerAttachDetach", reason);
    }
}

/// Thresholds of the disk of writable layers follow from which disk that is (node-and-resources 3.3).
fn containerfs(c: &NodeConfig, findings: &mut Findings) {
    let (hard, soft) = (c.eviction.hard.keys(), c.eviction.soft.keys());
    let given = hard.map(|signal| ("evictionHard", signal)).chain(soft.map(|signal| ("evictionSoft", signal)));
    for (field, signal) in given.filter(|(_, signal)| signal.starts_with("containerfs.")) {
        let reason =
            "has no effect: the threshold of nodefs or imagefs holds, whichever disk the runtime's layers are on";
        findings.warn(format!("{field}.{signal}"), reason);
    }
}

/// How many CPUs a list such as `0-1,4` names.
pub(super) fn cpus(text: &str) -> Option<i64> {
    let mut all = std::collections::BTreeSet::new();
    for part in text.split(',') {
        let (low, high) = part.split_once('-').unwrap_or((part, part));
        let (low, high) = (low.trim().parse::<u16>().ok()?, high.trim().parse::<u16>().ok()?);
        if low > high {
            return None;
        }
        all.extend(low..=high);
    }
    i64::try_from(all.len()).ok()
}

/// Absolute, and the same after cleaning.
pub(super) fn is_clean(path: &Path) -> bool {
    let plain = path.components().all(|c| matches!(c, Component::RootDir | Component::Normal(_)));
    let rebuilt: std::path::PathBuf = path.components().collect();
    plain && path.is_absolute() && rebuilt.as_os_str() == path.as_os_str()
}

/// A sysctl name, or a prefix of one that ends with `*`.
pub(super) fn is_sysctl_pattern(pattern: &str) -> bool {
    let name = pattern.strip_suffix('*').map_or(pattern, |p| p.trim_end_matches(['.', '/']));
    let edge = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let part = |p: &str| {
        let b = p.as_bytes();
        b.first().is_some_and(edge)
            && b.last().is_some_and(edge)
            && b.iter().all(|b| edge(b) || matches!(b, b'-' | b'_'))
    };
    pattern.len() <= 253 && name.split(['.', '/']).all(part)
}
