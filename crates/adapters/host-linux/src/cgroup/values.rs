//! Which file gets which text.

use model::cgroup::{cpu_weight, page_size_name, shares_of_weight};
use model::resources::CgroupValues;
use ports::host::{CgroupVersion, HostResult};

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
    let max = v.memory_limit_bytes.map(|b| ("memory.max".to_owned(), or_max(b)));
    let kept = [("memory.min", v.memory_min_bytes), ("memory.low", v.memory_low_bytes)];
    let kept = kept.into_iter().filter_map(|(file, bytes)| Some((file.to_owned(), bytes?.to_string())));
    let memory = max.into_iter().chain(kept);
    let hugetlb =
        v.hugetlb_bytes.iter().map(|(size, b)| (format!("hugetlb.{}.max", page_size_name(*size)), b.to_string()));
    vec![("cpu", cpu), ("memory", memory.collect()), ("pids", pids(v)), ("hugetlb", hugetlb.collect())]
}

fn pids(v: &CgroupValues) -> Writes {
    v.pids_max.map(|n| ("pids.max".to_owned(), or_max(n))).into_iter().collect()
}

fn or_max(n: i64) -> String {
    if n < 0 { "max".to_owned() } else { n.to_string() }
}

/// From here on a limit of v1 limits nothing: the kernel shows the largest number of whole pages.
const UNLIMITED: i64 = 1 << 62;

/// CPU and memory limits in force. `read` gives the text of a controller's file, `None` where there is none.
pub(super) fn parse(
    version: CgroupVersion,
    read: impl Fn(&str, &str) -> HostResult<Option<String>>,
) -> HostResult<CgroupValues> {
    let number = |text: Option<String>| text.and_then(|t| t.trim().parse::<i64>().ok());
    let limit = |text: Option<String>| {
        let text = text?;
        if text.trim() == "max" { Some(-1) } else { text.trim().parse().ok() }
    };
    let memory = |n: i64| if n >= UNLIMITED { -1 } else { n };
    Ok(match version {
        CgroupVersion::V1 => CgroupValues {
            cpu_shares: number(read("cpu", "cpu.shares")?).and_then(|n| u64::try_from(n).ok()),
            cpu_quota_us: number(read("cpu", "cpu.cfs_quota_us")?),
            cpu_period_us: number(read("cpu", "cpu.cfs_period_us")?).and_then(|n| u64::try_from(n).ok()),
            memory_limit_bytes: number(read("memory", "memory.limit_in_bytes")?).map(memory),
            ..CgroupValues::default()
        },
        CgroupVersion::V2 => {
            let weight = number(read("cpu", "cpu.weight")?).and_then(|n| u64::try_from(n).ok());
            let max = read("cpu", "cpu.max")?.unwrap_or_default();
            let mut words = max.split_whitespace().map(str::to_owned);
            CgroupValues {
                cpu_shares: weight.map(shares_of_weight),
                cpu_quota_us: limit(words.next()),
                cpu_period_us: number(words.next()).and_then(|n| u64::try_from(n).ok()),
                memory_limit_bytes: limit(read("memory", "memory.max")?).map(memory),
                ..CgroupValues::default()
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn parsed(version: CgroupVersion, files: &[(&str, &str)]) -> [Option<i64>; 4] {
        let files: BTreeMap<&str, &str> = files.iter().copied().collect();
        let v = parse(version, |_, file| Ok(files.get(file).map(|t| format!("{t}\n")))).unwrap();
        let signed = |n: Option<u64>| n.map(|n| i64::try_from(n).unwrap());
        [signed(v.cpu_shares), v.cpu_quota_us, signed(v.cpu_period_us), v.memory_limit_bytes]
    }

    #[test]
    fn limits_are_read_as_the_kernel_shows_them() {
        let v1 = [("cpu.shares", "512"), ("cpu.cfs_quota_us", "-1"), ("cpu.cfs_period_us", "100000")];
        let unlimited = ("memory.limit_in_bytes", "9223372036854771712");
        assert_eq!(
            parsed(CgroupVersion::V1, &[&v1[..], &[unlimited]].concat()),
            [Some(512), Some(-1), Some(100_000), Some(-1)]
        );
        let v2 = [("cpu.weight", "20"), ("cpu.max", "50000 100000"), ("memory.max", "4096")];
        let [shares, rest @ ..] = parsed(CgroupVersion::V2, &v2);
        assert_eq!(shares, i64::try_from(shares_of_weight(20)).ok());
        assert_eq!(rest, [Some(50_000), Some(100_000), Some(4096)]);
        let max = [("cpu.max", "max 100000"), ("memory.max", "max")];
        assert_eq!(parsed(CgroupVersion::V2, &max), [None, Some(-1), Some(100_000), Some(-1)]);
        assert_eq!(parsed(CgroupVersion::V2, &[]), [None; 4]);
    }
}
