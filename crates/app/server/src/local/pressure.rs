//! `GET /v1/pressure`: what may run short on the node, and what came of it.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use contract::eviction::{PressureView, SignalView, ThresholdView};
use serde::{Deserialize, Serialize};

use super::views::Views;

/// `GET /v1/pressure`. Times are nanoseconds since the epoch.
#[derive(Debug, Clone, Serialize, Deserialize, Default)]
#[serde(rename_all = "camelCase")]
pub struct PressureInfo {
    /// When the machine was looked at last; absent: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub looked_at_ns: Option<i64>,
    /// What may run short.
    pub signals: Vec<SignalLine>,
    /// Conditions that hold.
    pub conditions: Vec<ConditionLine>,
    /// What was tidied up last, since the daemon is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_reclaim: Option<ReclaimLine>,
    /// Who was evicted last, since the daemon is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_victim: Option<VictimLine>,
}

/// One signal.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SignalLine {
    /// `memory.available`, ...
    pub signal: String,
    /// Bytes, inodes or processes that are left; absent: it cannot be seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub available: Option<i64>,
    /// What there is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<i64>,
    /// Hard and soft ones.
    pub thresholds: Vec<ThresholdLine>,
}

/// One threshold.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ThresholdLine {
    /// As configured.
    pub below: String,
    /// So much must be free again on top, as configured.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub minimum_reclaim: String,
    /// It has no grace.
    pub hard: bool,
    /// For how long a soft one must be crossed, in seconds.
    pub grace_seconds: f64,
    /// Since when it is crossed; absent: it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crossed_since_ns: Option<i64>,
    /// Its grace is over: pods go.
    pub due: bool,
}

/// One condition.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConditionLine {
    /// `MemoryPressure`, ...
    pub condition: String,
    /// When it ends if nothing runs short again; absent: something does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_ns: Option<i64>,
}

/// What was done before a pod had to go.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReclaimLine {
    /// When.
    pub at_ns: i64,
    /// For what.
    pub signal: String,
    /// Bytes of images that went; absent: it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub freed_bytes: Option<u64>,
    /// No pod had to go.
    pub enough: bool,
}

/// A pod that was evicted.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VictimLine {
    /// When it was told to end.
    pub at_ns: i64,
    /// `namespace/name`.
    pub pod: String,
    /// What ran short, or which limit of its own it met.
    pub signal: String,
    /// As its status says it.
    pub message: String,
}

pub(super) async fn pressure(State(views): State<Arc<Views>>) -> Json<PressureInfo> {
    Json(info(&views.pressure.get()))
}

fn info(view: &PressureView) -> PressureInfo {
    PressureInfo {
        looked_at_ns: view.looked_at.is_set().then_some(view.looked_at.0),
        signals: view.signals.iter().map(signal).collect(),
        conditions: view
            .conditions
            .iter()
            .map(|c| ConditionLine { condition: c.condition.clone(), until_ns: c.until.map(|at| at.0) })
            .collect(),
        last_reclaim: view.reclaim.as_ref().map(|r| ReclaimLine {
            at_ns: r.at.0,
            signal: r.signal.clone(),
            freed_bytes: r.freed_bytes,
            enough: r.enough,
        }),
        last_victim: view.victim.as_ref().map(|v| VictimLine {
            at_ns: v.at.0,
            pod: v.pod.clone(),
            signal: v.signal.clone(),
            message: v.message.clone(),
        }),
    }
}

fn signal(row: &SignalView) -> SignalLine {
    SignalLine {
        signal: row.signal.clone(),
        available: row.available,
        capacity: row.capacity,
        thresholds: row.thresholds.iter().map(threshold).collect(),
    }
}

fn threshold(row: &ThresholdView) -> ThresholdLine {
    ThresholdLine {
        below: row.below.clone(),
        minimum_reclaim: row.reclaim.clone(),
        hard: row.grace_ms == 0,
        grace_seconds: std::time::Duration::from_millis(row.grace_ms).as_secs_f64(),
        crossed_since_ns: row.since.map(|at| at.0),
        due: row.due,
    }
}
