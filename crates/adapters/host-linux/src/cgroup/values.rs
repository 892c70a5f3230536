//! Which file gets which text.

use model::cgroup::{cpu_weight, page_size_name};
use model::resources::CgroupValues;
use ports::host::CgroupVersion;

/// Files of one controller with the text to write, in order.
type Writes = Vec<(String, String)>;

/// Everything to write for `values`, by controller.
pub(super) fn writes(version: CgroupVersion, values: &CgroupValues) -> Vec<(&'static str, Writes)> {
    match version {
        CgroupVersion::V1 => v1(values),
        CgroupVersion::V2 => v2(values),
    }
}

fn v1(v: &CgroupValues) -> Vec<(&'static str, Writes)> {
    let mut cpu = Writes::new();
    if let Some(shares) = v.cpu_shares {
        cpu.push(("cpu.shares".into(), shares.to_string()));
    }
    if let Some(period) = v.cpu_period_us {
        cpu.push(("cpu.cfs_period_us".into(), period.to_string()));
    }
    if let Some(quota) = v.cpu_quota_us {
        cpu.push(("cpu.cfs_quota_us".into(), quota.to_string()));
    }
    let memory = v.memory_limit_bytes.map(|b| ("memory.limit_in_bytes".to_owned(), b.to_string()));
    let hugetlb = v
        .hugetlb_bytes
        .iter()
        .map(|(size, b)| (format!("hugetlb.{}.limit_in_bytes", page_size_name(*size)), b.to_string()));
    vec![("cpu", cpu), ("memory", memory.into_iter().collect()), ("pids", pids(v)), ("hugetlb", hugetlb.collect())]
}

fn v2(v: &CgroupValues) -> Vec<(&'static str, Writes)> {
    let mut cpu = Writes::new();
    if let Some(shares) = v.cpu_shares {
        cpu.push(("cpu.weight".into(), cpu_weight(shares).to_string()));
    }
    if let Some(quota) = v.cpu_quota_us {
        let quota = if quota < 0 { "max".to_owned() } else { quota.to_string() };
        let period = v.cpu_period_us.map(|p| format!(" {p}")).unwrap_or_default();
        cpu.push(("cpu.max".into(), format!("{quota}{period}")));
    }
    let memory = v.memory_limit_bytes.map(|b| ("memory.max".to_owned(), or_max(b)));
    let hugetlb =
        v.hugetlb_bytes.iter().map(|(size, b)| (format!("hugetlb.{}.max", page_size_name(*size)), b.to_string()));
    vec![("cpu", cpu), ("memory", memory.into_iter().collect()), ("pids", pids(v)), ("hugetlb", hugetlb.collect())]
}

fn pids(v: &CgroupValues) -> Writes {
    v.pids_max.map(|n| ("pids.max".to_owned(), or_max(n))).into_iter().collect()
}

fn or_max(n: i64) -> String {
    if n < 0 { "max".to_owned() } else { n.to_string() }
}
