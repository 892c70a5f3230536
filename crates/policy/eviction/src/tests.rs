use model::core::Pod;
use model::stats::PodStats;
use serde_json::{Value, json};

use crate::{Amount, Observed, Signal, Signals, Threshold};

mod layout;
mod ledger;
mod local;
mod message;
mod pace;
mod rank;

const GI: i64 = 1 << 30;
const MI: i64 = 1 << 20;

fn seen(signal: Signal, available: i64, capacity: i64) -> Signals {
    [(signal, Observed { available, capacity })].into()
}

fn threshold(signal: Signal, below: Amount, min_reclaim: Option<Amount>) -> Threshold {
    Threshold { signal, below, min_reclaim, grace: std::time::Duration::ZERO }
}

fn amount(text: &str) -> Amount {
    Amount::Absolute(text.parse().expect("a quantity"))
}

fn pod(spec: Value) -> Pod {
    serde_json::from_value(json!({ "metadata": { "name": "web" }, "spec": spec })).expect("a pod")
}

/// `stats`: the fields that matter.
fn stats(mut stats: Value) -> PodStats {
    for (list, extra) in [("containers", json!({ "startTime": "2026-01-01T00:00:00Z" })), ("volume", json!({}))] {
        for item in stats.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            fill(item, &extra);
        }
    }
    stats["podRef"] = json!({ "name": "web", "namespace": "default", "uid": "u" });
    stats["startTime"] = json!("2026-01-01T00:00:00Z");
    if stats.get("containers").is_none() {
        stats["containers"] = json!([]);
    }
    for part in ["memory", "ephemeral-storage"] {
        if let Some(part) = stats.get_mut(part) {
            timed(part);
        }
    }
    serde_json::from_value(stats).expect("statistics")
}

fn fill(item: &mut Value, extra: &Value) {
    let fields = item.as_object_mut().expect("an object");
    fields.extend(extra.as_object().expect("an object").clone());
    for part in ["memory", "rootfs", "logs"] {
        if let Some(part) = fields.get_mut(part) {
            timed(part);
        }
    }
    if extra.as_object().is_some_and(serde_json::Map::is_empty) {
        timed(item);
    }
}

fn timed(part: &mut Value) {
    part["time"] = json!("2026-01-01T00:00:00Z");
}
