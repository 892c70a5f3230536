//! Limits of version 2, of the words of version 1 that a spec has, as `runc` 1.1 translates them (since 1.3.2 it has another scale of weights).

use std::io;
use std::path::Path;

use super::groups::write;
use super::resources::{Memory, Resources, checked_size};
use crate::helper::at;

/// Microseconds of a period where only a quota is given (the kernel's own default).
const PERIOD: u64 = 100_000;
/// The range of shares, and of weights.
const SHARES: (u64, u64) = (2, 262_144);
const WEIGHTS: (u64, u64) = (1, 10_000);

/// Sets limits of a group; what is not given stays as it is.
pub(super) fn limit(folder: &Path, limits: &Resources) -> io::Result<()> {
    for (file, value) in values(limits)? {
        let path = folder.join(&file);
        match write(&path, &value) {
            // Reserved pages, which older kernels do not count by themselves; and swap that nobody counts, where there is nothing to limit.
            Err(e) if e.kind() == io::ErrorKind::NotFound && may_lack(&file, &value) => {}
            Err(e) => {
                let named = io::Error::new(e.kind(), format!("{value}: {e}"));
                return Err(at(&path)(named));
            }
            Ok(()) => {}
        }
    }
    Ok(())
}

fn may_lack(file: &str, value: &str) -> bool {
    file.contains(".rsvd.") || file == "memory.swap.max" && ["max", "0"].contains(&value)
}

fn values(limits: &Resources) -> io::Result<Vec<(String, String)>> {
    let mut all: Vec<(String, String)> = Vec::new();
    let mut put = |file: &str, value: String| all.push((file.to_owned(), value));
    let cpu = &limits.cpu;
    if let Some(shares) = cpu.shares {
        put("cpu.weight", weight(shares).to_string());
    }
    if cpu.quota.is_some() || cpu.period.is_some() {
        put("cpu.max", format!("{} {}", or_max(cpu.quota.unwrap_or(-1)), cpu.period.unwrap_or(PERIOD)));
    }
    if let Some(cpus) = &cpu.cpus {
        put("cpuset.cpus", cpus.clone());
    }
    if let Some(mems) = &cpu.mems {
        put("cpuset.mems", mems.clone());
    }
    // First: it may be that memory alone is not to be had.
    if let Some(swap) = swap(&limits.memory)? {
        put("memory.swap.max", or_max(swap));
    }
    if let Some(limit) = limits.memory.limit {
        put("memory.max", or_max(limit));
    }
    for pages in &limits.pages {
        let size = checked_size(&pages.page_size)?;
        put(&format!("hugetlb.{size}.max"), pages.limit.to_string());
        put(&format!("hugetlb.{size}.rsvd.max"), pages.limit.to_string());
    }
    for (file, value) in &limits.unified {
        if !file.contains('.') || file.contains('/') || file.starts_with("cgroup.") {
            return Err(io::Error::other(format!("unified: {file:?} is no file of a controller")));
        }
        put(file, value.clone());
    }
    Ok(all)
}

/// On one scale with the groups above it (`model::cgroup::cpu_weight`).
fn weight(shares: u64) -> u64 {
    let shares = shares.clamp(SHARES.0, SHARES.1);
    WEIGHTS.0 + (shares - SHARES.0) * (WEIGHTS.1 - WEIGHTS.0) / (SHARES.1 - SHARES.0)
}

/// Swap alone, of memory and swap together.
fn swap(memory: &Memory) -> io::Result<Option<i64>> {
    match (memory.swap, memory.limit) {
        (None, Some(-1)) => Ok(Some(-1)),
        (None, _) => Ok(None),
        (Some(both), _) if both < 0 => Ok(Some(-1)),
        (Some(both), Some(-1)) => Ok(Some(both)),
        (Some(both), Some(limit)) if limit >= 0 && both >= limit => Ok(Some(both - limit)),
        (Some(both), limit) => {
            Err(io::Error::other(format!("memory and swap of {both} with a limit of memory of {limit:?}")))
        }
    }
}

fn or_max(n: i64) -> String {
    if n < 0 { "max".to_owned() } else { n.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> io::Result<Vec<String>> {
        let limits: Resources = serde_json::from_str(text).expect("resources");
        values(&limits).map(|all| all.into_iter().map(|(file, value)| format!("{file} {value}")).collect())
    }

    #[test]
    fn limits_are_translated_as_runc_does_it() {
        for (text, want) in [
            ("{}", vec![]),
            (
                r#"{"cpu": {"shares": 1024, "quota": 25000, "period": 50000}}"#,
                vec!["cpu.weight 39", "cpu.max 25000 50000"],
            ),
            (r#"{"cpu": {"shares": 2, "quota": -1}}"#, vec!["cpu.weight 1", "cpu.max max 100000"]),
            (r#"{"memory": {"limit": 100, "swap": 100}}"#, vec!["memory.swap.max 0", "memory.max 100"]),
            (r#"{"memory": {"limit": 100, "swap": 150}}"#, vec!["memory.swap.max 50", "memory.max 100"]),
            (r#"{"memory": {"limit": -1, "swap": 50}}"#, vec!["memory.swap.max 50", "memory.max max"]),
            (r#"{"memory": {"limit": -1}}"#, vec!["memory.swap.max max", "memory.max max"]),
            (
                r#"{"hugepageLimits": [{"pageSize": "2MB", "limit": 0}]}"#,
                vec!["hugetlb.2MB.max 0", "hugetlb.2MB.rsvd.max 0"],
            ),
            (r#"{"unified": {"memory.oom.group": "1"}}"#, vec!["memory.oom.group 1"]),
        ] {
            assert_eq!(of(text).expect(text), want, "{text}");
        }
    }

    #[test]
    fn what_is_no_limit_is_refused() {
        for text in [
            r#"{"unified": {"../memory.max": "1"}}"#,
            r#"{"unified": {"cgroup.procs": "1"}}"#,
            r#"{"memory": {"limit": 100, "swap": 50}}"#,
            r#"{"memory": {"swap": 50}}"#,
            r#"{"hugepageLimits": [{"pageSize": "2/B", "limit": 0}]}"#,
        ] {
            assert!(of(text).is_err(), "{text}");
        }
    }
}
