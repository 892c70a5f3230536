//! Rules of a kubelet over fields that have no use here yet: what it refuses is refused, so that a file means the same to both.

use serde_json::{Map, Value};

use crate::error::ConfigError;
use crate::findings::Findings;

/// The minor release before the one that this daemon stands for.
const PREVIOUS: &str = "1.35";

/// Values of a wrong type are reported elsewhere.
pub(in crate::read) fn check(fields: &Map<String, Value>, findings: &mut Findings) {
    const HIDDEN: &str = "showHiddenMetricsForVersion";
    if let Some(value) = fields.get(HIDDEN)
        && value.as_str().is_some_and(|version| !version.is_empty() && version != PREVIOUS)
    {
        findings.error(ConfigError::new(HIDDEN, "is not the release before this one").value(value).allowed(PREVIOUS));
    }
    reserved_memory(fields, findings);
}

/// Only memory and huge pages, each once per NUMA node, more than 0.
fn reserved_memory(fields: &Map<String, Value>, findings: &mut Findings) {
    let mut seen = std::collections::BTreeSet::new();
    let entries = fields.get("reservedMemory").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    for (i, entry) in entries.iter().enumerate() {
        let at = format!("reservedMemory[{i}]");
        let node = entry.get("numaNode").and_then(Value::as_i64).unwrap_or(0);
        let limits = entry.get("limits").and_then(Value::as_object);
        if node < 0 || limits.is_none_or(Map::is_empty) {
            let error = ConfigError::new(&at, "must name a NUMA node and limits").value(entry);
            findings.error(error.allowed("{numaNode: 0, limits: {memory: 1Gi}}"));
            continue;
        }
        for (name, value) in limits.into_iter().flatten() {
            let at = format!("{at}.limits.{name}");
            if name != "memory" && !name.starts_with("hugepages-") {
                findings.error(ConfigError::new(at, "is no memory").allowed("memory, hugepages-<size>"));
            } else if !seen.insert((node, name.clone())) {
                findings.error(ConfigError::new(at, "is listed twice for one NUMA node").value(value));
            } else if let Some(amount) = findings.quantity(&at, value)
                && (amount.is_zero() || amount.is_negative())
            {
                findings.error(ConfigError::new(at, "must be more than 0").value(value));
            }
        }
    }
}
