//! `bosun get pressure`.

use std::path::Path;

use anyhow::Result;
use model::Timestamp;
use server::local::{ConditionLine, PressureInfo, SignalLine, ThresholdLine};

use crate::client::get;
use crate::columns::{age, ago, now};
use crate::show::{self, Output, lines, print, structured};

pub(super) async fn show(socket: &Path, output: Option<Output>) -> Result<()> {
    let info: PressureInfo = get(socket, "/v1/pressure").await?;
    if !structured(output, &info)? {
        page(&info, now()).iter().for_each(|line| print(line));
    }
    Ok(())
}

fn page(info: &PressureInfo, now: Timestamp) -> Vec<String> {
    let Some(at) = info.looked_at_ns else {
        return vec![
            "The machine was not looked at: there are no eviction thresholds, or the daemon has just begun.".to_owned(),
        ];
    };
    let header = ["SIGNAL", "AVAILABLE", "OF", "THRESHOLD", "GRACE", "CROSSED"];
    let mut out = lines(&header, info.signals.iter().flat_map(|signal| rows(signal, now)).collect());
    out.push(String::new());
    out.push(format!("Looked at:    {}", ago(at, now)));
    let conditions: Vec<String> = info.conditions.iter().map(|c| condition(c, now)).collect();
    let conditions = if conditions.is_empty() { "none".to_owned() } else { conditions.join(", ") };
    out.push(format!("Conditions:   {conditions}"));
    let reclaim = info.last_reclaim.as_ref().map_or_else(
        || "none".to_owned(),
        |r| {
            let freed =
                r.freed_bytes.map_or_else(String::new, |bytes| format!(", images of {} went", show::bytes(bytes)));
            let enough = if r.enough { "it was enough" } else { "not enough" };
            format!("{} for {}{freed}, {enough}", ago(r.at_ns, now), r.signal)
        },
    );
    out.push(format!("Last reclaim: {reclaim}"));
    let victim = info.last_victim.as_ref().map_or_else(
        || "none".to_owned(),
        |v| format!("{} {} for {}: {}", v.pod, ago(v.at_ns, now), v.signal, v.message.trim()),
    );
    out.push(format!("Last victim:  {victim}"));
    out
}

fn condition(line: &ConditionLine, now: Timestamp) -> String {
    match line.until_ns {
        None => line.condition.clone(),
        Some(ns) => {
            format!("{} (for {} more if nothing runs short)", line.condition, age(Timestamp(ns).nanos_since(now)))
        }
    }
}

/// A line for each threshold of a signal, or one without.
fn rows(line: &SignalLine, now: Timestamp) -> Vec<Vec<String>> {
    let amount = |n: Option<i64>| {
        n.map_or_else(
            || "-".to_owned(),
            |n| {
                if line.signal.ends_with(".available") && !line.signal.starts_with("pid.") {
                    show::bytes(u64::try_from(n).unwrap_or(0))
                } else {
                    n.to_string()
                }
            },
        )
    };
    let available = if line.available.is_some() { amount(line.available) } else { "not known".to_owned() };
    let row = |threshold: [String; 3]| {
        let [below, grace, crossed] = threshold;
        vec![line.signal.clone(), available.clone(), amount(line.capacity), below, grace, crossed]
    };
    if line.thresholds.is_empty() {
        return vec![row(["-", "-", "-"].map(str::to_owned))];
    }
    line.thresholds.iter().map(|t| row(cells(t, now))).collect()
}

fn cells(threshold: &ThresholdLine, now: Timestamp) -> [String; 3] {
    let reclaim = match threshold.minimum_reclaim.as_str() {
        "" => String::new(),
        amount => format!(" (+{amount})"),
    };
    let grace = if threshold.hard { "hard".to_owned() } else { format!("{}s", threshold.grace_seconds) };
    let crossed = threshold.crossed_since_ns.map_or_else(
        || "-".to_owned(),
        |ns| {
            let since = age(now.nanos_since(Timestamp(ns)));
            if threshold.due { format!("{since}, pods go") } else { since }
        },
    );
    [format!("< {}{reclaim}", threshold.below), grace, crossed]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(info: serde_json::Value) -> Vec<String> {
        page(&serde_json::from_value(info).unwrap(), Timestamp::from_secs(1000))
    }

    #[test]
    fn a_node_that_runs_short_tells_of_what_since_when_until_when_and_whom_it_cost() {
        let ns = |secs: i64| secs * 1_000_000_000;
        let info = serde_json::json!({
            "lookedAtNs": ns(996),
            "signals": [
                { "signal": "memory.available", "available": 90 << 20, "capacity": 8_i64 << 30, "thresholds": [
                    { "below": "100Mi", "hard": true, "graceSeconds": 0.0, "crossedSinceNs": ns(990), "due": true },
                    { "below": "10%", "minimumReclaim": "500Mi", "hard": false, "graceSeconds": 90.0, "crossedSinceNs": ns(940), "due": false },
                ] },
                { "signal": "nodefs.inodesFree", "available": 12345, "capacity": 20000, "thresholds": [] },
                { "signal": "imagefs.available", "thresholds": [{ "below": "15%", "hard": true, "graceSeconds": 0.0, "due": false }] },
            ],
            "conditions": [{ "condition": "MemoryPressure" }, { "condition": "DiskPressure", "untilNs": ns(1200) }],
            "lastReclaim": { "atNs": ns(900), "signal": "nodefs.available", "freedBytes": 3_u64 << 30, "enough": false },
            "lastVictim": { "atNs": ns(901), "pod": "shop/web", "signal": "nodefs.available", "message": "The node was low. " },
        });
        let wanted = [
            "SIGNAL             AVAILABLE  OF     THRESHOLD       GRACE  CROSSED",
            "memory.available   90.0Mi     8.0Gi  < 100Mi         hard   10s, pods go",
            "memory.available   90.0Mi     8.0Gi  < 10% (+500Mi)  90s    60s",
            "nodefs.inodesFree  12345      20000  -               -      -",
            "imagefs.available  not known  -      < 15%           hard   -",
            "",
            "Looked at:    4s ago",
            "Conditions:   MemoryPressure, DiskPressure (for 3m20s more if nothing runs short)",
            "Last reclaim: 100s ago for nodefs.available, images of 3.0Gi went, not enough",
            "Last victim:  shop/web 99s ago for nodefs.available: The node was low.",
        ];
        assert_eq!(shown(info), wanted);
    }

    #[test]
    fn a_quiet_node_says_so_and_one_that_never_looks_too() {
        let info = serde_json::json!({ "lookedAtNs": 999_000_000_000_i64, "signals": [], "conditions": [] });
        let quiet = shown(info);
        for line in ["Looked at:    1s ago", "Conditions:   none", "Last reclaim: none", "Last victim:  none"] {
            assert!(quiet.iter().any(|l| l == line), "{line}: {quiet:#?}");
        }
        let blind = shown(serde_json::json!({ "signals": [], "conditions": [] }));
        assert!(blind.len() == 1 && blind[0].contains("no eviction thresholds"), "{blind:?}");
    }
}
